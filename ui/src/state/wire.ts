// What a run is as JSON. Written by `python -m scripts.ui_types`; do not edit.

/** What the program finds in the file. */
export interface PageRun {
  name: string;
  made_at: number;
  frames: Frame[];
  prefixes: Record<string, unknown>;
}

/** One record. */
export interface Frame {
  seq: number;
  at: number;
  changes: (RunStartFrame | RunResumeFrame | RunDrainFrame | RunCloseFrame | ArrivalFrame | DeadLetterFrame | TurnStartFrame | TurnEndFrame | EffectStartFrame | EffectEndFrame | DecisionFrame | DataFrame | TranscriptFrame | CancelFrame | ToolsetFrame | FilesFrame)[];
}

/** The run began. */
export interface RunStartFrame {
  type: "run_started";
  run_id: string;
  limits: Limits;
  run_limits?: RunLimits | null;
  policy?: string;
}

/** What one request may use, its whole call tree included. None lifts a limit, 0 allows nothing. Raises UserError for a limit that is no finite number, or below 0. */
export interface Limits {
  depth?: number | null;
  activations?: number | null;
  turns?: number | null;
  calls?: number | null;
  tokens?: number | null;
  inbox?: number | null;
  usd?: number | null;
  timeout_seconds?: number | null;
  on_breach?: "ask" | "degrade" | "handoff" | "stop";
  breach_target?: string;
  cached_share?: number | null;
  answer_seconds?: number | null;
}

/** What all requests of a run may use together, beside what `Limits` say of each. None: no such limit. Raises UserError as Limits do. */
export interface RunLimits {
  tokens?: number | null;
  usd?: number | null;
  calls?: number | null;
  activations?: number | null;
  on_breach?: "ask" | "stop";
}

/** A new owner took the run over; or a fork begins here. */
export interface RunResumeFrame {
  type: "run_resumed";
  run_id?: string;
  origin?: string;
  seq?: number;
}

/** The owner leaves in good order: nothing new starts until the run is resumed. */
export interface RunDrainFrame {
  type: "run_drained";
}

/** The run was closed; nothing follows. */
export interface RunCloseFrame {
  type: "run_closed";
  reason?: string;
}

/** A message entered an inbox, other than the one that a call opens with. */
export interface ArrivalFrame {
  type: "message_arrived";
  activation: number;
  message: MessageFrame;
}

/** A message between agents, or from the user. */
export interface MessageFrame {
  id: string;
  kind: string;
  sender: string;
  receiver: string;
  content: CutText;
  call_id?: string;
  task_id?: string;
  intent?: string;
  topic?: string;
  source?: string;
  files?: FileFrame[];
  labels?: string[];
}

/** A text, or its beginning. */
export interface CutText {
  text?: string;
  length?: number;
}

/** A file beside a text. */
export interface FileFrame {
  media_type: string;
  name?: string;
  url?: string;
  bytes?: number;
  data?: string;
}

/** A message could not be delivered. */
export interface DeadLetterFrame {
  type: "dead_letter";
  activation: number;
  message: MessageFrame;
  reason: string;
}

/** A turn began. */
export interface TurnStartFrame {
  type: "turn_started";
  activation: number;
  turn: number;
  messages?: MessageFrame[];
  planned?: boolean;
  acts?: boolean;
  suffix?: CutText;
  begun_by?: string;
  rules?: string[];
}

/** A turn ended. */
export interface TurnEndFrame {
  type: "turn_ended";
  activation: number;
  turn: number;
  another_turn?: boolean;
  reminder?: string;
  ended_by?: string;
  rules?: string[];
}

/** An effect started. A request that waits for those before it has no `callee`; it comes once more, with one, when it begins. */
export interface EffectStartFrame {
  type: "effect_started";
  activation: number;
  turn: number;
  id: string;
  kind: string;
  name?: string;
  purpose?: string;
  text?: CutText;
  arguments?: CutText;
  callee?: CalleeFrame | null;
  background?: boolean;
  held_tokens?: number;
  prefix?: string;
  due_at?: number;
  options?: string[];
  schema?: Record<string, unknown> | null;
  decision?: Decision | null;
  failure?: Failure | null;
  rule?: string;
  joins?: string;
  outside?: OutsideCallFrame | null;
}

