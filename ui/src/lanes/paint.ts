// Lanes on canvas, in two layers: the bars, and over them what moves: the future's veil, the playhead, the choice.
import type { Axis } from "../state/time";
import type { Effect } from "../state/run";
import { barOf, span, type Bar, type Layout, type Row } from "./rows";

export interface Scale {
  axis: Axis;
  /** What part of the axis is seen, 0 to 1. */
  low: number;
  high: number;
  width: number;
}

export const x = (scale: Scale, instant: number): number =>
  ((scale.axis.place(instant) - scale.low) / (scale.high - scale.low)) * scale.width;
export const instantAt = (scale: Scale, pixel: number): number =>
  scale.axis.instant(scale.low + (pixel / scale.width) * (scale.high - scale.low));

export type Ink = Record<string, string>;

/** The colours of the page as they are now. */
export function inkOf(element: Element): Ink {
  const style = getComputedStyle(element);
  const names = ["ink", "ink-3", "line", "surface", "sunken", "agent-f", "model-f", "tool-f", "human-f", "error-f", "wait-f"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const COLOUR: Record<Bar, string> = {
  model: "model-f", tool: "tool-f", call: "agent-f", wait: "wait-f", human: "human-f", error: "error-f",
};

/** A canvas as large as it is drawn, at the screen's own resolution; its context in CSS pixels, cleared. */
export function prepared(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D | null {
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const context = canvas.getContext("2d");
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, width, height);
  return context;
}

export function paintBars(
  context: CanvasRenderingContext2D, layout: Layout, scale: Scale, ink: Ink, until: number,
): void {
  for (const row of layout.rows) paintRow(context, row, scale, ink, until);
  for (const link of layout.links) {
    const from = layout.rows[link.from]!;
    const to = layout.rows[link.to]!;
    const [place, thick] = span(link.call, from.height);
    const top = from.top + place + thick / 2;
    const bottom = to.top + to.height * 0.33;
    stem(context, x(scale, link.call.began), top, bottom, ink["agent-f"]!, []);
    if (link.call.end) stem(context, x(scale, link.call.ended), top, bottom, ink["ink-3"]!, [3, 3]);
  }
}

function stem(
  context: CanvasRenderingContext2D, at: number, top: number, bottom: number, colour: string, dash: number[],
): void {
  context.strokeStyle = colour;
  context.setLineDash(dash);
  context.beginPath();
  context.moveTo(Math.round(at) + 0.5, Math.min(top, bottom));
  context.lineTo(Math.round(at) + 0.5, Math.max(top, bottom));
  context.stroke();
  context.setLineDash([]);
}

function paintRow(context: CanvasRenderingContext2D, row: Row, scale: Scale, ink: Ink, until: number): void {
  const first = row.effects[0];
  if (row.height >= 20) {
    context.fillStyle = ink.line!;
    if (row.top) context.fillRect(0, row.top, scale.width, 1);
    if (first) {
      const last = row.effects.reduce((end, each) => Math.max(end, each.end ? each.ended : until), 0);
      context.fillStyle = ink.sunken!;
      const left = Math.max(0, x(scale, first.began));
      context.fillRect(left, row.top + 1, Math.min(scale.width, x(scale, last)) - left, row.height - 1);
    }
  }
  // Bars that share a pixel are drawn once, of the worst kind.
  const filled = new Map<string, number>();
  for (const each of row.effects) {
    const left = x(scale, each.began);
    const right = x(scale, each.end ? each.ended : until);
    if (right < -2 || left > scale.width + 2) continue;
    const [top, height] = span(each, row.height);
    const bar = barOf(each);
    const wide = Math.max(bar === "tool" || bar === "error" ? 4 : 2, right - left - (bar === "model" ? 1 : 0));
    if (wide <= 4) {
      const place = `${top}.${bar === "error"}`;
      if (filled.get(place) === Math.round(left / 2)) continue;
      filled.set(place, Math.round(left / 2));
    }
    const box: [number, number, number, number] = [left, row.top + top, wide, height];
    if (bar === "wait") hatch(context, box, ink["wait-f"]!);
    else fill(context, box, ink[COLOUR[bar]]!, bar !== "call");
  }
}

function fill(
  context: CanvasRenderingContext2D, [left, top, width, height]: [number, number, number, number], colour: string,
  round: boolean,
): void {
  context.fillStyle = colour;
  if (!round || width < 6) return context.fillRect(left, top, width, height);
  context.beginPath();
  context.roundRect(left, top, width, height, 2);
  context.fill();
}

function hatch(
  context: CanvasRenderingContext2D, [left, top, width, height]: [number, number, number, number], colour: string,
): void {
  context.save();
  context.beginPath();
  context.rect(left, top, width, height);
  context.clip();
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.beginPath();
  for (let at = left - height; at < left + width; at += 5) {
    context.moveTo(at, top + height);
    context.lineTo(at + height, top);
  }
  context.stroke();
  context.restore();
  context.lineWidth = 1;
}

export function paintOver(
  context: CanvasRenderingContext2D, layout: Layout, scale: Scale, ink: Ink,
  { head, live, chosen, until }: { head: number; live: boolean; chosen: Effect | undefined; until: number },
): void {
  const at = Math.round(x(scale, head));
  if (!live) {
    context.globalAlpha = 0.7;
    context.fillStyle = ink.surface!;
    context.fillRect(at, 0, scale.width - at, layout.height);
    context.globalAlpha = 1;
  }
  const row = chosen && layout.rows.find((each) => each.effects.includes(chosen));
  if (chosen && row) {
    const [top, height] = span(chosen, row.height);
    const left = x(scale, chosen.began);
    const width = Math.max(3, x(scale, chosen.end ? chosen.ended : until) - left);
    context.strokeStyle = ink.ink!;
    context.lineWidth = 2;
    context.beginPath();
    context.roundRect(left - 2, row.top + top - 2, width + 4, height + 4, 3);
    context.stroke();
    context.lineWidth = 1;
  }
  context.fillStyle = ink.ink!;
  context.fillRect(at, 0, 1, layout.height);
}

/** How much happened when: records per pixel column, with what people were asked and what failed below. */
export function paintOverview(
  context: CanvasRenderingContext2D, instants: Iterable<number>, effects: Iterable<Effect>, scale: Scale, ink: Ink,
  until: number, height: number,
): void {
  const full: Scale = { ...scale, low: 0, high: 1 };
  const columns = new Float64Array(Math.max(1, Math.floor(scale.width / 6)));
  for (const each of instants) {
    const column = Math.min(columns.length - 1, Math.floor((x(full, each) / scale.width) * columns.length));
    columns[column] = columns[column]! + 1;
  }
  const most = Math.max(1, ...columns);
  context.fillStyle = ink["ink-3"]!;
  context.globalAlpha = 0.55;
  columns.forEach((value, index) => {
    const high = value && 3 + (value / most) * (height - 8);
    context.fillRect((index / columns.length) * scale.width, height - high, scale.width / columns.length - 1, high);
  });
  context.globalAlpha = 1;
  for (const each of effects) {
    const bar = barOf(each);
    if (bar !== "human" && bar !== "error") continue;
    const left = x(full, each.began);
    const wide = bar === "human" ? Math.max(2, x(full, each.end ? each.ended : until) - left) : 3;
    context.fillStyle = ink[COLOUR[bar]]!;
    context.fillRect(left, height - 3, wide, 3);
  }
  if (scale.low > 0 || scale.high < 1) {
    context.strokeStyle = ink.ink!;
    context.strokeRect(scale.low * scale.width + 0.5, 0.5, (scale.high - scale.low) * scale.width - 1, height - 1);
  }
}
