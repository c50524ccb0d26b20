// A run as of one record: what its frames add up to. Nodes are replaced, never changed, so that a copy of the
// maps is a copy of the run.
import type {
  CallFrame, CalleeFrame, ChangeFrame, ChangedFileFrame, CutText, Decision, EffectEndFrame, EffectStartFrame, Failure, FileFrame, Frame,
  Limits, MessageFrame, OutsideCallFrame, ReplyFrame, RunLimits, Usage,
} from "./wire";

/** One effect: a model call, a tool, an agent's call, a wait. `start` and `end` number records, 0 for none yet. */
export interface Effect {
  id: string;
  activation: number;
  turn: number;
  kind: string;
  name: string;
  purpose: string;
  start: number;
  end: number;
  began: number;
  ended: number;
  text: CutText;
  arguments: CutText;
  callee: number;
  background: boolean;
  held: number;
  prefix: string;
  due: number;
  outcome: string;
  reason: string;
  content: CutText;
  files: FileFrame[];
  /** What it made of files; `seq` numbers the record that says so, `leftOut` how many there are more. */
  changed: { seq: number; files: readonly ChangedFileFrame[]; leftOut: number } | null;
  failure: Failure | null;
  decision: Decision | null;
  reply: ReplyFrame | null;
  usage: Usage | null;
  nanoUsd: number;
  unpriced: boolean;
  by: string;
  /** Of a question: one of these is the answer. */
  options: string[];
  /** Of a question: the JSON Schema of its answer. */
  schema: Record<string, unknown> | null;
  /** Of an approval: what wants a person asked. */
  rule: string;
  /** Of a limit: the open question whose answer is this one's too. */
  joins: string;
  /** Of a question that is the call of an outside tool: what is done by whoever answers. */
  outside: OutsideCallFrame | null;
  finishes: boolean;
  /** What its result carries, such as `untrusted` and `private`. */
  labels: readonly string[];
}

/** Tools whose provider lives and dies, as it was last known. */
export interface Toolset {
  name: string;
  tools: readonly string[];
  /** Why its provider cannot be reached; empty: it can. */
  reason: string;
  /** The record that said so. */
  seq: number;
}

export interface Turn {
  activation: number;
  number: number;
  start: number;
  end: number;
  began: number;
  messages: MessageFrame[];
  planned: boolean;
  acts: boolean;
  suffix: CutText;
  reminder: string;
  /** The hooks that said how it begins and what follows, and rules of theirs that they followed, those of its beginning first. */
  begunBy: string;
  endedBy: string;
  rules: string[];
  /** How many of the rules are of its beginning. */
  first: number;
  /** Ids, in the order they began. */
  effects: string[];
}

/** An agent at work. Called again, it goes on with its turns; `since` is how many it had before. */
export interface Activation {
  number: number;
  agent: string;
  label: string;
  call: string;
  caller: number;
  depth: number;
  task: string;
  path: string;
  opening: MessageFrame | null;
  /** The record that the opening came with. */
  opened: number;
  start: number;
  began: number;
  ended: number;
  outcome: string;
  turns: Turn[];
  since: number;
  data: Record<string, unknown>;
  /** Values of its data that are too large for a frame, and the record that has them. */
  leftOut: Record<string, number>;
}

const NOTHING: CutText = {};
const NONE: readonly string[] = [];
const PEOPLE = new Set(["approval", "question", "limit"]);

export class Run {
  seq = 0;
  at = 0;
  began = 0;
  id = "";
  policy = "open";
  limits: Limits = {};
  runLimits: RunLimits | null = null;
  effects = new Map<string, Effect>();
  activations = new Map<number, Activation>();
  /** Effects that have not ended, by activation, in the order they began; there is no list of none. */
  open = new Map<number, readonly string[]>();
  /** What people are asked, oldest first. */
  asked: string[] = [];
  /** Requests of the user, as calls. */
  requests: string[] = [];
  tokens = 0;
  nanoUsd = 0;
  unpriced = 0;
  /** Model calls whose bill never came: they count at the most that they may have cost. */
  booked = 0;
  held = 0;
  closed = false;
  drained = false;
  /** What it took over, and up to which record, where it is a fork. */
  fork: { origin: string; seq: number } | null = null;
  toolsets = new Map<string, Toolset>();
  private named = new Map<string, number>();

  constructor() {
    this.activations.set(0, { ...fresh(0, "user", ""), label: "You" });
  }

  copy(): Run {
    const other = Object.assign(new Run(), this);
    other.effects = new Map(this.effects);
    other.activations = new Map(this.activations);
    other.open = new Map(this.open);
    other.named = new Map(this.named);
    other.toolsets = new Map(this.toolsets);
    other.asked = [...this.asked];
    other.requests = [...this.requests];
    return other;
  }

