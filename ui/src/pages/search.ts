// What a search of the runs says: words, and `field:value` or `field:>number`.
import type { RunLine } from "../server/wire";

const NUMBERS: Record<string, (run: RunLine) => number> = {
  cost: (run) => run.cost_usd, tokens: (run) => run.tokens, records: (run) => run.records,
};
const TEXTS: Record<string, (run: RunLine) => string> = {
  state: (run) => run.state, team: (run) => run.team, owner: (run) => run.owner, project: (run) => run.project,
  name: (run) => run.name, agent: (run) => run.entry,
};

export function matches(run: RunLine, search: string): boolean {
  return search.toLowerCase().split(/\s+/).filter(Boolean).every((word) => {
    const [, field = "", rest = ""] = /^(\w+):(.*)$/.exec(word) ?? [];
    const number = NUMBERS[field];
    if (number) {
      const [, sign = "", value = ""] = /^([<>]?)(.+)$/.exec(rest) ?? [];
      const wanted = Number(value);
      return sign === ">" ? number(run) > wanted : sign === "<" ? number(run) < wanted : number(run) === wanted;
    }
    const text = TEXTS[field];
    if (text) return text(run).toLowerCase().startsWith(rest);
    return [run.title, run.name, run.team, run.entry, run.run_id].some((each) => each.toLowerCase().includes(word));
  });
}
