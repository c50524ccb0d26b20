// A server as the page knows it: a run whose records come when a test says so, and connections that break.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { existsSync, readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { extname, join } from "node:path";
import type { Delta } from "../src/state/deltas";
import type { Frame } from "../src/state/wire";

const TYPES: Record<string, string> = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".woff2": "font/woff2" };
const BUILT = join(import.meta.dirname, "..", "..", "src", "antiphon", "view", "page", "assets", "served");

const OTHERS = [
  ["failed", "incident", "Why did the nightly import stop on Tuesday?", 18_204, 0.0121],
  ["suspended", "research", "Compare what the three tide gauges say about August", 40_118, 0.0307],
  ["completed", "extraction", "Which invoices contradict themselves?", 9_873, 0.0049],
  ["completed", "research", "How do tides work?", 22_460, 0.0158],
] as const;

export class Fake {
  readonly run = "f00dfacecafe4000";
  recorded: number;
  /** What came by POST, and how it is answered: a problem, or null for all well. */
  posted: { path: string; body: Record<string, unknown> }[] = [];
  refuse: ((path: string, body: Record<string, unknown>) => { status: number; title: string; detail: string } | null) = () => null;
  asks: unknown[] = [];
  /** Last-Event-ID of each connection. */
  cursors: number[] = [];
  down = false;
  scopes = ["read", "write"];
  drives = true;
  commands: Record<string, string> = {};
  /** What becomes of an answer before it is sent. */
  spoil: (found: unknown, path: string) => unknown = (found) => found;
  private server: Server;
  private streams = new Set<ServerResponse>();

  constructor(readonly frames: Frame[], recorded: number) {
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

  private async serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "/", "http://fake");
    if (this.down) return void request.socket.destroy();
    if (request.method === "POST") return this.take(url.pathname, request, response);
    const found = this.answer(url);
    if (url.pathname.endsWith("/events")) return this.stream(request, response);
    if (found !== undefined) {
      response.writeHead(200, { "content-type": "application/json" });
      return void response.end(JSON.stringify(url.pathname.endsWith("/frames") ? found : this.spoil(found, url.pathname)));
    }
    this.file(url.pathname === "/" ? "/index.html" : url.pathname, response);
  }

  private answer(url: URL): unknown {
    const line = {
      run_id: this.run, state: this.recorded < this.frames.length ? "running" : this.asks.length ? "waiting" : "completed", name: "", team: "research", owner: "local",
      project: "", entry: "Partner", title: "What happens to a tool call?", outcome: "", reason: "", records: this.recorded, tokens: 7_111,
      cost_usd: 0.0033, unpriced_calls: 0, driven_by: "host", created_at: 1_700_000_000, updated_at: Date.now() / 1000,
    };
    const others = OTHERS.map(([state, team, title, tokens, cost], index) => ({
      ...line, run_id: `run${index}`, state, team, title, tokens, cost_usd: cost, updated_at: line.updated_at - 400 * (index + 1) ** 2,
    }));
    const agents = ["Partner", "Principal", "Reader"].map((name) => ({
      name, description: `the ${name}`, model: "", can_call: null,
      tools: name === "Reader" ? [{ name: "read_lines", description: "Read lines.", effect: "read", parameters: {} }] : [],
    }));
    switch (url.pathname) {
      case "/runs": return { runs: [line, ...others], next: 0 };
      case "/session": return { subject: "local", scopes: this.scopes, version: "0", drives: this.drives, commands: this.commands };
      case `/runs/${this.run}`: return line;
      case `/runs/${this.run}/frames`: {
        const after = Number(url.searchParams.get("after"));
        const limit = Number(url.searchParams.get("limit"));
        return { frames: this.frames.slice(0, this.recorded).slice(after, after + limit), last: this.recorded };
      }
      case "/inbox": return { items: this.asks };
      case "/teams": return { teams: [{ name: "research", entry: "Partner", agents: ["Partner", "Principal", "Reader"], findings: [] }] };
      case "/teams/research": return {
        name: "research", entry: "Partner", policy: "guarded", findings: [], agents, edges: [["Partner", "Principal"], ["Principal", "Reader"]],
      };
    }
    if (url.pathname.startsWith(`/runs/${this.run}/blobs/`)) {
      const parameters = { properties: { path: { type: "string" }, text: { type: "string" } } };
      return { system: "You write.", tools: [{ name: "write_report", parameters }] };
    }
    return undefined;
  }

  private async take(path: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = "";
    for await (const each of request) text += String(each);
    const body = JSON.parse(text || "{}") as Record<string, unknown>;
    this.posted.push({ path, body });
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
      "content-type": TYPES[extname(place)] ?? "application/octet-stream",
      "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; font-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'",
    });
    response.end(readFileSync(place));
  }
}

const frameEvent = (frame: Frame): string => `event: frame\nid: ${frame.seq}\ndata: ${JSON.stringify(frame)}\n\n`;

/** Wait until something is so; fails after some seconds. */
export async function until(what: () => boolean | Promise<boolean>, patience = 10_000): Promise<void> {
  const end = Date.now() + patience;
  while (!(await what())) {
    if (Date.now() > end) throw new Error(`never came to be: ${what.toString()}`);
    await new Promise((done) => { setTimeout(done, 5); });
  }
}
