// A run that goes on: all records that there are, then those that come; over lost connections and restarts.
import type { Deltas, Delta } from "../state/deltas";
import { inSlices } from "../state/slices";
import type { Store } from "../state/store";
import type { Frame } from "../state/wire";
import type { Api } from "./api";
import { Refused, reason } from "./problem";
import { events } from "./stream";

export type Connection = { state: "loading" | "live" | "lost" | "ended"; why: string };

const FIRST = 500;
const MOST = 5_000;
const WAITS = [250, 500, 1_000, 2_000, 5_000];

export class Follower {
  private readonly stopped = new AbortController();
  private frames: Frame[] = [];
  private drawing = false;

  constructor(
    private readonly api: Api, private readonly run: string, private readonly store: Store, private readonly deltas: Deltas,
    private readonly told: (connection: Connection) => void,
    private readonly soon: (draw: () => void) => void = (draw) => void requestAnimationFrame(draw),
    private readonly pause: (ms: number) => Promise<void> = (ms) => new Promise((done) => { setTimeout(done, ms); }),
  ) {}

  stop(): void {
    this.stopped.abort();
    this.wake();
  }

  /** Try again now, where it waits before it does. */
  wake: () => void = () => undefined;

  async follow(): Promise<void> {
    let failed = 0;
    while (!this.stopped.signal.aborted) {
      try {
        await this.load();
        const body = await this.api.follow(this.run, this.last, this.stopped.signal);
        this.say({ state: "live", why: "" });
        failed = 0;
        if (await this.listen(body)) return this.say({ state: "ended", why: "" });
      } catch (error) {
        if (this.stopped.signal.aborted) return;
        if (error instanceof Refused && error.status < 500 && error.status !== 429) {
          return this.say({ state: "ended", why: reason(error) });
        }
        this.say({ state: "lost", why: reason(error) });
      }
      if (this.stopped.signal.aborted) return;
      this.say({ state: "lost", why: "The server does not answer" });
      const woken = new Promise<void>((done) => { this.wake = done; });
      await Promise.race([woken, this.pause(WAITS[Math.min(failed++, WAITS.length - 1)]!)]);
    }
  }

  private get last(): number {
    return this.frames.at(-1)?.seq ?? this.store.history.seq;
  }

  private async load(): Promise<void> {
    // The first records are soon there; the server reads up to where a page begins, so the others are few and large.
    for (let limit = FIRST; ; limit = MOST) {
      const page = await this.api.frames(this.run, this.last, limit);
      await inSlices(page.frames, (some, more) => this.store.add(some, more), () => this.pause(0), () => this.stopped.signal.aborted);
      if (this.stopped.signal.aborted || page.frames.length === 0 || this.last >= page.last) return;
    }
  }

  /** Whether the run has ended for good. */
  private async listen(body: ReadableStream<Uint8Array>): Promise<boolean> {
    for await (const { event, data } of events(body)) {
      if (event === "frame") this.frames.push(JSON.parse(data) as Frame);
      else if (event === "delta") this.deltas.add(JSON.parse(data) as Delta);
      else if (event === "end") {
        const why = (JSON.parse(data) as { reason?: string }).reason ?? "";
        this.draw();
        if (why === "closed") return true;
        if (why === "token") throw new Refused(401, "token", "The token is no longer good", "Open the address that `antiphon serve` prints", []);
        return false;
      } else continue;
      if (!this.drawing) {
        this.drawing = true;
        this.soon(() => this.draw());
      }
    }
    this.draw();
    return false;
  }

  private draw(): void {
    this.drawing = false;
    if (this.frames.length) this.store.add(this.frames);
    this.frames = [];
    this.deltas.draw(this.store.history.latest);
  }

  private say(connection: Connection): void {
    this.store.setConnected(connection.state === "live");
    this.told(connection);
  }
}
