// One run and where a reader looks: `(record, effect)` is all there is to it, and it is the address of the page.
import { useSyncExternalStore } from "react";
import { History } from "./history";
import type { Run } from "./run";
import type { Frame } from "./wire";

export type Tab = "all" | "agent" | "board" | "records";
export type Pane = "talk" | "lanes" | "graph" | "look";

/** What everything on the page is drawn from; a new one whenever something changed. */
export interface View {
  /** As of the record that is looked at. */
  run: Run;
  /** As of the last record. */
  whole: Run;
  history: History;
  seq: number;
  /** It follows the last record. */
  live: boolean;
  /** The run goes on, and this page hears of it. */
  connected: boolean;
  /** This page heard of it, and does not any more: what seems to go on is how it stood then. */
  lost: boolean;
  /** Nobody drives it: nothing goes on, and time stands still. */
  parked: boolean;
  /** The instant that is now, Unix seconds. */
  now: number;
  effect: string;
  /** Somebody chose that effect; else it is what is worth a look. */
  chosen: boolean;
  tab: Tab;
  pane: Pane;
  playing: boolean;
  /** Words are looked for. */
  finding: boolean;
}

export class Store {
  readonly history = new History();
  private at: number | null = null;
  private effect = "";
  private tab: Tab = "all";
  private pane: Pane = "talk";
  private finding = false;
  private timer = 0;
  private connected = false;
  /** When the page was cut off, Unix seconds; 0 for never. */
  private cutOff = 0;
  private parked = false;
  private grown = false;
  private listeners = new Set<() => void>();
  private view: View | null = null;
  /** Added to this machine's clock to have the server's, seconds. */
  skew = 0;
  /** What stands before `address` in the address of the page. */
  path = "";

  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  snapshot = (): View => (this.view ??= this.draw());

  /** Take frames in. more: others follow at once, so that a picture of these would be for nothing. */
  add(frames: Frame[], more = false): void {
    let grown = false;
    for (const frame of frames) grown = this.history.add(frame) || grown;
    if (grown) this.grown = true;
    if (this.grown && !more) this.changed();
  }

  setConnected(connected: boolean): void {
    if (connected === this.connected) return;
    this.connected = connected;
    this.cutOff = connected ? 0 : this.clock;
    this.changed();
  }

  setParked(parked: boolean): void {
    if (parked === this.parked) return;
    this.parked = parked;
    this.changed();
  }

  /** Look at a record; null follows the last one. */
  seek(seq: number | null): void {
    const last = this.history.seq;
    this.at = seq === null || seq >= last ? null : Math.max(1, Math.round(seq));
    this.changed();
  }

  step(by: number): void {
    this.stop();
    this.seek((this.at ?? this.history.seq) + by);
  }

  select(effect: string): void {
    this.effect = effect;
    const found = this.history.latest.effect(effect);
    if (found && this.at !== null && found.start > this.at) this.at = found.start || found.end;
    this.changed();
  }

  show(tab: Tab): void {
    this.tab = tab;
    this.changed();
  }

  find(on: boolean): void {
    this.finding = on;
    this.changed();
  }

  open(pane: Pane): void {
    this.pane = pane;
    this.changed();
  }

  /** Play from here, as fast as it was, but no gap longer than a second; or stop. */
  play(): void {
    if (this.timer) return this.stop();
    if (this.at === null) this.at = 1;
    const next = (): void => {
      const seq = (this.at ?? 0) + 1;
      const frames = this.history.frames;
      if (seq >= frames.length) {
        this.timer = 0;
        return this.seek(null);
      }
      this.at = seq;
      const gap = Math.min(1, Math.max(0.016, frames[seq]!.at - frames[seq - 1]!.at));
      this.timer = window.setTimeout(next, gap * 1000);
      this.changed();
    };
    this.timer = window.setTimeout(next, 100);
    this.changed();
  }

  stop(): void {
    window.clearTimeout(this.timer);
    this.timer = 0;
    this.changed();
  }

  /** Where anybody finds what is looked at. */
  get link(): string {
    return `${location.href.split("#")[0]}#${this.path}${this.path && this.address ? "?" : ""}${this.address}`;
  }

  /** The address of what is looked at, after a `#`. */
  get address(): string {
    const parts = new URLSearchParams();
    if (this.at !== null) parts.set("record", String(this.at));
    if (this.effect) parts.set("effect", this.effect);
    if (this.tab !== "all") parts.set("tab", this.tab);
    return parts.toString();
  }

  set address(text: string) {
    const parts = new URLSearchParams(text);
    const record = Number(parts.get("record"));
    this.at = record >= 1 && (record < this.history.seq || this.history.seq === 0) ? Math.floor(record) : null;
    this.effect = parts.get("effect") ?? "";
    const tab = parts.get("tab");
    this.tab = tab === "agent" || tab === "board" || tab === "records" ? tab : "all";
    this.changed();
  }

  /** Time went by. */
  tick(): void {
    if (this.connected && !this.parked && this.at === null) this.changed();
  }

  /** The server's, Unix seconds. */
  private get clock(): number {
    return Date.now() / 1000 + this.skew;
  }

  private changed(): void {
    this.view = null;
    this.grown = false;
    for (const each of this.listeners) each();
  }

  private draw(): View {
    const { history } = this;
    const seq = this.at ?? history.seq;
    const run = history.at(seq);
    const live = this.at === null;
    // Who was cut off sees it as it was at that instant: nothing jumps back.
    const now = live && !this.parked ? (this.connected ? this.clock : this.cutOff) : run.at;
    return {
      run, whole: history.latest, history, seq, live, connected: this.connected, lost: live && this.cutOff > run.at && !this.parked, parked: live && this.parked, now: Math.max(now, run.at),
      effect: this.effect || first(run), chosen: this.effect !== "", tab: this.tab, pane: this.pane, playing: this.timer !== 0,
      finding: this.finding,
    };
  }
}

/** What is worth a look before anybody has chosen: what is asked, else the last model call. */
function first(run: Run): string {
  if (run.asked[0]) return run.asked[0];
  let found = "";
  for (const each of run.effects.values()) if (each.kind === "model") found = each.id;
  return found;
}

export const useView = (store: Store): View => useSyncExternalStore(store.subscribe, store.snapshot);

/** The page's address follows the store, after `path` and `?` where there is a path; and Back goes back. */
export function bindAddress(store: Store, path = ""): () => void {
  const read = (): string => location.hash.slice(1 + path.length).replace(/^\?/, "");
  store.path = path;
  store.address = read();
  let shown = store.address;
  let pending = 0;
  const release = store.subscribe(() => {
    if (store.address === shown) return;
    const selected = new URLSearchParams(store.address).get("effect") !== new URLSearchParams(shown).get("effect");
    shown = store.address;
    // A scrub is one step back, not a hundred; browsers also refuse more than a few changes a second.
    window.clearTimeout(pending);
    const write = (): void => history[selected ? "pushState" : "replaceState"](null, "", store.link);
    if (selected) write();
    else pending = window.setTimeout(write, 250);
  });
  const back = (): void => {
    if (path && !location.hash.startsWith(`#${path}`)) return;
    shown = read();
    store.address = shown;
  };
  window.addEventListener("popstate", back);
  return () => {
    release();
    window.clearTimeout(pending);
    window.removeEventListener("popstate", back);
  };
}
