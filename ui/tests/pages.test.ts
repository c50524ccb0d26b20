import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { KEPT, keepsModules, modulesOf } from "../src/board/modules";
import { ranked, type Offer } from "../src/find/offers";
import { Known } from "../src/pages/pages";
import { storyOf } from "../src/pages/Led";
import { inFlight } from "../src/pages/Parked";
import { margins, rows } from "../src/pages/source";
import { limited, matches } from "../src/pages/search";
import { headline } from "../src/pages/Waiting";
import { bytes } from "../src/parts/files";
import { quoted } from "../src/parts/shell";
import { reason } from "../src/server/problem";
import { idOf } from "../src/projects/Projects";
import type { ActivationView, CreateRun, EffectView, RunLine, TeamView } from "../src/server/wire";
import { commandOf } from "../src/start/command";
import { atMost, breachOf, dollars, usual } from "../src/start/forecast";
import { BLANK, bodyOf } from "../src/start/form";
import { spots } from "../src/start/Graph";
import { ruled } from "../src/start/WillRun";
import { Run } from "../src/state/run";
import { HARMFUL, sentence } from "../src/state/words";
import { fixture } from "./fixtures";

const LINE = {
  run_id: "r", state: "completed", team: "research", project: "docs", title: "How tides work", name: "Tides", owner: "ada", cost_usd: 0.02, tokens: 5,
  records: 9, created_at: 1, entry: "Partner",
} as RunLine;

test("a search is looked for by the server as far as it can, and by the page in all", () => {
  expect(limited("state:failed team:research Project:Docs cost:>1 tide tables owner:ada", 50)).toEqual({
    limit: 50, state: "failed", team: "research", project: "Docs", text: "tables",
  });
  expect(limited("  ", 7)).toEqual({ limit: 7 });
  expect(matches(LINE, "state:completed TIDES cost:>0.01 tokens:5")).toBe(true);
  for (const search of ["state:complete", "team:other", "cost:<0.01", "nowhere", "project:docs2"]) expect(matches(LINE, search)).toBe(false);
  expect(matches(LINE, "team:")).toBe(true);
});

test("pages of runs: what came last counts, what is gone goes, and none is lost between two pages", () => {
  const known = new Known();
  const page = (next: number, ...times: number[]) => ({ next, runs: times.map((at) => ({ ...LINE, run_id: `r${at}`, created_at: at })) });
  const ids = () => known.sorted.map((each) => each.run_id).join(" ");
  known.take(page(9, 5, 4, 3), true);
  known.take(page(0, 2, 1), false);
  known.take(page(9, 7, 6, 5), true);
  expect(ids()).toBe("r7 r6 r5 r4 r3 r2 r1");
  known.take(page(9, 7, 5, 4), true);
  expect(ids()).toBe("r7 r5 r4 r3 r2 r1");
  known.take(page(0, 7), true);
  expect(ids()).toBe("r7");
});

test("of what is found, titles that begin with the words come first", () => {
  const offer = (title: string, hint = ""): Offer => ({ key: title, kind: "do", title, hint, act: () => undefined });
  const found = ranked([offer("Go to Runs"), offer("Rerun"), offer("x", "runs"), offer("Run away"), offer("Inbox")], "run");
  expect(found.map((each) => each.title)).toEqual(["Run away", "Go to Runs", "Rerun", "x"]);
  expect(ranked([offer("a b"), offer("b")], "b a").length).toBe(1);
  expect(ranked([offer("a")], " ").length).toBe(1);
});

test("agents that wait for one budget are one item; of many the first are named", () => {
  const question = { id: "q", kind: "limit" as const, agent: "Reader", text: "" };
  expect(headline({ ...question, also: [] })).toBe("Reader asks for more");
  expect(headline({ ...question, also: ["Critic"] })).toBe("Reader, Critic ask for more");
  expect(headline({ ...question, also: ["Reader", "Reader"] })).toBe("Reader and 2 more ask for more");
  expect(headline({ ...question, also: ["a", "b", "c", "d"] })).toBe("Reader, a, b and 2 more ask for more");
});

