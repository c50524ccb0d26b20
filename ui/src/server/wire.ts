// What a run is as JSON. Written by `python -m scripts.ui_types`; do not edit.

/** An answer to an open question. Who answers is the token's subject, whatever the body says. */
export interface AnswerBody {
  question: string;
  content: string;
  arguments?: string;
  grant?: Grant | null;
  scope?: "owner" | "project" | "run";
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
  history?: ChatMessage[];
  intent?: string;
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

/** One entry of a conversation as a model is shown it. role `tool` answers the call `call_id` of tool `name`; `ref` is the handle of its output. `opaque` is a provider's own data on an assistant message (signed reasoning, for one), sent back to that provider untouched. given: the calls came with a message; no model made them. */
export interface ChatMessage {
  role: "assistant" | "system" | "tool" | "user";
  content: string;
  calls?: ToolCall[];
  call_id?: string;
  name?: string;
  is_error?: boolean;
  ref?: string;
  attachments?: Attachment[];
  reasoning?: string;
  opaque?: unknown;
  given?: boolean;
}

/** A call that a model asks for: `name`; `arguments` is its JSON text exactly as given. Made in every turn, and so checked with the reply or the message that it is part of. attachments: files that go with an agent call; only a user's request has them. */
export interface ToolCall {
  id: string;
  name: string;
  arguments?: string;
  attachments?: Attachment[];
}

/** A stop. */
export interface CancelBody {
  target?: string;
  reason?: string;
}

/** What may be changed of a run that is there. */
export interface ChangeRun {
  name?: string | null;
  project?: string | null;
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
  files?: string[];
  model?: string;
  policy?: "guarded" | "open" | "strict" | null;
  history?: ChatMessage[];
  conversation?: boolean;
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

/** Take up a run that nobody drives. */
export interface ResumeBody {
  team?: string;
}

/** What became of a change of the plan. */
export interface ModuleReceipt {
  command: number;
  taken: boolean;
  id?: string;
  said?: string;
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
  number: number;
  summary: RunSummary;
}

/** A run as it was when its record `seq` was the last one. */
export interface RunSummary {
  seq: number;
  entry?: string;
  title?: string;
  state?: "closed" | "idle" | "open" | "waiting";
  outcome?: string;
  tokens?: number;
  nano_usd?: number;
  unpriced?: number;
  asked?: number;
  asked_since?: number;
  questions?: AskedQuestion[];
  activity?: number[];
  activity_span?: number;
}

/** Something that a run asks a person. */
export interface AskedQuestion {
  id: string;
  kind: "approval" | "limit" | "question";
  agent: string;
  text?: string;
  tool?: string;
  since?: number;
}

/** Runs, newest first. */
export interface RunPage {
  runs: RunLine[];
  next: number;
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

/** One change of the plan, as the agents' own tool `manage_work_modules` takes it. */
export interface WorkModuleChange {
  action: "create" | "status_change" | "update";
  module_id?: string;
  name?: string;
  description?: string;
  new_status?: string;
  status?: string;
  notes_from_principal?: string;
}

/** What may be changed of a project. */
export interface ChangeProject {
  name: string;
}

/** A new project. */
export interface CreateProject {
  project: string;
  name?: string;
}

/** A file of a project. */
export interface FileBody {
  path: string;
  size: number;
  modified: number;
}

/** The files of a project. */
export interface FileList {
  files: FileBody[];
}

/** Models that a run may be started with. */
export interface ModelChoices {
  models: string[];
}

/** A project in a list. */
export interface ProjectBody {
  project: string;
  name: string;
  owner: string;
  teams: string[];
  runs: number;
  files: number;
  findings: string[];
}

/** The projects that the subject may see. */
export interface ProjectList {
  projects: ProjectBody[];
}

/** A project. */
export interface ProjectView {
  project: string;
  name: string;
  owner: string;
  teams: string[];
  runs: number;
  files: number;
  findings: string[];
  rules: StandingRule[];
}

/** A decision on calls of tools that is kept beside the runs, and holds in all that its scope covers. An explicit deny beats an explicit allow, which beats what asks, which beats a preset: of a policy and of a rule alike. Raises UserError for one that says nothing. */
export interface StandingRule {
  id: string;
  scope: "owner" | "project" | "run";
  key: string;
  tool: string;
  verdict: "allow" | "ask" | "deny";
  grant?: Grant;
  author?: string;
  created_at?: number;
}
