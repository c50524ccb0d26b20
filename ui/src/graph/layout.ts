// Where nodes of the team stand: callers above callees, alike ones folded into one.
import { asksPerson } from "../state/doing";
import type { Activation, Run } from "../state/run";

export interface Place {
  id: string;
  label: string;
  /** More than one where alike activations stand together. */
  members: Activation[];
  x: number;
  y: number;
  caller: string;
  background: boolean;
}

const ALIKE = 8;

/** The nodes as of the last record; what is not there yet is drawn faintly, so that nothing moves. */
export function places(run: Run, width: number, height: number, gap: number, below: number): Place[] {
  const kids = new Map<number, Activation[]>();
  for (const each of run.activations.values()) {
    if (each.number > 0) kids.set(each.caller, [...(kids.get(each.caller) ?? []), each]);
  }
  const found: Place[] = [];
  const seen = new Set<number>();
  let right = 0;
  const lay = (members: Activation[], caller: string, depth: number): number => {
    members.forEach((each) => seen.add(each.number));
    const first = members[0]!;
    const groups = grouped(members.flatMap((each) => kids.get(each.number) ?? []).filter((each) => !seen.has(each.number)));
    const id = String(first.number);
    const xs = groups.map((each) => lay(each, id, depth + 1));
    const at = xs.length ? (xs[0]! + xs.at(-1)!) / 2 : right;
    if (!xs.length) right += width + gap;
    found.push({
      id, label: members.length > 1 ? `${first.agent} ×${members.length}` : first.label, members, x: at,
      y: depth * (height + below), caller, background: run.effect(first.call)?.background ?? false,
    });
    return at;
  };
  const user = run.activation(0);
  if (user) lay([user], "", 0);
  return found;
}

function grouped(activations: Activation[]): Activation[][] {
  const by = new Map<string, Activation[]>();
  for (const each of activations) by.set(each.agent, [...(by.get(each.agent) ?? []), each]);
  const found: Activation[][] = [];
  const done = new Set<string>();
  for (const each of activations) {
    const alike = by.get(each.agent)!;
    if (alike.length < ALIKE) found.push([each]);
    else if (!done.has(each.agent)) {
      done.add(each.agent);
      found.push(alike);
    }
  }
  return found;
}

/** Who asks a person now. */
export function askers(run: Run): Set<number> {
  const found = new Set<number>();
  for (const id of run.asked) {
    const effect = run.effect(id);
    if (effect && asksPerson(effect)) found.add(effect.activation);
  }
  return found;
}