test("what led to a question is what its agent was asked, did and said before it", () => {
  const effect = (id: string, kind: string, more = {}) => ({ id, kind, purpose: "", name: id, content: "", labels: [], ...more }) as unknown as EffectView;
  const turns = [
    { effects: [effect("2/1.m1", "model", { content: "I look." }), effect("2/1.c1", "tool")] },
    { effects: [effect("2/2.m1", "model", { content: "I write." }), effect("2/2.d1", "wait", { purpose: "deadline" }), effect("2/2.c1", "tool"), effect("2/2.c1:question:x", "wait")] },
  ];
  const all = [{ agent: "You", asked: "", turns: [] }, { agent: "Clerk", asked: "Do it", turns }] as unknown as ActivationView[];
  const told = (id: string) => { const story = storyOf(all, id); return story && [story.who, story.asked, story.said, story.before.map((each) => each.id)]; };
  expect(told("2/2.c1:question:x")).toEqual(["Clerk", "Do it", "I write.", ["2/1.m1", "2/1.c1"]]);
  expect(told("2/1.c1")).toEqual(["Clerk", "Do it", "I look.", []]);
  expect(told("9/1.c1")).toBe(undefined);
});

test("a server that is away is told as that, and sentences end", () => {
  expect(reason(new TypeError("Failed to fetch"))).toMatch(/^The server does not answer/);
  expect(reason(new TypeError("x is not a function"))).toBe("x is not a function");
  expect(["There is no run", "Is it?", "Yes. "].map(sentence)).toEqual(["There is no run.", "Is it?", "Yes. "]);
});

test("a text is one word of a shell, whatever it holds", () => {
  for (const text of ["plain", "", "it's", "$(id) `id` \\ \"x\" !", "two\nlines", "\u001b[2J\u202e\\'é漢😀\u{e0041}", "-x", "a b"]) {
    const word = quoted(text);
    expect(word.search(HARMFUL)).toBe(-1);
    expect(execFileSync("/bin/bash", ["-c", `printf %s ${word}`], { encoding: "utf8" })).toBe(text);
  }
});

test("what a form would start is told as a command, or as the request where no option says it", () => {
  const server = "http://127.0.0.1:8000";
  expect(commandOf({ team: "desk", message: "Don't" }, server)).toBe(`antiphon run desk 'Don'\\''t' --server ${server}`);
  expect(commandOf({ team: "desk", message: "Hi", project: "docs", limits: { tokens: 9, on_breach: "stop" } }, server)).toBe(
    `antiphon run desk Hi --server ${server} --project docs --limit-tokens 9`);
  for (const more of [{ model: "m" }, { policy: "strict" }, { files: ["a"] }, { data: null }, { limits: { tokens: 9, on_breach: "ask" } }, { name: "n" }] as Partial<CreateRun>[]) {
    const command = commandOf({ team: "desk", message: "Hi\u202e", ...more }, server);
    expect(command).toMatch(/^curl http:\/\/127\.0\.0\.1:8000\/runs -H "Authorization: Bearer \$ANTIPHON_SERVER_TOKEN"/);
    expect(JSON.parse(command.split("\n")[2]!)).toEqual({ team: "desk", message: "Hi\u202e", ...more });
    expect(command.search(HARMFUL)).toBe(-1);
  }
});

test("a form is a request, and what is wrong in it is told by field", () => {
  const chosen = { ...BLANK, team: "desk", message: "Hi", breach: "ask" as const };
  expect(bodyOf(chosen)).toEqual({ faults: {}, body: { team: "desk", message: "Hi" } });
  expect(bodyOf({ ...chosen, tokens: "1,000", dollars: ".5", turns: "3", calls: "4", seconds: "1.5" }).body.limits).toEqual({
    tokens: 1_000, usd: 0.5, turns: 3, calls: 4, timeout_seconds: 1.5, on_breach: "ask",
  });
  // What happens at a limit is said of limits that somebody chose, and of those that can be raised.
  expect(bodyOf({ ...chosen, breach: "stop" }).body.limits).toBe(undefined);
  expect(bodyOf({ ...chosen, calls: "4", seconds: "9" }).body.limits).toEqual({ calls: 4, timeout_seconds: 9 });
  expect(bodyOf({ ...chosen, turns: "4", breach: "stop" }).body.limits).toEqual({ turns: 4, on_breach: "stop" });
  expect(bodyOf({ ...chosen, data: " [1] " }).body.data).toEqual([1]);
  const wrong = bodyOf({ ...chosen, tokens: "1.5", dollars: "-1", turns: "1e9", seconds: ".", data: "{", files: Array<string>(11).fill("a") }).faults;
  expect(Object.keys(wrong).sort()).toEqual(["data", "dollars", "files", "seconds", "tokens", "turns"]);
});

