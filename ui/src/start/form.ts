// What was chosen for a new run, as the request that starts it.
import type { CreateRun } from "../server/wire";
import { line } from "../state/words";

type Preset = NonNullable<CreateRun["policy"]>;
export const POLICIES: [Preset, string][] = [
  ["open", "What the team's code gave it is allowed."], ["guarded", "Reading is allowed, acting asks you."], ["strict", "Only what is allowed by name."],
];
/** How much a policy forbids: more is stricter. */
export const rank = (policy: string): number => POLICIES.findIndex(([each]) => each === policy);

export interface Chosen {
  team: string;
  project: string;
  entry: string;
  message: string;
  name: string;
  data: string;
  model: string;
  /** Empty: the team's own. */
  policy: Preset | "";
  /** Of the project. */
  files: string[];
  tokens: string;
  dollars: string;
  turns: string;
  calls: string;
  seconds: string;
  /** When the tokens, dollars or turns that are chosen here are used up. */
  breach: "ask" | "stop";
}

export const BLANK: Chosen = {
  team: "", project: "", entry: "", message: "", name: "", data: "", model: "", policy: "", files: [], tokens: "", dollars: "", turns: "",
  calls: "", seconds: "", breach: "ask",
};
const ENCLOSED = 10;
const RAISED = ["tokens", "usd", "turns"] as const;
const WHOLE: [keyof Chosen & ("tokens" | "turns" | "calls"), string][] = [["tokens", "tokens"], ["turns", "turns"], ["calls", "calls"]];

/** The request, and what is wrong in which field. files: picked ones, named in it without their bytes. */
export function bodyOf(chosen: Chosen, files: File[] = []): { body: CreateRun; faults: Record<string, string> } {
  const faults: Record<string, string> = {};
  const limits: NonNullable<CreateRun["limits"]> = {};
  const number = (field: keyof Chosen, whole: boolean): number | undefined => {
    const text = String(chosen[field]).replaceAll(",", "").trim();
    if (!text) return undefined;
    if (!(whole ? /^\d{1,15}$/ : /^\d{0,12}(\d|\.\d{1,9})$/).test(text)) {
      faults[field] = `Expected a ${whole ? "whole " : ""}number, 0 or more, got ${line(text, 40)}`;
      return undefined;
    }
    return Number(text);
  };
  for (const [field, name] of WHOLE) {
    const value = number(field, true);
    if (value !== undefined) limits[name as "tokens"] = value;
  }
  const [usd, seconds] = [number("dollars", false), number("seconds", false)];
  if (usd !== undefined) limits.usd = usd;
  if (seconds !== undefined) limits.timeout_seconds = seconds;
  const limited = Object.keys(limits).length > 0;
  // Of other limits nobody can be asked for more; and where none is chosen, the team's own say what happens.
  if (RAISED.some((name) => name in limits)) limits.on_breach = chosen.breach;
  let data: unknown;
  try {
    if (chosen.data.trim()) data = JSON.parse(chosen.data);
  } catch (error) {
    faults.data = `Expected JSON: ${error instanceof Error ? line(error.message, 120) : "it cannot be read"}`;
  }
  if (chosen.files.length > ENCLOSED) faults.files = `At most ${ENCLOSED} go with a message; ${chosen.files.length} are chosen`;
  const { team, message, project, entry, name, model, policy } = chosen;
  return {
    faults,
    body: {
      team, message, ...(entry ? { entry } : {}), ...(name.trim() ? { name: name.trim() } : {}), ...(project ? { project } : {}),
      ...(data === undefined ? {} : { data }), ...(model ? { model } : {}), ...(policy ? { policy } : {}),
      ...(chosen.files.length ? { files: chosen.files } : {}),
      ...(limited ? { limits } : {}),
      ...(files.length ? { attachments: files.map((each) => ({ media_type: each.type || "application/octet-stream", name: each.name, data: "BASE64" })) } : {}),
    },
  };
}
