// Pieces of replies as they come: joined, and written once per picture into the open text, outside React.
import type { Run } from "./run";
import { visible } from "./words";

export interface Delta {
  effect_id: string;
  kind: string;
  text: string;
  /** Where it stands in the reply: characters before it, where that is known. */
  offset?: number;
}

const MOST = 20_000;

export class Deltas {
  private texts = new Map<string, { text: string; reasoning: string; other: string }>();
  private places = new Map<string, HTMLElement>();
  private changed = new Set<string>();

  add({ effect_id: id, kind, text, offset }: Delta): void {
    const found = this.texts.get(id) ?? { text: "", reasoning: "", other: "" };
    const part = kind === "text" || kind === "reasoning" ? kind : "other";
    // What was missed or comes again is known by where it stands.
    const before = offset === undefined || part === "other" ? found[part] : found[part].slice(0, offset);
    found[part] = (part === "other" && kind !== "tool_args" ? "" : before) + text;
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
      const shown = visible(all.length > MOST ? "… " + all.slice(-MOST) : all);
      const old = node.textContent ?? "";
      // Appending is much cheaper than replacing: the browser lays out only the new line.
      if (shown.startsWith(old) && node.firstChild) (node.firstChild as Text).appendData(shown.slice(old.length));
      else node.textContent = shown;
    }
  }
}
