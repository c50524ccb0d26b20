// What a model call was sent, as the frames tell it: what it was told before, and what is new to it.
import type { CallFrame, CutText, Effect, MessageFrame, Run } from "../state/run";
import { asksPerson } from "../state/doing";

export interface Sent {
  role: "user" | "assistant" | "tool" | "told";
  name: string;
  content: CutText;
  calls: CallFrame[];
}

export interface Asked {
  /** The model call before it on the same transcript; empty for the first. */
  previous: string;
  known: Sent[];
  fresh: Sent[];
}

/** The messages before a model call, oldest first. Messages that compaction took away are not told apart. */
export function asked(run: Run, effect: Effect): Asked {
  const activation = run.activation(effect.activation);
  const known: Sent[] = [];
  let fresh: Sent[] = [];
  let previous = "";
  for (const turn of activation?.turns ?? []) {
    if (turn.number > effect.turn) break;
    for (const each of turn.messages) if (each.kind === "forward") fresh.push(said(each));
    if (turn.suffix.text) fresh.push({ role: "told", name: "", content: turn.suffix, calls: [] });
    const effects = turn.effects.map((id) => run.effects.get(id)!);
    if (turn.number === effect.turn) {
      const before = effects.filter((each) => each.kind === "model" && each.start < effect.start && each.reply);
      previous = before.at(-1)?.id ?? previous;
      break;
    }
    const model = effects.findLast((each) => each.kind === "model" && !each.purpose && each.reply);
    if (!model) continue;
    known.push(...fresh);
    fresh = [];
    previous = model.id;
    const reply = model.reply!;
    fresh.push({ role: "assistant", name: "", content: reply.content, calls: reply.calls ?? [] });
    for (const each of effects) {
      if (each.kind === "model" || (each.kind === "wait" && !asksPerson(each)) || each.id.endsWith("?")) continue;
      if (each.end) {
        const content = each.content.text ? each.content : { text: each.reason || each.outcome };
        fresh.push({ role: "tool", name: each.name, content, calls: [] });
      }
    }
    if (turn.reminder) fresh.push({ role: "told", name: "", content: { text: turn.reminder }, calls: [] });
  }
  return { previous, known, fresh };
}

const said = (message: MessageFrame): Sent =>
  ({ role: "user", name: message.sender, content: message.content, calls: [] });

export const size = (text: CutText): number => text.length || (text.text?.length ?? 0);
export const sizeOf = (sent: Sent): number =>
  size(sent.content) + sent.calls.reduce((sum, each) => sum + each.name.length + size(each.arguments), 0);