/** The activation that a call is. */
export interface CalleeFrame {
  number: number;
  agent: string;
  path: string;
  opening: MessageFrame;
  task_id?: string;
  reactivated?: boolean;
}

/** Whether a call may be done, and who said so. */
export interface Decision {
  allowed: boolean;
  by?: string;
  reason?: string;
  remembered?: boolean;
  rule?: string;
}

/** Why a model call failed. Source: `ModelError`, or `provider` for an adapter's own fault. */
export interface Failure {
  kind: string;
  text: string;
  status?: number;
  retry_after?: number | null;
}

/** The call of an outside tool: whoever runs the request does it, and answers with its result. */
export interface OutsideCallFrame {
  tool: string;
  call_id?: string;
  finishes?: boolean;
}

/** An effect ended; one that never started says here what it was. */
export interface EffectEndFrame {
  type: "effect_ended";
  activation: number;
  turn: number;
  id: string;
  kind: string;
  name?: string;
  purpose?: string;
  outcome?: string;
  reason?: string;
  content?: CutText;
  arguments?: CutText;
  files?: FileFrame[];
  failure?: Failure | null;
  decision?: Decision | null;
  reply?: ReplyFrame | null;
  usage?: Usage | null;
  nano_usd?: number;
  unpriced?: boolean;
  by?: string;
  finishes?: boolean;
  labels?: string[];
}

/** What a model answered. */
export interface ReplyFrame {
  content: CutText;
  reasoning?: CutText;
  calls?: CallFrame[];
  stop?: string;
  model?: string;
}

/** A call that a model or a plan wrote. */
export interface CallFrame {
  id: string;
  name: string;
  arguments: CutText;
}

/** Tokens as the provider billed them. */
export interface Usage {
  input_tokens?: number;
  output_tokens?: number;
  cache_read_tokens?: number;
  reasoning_tokens?: number;
  cache_write_tokens?: number;
}

/** Somebody decided whether a call may be done, or a rule did after it was asked for. */
export interface DecisionFrame {
  type: "decided";
  activation: number;
  id: string;
  decision: Decision;
}

/** The data of an activation changed; of activation 0 it is the whole run's. */
export interface DataFrame {
  type: "data_changed";
  activation: number;
  set?: Record<string, unknown>;
  append?: Record<string, unknown[]>;
  left_out?: Record<string, number>;
  by?: string;
}

/** What a model is shown was shortened. */
export interface TranscriptFrame {
  type: "transcript_changed";
  activation: number;
  trimmed?: number;
  compacted?: boolean;
}

/** Somebody wants an effect and all below it to stop; without a target, every request. */
export interface CancelFrame {
  type: "cancel_requested";
  target?: string;
  reason?: string;
}

/** A toolset offers other tools, or its provider has come up or gone. */
export interface ToolsetFrame {
  type: "toolset_changed";
  name: string;
  tools?: string[];
  reason?: string;
}

/** A call changed files; its end follows. */
export interface FilesFrame {
  type: "files_changed";
  activation: number;
  id: string;
  files?: ChangedFileFrame[];
  left_out?: number;
}

/** A file that a call made, changed or removed. */
export interface ChangedFileFrame {
  path: string;
  folder: string;
  change: string;
  line?: number;
  before?: CutText | null;
  after?: CutText | null;
  bytes?: number;
  mode?: number;
}

/** A piece of a reply that is being written; the record of its effect's end holds all of it. Whoever comes in the middle of a reply is given what it says so far as one piece, and whoever reads slowly what came meanwhile; of each effect its last 65,536 characters, at least, are kept for that. */
export interface ReplyDelta {
  effect_id: string;
  activation: number;
  agent: string;
  kind: string;
  text: string;
  index?: number;
  offset?: number;
  cut?: boolean;
  locations?: FileLocation[];
  diffs?: FileDiff[];
}

/** A place that a tool works at. */
export interface FileLocation {
  path: string;
  line?: number | null;
}

/** What a tool changes in a file. */
export interface FileDiff {
  path: string;
  before?: string | null;
  after?: string | null;
  cut?: boolean;
}

export type ChangeFrame = Frame["changes"][number];