const TEAM = {
  name: "t", entry: "a", policy: "open", findings: [], edges: [["user", "a"], ["a", "b"], ["a", "c"], ["c", "a"], ["b", "d"]],
  agents: ["d", "a", "b", "c", "e"].map((name) => ({
    name, description: "", model: "", can_call: null, toolsets: [],
    tools: [{ name: "look", description: "", effect: "read", parameters: {}, rulings: { "": "allow", strict: name === "d" ? "ask" : "deny" } }],
  })),
} as unknown as TeamView;

test("a team is drawn from whom the user asks downwards; who is reached by nobody stands below", () => {
  const rows = new Map<number, string[]>();
  for (const { name, y } of spots(TEAM)) rows.set(y, [...(rows.get(y) ?? []), name]);
  expect([...rows.values()]).toEqual([["a"], ["b", "c"], ["d"], ["e"]]);
});

const priced = (prices: (number | null)[], more = {}): TeamView =>
  ({ tokens: 2_000_000, usd: null, on_breach: "stop", breach_target: "", agents: prices.map((usd_per_token) => ({ usd_per_token })), ...more }) as TeamView;

test("what a request may cost is its dearest token, as often as its limits and the team's allow", () => {
  const body = (limits?: CreateRun["limits"], model?: string) => ({ team: "t", message: "m", ...(limits ? { limits } : {}), ...(model ? { model } : {}) }) as CreateRun;
  const known = { models: ["m"], usd_per_token: { m: 1e-5, odd: null } };
  const told = (team: TeamView, ...how: Parameters<typeof body>) => atMost(team, body(...how), known);
  expect(told(priced([1e-6, 8e-6]))).toBe("At most $16.00, for 2,000,000 tokens; held before it is spent.");
  expect(told(priced([1e-6, 8e-6]), { tokens: 1_000, on_breach: "ask" })).toBe("At most $0.0080, for 1,000 tokens, then it asks you; held before it is spent.");
  // The team's own limits hold beside those of a form.
  expect(told(priced([1e-6], { tokens: 500 }), { tokens: 1_000 })).toContain("for 500 tokens");
  expect(told(priced([8e-6], { usd: 2 }), { usd: 3 })).toContain("At most $2.00, for 2,000,000");
  expect(told(priced([8e-6]), { tokens: null, usd: 0.5 })).toContain("for 2,000,000 tokens");
  expect(told(priced([8e-6], { tokens: null }), { tokens: null, usd: 0.5 })).toBe("At most $0.5000; held before it is spent.");
  expect(told(priced([8e-6]), undefined, "m")).toContain("At most $20.00");
  expect(told(priced([1e-6], { tokens: null }))).toBe("No limit of tokens or dollars holds: it may cost any amount.");
  expect(told(priced([0, 0]))).toBe("At most $0: 2,000,000 tokens that nobody bills.");
  expect(told(priced([1e-6, null]))).toBe("Unknown price: at most 2,000,000 tokens.");
  expect(told(priced([1e-6]), undefined, "odd")).toBe("Unknown price: at most 2,000,000 tokens.");
  expect(told(priced([1e-6]), undefined, "never heard of")).toContain("Unknown price");
  expect(told(priced([null]), { usd: 1 })).toBe("Unknown price: with a limit in dollars, a model whose price is not known is not asked.");
  expect(atMost(priced([1e-6]), body(undefined, "m"), undefined)).toContain("Unknown price");
  // What happens then is said by whichever limit is reached first.
  const asks = { on_breach: "ask" as const };
  expect(told(priced([1e-6], { tokens: 500 }), { tokens: 1_000, ...asks })).toBe("At most $0.0005, for 500 tokens; held before it is spent.");
  expect(told(priced([1e-6], { tokens: 500, ...asks }))).toContain("for 500 tokens, then it asks you;");
  expect(told(priced([1e-6], { tokens: 500, ...asks }), { tokens: 100, on_breach: "stop" })).toContain("for 100 tokens;");
  expect(told(priced([1e-6], { usd: 1e-4 }), { tokens: 1_000, ...asks })).toContain("for 1,000 tokens;");
  expect(told(priced([1e-6], { on_breach: "degrade", breach_target: "small\u202e" }))).toContain("then it goes on with small\\u202e;");
  expect(told(priced([1e-6], { on_breach: "handoff", breach_target: "Clerk" }))).toContain("then Clerk takes over;");
  expect(breachOf(priced([], { on_breach: "handoff", breach_target: "Clerk" }))).toBe("hand over to Clerk");
  expect([dollars(0.00001234), dollars(0.5), dollars(12.345)]).toEqual(["$0.000012", "$0.5000", "$12.35"]);
});

