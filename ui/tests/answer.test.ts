import { expect, test } from "vitest";
import { parsed, written } from "../src/answer/Arguments";
import { matches, sinceOf } from "../src/pages/search";
import { compared } from "../src/parts/compare";
import type { RunLine } from "../src/server/wire";

const ASKED = '{"path":"a.md","first":1,"tags":["x"]}';
const SCHEMA = { properties: { path: { type: "string" }, first: { type: "integer" }, tags: { type: "array" } } };

test("arguments are edited as texts and come back as what they were", () => {
  expect(written(ASKED)).toEqual({ path: "a.md", first: "1", tags: '["x"]' });
  expect(parsed(written(ASKED), ASKED, SCHEMA)).toEqual({ json: ASKED, faults: {} });
  expect(parsed({ ...written(ASKED), path: "2" }, ASKED, undefined).json).toContain('"path":"2"');
});

test("a wrong edit says what was expected, and gives nothing to send", () => {
  const { json, faults } = parsed({ ...written(ASKED), first: "1oo", tags: "{}" }, ASKED, SCHEMA);
  expect(json).toBe("");
  expect(faults).toEqual({
    first: 'Expected a value of type integer, got "1oo"', tags: "Expected a value of type array, got {}",
  });
  expect(parsed({ ...written(ASKED), first: "1.5" }, ASKED, SCHEMA).faults.first).toContain("integer");
});

test("a comparison keeps what both have, in order", () => {
  const text = (found: ReturnType<typeof compared>) => found.map((each) => each.sign + each.text).join(" ");
  expect(text(compared(["a", "b", "c"], ["a", "x", "c", "d"]))).toBe(" a -b +x  c +d");
  expect(text(compared([], ["a"]))).toBe("+a");
  expect(compared(["a"], ["b", "a"]).map((each) => each.number)).toEqual([1, 2]);
});

test("a search of runs: words, fields, numbers", () => {
  const run = { title: "How do tides work?", name: "", team: "research", entry: "Partner", run_id: "abc", state: "failed", cost_usd: 0.02, tokens: 5, summary: { seq: 1, models: ["openai:gpt-4.1-mini"] } } as unknown as RunLine;
  const found = (search: string) => matches(run, search);
  expect(["", "tides", "TIDES work", "state:failed", "cost:>0.01", "team:research tokens:5", "model:gpt-4.1", "model:OpenAI:"].map(found)).not.toContain(false);
  expect(["since:2h", "since:2026-06-12", "since:"].map((each) => matches({ ...run, updated_at: new Date("2026-06-12T09:00").getTime() / 1000 } as RunLine, each))).toEqual([false, true, true]);
  expect([sinceOf("2h", 10_000), sinceOf("1w", 1_000_000), sinceOf("soon"), sinceOf("2026-99-99")]).toEqual([2_800, 395_200, undefined, undefined]);
  expect(["sun", "state:completed", "cost:>0.1", "tides cost:<0.01", "team:res", "model:local"].map(found)).not.toContain(true);
  expect(matches({ ...run, summary: { seq: 1 } }, "model:gpt")).toBe(false);
});
