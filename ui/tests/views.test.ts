import { expect, test } from "vitest";
import { places } from "../src/graph/layout";
import { asked } from "../src/inspect/request";
import { hit, layout, span } from "../src/lanes/rows";
import { nested } from "../src/state/doing";
import { Run } from "../src/state/run";
import { modulesOf } from "../src/board/modules";
import { find } from "../src/talk/find";
import { alone, itemsOf, type Taken } from "../src/talk/items";
import { fixture } from "./fixtures";

function whole(name: string, until = Infinity): Run {
  const run = new Run();
  for (const each of fixture(name).frames) if (each.seq <= until) run.add(each);
  return run;
}

test("callers stand above the callees they are in the middle of", () => {
  const found = places(whole("research"), 100, 40, 10, 30);
  const of = (label: string) => found.find((each) => each.label === label)!;
  expect(of("Principal").y).toBe(2 * 70);
  expect(of("Principal").x).toBe(of("Reader #2").x);
});

test("eight alike and more are one node", () => {
  const found = places(whole("large"), 100, 40, 10, 30);
  expect(found.map((each) => each.label.replace(/\d+/, "N")).sort()).toEqual(["Lead", "Reader ×N", "You"]);
});

test("lanes: a row each, callers first; of very many as many rows as ran at once", () => {
  expect(layout(whole("research")).rows.map((each) => each.label)).toEqual([
    "Partner", "Principal", "Reader", "Reader #2", "Reader #3",
  ]);
  expect(layout(whole("large")).rows.length).toBe(51);
});

test("the transcript nests a single call, and opens one of several when it is wanted", () => {
  const run = whole("research");
  const folded = itemsOf(run, new Set(), null).map((each) => each.key);
  expect(folded).toEqual(["0/1.c1", "1/1", "2/1", "2/2", "2/3", "2/4", "1/2", "0/1.c1<"]);
  const opened = itemsOf(run, new Set([4]), null).map((each) => each.key);
  expect(opened).toEqual(["0/1.c1", "1/1", "2/1", "4/1", "4/2", "4/3", "4/4", "2/2", "2/3", "2/4", "1/2", "0/1.c1<"]);
});

test("what a tool began in its middle stands with it: in the transcript, in lists, in the lanes", () => {
  const run = whole("at-sea");
  const item = itemsOf(run, new Set(), null).find((each) => each.key === "1/2") as Taken;
  const began = item.inside.map((each) => each.id.split(":")[1]);
  expect([item.tools.map((each) => each.name), began, item.asks, item.calls]).toEqual([["book_boat", "note"], ["question", "ask", "call", "reserve"], [], []]);
  // Two agents were called by one tool: neither is opened of itself.
  expect(item.inside.filter((each) => each.kind === "call").map((each) => alone(item, each))).toEqual([false, false]);
  const order = run.turn(1, 2)!.effects.map((id) => run.effect(id)!);
  expect(nested(order).map((each) => each.name)).toEqual(["openai:gpt-4.1-mini", "book_boat", "user", "Clerk", "Harbour", "reserve", "note"]);
  const [tool, ask, call] = ["c1", began[0], began[2]].map((each) => order.find((one) => one.id.includes(each!))!);
  expect([span(tool!, 30), span(ask!, 30), span(call!, 30)].map(([top, high]) => [Math.round(top), Math.round(top + high)])).toEqual([[19, 25], [4, 17], [26, 29]]);
  const row = layout(run).rows[0]!;
  const at = (instant: number, part: number) => hit(row, instant, part, 0.01, run.at)?.id;
  expect(at(call!.began + 0.1, 0.95)).toBe(call!.id);
  expect(at(call!.began + 0.1, 0.75)).toBe(tool!.id);
  expect(at(ask!.began + 0.1, 0.3)).toBe(ask!.id);
});

test("a model is shown what its tools gave, and not what these asked in their middle", () => {
  const run = whole("at-sea");
  expect(asked(run, run.effect("1/3.m1")!).fresh.map((each) => [each.role, each.name])).toEqual([["assistant", ""], ["tool", "book_boat"], ["tool", "note"]]);
});

test("what is new to a model call is what came since the one before it", () => {
  const run = whole("research");
  const first = asked(run, run.effect("2/1.m1")!);
  expect([first.previous, first.known.length, first.fresh.map((each) => each.role)]).toEqual(["", 0, ["user"]]);
  const second = asked(run, run.effect("2/2.m1")!);
  expect(second.previous).toBe("2/1.m1");
  expect(second.fresh.map((each) => each.role)).toEqual(["assistant", "tool", "tool", "tool"]);
  expect(second.known.map((each) => each.role)).toEqual(["user"]);
});

test("words are found wherever somebody wrote them, in order", () => {
  const run = whole("research");
  expect(find(run, "OVERLOADED")).toEqual(["4/1.m1", "4/1.w1"]);
  expect(find(run, "write_report").slice(0, 2)).toEqual(["2/3.c1?", "2/3.c1"]);
  expect(find(run, "  ")).toEqual([]);
  expect(find(run, "no such words")).toEqual([]);
});

test("the board has what the team keeps, whatever it holds", () => {
  const run = new Run();
  const data = { work_modules: { WM_1: { name: "Cause", status: "ongoing", description: "why" }, WM_2: null, WM_3: { status: 7 } } };
  run.add({ seq: 1, at: 1, changes: [{ type: "data_changed", activation: 0, set: data }] });
  expect(modulesOf(run)).toEqual([
    { id: "WM_1", name: "Cause", description: "why", notes: "", status: "ongoing" },
    { id: "WM_2", name: "WM_2", description: "", notes: "", status: "pending" },
    { id: "WM_3", name: "WM_3", description: "", notes: "", status: "pending" },
  ]);
  expect(modulesOf(new Run())).toEqual([]);
});
