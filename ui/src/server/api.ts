// All that the page asks of the server, and the only place that knows its addresses.
import type { Frame } from "../state/wire";
import { parsed } from "../parts/json";
import { refusal, Refused } from "./problem";
import type {
  AnswerBody, AskBody, CancelBody, ChangeRun, CommandReceipt, CreateProject, CreateRun, FileBody, FileList, FramePage, Inbox, ModelChoices,
  ModuleReceipt, PageToken, ProjectBody, ProjectList, ProjectView, ResumeBody, RunCreated, RunLine, RunPage, RunView, SessionView,
  StoredRequest, TeamSourceView, TeamView, Teams, TellBody, WorkModuleChange,
} from "./wire";

const within = (project: string): string => (project ? `?project=${encodeURIComponent(project)}` : "");
const placed = (path: string): string => path.split("/").map(encodeURIComponent).join("/");

/** Which runs are wanted: of a state, a team, a project, with a text in title or name; `before` is the cursor of the page before. */
export interface RunQuery {
  limit: number;
  before?: number;
  state?: string;
  team?: string;
  project?: string;
  text?: string;
}

export class Api {
  constructor(private readonly root: string, private readonly token: string) {}

  session = (): Promise<SessionView> => this.get("/session");
  runs = (query: RunQuery): Promise<RunPage> =>
    this.get(`/runs?${new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]))}`);
  run = (id: string): Promise<RunLine> => this.get(`/runs/${id}`);
  inbox = (): Promise<Inbox> => this.get("/inbox");
  teams = (project = ""): Promise<Teams> => this.get(`/teams${within(project)}`);
  team = (name: string, project = ""): Promise<TeamView> => this.get(`/teams/${encodeURIComponent(name)}${within(project)}`);
  source = (name: string, project = ""): Promise<TeamSourceView> => this.get(`/teams/${encodeURIComponent(name)}/source${within(project)}`);
  models = (): Promise<ModelChoices> => this.get("/models");

  projects = (): Promise<ProjectList> => this.get("/projects");
  project = (id: string): Promise<ProjectView> => this.get(`/projects/${id}`);
  makeProject = (body: CreateProject): Promise<ProjectBody> => this.post("/projects", body);
  renameProject = (id: string, name: string): Promise<ProjectBody> => this.json(`/projects/${id}`, "PATCH", { name });
  deleteProject = (id: string): Promise<unknown> => this.fetched(`/projects/${id}?confirm=${id}`, { method: "DELETE", headers: this.headers() });
  files = (id: string): Promise<FileList> => this.get(`/projects/${id}/files`);
  upload = (id: string, path: string, file: Blob): Promise<FileBody> =>
    this.send(`/projects/${id}/files/${placed(path)}`, { method: "PUT", headers: { ...this.headers(), "Content-Type": "application/octet-stream" }, body: file });
  file = async (id: string, path: string): Promise<Blob> => (await this.fetched(`/projects/${id}/files/${placed(path)}`)).blob();
  removeFile = (id: string, path: string): Promise<unknown> =>
    this.fetched(`/projects/${id}/files/${placed(path)}`, { method: "DELETE", headers: this.headers() });

  tree = (id: string): Promise<RunView> => this.get(`/runs/${id}/tree`);
  frames = (id: string, after: number, limit = 1000): Promise<FramePage> => this.get(`/runs/${id}/frames?after=${after}&limit=${limit}`);
  blob = (id: string, digest: string): Promise<unknown> => this.get(`/runs/${id}/blobs/${digest}`);
  request = (id: string, effect: string): Promise<StoredRequest> => this.get(`/runs/${id}/requests/${effect}`);
  chat = async (id: string, effect: string): Promise<string> => (await this.fetched(`/runs/${id}/chat-completions/${effect}`)).text();

  /** One frame, its texts whole, or with what its files hold. */
  async frame(id: string, seq: number, more: "whole" | "files"): Promise<Frame> {
    const [found] = (await this.get<FramePage>(`/runs/${id}/frames?after=${seq - 1}&limit=1&${more}=true`)).frames;
    if (!found) throw new Refused(404, "cursor", `There is no record ${seq}`, "", []);
    return found;
  }