test("what a team's runs did cost is the middle one of those that ended", () => {
  const run = (cost_usd: number, tokens: number, more = {}) => ({ state: "completed", unpriced_calls: 0, cost_usd, tokens, ...more }) as RunLine;
  expect(usual([])).toBe("");
  expect(usual([run(1, 10, { state: "running" }), run(0, 0)])).toBe("");
  expect(usual([run(0.01, 100)])).toBe("Its last run: $0.0100, 100 tokens.");
  expect(usual([run(0.01, 100), run(9, 900), run(0.02, 300)])).toBe("Its last 3 runs: $0.0200, 300 tokens (median).");
  expect(usual([run(1, 100), run(2, 200)])).toBe("Its last 2 runs: $1.50, 150 tokens (median).");
  expect(usual([run(0, 100, { unpriced_calls: 2 })])).toBe("Its last run: unknown price, 100 tokens.");
  expect(usual([run(0, 100, { unpriced_calls: 2 }), run(0.5, 200)])).toBe("Its last 2 runs, 1 with known prices: $0.5000, 150 tokens (median).");
});

test("a file has the lines that YAML counts, and each finding stands at its line, errors first", () => {
  expect(rows("a\r\nb\u2028c\n\nd\n")).toEqual(["a", "b", "c", "", "d"]);
  expect([rows(""), rows("\n")]).toEqual([[], [""]]);
  const found = (line: number, severity: string) => ({ line, column: 1, severity, text: "" });
  const by = margins([found(2, "warning"), found(0, "error"), found(2, "error")]);
  expect([...by].map(([line, all]) => [line, all.map((each) => each.severity)])).toEqual([[0, ["error"]], [2, ["error", "warning"]]]);
});

test("a tool is told once for all agents whose calls come to the same", () => {
  expect(ruled(TEAM, "").map((each) => [each.name, each.ruling, each.agents.join("")])).toEqual([["look", "allow", "dabce"]]);
  expect(ruled(TEAM, "strict").map((each) => [each.ruling, each.agents.join("")])).toEqual([["ask", "d"], ["deny", "abce"]]);
});

test("what was in flight when a run was parked is told with what becomes of it", () => {
  const run = new Run();
  for (const each of fixture("question").frames) if (each.seq <= 7) run.add(each);
  expect(inFlight(run, {})).toEqual(["1 model call: asked again"]);
  run.add({ seq: 8, at: run.at, changes: [{ type: "effect_started", activation: 1, turn: 1, id: "1/1.c5", kind: "tool", name: "write\u202e" }] });
  expect(inFlight(run, { "write\u202e": "once" })[1]).toBe("write\\u202e: is not repeated: it may or may not have happened");
});

test("a value that is too large for a frame is known to be missing until it fits again", () => {
  const run = new Run();
  const change = (seq: number, set: Record<string, unknown>, left_out: Record<string, number> = {}) =>
    run.add({ seq, at: seq, changes: [{ type: "data_changed", activation: 0, set, left_out }] });
  expect(keepsModules(run)).toBe(false);
  change(1, { [KEPT]: { WM_1: { name: "a", status: "in_progress" } } });
  expect(modulesOf(run)).toMatchObject([{ id: "WM_1", status: "ongoing" }]);
  change(2, {}, { [KEPT]: 99_999 });
  expect(run.activation(0)!.leftOut).toEqual({ [KEPT]: 2 });
  change(3, { other: 1 });
  expect(run.activation(0)!.leftOut).toEqual({ [KEPT]: 2 });
  change(4, { [KEPT]: {} });
  expect([run.activation(0)!.leftOut, keepsModules(run), modulesOf(run)]).toEqual([{}, true, []]);
});

test("a name makes an id, and sizes are told in what people count in", () => {
  expect(["Das Büro  2026!", "../../etc", "  ", "漢字", "x".repeat(60)].map(idOf)).toEqual(["das-buro-2026", "etc", "", "", "x".repeat(40)]);
  expect([5, 2_048, 3_500_000].map(bytes)).toEqual(["5 bytes", "2.0 kB", "3.5 MB"]);
});
