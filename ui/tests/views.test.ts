import { expect, test } from "vitest";
import { places } from "../src/graph/layout";
import { asked } from "../src/inspect/request";
import { layout } from "../src/lanes/rows";
import { Run } from "../src/state/run";
import { modulesOf } from "../src/board/modules";
import { find } from "../src/talk/find";
import { itemsOf } from "../src/talk/items";
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
  expect(folded).toEqual(["0/1.c1", "1/1", "2/1", "2/2", "2/3", "2/4", "1/2"]);
  const opened = itemsOf(run, new Set([4]), null).map((each) => each.key);
  expect(opened).toEqual(["0/1.c1", "1/1", "2/1", "4/1", "4/2", "4/3", "4/4", "2/2", "2/3", "2/4", "1/2"]);
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
