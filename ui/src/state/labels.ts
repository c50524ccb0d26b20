// What an agent was shown that carries a label, such as `untrusted` and `private`, and where that came from.
import type { Activation, Run } from "./run";

/** What brought a label to an agent: a result, or a message. */
export interface Source {
  label: string;
  /** The tool whose result it was, or who said it. */
  by: string;
  /** The effect whose result it was; empty for a message. */
  effect: string;
}

/** The labels that an agent had been shown before a record, as the runtime counts them, each with what brought it first: results of
 * its tools and of those it called, what it was told, and what whoever called it had been shown by then. */
export function shownTo(run: Run, activation: Activation, before: number): Source[] {
  const found = new Map<string, Source>();
  let at: Activation | undefined = activation;
  for (let until = before; at && at.number > 0; at = run.activation(at.caller)) {
    collect(run, at, until, found);
    until = run.effect(at.call)?.start ?? 0;
  }
  return [...found.values()].sort((one, other) => one.label.localeCompare(other.label));
}

function collect(run: Run, activation: Activation, before: number, found: Map<string, Source>): void {
  const put = (labels: readonly string[] | undefined, by: string, effect = ""): void => {
    for (const label of labels ?? []) if (!found.has(label)) found.set(label, { label, by, effect });
  };
  put(activation.opening?.labels, activation.opening?.sender ?? "");
  for (const turn of activation.turns) {
    if (turn.start >= before) break;
    for (const each of turn.messages) put(each.labels, each.sender);
    for (const id of turn.effects) {
      const effect = run.effect(id)!;
      if (!effect.end || effect.end >= before) continue;
      put(effect.labels, effect.name, effect.id);
      const callee = run.activation(effect.callee);
      if (callee) collect(run, callee, effect.end, found);
    }
  }
}
