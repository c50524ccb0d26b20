// The time axis: seconds to a place between 0 and 1. Gaps in which only people or timers were waited for fold.
import type { Run } from "./run";

export interface Axis {
  /** Unix seconds at the left and right edge. */
  from: number;
  to: number;
  gaps: [number, number][];
  /** Where an instant stands, 0 to 1. */
  place(instant: number): number;
  /** The instant of a place. */
  instant(place: number): number;
}

/** Times of work: what somebody or something did, and not only waited. */
export function worked(run: Run, until: number): [number, number][] {
  const found: [number, number][] = [];
  for (const each of run.effects.values()) {
    if (each.kind === "wait" || each.kind === "call") continue;
    found.push([each.began, each.end ? each.ended : until]);
  }
  return found.sort((one, other) => one[0] - other[0]);
}

/** An axis over `from` to `to`; a gap longer than a quarter of the work is drawn as a small part of it. */
export function axis(busy: [number, number][], from: number, to: number, fold = true): Axis {
  const gaps: [number, number][] = [];
  const free: [number, number][] = [];
  let end = from;
  let work = 0;
  for (const [start, stop] of busy) {
    if (start > end) free.push([end, start]);
    work += Math.max(0, stop - Math.max(start, end));
    end = Math.max(end, stop);
  }
  if (to > end) free.push([end, to]);
  const wide = Math.max(1, work * 0.25);
  const kept = Math.max(0.2, work * 0.06);
  if (fold && work > 0) for (const gap of free) if (gap[1] - gap[0] > wide) gaps.push(gap);
  // Places where the slope changes: instants, and seconds as drawn.
  const instants = [from];
  const drawn = [0];
  let past = 0;
  for (const [start, stop] of gaps) {
    past += start - instants.at(-1)!;
    instants.push(start);
    drawn.push(past);
    past += Math.min(kept, stop - start);
    instants.push(stop);
    drawn.push(past);
  }
  past += Math.max(0, to - instants.at(-1)!);
  instants.push(Math.max(to, instants.at(-1)!));
  drawn.push(past);
  const all = past || 1;
  return {
    from, to, gaps,
    place: (instant) => between(instants, drawn, instant) / all,
    instant: (place) => between(drawn, instants, place * all),
  };
}

/** Piecewise linear: `xs` rise, `ys` are what they become. */
function between(xs: number[], ys: number[], x: number): number {
  if (x <= xs[0]!) return ys[0]!;
  let low = 0;
  let high = xs.length - 1;
  if (x >= xs[high]!) return ys[high]!;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle]! <= x) low = middle;
    else high = middle;
  }
  const width = xs[high]! - xs[low]!;
  return width ? ys[low]! + ((x - xs[low]!) / width) * (ys[high]! - ys[low]!) : ys[high]!;
}

const STEPS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 86400];

/** Instants with a label, at most `most`, none within a fold. */
export function ticks(axis: Axis, most: number): number[] {
  const folded = axis.gaps.reduce((sum, [start, stop]) => sum + stop - start, 0);
  const span = Math.max(1e-3, axis.to - axis.from - folded);
  const step = STEPS.find((each) => span / each <= most) ?? 86400 * Math.ceil(span / 86400 / most);
  const found: number[] = [];
  let last = -1;
  for (let at = 0; at <= axis.to - axis.from && found.length < 4 * most; at += step) {
    const gap = axis.gaps.find(([start, stop]) => axis.from + at > start && axis.from + at < stop);
    if (gap) {
      at = Math.ceil((gap[1] - axis.from) / step) * step - step;
      continue;
    }
    const place = axis.place(axis.from + at);
    if (place - last < 0.6 / most) continue;
    last = place;
    found.push(axis.from + at);
  }
  return found;
}
