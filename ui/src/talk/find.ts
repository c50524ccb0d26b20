// Finding over data: a list of which only a part is drawn cannot be searched by the browser.
import type { Run } from "../state/run";
import { openingOf } from "./items";

/** The effects that say something, in the order they began: in names, arguments, texts, replies, results. */
export function find(run: Run, words: string): string[] {
  const wanted = words.trim().toLowerCase();
  if (!wanted) return [];
  const found: string[] = [];
  for (const each of run.effects.values()) {
    const texts = [
      each.name, each.text.text, each.arguments.text, each.content.text, each.reason, each.reply?.content.text,
      each.reply?.reasoning?.text, each.failure?.text, each.callee >= 0 ? openingOf(run, each)?.content.text : "",
    ];
    if (texts.some((text) => text?.toLowerCase().includes(wanted))) found.push(each.id);
  }
  return found;
}