  add(frame: Frame): void {
    this.seq = frame.seq;
    this.at = frame.at;
    if (!this.began) this.began = frame.at;
    for (const change of frame.changes) this.change(change, frame);
  }

  effect(id: string): Effect | undefined {
    return this.effects.get(id);
  }

  activation(number: number): Activation | undefined {
    return this.activations.get(number);
  }

  turn(activation: number, number: number): Turn | undefined {
    const turns = this.activations.get(activation)?.turns ?? [];
    for (let index = turns.length - 1; index >= 0; index--) if (turns[index]!.number === number) return turns[index];
    return undefined;
  }

  private change(change: ChangeFrame, frame: Frame): void {
    switch (change.type) {
      case "run_started":
        this.id = change.run_id;
        this.limits = change.limits;
        this.runLimits = change.run_limits ?? null;
        this.policy = change.policy ?? "open";
        break;
      case "run_resumed":
        this.drained = false;
        if (change.run_id) this.id = change.run_id;
        if (change.origin) this.fork = { origin: change.origin, seq: change.seq ?? 0 };
        break;
      case "toolset_changed":
        this.toolsets.set(change.name, { name: change.name, tools: change.tools ?? NONE, reason: change.reason ?? "", seq: frame.seq });
        break;
      case "run_drained":
        this.drained = true;
        break;
      case "run_closed":
        this.closed = true;
        break;
      case "turn_started":
        this.patch(change.activation, (old) => ({
          turns: [...old.turns, {
            activation: change.activation, number: change.turn, start: frame.seq, end: 0, began: frame.at,
            messages: change.messages ?? [], planned: change.planned ?? false, acts: change.acts ?? false,
            suffix: change.suffix ?? NOTHING, reminder: "", begunBy: change.begun_by ?? "", endedBy: "",
            rules: change.rules ?? [], first: change.rules?.length ?? 0, effects: [],
          }],
        }));
        break;
      case "turn_ended":
        this.patchTurn(change.activation, change.turn, () => ({
          end: frame.seq, reminder: change.reminder ?? "", endedBy: change.ended_by ?? "", rules: change.rules ?? [],
        }));
        break;
      case "effect_started":
        this.start(change, frame);
        break;
      case "effect_ended":
        this.end(change, frame);
        break;
      case "files_changed": {
        const old = this.effects.get(change.id);
        if (old) this.effects.set(change.id, { ...old, changed: { seq: frame.seq, files: change.files ?? [], leftOut: change.left_out ?? 0 } });
        break;
      }
      case "decided": {
        const old = this.effects.get(change.id);
        if (old) this.effects.set(change.id, { ...old, decision: change.decision });
        break;
      }
      case "data_changed":
        this.patch(change.activation, (old) => ({
          data: merged(old.data, change.set ?? {}, change.append ?? {}),
          leftOut: left(old.leftOut, Object.keys(change.set ?? {}), Object.keys(change.left_out ?? {}), frame.seq),
        }));
        break;
    }
  }

  private start(change: EffectStartFrame, frame: Frame): void {
    const callee = change.callee ?? null;
    // A request that waited for those before it comes a second time, when it begins.
    const before = this.effects.get(change.id);
    this.effects.set(change.id, {
      ...blank(change), start: before?.start ?? frame.seq, began: before?.began ?? frame.at, text: change.text ?? NOTHING,
      arguments: change.arguments ?? NOTHING, callee: callee ? callee.number : -1,
      background: change.background ?? false, held: change.held_tokens ?? 0, prefix: change.prefix ?? "",
      due: change.due_at ?? 0, options: change.options ?? [], schema: change.schema ?? null,
      decision: change.decision ?? null, failure: change.failure ?? null, rule: change.rule ?? "",
      joins: change.joins ?? "", outside: change.outside ?? null,
    });
    this.held += change.held_tokens ?? 0;
    this.open.set(change.activation, [...(this.open.get(change.activation) ?? []).filter((each) => each !== change.id), change.id]);
    if (!before) this.place(change.activation, change.turn, change.id, frame);
    if (callee) this.call(callee, change, frame);
    if (change.kind === "wait" && PEOPLE.has(change.purpose ?? "")) this.asked.push(change.id);
  }

