import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { reach } from "../src/answer/Always";
import { around, exactly, fits } from "../src/answer/pattern";
import { shownTo } from "../src/state/labels";
import { Run } from "../src/state/run";
import { FOLDER, fixture } from "./fixtures";

const KNOWN = JSON.parse(readFileSync(join(FOLDER, "patterns.json"), "utf8")) as [string, unknown, boolean][];

test("which arguments a pattern covers is said as the runtime decides it", () => {
  expect(KNOWN.length).toBeGreaterThan(500);
  for (const [pattern, value, covered] of KNOWN) expect(fits(pattern, value), `${pattern} for ${JSON.stringify(value)}`).toBe(covered);
});

test("a value as it is fits its own pattern, and nothing else does", () => {
  const values = [...new Set(KNOWN.map(([, value]) => JSON.stringify(value)))].map((each) => JSON.parse(each) as unknown);
  const text = (value: unknown) => (typeof value === "string" ? value : JSON.stringify(value));
  for (const one of values) {
    for (const other of values) expect(fits(exactly(one), other), `${JSON.stringify(one)} ${JSON.stringify(other)}`).toBe(text(one) === text(other));
  }
});

test("of a path and of an address the place around it is offered, of anything else nothing", () => {
  expect(["reports/2026/a.md", "https://example.org/a/b?c=/d", "a[1]/b", "/etc/passwd"].map(around)).toEqual(["reports/2026/*", "https://example.org/*", "a[[]1]/*", "/etc/*"]);
  for (const value of ["a.md", "", "git diff a/b", "../a/b", "a/../b", "https://example.org", 3, ["a/b"], null]) expect(around(value), String(value)).toBe("");
  for (const value of ["reports/2026/a.md", "https://example.org/a/b?c=/d", "a[1]/b"]) expect(fits(around(value), value)).toBe(true);
});

test("what is always allowed goes as far as was said, and no further", () => {
  expect(reach([], "", 0, "run")).toEqual({});
  expect(reach([["path", "a/*"]], "Clerk", 3_600, "project", 1_000)).toEqual({
    scope: "project", grant: { arguments: [["path", "a/*"]], agent: "Clerk", until: 4_600 },
  });
  expect(reach([], "", 0, "owner")).toEqual({ scope: "owner" });
});

test("what an agent was shown is told with what brought it: its own tools, those of agents that it called, and its callers'", () => {
  const run = new Run();
  for (const each of fixture("mail").frames) run.add(each);
  const asking = run.effect(run.asked[0]!)!;
  expect([asking.name, asking.rule]).toEqual(["send_mail", "labels"]);
  expect(shownTo(run, run.activation(asking.activation)!, asking.start)).toEqual([
    { label: "private", by: "read_mail", effect: "1/1.c1" }, { label: "untrusted", by: "fetch", effect: "2/1.c1" },
  ]);
  // Whom it called had been shown its mail, and not yet the page.
  const reader = run.activation(2)!;
  const fetched = run.effect("2/1.c1")!;
  expect(shownTo(run, reader, fetched.end).map((each) => each.label)).toEqual(["private"]);
  expect(shownTo(run, reader, fetched.end + 1).map((each) => each.label)).toEqual(["private", "untrusted"]);
  expect(shownTo(run, run.activation(1)!, run.effect("1/1.c1")!.end)).toEqual([]);
});

test("what toolsets offer, and where a fork began, is known as of each record", () => {
  const { frames } = fixture("mail");
  const run = new Run();
  const seen: string[] = [];
  for (const each of frames) {
    run.add(each);
    const shop = run.toolsets.get("shop");
    const told = shop ? `${shop.tools.join()} ${shop.reason}` : "";
    if (told !== (seen.at(-1) ?? "")) seen.push(told);
  }
  expect(seen[0]).toBe("price ");
  expect(seen.at(-1)).toMatch(/^price .+/);
  const before = run.copy();
  run.add({ seq: run.seq + 1, at: run.at, changes: [{ type: "toolset_changed", name: "shop", tools: ["price", "stock"] }] });
  expect([before.toolsets.get("shop")!.reason === "", run.toolsets.get("shop")!.tools]).toEqual([false, ["price", "stock"]]);
  run.add({ seq: run.seq + 1, at: run.at, changes: [{ type: "run_resumed", run_id: "mine", origin: "theirs", seq: 9 }] });
  expect([run.id, run.fork]).toEqual(["mine", { origin: "theirs", seq: 9 }]);
  run.add({ seq: run.seq + 1, at: run.at, changes: [{ type: "run_resumed" }] });
  expect([run.id, run.fork]).toEqual(["mine", { origin: "theirs", seq: 9 }]);
});
