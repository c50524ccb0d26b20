import { describe, expect, test } from "vitest";
import { Run } from "../src/state/run";
import { scenarios, type Told } from "./fixtures";

/** What the store says of a run in the words of the runtime's own tree. */
function told(run: Run): Told {
  const effects: Told["effects"] = {};
  for (const each of run.effects.values()) {
    effects[each.id] = [
      each.kind, each.name, each.purpose, each.start ? each.began : null, each.end ? each.ended : null, each.outcome,
    ];
  }
  const activations: Told["activations"] = {};
  for (const each of run.activations.values()) {
    activations[each.number] = [
      each.agent, each.call, each.turns.slice(each.since).map((turn) => [turn.number, turn.began]),
    ];
  }
  return { closed: run.closed, asked: run.asked, tokens: run.tokens, nano_usd: run.nanoUsd, effects, activations };
}

describe("a run that is kept from its frames is the run tree", () => {
  test.each(scenarios())("%s", (_, runs) => {
    for (const { frames, asked, told: wanted } of runs) {
      const run = new Run();
      frames.forEach((each, index) => {
        run.add(each);
        expect(run.asked).toEqual(asked[index]);
      });
      expect(told(run)).toEqual({
        closed: wanted.closed, asked: wanted.asked, tokens: wanted.tokens, nano_usd: wanted.nano_usd,
        effects: wanted.effects, activations: wanted.activations,
      });
    }
  });
});

test("what never started stands where it ended", () => {
  const found = scenarios().flatMap(([, runs]) => runs).flatMap(({ frames }) => {
    const run = new Run();
    for (const each of frames) run.add(each);
    return [...run.effects.values()].filter((each) => !each.start);
  });
  expect(found.length).toBeGreaterThan(0);
  for (const each of found) expect(each.began).toBe(each.ended);
});

test("what is held is given back", () => {
  for (const [, runs] of scenarios()) {
    for (const { frames } of runs) {
      const run = new Run();
      for (const each of frames) run.add(each);
      const open = [...run.effects.values()].filter((each) => !each.end);
      expect(run.held).toBe(open.reduce((sum, each) => sum + each.held, 0));
    }
  }
});
