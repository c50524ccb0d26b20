import { expect, test } from "vitest";
import { briefly, cost, lasted, line, usd, visible } from "../src/state/words";

test("what steers or hides is shown as what it is", () => {
  expect(visible("a\u202eb\u0000\u001b[31m\u200b")).toBe("a\\u202eb\\x00\\x1b[31m\\u200b");
  expect(visible("plain\ttext\n✓ ü 漢")).toBe("plain\ttext\n✓ ü 漢");
});

test("a line is one line, and short however long the text is", () => {
  expect(line("a\n b\t c")).toBe("a b c");
  expect(line("x".repeat(1_000_000)).length).toBe(241);
});

test("arguments in a line", () => {
  expect(briefly('{"path":"a.md","first":1,"more":[1,2]}')).toBe('path="a.md", first=1, more=[2]');
  expect(briefly("{broken")).toBe("{broken");
  expect(briefly("{}")).toBe("");
});

test("times and money say their unit", () => {
  expect([0, 0.02, 1.24, 61, 3_700].map(lasted)).toEqual(["0 s", "20 ms", "1.2 s", "1 min 1 s", "1 h 1 min"]);
  expect([1_000, 2_500_000_000].map(usd)).toEqual(["$0.0000", "$2.50"]);
  const told = (unpriced: number, booked: number) => cost({ nanoUsd: 2_500_000_000, unpriced, booked });
  expect([told(0, 0), told(1, 0), told(0, 1), told(1, 1)]).toEqual(["$2.50", "≥ $2.50", "≤ $2.50", "≈ $2.50"]);
});
