// What a run is as JSON. Written by `python -m scripts.ui_types`; do not edit.

/** An answer to an open question. Who answers is the token's subject, whatever the body says. */
export interface AnswerBody {
  question: string;
  content: string;
  arguments?: string;
  grant?: Grant | null;
  reason?: string;
  ends_turn?: boolean;
}

/** How far an approval that is remembered reaches; by default to every call of that tool in the run. arguments: name and pattern of each argument that must match, as in file names; a text with `..` as a part of its path, a list and an object (their JSON) match themselves only. agent: whose calls, empty for everyone's. until: Unix seconds, 0 for ever. */
export interface Grant {
  arguments?: ([string, string])[];
  agent?: string;
  until?: number;
}

/** Another request in a run. */
export interface AskBody {
  agent: string;
  message: string;
  attachments?: Attachment[];
  data?: unknown;
  limits?: Limits | null;
}

/** A file beside a text: base64 `data` (bytes become that), or a `url`; `media_type` as in MIME. Raises UserError for a field that does not hold what it declares, as all that goes over the wire. */
export interface Attachment {
  media_type: string;
  data?: string;
  url?: string;
  name?: string;
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

/** A stop. */
export interface CancelBody {
  target?: string;
  reason?: string;
}

/** What became of something that was posted in a run. */
export interface CommandReceipt {
  command: number;
  taken: boolean;
  id?: string;
}

/** A new run, and the first request in it. */
export interface CreateRun {
  team: string;
  message: string;
  entry?: string;
  attachments?: Attachment[];
  data?: unknown;
  limits?: Limits | null;
  name?: string;
  project?: string;
}

/** What all runs ask people, oldest first. */
export interface Inbox {
  items: InboxItemView[];
}

/** A question of some run. */
export interface InboxItemView {
  run_id: string;
  name: string;
  team: string;
  question: OpenQuestion;
}

/** Something that a run asks a person. */
export interface OpenQuestion {
  id: string;
  kind: "approval" | "limit" | "question";
  agent: string;
  text: string;
  tool?: string;
  arguments?: string;
  since?: number;
  options?: string[];
  schema?: Record<string, unknown> | null;
  deadline?: number | null;
  refused?: number;
  takes_verdict?: boolean;
}

/** The token for a page that was opened. */
export interface PageToken {
  token: string;
}

/** Take up a run that nobody drives. */
export interface ResumeBody {
  team?: string;
}

/** A run that was started. */
export interface RunCreated {
  run_id: string;
  created: boolean;
}

/** A run in a list. */
export interface RunLine {
  run_id: string;
  state: string;
  name: string;
  team: string;
  owner: string;
  project: string;
  entry: string;
  title: string;
  outcome: string;
  reason: string;
  records: number;
  tokens: number;
  cost_usd: number;
  unpriced_calls: number;
  driven_by: string;
  created_at: number;
  updated_at: number;
}

/** Runs, newest first. */
export interface RunPage {
  runs: RunLine[];
  next: number;
}

/** Who asks, and what they may do here. */
export interface SessionView {
  subject: string;
  scopes: string[];
  version: string;
  drives: boolean;
  commands: Record<string, string>;
}

/** A team. */
export interface TeamView {
  name: string;
  entry: string;
  agents: AgentView[];
  edges: ([string, string])[];
  findings: string[];
  policy: string;
}

/** An agent of a team. */
export interface AgentView {
  name: string;
  description: string;
  model: string;
  tools: ToolView[];
  can_call: string[] | null;
}

/** A tool of an agent. */
export interface ToolView {
  name: string;
  description: string;
  effect: string;
  parameters: Record<string, unknown>;
}

/** What can be started. */
export interface Teams {
  teams: TeamLine[];
}

/** A team in the list. */
export interface TeamLine {
  name: string;
  entry: string;
  agents: string[];
  findings: string[];
}

/** Something more for the agent that works on an open call. */
export interface TellBody {
  call_id: string;
  message: string;
  attachments?: Attachment[];
}
