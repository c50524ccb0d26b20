// A list of which only what is seen is drawn. Heights are measured once drawn; nothing moves under the reader.
import { useEffect, useLayoutEffect, useRef, useState, type ReactNode } from "react";

export interface Row {
  key: string;
  /** Pixels that it is taken for until it was drawn. */
  guess: number;
}

interface Props<Item extends Row> {
  items: Item[];
  render(item: Item): ReactNode;
  label: string;
  /** Scrolled into sight whenever it changes. */
  wanted?: string | undefined;
  /** Stay at the end while items come, until the reader scrolls away. */
  follow?: boolean;
  className?: string;
}

const MARGIN = 400;
/** Pixels from the end at which a reader is taken to be there. */
const NEAR = 40;

export function Virtual<Item extends Row>({ items, render, label, wanted, follow = false, className = "" }: Props<Item>) {
  const box = useRef<HTMLDivElement>(null);
  const heights = useRef(new Map<string, number>());
  const [, redraw] = useState(0);
  const [seen, setSeen] = useState({ top: 0, height: 800 });
  const atEnd = useRef(true);
  /** Where the reader was, in pixels, when they last saw the end. */
  const ended = useRef(0);
  const [missed, setMissed] = useState(0);
  const known = useRef(items.length);

  const tops: number[] = [];
  let all = 0;
  for (const item of items) {
    tops.push(all);
    all += heights.current.get(item.key) ?? item.guess;
  }
  const first = Math.max(0, find(tops, seen.top - MARGIN) - 1);
  const last = find(tops, seen.top + seen.height + MARGIN);

  useLayoutEffect(() => {
    const element = box.current!;
    const look = (): void => {
      // What grows below the end is no reader who went away: only who scrolls up does that. A few pixels up are
      // no reader either: a list that gets shorter moves by itself, and has grown again before that is told.
      if (element.scrollHeight - element.scrollTop - element.clientHeight < NEAR) {
        atEnd.current = true;
        ended.current = element.scrollTop;
      } else if (element.scrollTop < ended.current - NEAR) atEnd.current = false;
      if (atEnd.current) setMissed(0);
      setSeen((old) => Math.abs(old.top - element.scrollTop) > 200 || old.height !== element.clientHeight
        ? { top: element.scrollTop, height: element.clientHeight } : old);
    };
    const watch = new ResizeObserver(look);
    watch.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      watch.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);

  // What was drawn is measured; when that changes what stands above the reader, the reader is moved along.
  useLayoutEffect(() => {
    const element = box.current!;
    let changed = false;
    let above = 0;
    for (const child of element.querySelectorAll<HTMLElement>(":scope > div > [data-key]")) {
      const key = child.dataset.key!;
      const height = child.offsetHeight;
      const index = Number(child.dataset.index);
      const taken = heights.current.get(key) ?? items[index]?.guess ?? height;
      if (height !== taken || !heights.current.has(key)) {
        if (height !== taken) changed = true;
        if (tops[index]! + taken <= element.scrollTop) above += height - taken;
        heights.current.set(key, height);
      }
    }
    if (above) {
      element.scrollTop += above;
      ended.current += above;
    }
    if (changed) redraw((old) => old + 1);
  });

  // What opens within a row, or is laid out anew, is measured again.
  const resized = useRef<ResizeObserver>(null);
  resized.current ??= new ResizeObserver(() => redraw((old) => old + 1));
  useLayoutEffect(() => {
    const watch = resized.current!;
    for (const child of box.current!.querySelectorAll(":scope > div > [data-key]")) watch.observe(child);
    return () => watch.disconnect();
  }, [first, last, items]);

  useLayoutEffect(() => {
    const more = items.length - known.current;
    known.current = items.length;
    const element = box.current!;
    if (follow && atEnd.current) {
      element.scrollTop = element.scrollHeight;
      // A list that was measured shorter has moved by itself, and is no reader who scrolled up.
      ended.current = element.scrollTop;
    } else if (follow && more > 0) setMissed((old) => old + more);
  }, [items.length, all, follow]);

  useEffect(() => {
    const index = wanted === undefined ? -1 : items.findIndex((each) => each.key === wanted);
    if (index < 0) return;
    const element = box.current!;
    const top = tops[index]!;
    const bottom = top + (heights.current.get(wanted!) ?? items[index]!.guess);
    if (top < element.scrollTop) element.scrollTop = top - 24;
    else if (bottom > element.scrollTop + element.clientHeight) {
      element.scrollTop = Math.min(top - 24, bottom - element.clientHeight + 24);
    }
  }, [wanted]);

  return (
    <div className="virtual">
      <div ref={box} className={`body ${className}`} role="group" aria-label={label} tabIndex={0}>
        <div style={{ height: all, position: "relative" }}>
          {items.slice(first, last + 1).map((item, offset) => (
            <div key={item.key} data-key={item.key} data-index={first + offset}
              style={{ position: "absolute", top: tops[first + offset], left: 0, right: 0 }}>
              {render(item)}
            </div>
          ))}
        </div>
      </div>
      {missed > 0 && (
        <button className="btn missed" onClick={() => { box.current!.scrollTop = box.current!.scrollHeight; }}>
          {missed} new ↓
        </button>
      )}
    </div>
  );
}

/** The first place whose top is at or below `y`. */
function find(tops: number[], y: number): number {
  let low = 0;
  let high = tops.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (tops[middle]! < y) low = middle + 1;
    else high = middle;
  }
  return low;
}
