import { expect, test } from "vitest";
import { History } from "../src/state/history";
import { Run } from "../src/state/run";
import { fixture } from "./fixtures";

const history = (name: string): History => {
  const found = new History();
  for (const each of fixture(name).frames) found.add(each);
  return found;
};

const state = (run: Run) => ({ ...run, effects: [...run.effects], activations: [...run.activations] });

test("the run as of a record is what the frames up to it add up to, in whatever order it is asked for", () => {
  const kept = history("research");
  const order = [...Array(kept.seq).keys()].map((each) => (each * 37) % kept.seq);
  for (const seq of order) {
    const run = new Run();
    for (const each of kept.frames.slice(0, seq)) run.add(each);
    expect(state(kept.at(seq))).toEqual(state(run));
  }
});

test("records beyond the first kept state are folded from the nearest one", () => {
  const kept = history("large");
  for (const seq of [499, 500, 501, 5_000, 4_999, kept.seq - 1]) {
    const run = new Run();
    for (const each of kept.frames.slice(0, seq)) run.add(each);
    expect(kept.at(seq).tokens).toBe(run.tokens);
    expect([...kept.at(seq).effects.keys()]).toEqual([...run.effects.keys()]);
  }
});

test("a frame that is known already changes nothing", () => {
  const kept = history("research");
  const before = kept.latest.tokens;
  expect(kept.add(kept.frames.at(-1)!)).toBe(false);
  expect([kept.seq, kept.latest.tokens]).toEqual([kept.frames.length, before]);
});

test("10,000 records fold within a second, and any of them is reached within 50 ms", () => {
  const { frames } = fixture("large");
  expect(frames.length).toBeGreaterThanOrEqual(10_000);
  // Milliseconds of this process alone: others may be at work beside it.
  const worked = (): number => process.cpuUsage().user / 1_000;
  let start = worked();
  const kept = new History();
  for (const each of frames) kept.add(each);
  expect(worked() - start).toBeLessThan(1_000);
  const took: number[] = [];
  for (let at = 1; at < frames.length; at += 97) {
    start = worked();
    kept.at((at * 7_919) % frames.length);
    took.push(worked() - start);
  }
  took.sort((one, other) => one - other);
  expect(took[Math.floor(took.length * 0.99)]).toBeLessThan(50);
});

test("an instant is found by its last record", () => {
  const kept = history("research");
  const middle = kept.frames[40]!;
  expect(kept.frames[kept.before(middle.at) - 1]!.at).toBe(middle.at);
  expect(kept.before(0)).toBe(1);
  expect(kept.before(Infinity)).toBe(kept.seq);
});
