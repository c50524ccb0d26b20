// What a model call was sent: to the letter where a server is asked, else as far as the frames tell it.
import type { CallFrame, CutText, Effect, MessageFrame, Run } from "../state/run";
import type { ChatMessage, StoredRequest } from "../server/wire";
import { asksPerson, within } from "../state/doing";
import type { Prefix } from "./Inspector";

export interface Sent {
  role: "user" | "assistant" | "tool" | "told" | "system";
  name: string;
  content: CutText;
  calls: CallFrame[];
  /** The effect whose result it is, which was cut or removed. */
  ref: string;
  /** Files that go with it, by type and name. */
  files: string[];
}

export interface Asked {
  /** The model call before it on the same transcript; empty for the first. */
  previous: string;
  known: Sent[];
  fresh: Sent[];
  /** What the one before was sent and this one is not: compaction took it away. */
  removed: Sent[];
  system: string;
  tools: NonNullable<Prefix["tools"]>;
  /** For this call only. */
  tail: string;
  settings: Record<string, unknown>;
  /** It has the digest that was recorded; null when nobody compared. */
  verified: boolean | null;
  digest: string;
}

/** The request as the server has it from the records. */
export function stored({ request, shared, previous, removed, verified, digest }: StoredRequest): Asked {
  const { tools = [], tail = "", tool_choice = "auto", max_output, output_schema, examples = [], settings = {} } = request;
  const messages = request.messages.map(message);
  return {
    previous, known: messages.slice(0, shared), fresh: messages.slice(shared), removed: removed.map(message), system: request.system,
    tools: tools as Asked["tools"], tail, verified, digest,
    settings: {
      max_output, ...(tool_choice === "auto" ? {} : { tool_choice }), ...settings, ...(output_schema ? { output_schema } : {}),
      ...(examples.length ? { examples } : {}),
    },
  };
}

const message = (each: ChatMessage): Sent => ({
  role: each.role, name: each.name ?? "", content: { text: each.content }, ref: each.ref ?? "",
  calls: (each.calls ?? []).map((call) => ({ id: call.id, name: call.name, arguments: { text: call.arguments ?? "{}" } })),
  files: (each.attachments ?? []).map((file) => file.name || file.media_type),
});

/** The request as the frames tell it. Messages that compaction took away are not told apart. */
export function asked(run: Run, effect: Effect, prefix?: Prefix): Asked {
  const activation = run.activation(effect.activation);
  const known: Sent[] = [];
  let fresh: Sent[] = [];
  let previous = "";
  let tail = "";
  for (const turn of activation?.turns ?? []) {
    if (turn.number > effect.turn) break;
    for (const each of turn.messages) if (each.kind === "forward") fresh.push(said(each));
    const effects = turn.effects.map((id) => run.effects.get(id)!);
    if (turn.number === effect.turn) {
      const before = effects.filter((each) => each.kind === "model" && each.start < effect.start && each.reply);
      previous = before.at(-1)?.id ?? previous;
      tail = turn.suffix.text ?? "";
      break;
    }
    const model = effects.findLast((each) => each.kind === "model" && !each.purpose && each.reply);
    if (!model) continue;
    known.push(...fresh);
    fresh = [];
    previous = model.id;
    const reply = model.reply!;
    fresh.push({ ...BLANK, role: "assistant", content: reply.content, calls: reply.calls ?? [] });
    for (const each of effects) {
      // What a tool asked in its middle came to the tool alone.
      if (each.kind === "model" || (each.kind === "wait" && !asksPerson(each)) || each.id.endsWith("?") || within(each.id)) continue;
      if (each.end) {
        const content = each.content.text ? each.content : { text: each.reason || each.outcome };
        fresh.push({ ...BLANK, role: "tool", name: each.name, content });
      }
    }
    if (turn.reminder) fresh.push({ ...BLANK, role: "told", content: { text: turn.reminder } });
  }
  return {
    previous, known, fresh, removed: [], system: prefix?.system ?? "", tools: prefix?.tools ?? [], tail, settings: {}, verified: null,
    digest: "",
  };
}

const BLANK: Sent = { role: "user", name: "", content: {}, calls: [], ref: "", files: [] };
const said = (message: MessageFrame): Sent =>
  ({ ...BLANK, name: message.sender, content: message.content, files: (message.files ?? []).map((file) => file.name || file.media_type) });

export const size = (text: CutText): number => text.length || (text.text?.length ?? 0);
export const sizeOf = (sent: Sent): number =>
  size(sent.content) + sent.calls.reduce((sum, each) => sum + each.name.length + size(each.arguments), 0);
