// What a run is as JSON. Written by `python -m scripts.ui_types`; do not edit.
import type { Frame, Limits, Usage } from "../state/wire";

/** An answer to an open question. Who answers is the token's subject, whatever the body says. */
export interface AnswerBody {
  question: string;
  content: string;
  arguments?: string;
  grant?: GivenGrant | null;
  scope?: "owner" | "project" | "run";
  reason?: string;
  ends_turn?: boolean;
}

/** How far a rule or an approval that is remembered reaches; what is misspelled would widen it. */
export interface GivenGrant {
  arguments?: ([string, string])[];
  agent?: string;
  until?: number;
  also?: (([string, string])[])[];
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
  options?: OptionsBody | null;
}

/** A file beside a text: base64 `data` (bytes become that), or a `url`; `media_type` as in MIME. Raises UserError for a field that does not hold what it declares, as all that goes over the wire. */
export interface Attachment {
  media_type: string;
  data?: string;
  url?: string;
  name?: string;
  shown?: boolean;
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

/** What holds for one request alone; see docs/delegation.md. */
export interface OptionsBody {
  tools?: OutsideTool[];
  own_tools?: string[] | null;
  settings?: Record<string, unknown>;
  max_output_tokens?: number | null;
  output?: unknown;
  instructions?: string;
  policy?: "guarded" | "open" | "strict" | null;
}

/** A tool that a request brings: whoever runs it does the calls, see `tool_from`. */
export interface OutsideTool {
  name: string;
  description?: string;
  parameters?: Record<string, unknown>;
  result?: Record<string, unknown> | null;
  title?: string;
  kind?: "delete" | "edit" | "execute" | "fetch" | "move" | "other" | "read" | "search" | "think";
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
  options?: OptionsBody | null;
}

/** Frames of a run, oldest first. */
export interface FramePage {
  run_id: string;
  frames: Frame[];
  last: number;
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
  call_id?: string;
  since?: number;
  options?: string[];
  schema?: Record<string, unknown> | null;
  deadline?: number | null;
  refused?: number;
  takes_verdict?: boolean;
  also?: string[];
  rule?: string;
}

/** What became of a change of the plan. */
export interface ModuleReceipt {
  command: number;
  taken: boolean;
  id?: string;
  said?: string;
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
  command?: number | null;
  models?: string[];
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

/** A run as of one record: activations, turns, effects. */
export interface RunView {
  run_id: string;
  seq: number;
  at: number;
  started_at: number;
  closed: boolean;
  outcome: string;
  reason: string;
  requests: string[];
  activations: ActivationView[];
  models: ModelView[];
  questions: OpenQuestion[];
  messages: Message[];
}

/** One activation at work on one call. */
export interface ActivationView {
  number: number;
  agent: string;
  caller: number;
  call: string;
  asked: string;
  started_at: number;
  ended_at: number | null;
  outcome: string;
  reason: string;
  content: string;
  turns: TurnView[];
  model_calls: number;
  usage: Usage;
  cost_usd: number;
}

/** One turn. */
export interface TurnView {
  number: number;
  started_at: number;
  ended_at: number | null;
  effects: EffectView[];
}

/** One effect of a turn: a model call, a tool, an agent's call, a wait. */
export interface EffectView {
  id: string;
  kind: string;
  name: string;
  purpose: string;
  arguments: string;
  text: string;
  started_at: number | null;
  ended_at: number | null;
  outcome: string;
  reason: string;
  content: string;
  decided_by: string;
  callee: number | null;
  usage: Usage | null;
  cost_usd: number;
  labels: string[];
}

/** What one model was asked. */
export interface ModelView {
  model: string;
  calls: number;
  usage: Usage;
  cost_usd: number;
  unpriced_calls: number;
}

/** One message. `call_id` names the call it opens (forward) or answers (return). task_id: the thread; stays the same through replies. in_reply_to: the `id` of the message answered. data: the user's own JSON; never interpreted. calls: tool calls that the receiver's next turn performs before it asks a model. priority: of what waits in an inbox the lowest number is read first, and of equal ones the oldest. */
export interface Message {
  type: "forward" | "return";
  sender: string;
  receiver: string;
  content: string;
  call_id?: string;
  id?: string;
  task_id?: string;
  in_reply_to?: string;
  intent?: string;
  topic?: string;
  source?: string;
  attachments?: Attachment[];
  calls?: ToolCall[];
  labels?: string[];
  data?: unknown;
  priority?: number;
}

/** Who asks, and what they may do here. */
export interface SessionView {
  subject: string;
  scopes: string[];
  version: string;
  drives: boolean;
  commands: Record<string, string>;
}

/** One model call's request, as of the record by which the call began. */
export interface StoredRequest {
  effect_id: string;
  seq: number;
  at: number;
  agent: string;
  purpose: string;
  request: ModelRequest;
  shared: number;
  previous: string;
  removed: ChatMessage[];
  digest: string;
  verified: boolean;
}

/** Everything one model call depends on: plain data, that JSON and a copy can hold. messages: the conversation so far, a list. It is shared with the calls that follow: whoever would change it changes a copy. Kept beyond the call, it stays as it was. tail: text for this call only, "" for none; a provider is shown it after the last message, as the user's. max_output: tokens; always sent to the provider as its cap. settings: temperature, reasoning_effort and so on, passed through under the field's names. effect_id: where in the run the call stands; unique per attempt. session: the same for all calls of a run; a provider may keep its cache by it. */
export interface ModelRequest {
  model: string;
  system: string;
  messages: ChatMessage[];
  tools?: ToolSpec[];
  tool_choice?: string;
  tail?: string;
  max_output?: number;
  output_schema?: Record<string, unknown> | null;
  settings?: Record<string, unknown>;
  examples?: Example[];
  effect_id?: string;
  session?: string;
}

/** A tool as a model is shown it; `parameters` is a JSON Schema of type object. */
export interface ToolSpec {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

/** A past request and the call that was right for it: `call` with `arguments`. Adapters may show the nearest ones to a small model; large models do without. */
export interface Example {
  request: string;
  call: string;
  arguments?: Record<string, unknown>;
}

/** Where a team is written. */
export interface TeamSourceView {
  place: string;
  files: SourceText[];
  left_out: number;
}

/** A file of a team as it is now. */
export interface SourceText {
  name: string;
  state: "changed" | "loaded" | "missing";
  text: string;
  size: number;
  cut: boolean;
  findings: SourceFinding[];
}

/** What is wrong in a file, and what to do. */
export interface SourceFinding {
  line: number;
  column: number;
  severity: string;
  text: string;
}

/** A team. */
export interface TeamView {
  name: string;
  entry: string;
  agents: AgentView[];
  edges: ([string, string])[];
  findings: string[];
  policy: string;
  tokens: number | null;
  usd: number | null;
  on_breach: "ask" | "degrade" | "handoff" | "stop";
  breach_target: string;
}

/** An agent of a team. */
export interface AgentView {
  name: string;
  description: string;
  model: string;
  tools: ToolView[];
  can_call: string[] | null;
  usd_per_token: number | null;
  toolsets: ToolsetView[];
}

/** A tool of an agent. */
export interface ToolView {
  name: string;
  description: string;
  effect: string;
  parameters: Record<string, unknown>;
  rulings: Record<string, string>;
  kind: "delete" | "edit" | "execute" | "fetch" | "move" | "other" | "read" | "search" | "think";
  title: string;
}

/** A toolset of an agent: tools whose provider lives and dies. */
export interface ToolsetView {
  name: string;
  required: boolean;
  tools: ToolView[] | null;
  reason: string;
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
  usd_per_token: Record<string, number | null>;
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

/** How far an approval that is remembered reaches; by default to every call of that tool in the run. arguments: name and pattern of each argument that must match, as in file names; a text with `..` as a part of its path, a list and an object (their JSON) match themselves only. Where a tool says what a call does (`Tool.subjects`), each thing must be covered, by this grant or another. agent: whose calls, empty for everyone's. until: Unix seconds, 0 for ever. also: further `arguments`, any of which will do as well. */
export interface Grant {
  arguments?: ([string, string])[];
  agent?: string;
  until?: number;
  also?: (([string, string])[])[];
}
