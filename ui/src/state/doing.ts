// What somebody does as of a record, in a word: for the graph, the lanes and the head.
import type { Activation, Effect, Run } from "./run";
import { lasted, line } from "./words";

export type Kind = "agent" | "model" | "tool" | "human" | "error" | "wait";
export interface Doing {
  kind: Kind;
  state: "open" | "waits" | "done" | "failed" | "rests";
  text: string;
}

const GOOD = new Set(["", "completed", "cancelled", "returned"]);
const PEOPLE = new Set(["approval", "question", "limit"]);

export const asksPerson = (effect: Effect): boolean => effect.kind === "wait" && PEOPLE.has(effect.purpose);
export const failed = (effect: Effect): boolean => effect.kind !== "wait" && effect.end > 0 && !GOOD.has(effect.outcome);
/** The id of the tool that began an effect in its middle; empty for what none did. */
export function within(id: string): string {
  const colon = id.indexOf(":");
  return colon > 0 && id[id.indexOf(".") + 1] === "c" ? id.slice(0, colon) : "";
}
/** Effects in order, each followed by those that it began in its middle. */
export function nested(effects: Effect[]): Effect[] {
  const inside = effects.filter((each) => within(each.id));
  if (!inside.length) return effects;
  const there = new Set(effects.map((each) => each.id));
  return effects.filter((each) => !there.has(within(each.id))).flatMap((each) => [each, ...inside.filter((one) => within(one.id) === each.id)]);
}
/** An effect in a word or two. */
export const nameOf = (effect: Effect): string =>
  effect.kind === "call" && effect.purpose === "ask" ? "its own model" : line(effect.name || effect.purpose, 60);
/** What a question asks for, before the name of the tool that it is about. */
export const ASKS: Record<string, string> = {
  approval: "asks to use", question: "asks you", outside: "asks you to do", limit: "asks for a higher limit",
};
/** What a person is asked by an effect, in a few words. */
export const asking = (effect: Effect): string => {
  const named = effect.purpose === "approval" || effect.outside !== null;
  return `${ASKS[effect.outside ? "outside" : effect.purpose] ?? "asks"}${named ? ` ${line(effect.name, 40)}` : ""}`;
};
/** Whether a reader wants to see it as a thing of its own. */
export const shown = (effect: Effect): boolean =>
  effect.purpose !== "deadline" && effect.kind !== "action" && effect.kind !== "instructions";

export function kindOf(effect: Effect): Kind {
  if (asksPerson(effect)) return "human";
  if (effect.kind === "call") return "agent";
  if (effect.kind === "model") return "model";
  return effect.kind === "wait" ? "wait" : "tool";
}

/** What an activation has begun and not ended, of what a reader wants to see. */
export function openOf(run: Run, activation: Activation): Effect[] {
  return (run.open.get(activation.number) ?? []).map((id) => run.effects.get(id)!).filter(shown);
}

/** parked: nobody drives the run, and what is open does not go on. */
export function doing(run: Run, activation: Activation, now: number, parked = false): Doing {
  const found = atWork(run, activation, now);
  return parked && found.state === "open" && found.kind !== "human" ? { kind: "wait", state: "waits", text: "parked" } : found;
}

/** How long a person was waited for: of seconds nobody needs the tenths. */
const waited = (seconds: number): string => (seconds < 60 ? `${Math.max(0, Math.floor(seconds))} s` : lasted(seconds));

function atWork(run: Run, activation: Activation, now: number): Doing {
  if (activation.number === 0) {
    const open = run.requests.some((id) => !run.effects.get(id)!.end);
    return { kind: "human", state: "rests", text: run.asked.length ? "is asked" : open ? "waits" : run.requests.length ? "answered" : "" };
  }
  const open = openOf(run, activation);
  const since = (effect: Effect): string => lasted(now - effect.began);
  const ask = open.find(asksPerson);
  if (ask) return { kind: "human", state: "open", text: `asks you · ${waited(now - ask.began)}` };
  const joined = open.find((each) => each.purpose === "joined");
  if (joined) return { kind: "human", state: "waits", text: `waits for you too · ${since(joined)}` };
  const model = open.find((each) => each.kind === "model");
  if (model) return { kind: "model", state: "open", text: `thinking · ${since(model)}` };
  const tool = open.find((each) => each.kind === "tool" || each.kind === "step");
  if (tool) return { kind: "tool", state: "open", text: `${line(tool.name, 60)} · ${since(tool)}` };
  const retry = open.find((each) => each.purpose === "retry");
  if (retry) return { kind: "error", state: "open", text: `tries again in ${lasted(retry.due - now)}` };
  const calls = open.filter((each) => each.kind === "call" && !each.background);
  if (calls.length > 1) return { kind: "wait", state: "waits", text: `waits for ${calls.length} calls` };
  if (calls[0]) return { kind: "wait", state: "waits", text: `waits for ${line(run.activation(calls[0].callee)?.label ?? "a call", 60)}` };
  if (!activation.outcome) return { kind: "agent", state: "open", text: "works" };
  if (!GOOD.has(activation.outcome)) return { kind: "error", state: "failed", text: activation.outcome };
  return { kind: "wait", state: "done", text: activation.outcome === "completed" ? "done" : activation.outcome };
}

/** The state of the whole run: a word, and its kind. */
export function stateOf(run: Run, now: number): { kind: Kind; word: string; more: string } {
  const ask = run.asked[0] ? run.effect(run.asked[0]) : undefined;
  if (ask) return { kind: "human", word: "Asks you", more: now > ask.began ? waited(now - ask.began) : "" };
  if (run.drained) return { kind: "wait", word: "Parked", more: "" };
  const requests = run.requests.map((id) => run.effect(id)!);
  if (requests.some((each) => !each.end)) return { kind: "agent", word: "Running", more: "" };
  const last = requests.at(-1);
  if (!last) return { kind: "wait", word: run.closed ? "Closed" : "Idle", more: "" };
  const word = last.outcome.charAt(0).toUpperCase() + last.outcome.slice(1);
  return { kind: GOOD.has(last.outcome) ? "wait" : "error", word, more: "" };
}
