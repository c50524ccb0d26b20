// All that the page asks of the server, and the only place that knows its addresses.
import type { Frame } from "../state/wire";
import { refusal } from "./problem";
import type {
  AnswerBody, AskBody, CancelBody, CommandReceipt, CreateRun, Inbox, PageToken, ResumeBody, RunCreated, RunLine, RunPage, SessionView, TeamView,
  Teams, TellBody,
} from "./wire";

export interface FramePage {
  frames: Frame[];
  last: number;
}

export class Api {
  constructor(private readonly root: string, private readonly token: string) {}

  session = (): Promise<SessionView> => this.get("/session");
  runs = (before = 0): Promise<RunPage> => this.get(`/runs?limit=100&before=${before}`);
  run = (id: string): Promise<RunLine> => this.get(`/runs/${id}`);
  inbox = (): Promise<Inbox> => this.get("/inbox");
  teams = (): Promise<Teams> => this.get("/teams");
  team = (name: string): Promise<TeamView> => this.get(`/teams/${encodeURIComponent(name)}`);
  frames = (id: string, after: number, limit = 1000): Promise<FramePage> => this.get(`/runs/${id}/frames?after=${after}&limit=${limit}`);
  blob = (id: string, digest: string): Promise<unknown> => this.get(`/runs/${id}/blobs/${digest}`);

  start = (body: CreateRun, key: string): Promise<RunCreated> => this.post("/runs", body, key);
  ask = (id: string, body: AskBody, key: string): Promise<CommandReceipt> => this.post(`/runs/${id}/requests`, body, key);
  tell = (id: string, body: TellBody): Promise<CommandReceipt> => this.post(`/runs/${id}/messages`, body);
  answer = (id: string, body: AnswerBody): Promise<CommandReceipt> => this.post(`/runs/${id}/answers`, body);
  cancel = (id: string, body: CancelBody): Promise<CommandReceipt> => this.post(`/runs/${id}/cancel`, body);
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

  private async post<Found>(path: string, body: object, key = ""): Promise<Found> {
    const headers = { ...this.headers(), "Content-Type": "application/json", ...(key ? { "Idempotency-Key": key } : {}) };
    return this.send(path, { method: "POST", headers, body: JSON.stringify(body) });
  }

  private async send<Found>(path: string, init: RequestInit): Promise<Found> {
    const response = await fetch(this.root + path, init);
    if (!response.ok) throw await refusal(response);
    return (await response.json()) as Found;
  }
}

/** The token that came in the address, or that is given for what did; kept for this tab, and both taken out of the address. */
export async function tokenOf(): Promise<string> {
  const [, name, text] = /[#&?](token|opening)=([^&]+)/.exec(location.hash) ?? [];
  if (name && text) {
    history.replaceState(null, "", location.pathname + location.hash.replace(/[#&?](token|opening)=[^&]+/, "").replace(/^([^#])/, "#$1"));
    const given = decodeURIComponent(text);
    const token = name === "token" ? given : await exchanged(given);
    if (token) sessionStorage.setItem("antiphon-token", token);
  }
  return sessionStorage.getItem("antiphon-token") ?? "";
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