  start = (body: CreateRun, key: string): Promise<RunCreated> => this.post("/runs", body, key);
  ask = (id: string, body: AskBody, key: string): Promise<CommandReceipt> => this.post(`/runs/${id}/requests`, body, key);
  tell = (id: string, body: TellBody): Promise<CommandReceipt> => this.post(`/runs/${id}/messages`, body);
  answer = (id: string, body: AnswerBody): Promise<CommandReceipt> => this.post(`/runs/${id}/answers`, body);
  cancel = (id: string, body: CancelBody): Promise<CommandReceipt> => this.post(`/runs/${id}/cancel`, body);
  changeRun = (id: string, body: ChangeRun): Promise<RunLine> => this.json(`/runs/${id}`, "PATCH", body);
  manage = (id: string, body: WorkModuleChange): Promise<ModuleReceipt> => this.post(`/runs/${id}/work-modules`, body, crypto.randomUUID());
  resume = (id: string, body: ResumeBody): Promise<RunLine> => this.post(`/runs/${id}/resume`, body);

  /** The events of a run from record `after` on, as they come. Ends when the connection does. */
  async follow(id: string, after: number, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const response = await fetch(`${this.root}/runs/${id}/events?view=frames`, {
      headers: { ...this.headers(), Accept: "text/event-stream", "Last-Event-ID": String(after) }, signal, cache: "no-store",
    });
    if (!response.ok || !response.body) throw await refusal(response);
    return response.body;
  }

  private headers(): Record<string, string> {
    return this.token ? { Authorization: `Bearer ${this.token}` } : {};
  }

  private async get<Found>(path: string): Promise<Found> {
    return this.send(path, { headers: this.headers(), cache: "no-store" });
  }

  private post<Found>(path: string, body: object, key = ""): Promise<Found> {
    return this.json(path, "POST", body, key);
  }

  private async json<Found>(path: string, method: string, body: object, key = ""): Promise<Found> {
    const headers = { ...this.headers(), "Content-Type": "application/json", ...(key ? { "Idempotency-Key": key } : {}) };
    return this.send(path, { method, headers, body: JSON.stringify(body) });
  }

  private async send<Found>(path: string, init: RequestInit): Promise<Found> {
    return (await parsed(await (await this.fetched(path, init)).text())) as Found;
  }

  private async fetched(path: string, init: RequestInit = { headers: this.headers(), cache: "no-store" }): Promise<Response> {
    const response = await fetch(this.root + path, init);
    if (!response.ok) throw await refusal(response);
    return response;
  }
}

/** The token that came in the address, or that is given for what did, or that another tab has; kept for this tab, and taken out of the
 * address. Empty without any. */
export async function tokenOf(): Promise<string> {
  const [, name, text] = /[#&?](token|opening)=([^&]+)/.exec(location.hash) ?? [];
  if (name && text) {
    history.replaceState(null, "", location.pathname + location.hash.replace(/[#&?](token|opening)=[^&]+/, "").replace(/^([^#])/, "#$1"));
    const given = decodeURIComponent(text);
    const token = name === "token" ? given : await exchanged(given);
    if (token) sessionStorage.setItem("antiphon-token", token);
  }
  const known = sessionStorage.getItem("antiphon-token") ?? (await fromOthers());
  if (known) {
    sessionStorage.setItem("antiphon-token", known);
    tellOthers(known);
  }
  return known;
}

/** Milliseconds that other tabs have to answer. */
const PATIENCE = 200;
const CHANNEL = "antiphon-token";

/** The token that another tab of this server's page has: who opens a link in a new one has it too, as long as one is open. */
function fromOthers(): Promise<string> {
  return new Promise((done) => {
    const channel = new BroadcastChannel(CHANNEL);
    const end = (token: string): void => {
      window.clearTimeout(timer);
      channel.close();
      done(token);
    };
    const timer = window.setTimeout(() => end(""), PATIENCE);
    channel.onmessage = ({ data }: MessageEvent<{ token?: unknown }>) => { if (typeof data?.token === "string") end(data.token); };
    channel.postMessage("who has it?");
  });
}

/** Answer tabs that ask, which are of this origin: nothing but this page runs there. */
function tellOthers(token: string): void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }: MessageEvent<unknown>) => { if (data === "who has it?") channel.postMessage({ token }); };
}

/** The token for what the browser was opened with; that is good once. Empty when it was used, or the server is gone. */
async function exchanged(opening: string): Promise<string> {
  try {
    const headers = { "Content-Type": "application/json" };
    const response = await fetch("/session/opening", { method: "POST", headers, body: JSON.stringify({ opening }) });
    return response.ok ? ((await response.json()) as PageToken).token : "";
  } catch {
    return "";
  }
}
