import { expect, test } from "vitest";
import { axis, ticks } from "../src/state/time";

test("without gaps the axis is even", () => {
  const found = axis([[0, 10]], 0, 10);
  expect(found.gaps).toEqual([]);
  expect([0, 2.5, 10].map(found.place)).toEqual([0, 0.25, 1]);
});

test("hours of waiting fold to a small part, and work keeps its room", () => {
  const found = axis([[0, 10], [7_210, 7_220]], 0, 7_220);
  expect(found.gaps).toEqual([[10, 7_210]]);
  expect(found.place(10)).toBeGreaterThan(0.45);
  expect(found.place(7_210) - found.place(10)).toBeLessThan(0.1);
});

test("a short gap is drawn as long as it is", () => {
  expect(axis([[0, 10], [11, 20]], 0, 20).gaps).toEqual([]);
});

test("place and instant undo each other, also within a fold", () => {
  const found = axis([[0, 10], [100, 110], [500, 505]], 0, 900);
  for (const instant of [0, 3, 10, 55, 100, 109, 300, 501, 700, 900]) {
    expect(found.instant(found.place(instant))).toBeCloseTo(instant, 6);
  }
});

test("work at once counts once", () => {
  expect(axis([[0, 10], [0, 10], [2, 8]], 0, 10).place(5)).toBe(0.5);
});

test("labels keep apart and stay out of folds", () => {
  const found = axis([[0, 10], [7_210, 7_220]], 0, 7_220);
  const places = ticks(found, 8).map(found.place);
  places.slice(1).forEach((each, index) => expect(each - places[index]!).toBeGreaterThan(0.05));
  expect(ticks(found, 8).filter((each) => each > 10 && each < 7_210)).toEqual([]);
});

test("a run without time has an axis too", () => {
  const found = axis([], 5, 5);
  expect(found.place(5)).toBe(0);
  expect(ticks(found, 5).length).toBeLessThan(10);
});
