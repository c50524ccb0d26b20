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

  add({ effect_id: id, kind, text, offset }: Delta): void {
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
