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
    for (const { frames, told: wanted } of runs) {
      const run = new Run();
      for (const each of frames) run.add(each);
      expect(told(run)).toEqual({
        closed: wanted.closed, asked: wanted.asked, tokens: wanted.tokens, nano_usd: wanted.nano_usd,
        effects: wanted.effects, activations: wanted.activations,
      });
    }
  });
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