  private end(change: EffectEndFrame, frame: Frame): void {
    const known = this.effects.get(change.id);
    const old = known ?? blank(change);
    if (!known) this.place(change.activation, change.turn, change.id, frame);
    this.effects.set(change.id, {
      ...old, end: frame.seq, ended: frame.at, began: known ? old.began : frame.at, outcome: change.outcome ?? "",
      kind: change.kind, name: change.name ?? old.name, purpose: change.purpose ?? "", reason: change.reason ?? "",
      content: change.content ?? NOTHING, arguments: change.arguments?.text ? change.arguments : old.arguments, files: change.files ?? [],
      failure: change.failure ?? old.failure, decision: change.decision ?? old.decision, reply: change.reply ?? null,
      usage: change.usage ?? null, nanoUsd: change.nano_usd ?? 0, unpriced: change.unpriced ?? false,
      by: change.by ?? "", finishes: change.finishes ?? false, labels: change.labels ?? NONE,
    });
    this.held -= old.held;
    const open = (this.open.get(change.activation) ?? []).filter((each) => each !== change.id);
    if (open.length) this.open.set(change.activation, open);
    else this.open.delete(change.activation);
    this.tokens += (change.usage?.input_tokens ?? 0) + (change.usage?.output_tokens ?? 0);
    this.nanoUsd += change.nano_usd ?? 0;
    this.unpriced += change.unpriced ? 1 : 0;
    this.booked += change.kind === "model" && !change.usage && (change.nano_usd ?? 0) > 0 ? 1 : 0;
    if (this.asked.includes(change.id)) this.asked = this.asked.filter((each) => each !== change.id);
    if (old.callee >= 0) {
      this.patch(old.callee, (callee) =>
        callee.call === change.id ? { ended: frame.at, outcome: change.outcome ?? "" } : {});
    }
  }

  private call(callee: CalleeFrame, change: EffectStartFrame, frame: Frame): void {
    const before = this.activations.get(callee.number);
    const caller = this.activations.get(change.activation);
    const number = (this.named.get(callee.agent) ?? 0) + (before ? 0 : 1);
    this.named.set(callee.agent, number);
    if (change.activation === 0) this.requests.push(change.id);
    this.activations.set(callee.number, {
      ...(before ?? fresh(callee.number, callee.agent, callee.path)),
      label: before?.label ?? (number > 1 ? `${callee.agent} #${number}` : callee.agent),
      call: change.id, caller: change.activation, depth: (caller?.depth ?? 0) + 1, path: callee.path,
      opening: callee.opening, opened: frame.seq, task: callee.task_id ?? "", start: before?.start ?? frame.seq,
      began: before?.began ?? frame.at, ended: 0, outcome: "", since: before?.turns.length ?? 0,
    });
  }

  private place(activation: number, turn: number, id: string, frame: Frame): void {
    if (!this.turn(activation, turn)) {
      this.patch(activation, (old) => ({
        turns: [...old.turns, {
          activation, number: turn, start: frame.seq, end: 0, began: frame.at, messages: [], planned: false,
          acts: false, suffix: NOTHING, reminder: "", begunBy: "", endedBy: "", rules: [], first: 0, effects: [],
        }],
      }));
    }
    this.patchTurn(activation, turn, (old) => ({ effects: [...old.effects, id] }));
  }

  private patch(number: number, changed: (old: Activation) => Partial<Activation>): void {
    const old = this.activations.get(number);
    if (old) this.activations.set(number, { ...old, ...changed(old) });
  }

  private patchTurn(number: number, turn: number, changed: (old: Turn) => Partial<Turn>): void {
    this.patch(number, (old) => ({
      turns: old.turns.map((each) => (each.number === turn ? { ...each, ...changed(each) } : each)),
    }));
  }
}

function fresh(number: number, agent: string, path: string): Activation {
  return {
    number, agent, label: agent, call: "", caller: -1, depth: 0, task: "", path, opening: null, opened: 0, start: 0, began: 0,
    ended: 0, outcome: "", turns: [], since: 0, data: {}, leftOut: {},
  };
}

function blank(change: EffectStartFrame | EffectEndFrame): Effect {
  return {
    id: change.id, activation: change.activation, turn: change.turn, kind: change.kind, name: change.name ?? "",
    purpose: change.purpose ?? "", start: 0, end: 0, began: 0, ended: 0, text: NOTHING,
    arguments: change.arguments ?? NOTHING, callee: -1, background: false, held: 0, prefix: "", due: 0, outcome: "",
    reason: "", content: NOTHING, files: [], changed: null, failure: null, decision: null, reply: null, usage: null, nanoUsd: 0,
    unpriced: false, by: "", options: [], schema: null, rule: "", joins: "", outside: null, finishes: false,
    labels: NONE,
  };
}

function left(old: Record<string, number>, given: string[], missing: string[], seq: number): Record<string, number> {
  if (!missing.length && !given.some((each) => each in old)) return old;
  const kept = Object.entries(old).filter(([name]) => !given.includes(name));
  return { ...Object.fromEntries(kept), ...Object.fromEntries(missing.map((name) => [name, seq])) };
}

function merged(
  data: Record<string, unknown>, set: Record<string, unknown>, append: Record<string, unknown>,
): Record<string, unknown> {
  const next = { ...data, ...set };
  for (const [name, more] of Object.entries(append)) {
    const old = next[name];
    next[name] = [...(Array.isArray(old) ? old : []), ...(Array.isArray(more) ? more : [])];
  }
  return next;
}

export type { CallFrame, CutText, Frame, MessageFrame, ReplyFrame };
