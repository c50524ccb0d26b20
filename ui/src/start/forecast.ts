// What a request may cost at most, and what runs of its team did cost.
import type { CreateRun, ModelChoices, RunLine, TeamView } from "../server/wire";
import { count, line, plural } from "../state/words";

/** What a form that gives limits leaves open, as the server has it. */
const TOKENS = 2_000_000;

/** Of several the least; null is no limit. */
const least = (...all: (number | null | undefined)[]): number | null => {
  const known = all.filter((each) => each != null);
  return known.length ? Math.min(...known) : null;
};
export const dollars = (usd: number): string => `$${usd >= 1 || usd === 0 ? usd.toFixed(2) : usd >= 0.0001 ? usd.toFixed(4) : usd.toPrecision(2)}`;

/** What follows when a limit is used up, as the end of a sentence; nothing where the request ends. */
const THEN: Record<string, (target: string) => string> = {
  ask: () => ", then it asks you", degrade: (target) => `, then it goes on with ${target}`, handoff: (target) => `, then ${target} takes over`,
};

/** The most that a request may cost, in a sentence: by the dearest token of its models, and its own and the team's limits. */
export function atMost(team: TeamView, body: CreateRun, models: ModelChoices | undefined): string {
  const given = body.limits;
  const own = given ? (given.tokens === undefined ? TOKENS : given.tokens) : null;
  const [tokens, usd] = [least(own, team.tokens), least(given?.usd, team.usd)];
  const prices = body.model ? [models?.usd_per_token[body.model] ?? null] : team.agents.map((each) => each.usd_per_token);
  const price = prices.some((each) => each === null) ? null : Math.max(0, ...(prices as number[]));
  const money = usd !== null && price !== 0 && (tokens === null || price === null || usd < tokens * price);
  const [mine, theirs] = money ? [given?.usd, team.usd] : [own, team.tokens];
  // Whichever limit is reached first says what happens then; the team's is still there when more was allowed than it has.
  const until = (mine != null && mine < (theirs ?? Infinity) ? THEN[given?.on_breach ?? ""] : THEN[team.on_breach])?.(line(team.breach_target, 40)) ?? "";
  const used = tokens === null ? "" : `${count(tokens)} tokens`;
  if (price === 0) return `At most $0${used && `: ${used}`} that nobody bills${until}.`;
  if (price === null) {
    return usd === null ? `Unknown price${used && `: at most ${used}`}${until}.`
      : "Unknown price: with a limit in dollars, a model whose price is not known is not asked.";
  }
  if (tokens === null && usd === null) return "No limit of tokens or dollars holds: it may cost any amount.";
  const worst = least(usd, tokens === null ? null : tokens * price)!;
  return `At most ${dollars(worst)}${used && `, for ${used}`}${until}; held before it is spent.`;
}

/** What a team's own limits say of a request that has used them up. */
export const breachOf = ({ on_breach, breach_target }: Pick<TeamView, "on_breach" | "breach_target">): string =>
  ({ stop: "stop", ask: "ask me", degrade: `go on with ${line(breach_target, 40)}`, handoff: `hand over to ${line(breach_target, 40)}` })[on_breach];

const middle = (all: number[]): number => {
  const sorted = [...all].sort((one, other) => one - other);
  const half = Math.floor(sorted.length / 2);
  return sorted.length % 2 ? sorted[half]! : (sorted[half - 1]! + sorted[half]!) / 2;
};

/** What the last runs of a team cost, in a sentence: the middle one of those that have ended; empty without any. */
export function usual(runs: RunLine[]): string {
  const ended = runs.filter((each) => each.tokens > 0 && /^(completed|idle|closed)$/.test(each.state));
  if (!ended.length) return "";
  const priced = ended.filter((each) => each.unpriced_calls === 0).map((each) => each.cost_usd);
  const cost = priced.length === 0 ? "unknown price" : dollars(middle(priced));
  const less = priced.length && priced.length < ended.length ? `, ${priced.length} with known prices` : "";
  return `Its last ${ended.length === 1 ? "run" : plural(ended.length, "run")}${less}: ${cost}, ${count(Math.round(middle(ended.map((each) => each.tokens))))} tokens${ended.length > 1 ? " (median)" : ""}.`;
}
