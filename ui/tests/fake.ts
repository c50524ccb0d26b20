// A server as the page knows it: a run whose records come when a test says so, and connections that break.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { existsSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import type { Delta } from "../src/state/deltas";
import type { RunLine, StoredRequest, TeamSourceView } from "../src/server/wire";
import type { Frame } from "../src/state/wire";

const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2" };
const BUILT = join(import.meta.dirname, "..", "..", "src", "antiphon", "view", "page", "assets", "served");

const OTHERS = [
  ["failed", "incident", "Why did the nightly import stop on Tuesday?", 18_204, 0.0121],
  ["suspended", "research", "Compare what the three tide gauges say about August", 40_118, 0.0307],
  ["completed", "extraction", "Which invoices contradict themselves?", 9_873, 0.0049],
  ["completed", "research", "How do tides work?", 22_460, 0.0158],
] as const;

/** An address that stays from test to test, and what answers there now: what asks while nothing does is turned away. */
export class Door {
  behind: Fake | undefined;
  root = "";
  private server = createServer((request, response) => void (this.behind ? this.behind.serve(request, response) : request.socket.destroy()));

  async open(): Promise<void> {
    await new Promise<void>((done) => this.server.listen(Number(new URL(this.root || "http://here").port), "127.0.0.1", done));
    this.root = `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.behind?.cut();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  /** The test is over: the page that it left is answered no more. */
  shut(): void {
    this.behind?.cut();
    this.behind = undefined;
  }
}

let made = 0;

export class Fake {
  recorded: number;
  /** What came by POST, and how it is answered: a problem, or null for all well. */
  posted: { path: string; body: Record<string, unknown>; method: string }[] = [];
  refuse: ((path: string, body: Record<string, unknown>) => { status: number; type?: string; title: string; detail: string } | null) = () => null;
  asks: unknown[] = [];
  /** Last-Event-ID of each connection. */
  cursors: number[] = [];
  down = false;
  /** Who does not bring it is asked for a token; empty: nobody is. */
  token = "";
  /** Runs in the list beside the five that are always there, newest first. */
  more = 0;
  /** What the list was asked for. */
  queries: string[] = [];
  state = "";
  /** The team that is served; empty for none. */
  team = "research";
  project = { project: "docs", name: "The handbook", owner: "local", teams: ["research"], runs: 2, files: 1, findings: [] as string[] };
  rules: unknown[] = [{
    id: "r1", scope: "project", key: "docs", tool: "write_report", verdict: "allow", author: "ada", created_at: 1_700_000_000,
    grant: { arguments: [["path", "reports/*"]], agent: "", until: 0 },
  }];
  stored = [{ path: "notes/tides.md", size: 2_048, modified: 1_700_000_000 }];
  /** What a model was asked, whichever call is looked at. */
  request: StoredRequest = {
    effect_id: "", seq: 1, at: 1, agent: "Principal", purpose: "", shared: 1, previous: "2/1.m1", digest: "d", verified: true, removed: [],
    request: { model: "m", system: "You write.", tail: "Only now.", messages: [
      { role: "user", content: "Known" }, { role: "tool", name: "read_lines", content: "[cut]", ref: "2/1.c1" },
    ] },
  };
  /** Frames with what their files hold, by record. */
  held: Record<string, Frame> = {};
  /** What a frame is when its texts are whole. */
  whole: (frame: Frame) => Frame = (frame) => frame;
  /** Where the team is written. */
  source: TeamSourceView = { place: "examples/research", left_out: 0, files: [
    { name: "profiles/principal.yaml", state: "loaded", size: 62, cut: false, text: "name: Principal\ntype: principal\nflow_decidr: []\ntools: [write]\n", findings: [
      { line: 3, column: 1, severity: "error", text: "in a profile: unknown key 'flow_decidr'; did you mean 'flow_decider'?" },
      { line: 4, column: 8, severity: "warning", text: "the tool 'write' is not installed" },
    ] },
    { name: "profiles/reader.yaml", state: "loaded", size: 29, cut: false, text: "name: Reader\ntype: associate\n", findings: [] },
  ] };
  /** What the reader can use beside its tools. */
  toolsets: unknown[] = [];
  scopes = ["read", "write"];
  /** Activations of the run's tree. */
  told: unknown[] = [];
  /** What somebody may do is said only after this. */
  known: Promise<unknown> = Promise.resolve();
  drives = true;
  commands: Record<string, string> = {};
  /** What becomes of an answer before it is sent. */
  spoil: (found: unknown, path: string) => unknown = (found) => found;
  private server: Server;
  private streams = new Set<ServerResponse>();

  /** run: its id, one of its own unless it is given: a page of another test asks for another. */
  constructor(readonly frames: Frame[], recorded: number, readonly run = `f00dfacecafe${String(4_000 + made++)}`) {
    this.recorded = recorded;
    this.server = createServer((request, response) => void this.serve(request, response));
  }

  async open(port = 0): Promise<string> {
    await new Promise<void>((done) => this.server.listen(port, "127.0.0.1", done));
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.cut();
    this.server.closeAllConnections();
    await new Promise((done) => this.server.close(done));
  }

  /** As many records more. */
  record(number: number): void {
    const before = this.recorded;
    this.recorded = Math.min(this.frames.length, before + number);
    for (const frame of this.frames.slice(before, this.recorded)) this.send(frameEvent(frame));
  }

  delta(delta: Delta): void {
    this.send(`event: delta\ndata: ${JSON.stringify(delta)}\n\n`);
  }

  /** The model calls that have begun and not ended. */
  openModels(): string[] {
    const open = new Set<string>();
    for (const each of this.frames.slice(0, this.recorded).flatMap((frame) => frame.changes)) {
      if (each.type === "effect_started" && each.kind === "model") open.add(each.id);
      if (each.type === "effect_ended") open.delete(each.id);
    }
    return [...open];
  }

  send(text: string): void {
    for (const each of this.streams) each.write(text);
  }

  /** Every open stream breaks. */
  cut(): void {
    for (const each of this.streams) each.destroy();
    this.streams.clear();
  }

  get connections(): number {
    return this.streams.size;
  }

  async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://fake");
    if (url.pathname.startsWith("/teams")) this.queries.push(url.pathname + url.search);
    if (this.down) return void request.socket.destroy();
    if (this.token && request.headers["sec-fetch-dest"] === "empty" && request.headers.authorization !== `Bearer ${this.token}`) {
      response.writeHead(401, { "content-type": "application/problem+json" });
      return void response.end(JSON.stringify({ type: "urn:antiphon:problem:no_token", title: "This needs a token", detail: "Send the header" }));
    }
    if (request.method !== "GET") return this.take(url.pathname, request, response);
    if (url.pathname === "/session") await this.known;
    const found = this.answer(url);
    if (url.pathname === `/runs/${this.run}/events`) return this.stream(request, response);
    if (found !== undefined) {
      response.writeHead(200, { "content-type": "application/json" });
      return void response.end(JSON.stringify(url.pathname.endsWith("/frames") ? found : this.spoil(found, url.pathname)));
    }
    this.file(url.pathname === "/" ? "/index.html" : url.pathname, response);
  }

  private answer(url: URL): unknown {
    const line = {
      run_id: this.run, state: this.state || (this.recorded < this.frames.length ? "running" : this.asks.length ? "waiting" : "completed"), name: "", team: "research", owner: "local",
      project: "", entry: "Partner", title: "What happens to a tool call?", outcome: "", reason: "", records: this.recorded, tokens: 7_111,
      cost_usd: 0.0033, unpriced_calls: 0, driven_by: "host", created_at: 1_700_000_000, updated_at: Date.now() / 1000,
      number: 5, summary: { seq: this.recorded, activity: [...Array(24).keys()].map((at) => (at * 7) % 11), activity_span: 2, models: ["openai:gpt-4.1-mini"] },
    };
    const others = OTHERS.map(([state, team, title, tokens, cost], index) => ({
      ...line, run_id: `run${index}`, state, team, title, tokens, cost_usd: cost, project: index % 2 ? "docs" : "", updated_at: line.updated_at - 400 * (index + 1) ** 2,
    }));
    const agents = ["Partner", "Principal", "Reader"].map((name) => ({
      name, description: `the ${name}`, model: "", can_call: null, usd_per_token: 8e-6,
      tools: name === "Reader" ? [tool("read_lines", "read")] : name === "Principal" ? [tool("write_report", "once")] : [],
      toolsets: name === "Reader" ? this.toolsets : [],
    }));
    const [, part = "", id = ""] = /^\/runs\/\w+\/(requests|chat-completions)\/(.+)$/.exec(url.pathname) ?? [];
    if (part) return part === "requests" ? { ...this.request, effect_id: id } : { model: "m", messages: this.request.request.messages };
    switch (url.pathname) {
      case "/runs": return this.listed([line, ...others], url.searchParams);
      case "/session": return { subject: "local", scopes: this.scopes, version: "0", drives: this.drives, commands: this.commands };
      case "/models": return { models: ["openai:gpt-4.1-mini", "local"], usd_per_token: { "openai:gpt-4.1-mini": 1.6e-6, local: 0 } };
      case "/projects": return { projects: [this.project] };
      case "/projects/docs": return { ...this.project, rules: this.rules };
      case "/projects/docs/files": return { files: this.stored };
      case `/runs/${this.run}`: return line;
      case `/runs/${this.run}/frames`: {
        const after = Number(url.searchParams.get("after"));
        const limit = Number(url.searchParams.get("limit"));
        if (url.searchParams.has("files")) return { frames: [this.held[after + 1] ?? this.frames[after]], last: this.recorded };
        if (url.searchParams.has("whole")) return { frames: this.frames.slice(after, after + 1).map(this.whole), last: this.recorded };
        return { frames: this.frames.slice(0, this.recorded).slice(after, after + limit), last: this.recorded };
      }
      case `/runs/${this.run}/tree`: return { activations: this.told };
      case "/inbox": return { items: this.asks };
      case "/teams": return { teams: !this.team ? [] : [{ name: "research", entry: "Partner", agents: ["Partner", "Principal", "Reader"], findings: [] }] };
      case `/teams/${this.team}`: return {
        name: "research", entry: "Partner", policy: "guarded", tokens: 2_000_000, usd: null, on_breach: "stop", breach_target: "", findings: [], agents, edges: [["Partner", "Principal"], ["Principal", "Reader"]],
      };
    }
    if (url.pathname === `/teams/${this.team}/source`) return this.source;
    if (url.pathname.startsWith(`/runs/${this.run}/blobs/`)) {
      const parameters = { properties: { path: { type: "string" }, text: { type: "string" } } };
      return { system: "You write.", tools: [{ name: "write_report", parameters }] };
    }
    return undefined;
  }

  private listed(lines: RunLine[], query: URLSearchParams): unknown {
    this.queries.push(query.toString());
    const [first] = lines;
    const old = [...Array(this.more).keys()].map((at) =>
      ({ ...first!, run_id: `old${at}`, title: `Old question ${at}`, state: "completed", created_at: first!.created_at - 10 - at }));
    const all = [...lines, ...old].filter((each) =>
      ["state", "team", "project"].every((name) => !query.get(name) || each[name as "state"] === query.get(name))
      && each.title.toLowerCase().includes((query.get("text") ?? "").toLowerCase()));
    const start = all.length - (Number(query.get("before")) || all.length);
    const page = all.slice(start, start + Number(query.get("limit")));
    return { runs: page, next: start + page.length < all.length ? all.length - start - page.length : 0 };
  }

  private async take(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const each of request) text += String(each);
    const sent = request.headers["content-type"] === "application/json";
    const body = (sent ? JSON.parse(text) : { text }) as Record<string, unknown>;
    this.posted.push({ path, body, method: request.method ?? "" });
    const refused = this.refuse(path, body);
    response.writeHead(refused?.status ?? 202, { "content-type": "application/json" });
    response.end(JSON.stringify(refused ?? { command: 1, taken: true, run_id: this.run, created: true }));
  }

  private stream(request: IncomingMessage, response: ServerResponse): void {
    const after = Number(request.headers["last-event-id"] ?? 0);
    this.cursors.push(after);
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": antiphon\n\n");
    for (const frame of this.frames.slice(after, this.recorded)) response.write(frameEvent(frame));
    this.streams.add(response);
    response.on("close", () => this.streams.delete(response));
  }

  private file(path: string, response: ServerResponse): void {
    const place = join(BUILT, path);
    if (!place.startsWith(BUILT) || !existsSync(place)) {
      response.writeHead(404, { "content-type": "application/json" });
      return void response.end(JSON.stringify({ title: `There is no ${path}`, type: "urn:antiphon:problem:not_found" }));
    }
    response.writeHead(200, {
      "content-type": TYPES[extname(place)] ?? "application/octet-stream", "cache-control": path === "/index.html" ? "no-cache" : "public, max-age=31536000, immutable",
      "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'",
    });
    response.end(readFileSync(place));
  }
}

const tool = (name: string, effect: string) => ({
  name, description: "", effect, parameters: {},
  rulings: effect === "read" ? { "": "allow", open: "allow", guarded: "allow", strict: "deny" } : { "": "ask", open: "allow", guarded: "ask", strict: "deny" },
});

const frameEvent = (frame: Frame): string => `event: frame\nid: ${frame.seq}\ndata: ${JSON.stringify(frame)}\n\n`;

/** Wait until something is so; fails after some seconds. */
export async function until(what: () => boolean | Promise<boolean>, patience = 10_000): Promise<void> {
  const end = Date.now() + patience;
  while (!(await what())) {
    if (Date.now() > end) throw new Error(`never came to be: ${what.toString()}`);
    await new Promise((done) => { setTimeout(done, 20); });
  }
}
