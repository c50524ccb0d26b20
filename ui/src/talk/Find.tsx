import { useEffect, useMemo, useRef, useState } from "react";
import type { Store, View } from "../state/store";
import { count } from "../state/words";
import { find } from "./find";

/** Words that are looked for in all of the run; Enter leads from place to place. */
export function Find({ store, view, close }: { store: Store; view: View; close(): void }) {
  const [words, setWords] = useState("");
  const field = useRef<HTMLInputElement>(null);
  const found = useMemo(() => find(view.run, words), [view.run, view.run.seq, words]);
  const at = found.indexOf(view.effect);
  useEffect(() => field.current?.focus(), []);
  const go = (by: number): void => {
    if (!found.length) return;
    const next = at < 0 ? (by > 0 ? 0 : found.length - 1) : (at + by + found.length) % found.length;
    store.select(found[next]!);
  };
  return (
    <div className="find" role="search">
      <input ref={field} className="field" type="search" aria-label="Find in this run" placeholder="Find in this run" value={words}
        onChange={(event) => setWords(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
          if (event.key === "Escape") close();
        }} />
      <span className="faint sm" role="status">
        {words.trim() ? (found.length ? `${at < 0 ? "" : `${count(at + 1)} of `}${count(found.length)}` : "nothing") : ""}</span>
      <button className="btn plain sq" aria-label="Previous place" onClick={() => go(-1)}>↑</button>
      <button className="btn plain sq" aria-label="Next place" onClick={() => go(1)}>↓</button>
    </div>
  );
}
