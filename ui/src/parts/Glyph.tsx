// One shape per kind, so that colour is never alone.
import type { Kind } from "../state/doing";

const SHAPES = {
  agent: <circle cx="5" cy="5" r="4" />,
  model: <path d="M5 0 10 5 5 10 0 5Z" />,
  tool: <rect x="1" y="1" width="8" height="8" rx="1" />,
  human: <path d="M5 .5 9.8 9.5H.2Z" />,
  wait: <path d="M1.5 1h7L5 5l3.5 4h-7L5 5Z" />,
  error: <path d="M1.5 0 5 3.5 8.5 0 10 1.5 6.5 5 10 8.5 8.5 10 5 6.5 1.5 10 0 8.5 3.5 5 0 1.5Z" />,
  done: <path d="M1 5.2 3.8 8 9 2" fill="none" stroke="currentColor" strokeWidth="1.8" />,
  rest: <circle cx="5" cy="5" r="3.4" fill="none" stroke="currentColor" strokeWidth="1.6" />,
};

export type Shape = keyof typeof SHAPES;

export function Glyph({ shape, kind }: { shape: Shape; kind?: Kind }) {
  const colour = kind ?? (shape === "done" || shape === "rest" ? "wait" : shape);
  return (
    <span className={`g k-${colour}`} aria-hidden="true">
      <svg viewBox="0 0 10 10" fill="currentColor">{SHAPES[shape]}</svg>
    </span>
  );
}

const PATHS = {
  runs: "M2 4h12M2 8h8M2 12h10",
  inbox: "M2 9l2-6h8l2 6v4H2V9h3.5l1 2h3l1-2H14",
  teams: "M8 6a2.2 2.2 0 100-4.4A2.2 2.2 0 008 6zM3.5 14.5a2 2 0 100-4 2 2 0 000 4zM12.5 14.5a2 2 0 100-4 2 2 0 000 4z"
    + "M8 6v2.5M8 8.5H3.5v2M8 8.5h4.5v2",
  plus: "M8 3v10M3 8h10",
  search: "M7 12A5 5 0 107 2a5 5 0 000 10zM10.7 10.7L14 14",
  play: "M5 3l8 5-8 5z",
  pause: "M5 3v10M11 3v10",
  prev: "M10 3L5 8l5 5",
  next: "M6 3l5 5-5 5",
  first: "M12 3L7 8l5 5M4 3v10",
  last: "M4 3l5 5-5 5M12 3v10",
  copy: "M5.5 5.5v-3h8v8h-3M2.5 5.5h8v8h-8z",
  moon: "M13.5 9.5A6 6 0 116.5 2.5a5 5 0 007 7z",
  keys: "M2 4.5h12v7H2zM4.5 7h.01M7 7h.01M9.5 7h.01M12 7h.01M5 9.5h6",
  stop: "M4 4h8v8H4z",
  done: "M3 8.5l3.2 3.2L13 5",
  folder: "M2 4h4l1.5 2H14v7H2z",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
};

export function Icon({ name }: { name: keyof typeof PATHS }) {
  return <svg className="i" viewBox="0 0 16 16" aria-hidden="true"><path d={PATHS[name]} /></svg>;
}
