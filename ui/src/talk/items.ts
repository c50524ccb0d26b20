// The transcript as a list: turns nested by call. Calls at once are one group; its members open in place.
import { asksPerson, shown, within } from "../state/doing";
import type { Activation, Effect, MessageFrame, Run, Turn } from "../state/run";
import type { Row } from "../parts/Virtual";

export interface Said extends Row {
  kind: "request";
  depth: number;
  message: MessageFrame;
  began: number;
  call: string;
  /** The record that has the message. */
  seq: number;
}

export interface Taken extends Row {
  kind: "turn";
  depth: number;
  activation: Activation;
  turn: Turn;
  models: Effect[];
  tools: Effect[];
  asks: Effect[];
  calls: Effect[];
  /** What its tools began in their middle. */
  inside: Effect[];
  /** There is a group of calls, of which these are opened. */
  open: boolean;
}

export interface Ended extends Row {
  kind: "outcome";
  /** The request, which has ended. */
  effect: Effect;
}

export type Item = Said | Taken | Ended;

/** opened: activations whose turns are shown under the group of calls that they belong to. */
export function itemsOf(run: Run, opened: ReadonlySet<number>, only: number | null): Item[] {
  const found: Item[] = [];
  if (only !== null) {
    const alone = run.activation(only);
    if (alone) for (const turn of alone.turns) found.push(taken(run, alone, turn, 0));
    return found;
  }
  const put = new Set<number>();
  for (const id of run.requests) {
    const call = run.effect(id)!;
    const callee = run.activation(call.callee);
    if (!callee) continue;
    const asked = openingOf(run, call);
    found.push({
      kind: "request", key: id, guess: 64, depth: 0, began: call.began, call: id, seq: openedBy(run, call),
      message: asked ?? { id: "", kind: "forward", sender: "user", receiver: callee.agent, content: call.arguments },
    });
    if (!put.has(callee.number)) nest(run, callee, 0, opened, found, put);
    if (call.end) found.push({ kind: "outcome", key: `${id}<`, guess: 60 + 80 * call.files.length, effect: call });
  }
  return found;
}

function nest(
  run: Run, activation: Activation, depth: number, opened: ReadonlySet<number>, found: Item[], put: Set<number>,
): void {
  put.add(activation.number);
  for (const turn of activation.turns) {
    const item = taken(run, activation, turn, depth);
    found.push(item);
    for (const call of [...item.inside, ...item.calls]) {
      const callee = run.activation(call.callee);
      if (!callee || put.has(callee.number)) continue;
      if (alone(item, call) || opened.has(callee.number)) nest(run, callee, depth + 1, opened, found, put);
    }
  }
}

/** Whether an agent's call is the only one of its turn, or of the tool that made it: its turns follow without being opened. */
export function alone(item: Taken, call: Effect): boolean {
  const tool = within(call.id);
  return (tool ? item.inside.filter((each) => each.kind === "call" && within(each.id) === tool) : item.calls).length === 1;
}

function taken(run: Run, activation: Activation, turn: Turn, depth: number): Taken {
  const all = turn.effects.map((id) => run.effects.get(id)!).filter(shown);
  const inside = all.filter((each) => within(each.id));
  const effects = inside.length ? all.filter((each) => !within(each.id)) : all;
  const asks = effects.filter(asksPerson);
  const asked = new Set(asks.filter((each) => !each.end).map((each) => each.id.replace(/\?$/, "")));
  const calls = effects.filter((each) => each.kind === "call");
  const tools = effects.filter((each) => each.kind === "tool" || each.kind === "step").filter((each) => !asked.has(each.id));
  const models = effects.filter((each) => each.kind === "model" || each.purpose === "retry");
  const key = `${turn.activation}/${turn.number}`;
  const open = inside.filter((each) => asksPerson(each) && !each.end).length;
  const named = tools.reduce((sum, each) => sum + Math.min(each.changed?.files.length ?? 0, 5), 0);
  const guess = 44 + 26 * (tools.length + inside.length + named) + 54 * calls.length + 44 * models.length + 160 * (asked.size + open);
  return { kind: "turn", key, guess, depth, activation, turn, models, tools, asks, calls, inside, open: calls.length > 1 };
}

/** The item in which an effect is, or the nearest one above it that is shown. */
export function nearest(run: Run, effect: Effect, items: readonly Item[]): string | undefined {
  const keys = new Set(items.map((each) => each.key));
  for (let at: Effect | undefined = effect; at; at = run.effect(run.activation(at.activation)?.call ?? "")) {
    const key = `${at.activation}/${at.turn}`;
    if (keys.has(key)) return key;
    if (at.activation === 0) return [`${at.id}<`, at.id].find((each) => keys.has(each));
  }
  return undefined;
}

/** Whether two items are drawn alike: their nodes are replaced when anything of them changes. */
export function alike(one: Taken, other: Taken): boolean {
  return one.turn === other.turn && one.depth === other.depth && one.activation.label === other.activation.label
    && one.activation.task === other.activation.task && one.activation.opening === other.activation.opening
    && same(one.models, other.models) && same(one.tools, other.tools) && same(one.asks, other.asks) && same(one.calls, other.calls)
    && same(one.inside, other.inside);
}

const same = (one: readonly Effect[], other: readonly Effect[]): boolean =>
  one.length === other.length && one.every((each, index) => each === other[index]);

/** What a call opened with. */
export const openingOf = (run: Run, call: Effect): MessageFrame | null => opened(run, call)[0];
/** The record that has what a call opened with; 0 for none. */
const openedBy = (run: Run, call: Effect): number => opened(run, call)[1];

function opened(run: Run, call: Effect): [MessageFrame | null, number] {
  const callee = run.activation(call.callee);
  if (!callee) return [null, 0];
  if (callee.call === call.id) return [callee.opening, callee.opened];
  for (const turn of callee.turns) {
    const found = turn.messages.find((each) => each.call_id === call.id);
    if (found) return [found, turn.start];
  }
  return [null, 0];
}
