// What a search of the runs says: words, and `field:value` or `field:>number`. The server looks for what it can, over all runs.
import type { RunQuery } from "../server/api";
import type { RunLine } from "../server/wire";

const NUMBERS: Record<string, (run: RunLine) => number> = {
  cost: (run) => run.cost_usd, tokens: (run) => run.tokens, records: (run) => run.records,
};
const SPANS: Record<string, number> = { min: 60, h: 3_600, d: 86_400, w: 604_800 };

/** Since when, Unix seconds: `2h`, `3d`, or a day such as `2026-06-12`; none for anything else. */
export function sinceOf(text: string, now = Date.now() / 1_000): number | undefined {
  const [, many = "", span = ""] = /^(\d+)(min|h|d|w)$/.exec(text) ?? [];
  if (many) return now - Number(many) * SPANS[span]!;
  const day = /^\d{4}-\d\d-\d\d$/.test(text) ? new Date(`${text}T00:00`).getTime() / 1_000 : NaN;
  return Number.isNaN(day) ? undefined : day;
}

const TEXTS: Record<string, (run: RunLine) => string> = {
  state: (run) => run.state, team: (run) => run.team, owner: (run) => run.owner, project: (run) => run.project,
  name: (run) => run.name, agent: (run) => run.entry,
};
const WHOLE = ["state", "team", "project"] as const;

const wordsOf = (search: string): [string, string, string][] =>
  search.split(/\s+/).filter(Boolean).map((word) => {
    const [, field = "", rest = ""] = /^(\w+):(.*)$/.exec(word) ?? [];
    return [word, field.toLowerCase(), rest];
  });

/** Of a run that may have several, one does. */
const SEVERAL: Record<string, (run: RunLine) => readonly string[]> = { model: (run) => run.summary.models ?? [] };

/** Whether a run is what is looked for. A state, a team and a project are named in full. */
export function matches(run: RunLine, search: string): boolean {
  return wordsOf(search).every(([word, field, rest]) => {
    const number = NUMBERS[field];
    if (number) {
      const [, sign = "", value = ""] = /^([<>]?)(.+)$/.exec(rest) ?? [];
      const wanted = Number(value);
      return sign === ">" ? number(run) > wanted : sign === "<" ? number(run) < wanted : number(run) === wanted;
    }
    if (field === "since") return run.updated_at >= (sinceOf(rest) ?? 0);
    const several = SEVERAL[field];
    if (several) return !rest || several(run).some((each) => each.toLowerCase().includes(rest.toLowerCase()));
    const text = TEXTS[field];
    const named = (WHOLE as readonly string[]).includes(field);
    if (text) return named ? !rest || text(run) === rest : text(run).toLowerCase().startsWith(rest.toLowerCase());
    return [run.title, run.name].some((each) => each.toLowerCase().includes(word.toLowerCase()));
  });
}

/** As much of a search as the server looks for. What it gives is looked through once more. */
export function limited(search: string, limit: number): RunQuery {
  const query: RunQuery = { limit };
  let longest = "";
  for (const [word, field, rest] of wordsOf(search)) {
    const named = WHOLE.find((each) => each === field);
    if (named) {
      if (rest) query[named] = rest;
    } else if (!NUMBERS[field] && !TEXTS[field] && !SEVERAL[field] && field !== "since" && word.length > longest.length) longest = word;
  }
  return longest ? { ...query, text: longest } : query;
}
