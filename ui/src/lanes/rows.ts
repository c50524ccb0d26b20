// Lanes: a row per activation, callers above callees; of very many a band per agent, as high as ran at once.
import { asksPerson, failed, shown, within } from "../state/doing";
import type { Activation, Effect, Run } from "../state/run";

export interface Row {
  key: string;
  label: string;
  depth: number;
  /** The activation that it is; -1 where it is one of several. */
  activation: number;
  /** In the order they began. */
  effects: Effect[];
  top: number;
  height: number;
}

export interface Link {
  from: number;
  to: number;
  call: Effect;
}

export interface Layout {
  rows: Row[];
  links: Link[];
  height: number;
  packed: boolean;
}

const MANY = 20;
const HIGH = 30;
const LOW = 10;

export function layout(run: Run): Layout {
  const order = inOrder(run);
  return order.length > MANY ? packed(run, order) : apart(run, order);
}

/** Activations, each followed by those it called. */
function inOrder(run: Run): Activation[] {
  const below = new Map<number, Activation[]>();
  for (const each of run.activations.values()) {
    if (each.number === 0) continue;
    const found = below.get(each.caller);
    if (found) found.push(each);
    else below.set(each.caller, [each]);
  }
  const order: Activation[] = [];
  const seen = new Set<number>();
  const visit = (number: number): void => {
    for (const each of below.get(number) ?? []) {
      if (seen.has(each.number)) continue;
      seen.add(each.number);
      order.push(each);
      visit(each.number);
    }
  };
  visit(0);
  return order;
}

export function effectsOf(run: Run, activation: Activation): Effect[] {
  const found: Effect[] = [];
  for (const turn of activation.turns) {
    for (const id of turn.effects) {
      const each = run.effects.get(id)!;
      if (shown(each)) found.push(each);
    }
  }
  return found;
}

function apart(run: Run, order: Activation[]): Layout {
  const places = new Map<number, number>();
  const rows = order.map((each, index): Row => {
    places.set(each.number, index);
    return {
      key: String(each.number), label: each.label, depth: each.depth - 1, activation: each.number,
      effects: effectsOf(run, each), top: index * HIGH, height: HIGH,
    };
  });
  const links: Link[] = [];
  for (const row of rows) {
    for (const call of row.effects) {
      const to = places.get(call.callee);
      if (call.kind === "call" && to !== undefined) links.push({ from: places.get(row.activation)!, to, call });
    }
  }
  return { rows, links, height: rows.length * HIGH, packed: false };
}

function packed(run: Run, order: Activation[]): Layout {
  const bands = new Map<string, Activation[]>();
  for (const each of order) bands.set(each.agent, [...(bands.get(each.agent) ?? []), each]);
  const rows: Row[] = [];
  let top = 0;
  for (const [agent, members] of bands) {
    const thin = members.length > 8;
    const ends: number[] = [];
    const lines: Effect[][] = [];
    for (const member of members.sort((one, other) => one.began - other.began)) {
      let free = ends.findIndex((end) => end <= member.began);
      if (free < 0) free = ends.length;
      ends[free] = member.ended || Infinity;
      (lines[free] ??= []).push(...effectsOf(run, member));
    }
    lines.forEach((effects, index) => {
      const height = thin ? LOW : HIGH;
      rows.push({
        key: `${agent}.${index}`, depth: 0, effects, top, height,
        label: index ? "" : members.length > 1 ? `${agent} ×${members.length}` : agent,
        activation: members.length === 1 ? members[0]!.number : -1,
      });
      top += height;
    });
  }
  return { rows, links: [], height: top, packed: true };
}

export type Bar = "model" | "tool" | "call" | "wait" | "human" | "error";

export function barOf(effect: Effect): Bar {
  if (asksPerson(effect)) return "human";
  if (failed(effect)) return "error";
  if (effect.kind === "model") return "model";
  return effect.kind === "call" ? "call" : effect.kind === "wait" ? "wait" : "tool";
}

const INSIDE = 0.88;

/** Above the middle of its row is thinking, below it doing, and under that what a tool began in its middle: where a bar begins, and how high it is. */
export function span(effect: Effect, height: number): [number, number] {
  const kind = effect.kind === "model" || effect.kind === "wait" ? "above" : effect.kind === "call" ? "line" : "below";
  const inside = height > LOW && within(effect.id) !== "";
  // The tool that asks stays in sight under its question.
  if (asksPerson(effect)) return [height * 0.14, height * (inside ? 0.42 : 0.72)];
  if (inside) return [height * INSIDE, Math.max(2, height * 0.08)];
  if (kind === "above") return [height * 0.17, height * 0.37];
  return kind === "line" ? [height * 0.7, 2] : [height * 0.64, Math.max(2, height * 0.2)];
}

/** The effect of a row at an instant, the nearest within `reach` seconds; part: how far down the row, 0 to 1. */
export function hit(row: Row, instant: number, part: number, reach: number, until: number): Effect | undefined {
  if (row.height <= LOW) return nearest(row.effects, instant, reach, until);
  const at = (below: boolean) => (each: Effect): boolean =>
    asksPerson(each) || (Boolean(within(each.id)) === below && (below || span(each, row.height)[0] < row.height / 2 === part < 0.6));
  const inside = part < INSIDE - 0.02 ? undefined : nearest(row.effects.filter(at(true)), instant, reach, until);
  return inside ?? nearest(row.effects.filter(at(false)), instant, reach, until);
}

function nearest(effects: Effect[], instant: number, reach: number, until: number): Effect | undefined {
  let best: Effect | undefined;
  let least = reach;
  for (const each of effects) {
    const end = each.end ? each.ended : until;
    const away = instant < each.began ? each.began - instant : instant > end ? instant - end : 0;
    if (away < least || (away === 0 && least === 0 && each.kind !== "call")) {
      best = each;
      least = away;
    }
  }
  return best;
}
