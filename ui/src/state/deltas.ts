// Pieces of replies as they come: joined, and written once per picture into the open text, outside React.
// And what tools say while they run, of which only the last counts.
import type { Run } from "./run";
import type { FileDiff, FileLocation, ReplyDelta } from "./wire";
import { visible } from "./words";

/** A piece as the server sends it; of a question about pieces of replies the rest does not matter. */
export type Delta = Pick<ReplyDelta, "effect_id" | "kind" | "text"> & Partial<ReplyDelta>;

/** What a tool says of itself. */
export interface Progress {
  text: string;
  locations: FileLocation[];
  diffs: FileDiff[];
}

const MOST = 20_000;
/** Milliseconds between two pictures of what a tool says: nobody reads faster. */
const CALM = 200;

interface Parts {
  text: string;
  reasoning: string;
  other: string;
  /** How many characters came before what is here. */
  from: Record<"text" | "reasoning", number>;
}

export class Deltas {
  private texts = new Map<string, Parts>();
  private places = new Map<string, HTMLElement>();
  private changed = new Set<string>();
  private progress = new Map<string, Progress>();
  private listeners = new Set<() => void>();
  private fresh = false;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** Hear of what tools say. */
  subscribe = (listener: () => void): (() => void) => {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  };

  progressOf(id: string): Progress | undefined {
    return this.progress.get(id);
  }

  add({ effect_id: id, kind, text, offset, locations = [], diffs = [] }: Delta): void {
    if (kind === "progress") {
      this.progress.set(id, { text, locations, diffs });
      this.fresh = true;
      return;
    }
    const found = this.texts.get(id) ?? { text: "", reasoning: "", other: "", from: { text: 0, reasoning: 0 } };
    const part = kind === "text" || kind === "reasoning" ? kind : "other";
    // The attempt came to nothing: nothing counts of what it said.
    if (kind === "void") Object.assign(found, { text: "", reasoning: "", other: "", from: { text: 0, reasoning: 0 } });
    else if (part === "other") found.other = kind === "call_arguments" ? found.other + text : kind === "call_name" ? `${text} ` : text;
    else {
      // What was missed or comes again is known by where it stands. Of a long text the server keeps the end only: it begins there.
      const at = (offset ?? found.from[part] + found[part].length) - found.from[part];
      if (at < 0 || at > found[part].length) found.from[part] = offset ?? 0;
      found[part] = (at < 0 || at > found[part].length ? "" : found[part].slice(0, at)) + text;
    }
    this.texts.set(id, found);
    this.changed.add(id);
  }

  /** An element stands for an open effect, until it is another's. */
  bind(id: string, element: HTMLElement | null): void {
    if (!element) {
      this.places.delete(id);
      return;
    }
    this.places.set(id, element);
    this.write(id);
  }

  /** Write what has come since the last time, and forget what has ended. */
  draw(run: Run): void {
    for (const id of this.changed) this.write(id);
    this.changed.clear();
    for (const id of this.texts.keys()) if (run.effect(id)?.end) this.texts.delete(id);
    for (const id of this.progress.keys()) if (run.effect(id)?.end) this.progress.delete(id);
    if (this.fresh && this.timer === undefined) this.tell();
  }

  private tell(): void {
    this.timer = undefined;
    if (!this.fresh) return;
    this.fresh = false;
    for (const each of this.listeners) each();
    this.timer = setTimeout(() => this.tell(), CALM);
  }

  of(id: string): { text: string; reasoning: string } | undefined {
    return this.texts.get(id);
  }

  private write(id: string): void {
    const element = this.places.get(id);
    const found = this.texts.get(id);
    if (!element || !found) return;
    for (const node of element.querySelectorAll<HTMLElement>("[data-text]")) {
      const all = found[node.dataset.text as "text" | "reasoning" | "other"] ?? "";
      const later = found.from[node.dataset.text as "text" | "reasoning"] ?? 0;
      const shown = visible(later || all.length > MOST ? "… " + all.slice(-MOST) : all);
      const old = node.textContent ?? "";
      // Appending is much cheaper than replacing: the browser lays out only the new line.
      if (shown.startsWith(old) && node.firstChild) (node.firstChild as Text).appendData(shown.slice(old.length));
      else node.textContent = shown;
    }
  }
}
