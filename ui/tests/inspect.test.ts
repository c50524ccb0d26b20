import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test, vi } from "vitest";
import { curl } from "../src/inspect/curl";
import { asked, stored } from "../src/inspect/request";
import type { StoredRequest } from "../src/server/wire";
import { Deltas } from "../src/state/deltas";
import { Run } from "../src/state/run";
import { HARMFUL } from "../src/state/words";
import { fixture } from "./fixtures";

/** What a shell gives to curl when the command is pasted into it: its arguments, and what it reads. */
function ran(command: string): { given: string[]; body: string } {
  const folder = mkdtempSync(join(tmpdir(), "curl-"));
  writeFileSync(join(folder, "curl"), '#!/bin/sh\nfor each in "$@"; do printf "%s\\n" "$each"; done; printf "\\n"; cat\n');
  chmodSync(join(folder, "curl"), 0o755);
  const env = { PATH: `${folder}:${process.env.PATH}`, OPENAI_API_KEY: "the key", OPENAI_BASE_URL: "http://here/v1" };
  const [first = "", ...rest] = execFileSync("/bin/sh", [], { input: command, env, encoding: "utf8" }).split("\n\n");
  return { given: first.split("\n"), body: rest.join("\n\n") };
}

test("a request is copied as a command without a key, and nothing in it acts in the shell", () => {
  const hostile = [
    "'; touch /tmp/owned #", "$(id) `id` ${HOME} \\ \\' \" !!", "\nREQUEST\nrm -rf /\n", "\u0000\u001b[2J\u202e\u{e0041}", "]]> </script> é 漢 😀",
    "x".repeat(300_000),
  ];
  const body = JSON.stringify({ model: "m", messages: hostile.map((content) => ({ role: "user", content })) });
  const command = curl(body);
  expect(command).not.toMatch(new RegExp(HARMFUL.source, "u"));
  const { given, body: sent } = ran(command);
  expect(given).toEqual([
    "http://here/v1/chat/completions", "-H", "Authorization: Bearer the key", "-H", "Content-Type: application/json", "--data-binary", "@-",
  ]);
  expect(JSON.parse(sent)).toEqual(JSON.parse(body));
});

test("a body that is written over several lines stays one", () => {
  expect(ran(curl('{\n\t"a":\n1,\n"REQUEST":\n2}')).body.trim()).toBe('{  "a": 1, "REQUEST": 2}');
});

const REQUEST: StoredRequest = {
  effect_id: "1/3.m1", seq: 9, at: 1, agent: "a", purpose: "", shared: 1, previous: "1/2.m1", digest: "d", verified: true,
  removed: [{ role: "user", content: "long ago" }],
  request: {
    model: "m", system: "Be brief.", tail: "now", max_output: 10, settings: { temperature: 0 },
    messages: [{ role: "user", content: "summary" }, { role: "tool", content: "[cut]", name: "look", ref: "1/2.c1" }],
    tools: [{ name: "look", description: "", parameters: {} }],
  },
};

test("a stored request is told as what is known, new, removed, and for this call only", () => {
  const found = stored(REQUEST);
  expect([found.known, found.fresh, found.removed].map((each) => each.map((one) => one.content.text))).toEqual([["summary"], ["[cut]"], ["long ago"]]);
  expect(found.fresh[0]!.ref).toBe("1/2.c1");
  expect([found.tail, found.verified, found.settings]).toEqual(["now", true, { max_output: 10, temperature: 0 }]);
});

test("hooks and rules of a turn are kept, those of its beginning first", () => {
  const run = new Run();
  for (const each of fixture("research").frames) run.add(each);
  const at = { seq: run.seq + 1, at: run.at };
  run.add({ ...at, changes: [{ type: "turn_started", activation: 1, turn: 99, begun_by: "prepare_input", rules: ["inbox (a.yaml:3)"] }] });
  expect(run.turn(1, 99)).toMatchObject({ begunBy: "prepare_input", rules: ["inbox (a.yaml:3)"], first: 1 });
  run.add({ ...at, seq: at.seq + 1, changes: [{ type: "turn_ended", activation: 1, turn: 99, ended_by: "end_turn", rules: ["inbox (a.yaml:3)", "flow (a.yaml:9)"] }] });
  expect(run.turn(1, 99)).toMatchObject({ endedBy: "end_turn", rules: ["inbox (a.yaml:3)", "flow (a.yaml:9)"], first: 1 });
});

test("frames tell a request without a server, as far as they go", () => {
  const run = new Run();
  for (const each of fixture("research").frames) run.add(each);
  const found = asked(run, run.effect("2/2.m1")!, { system: "S" });
  expect([found.system, found.verified, found.removed]).toEqual(["S", null, []]);
});

test("of what a tool says the last counts, told at most five times a second, and forgotten with its end", () => {
  vi.useFakeTimers();
  const [deltas, run] = [new Deltas(), new Run()];
  let told = 0;
  deltas.subscribe(() => { told++; });
  const say = (text: string): void => { deltas.add({ effect_id: "1/1.c1", kind: "progress", text }); deltas.draw(run); };
  for (const each of ["one", "two", "three"]) say(each);
  expect([told, deltas.progressOf("1/1.c1")]).toEqual([1, { text: "three", locations: [], diffs: [] }]);
  vi.advanceTimersByTime(1_000);
  expect(told).toBe(2);
  run.add({ seq: 1, at: 1, changes: [{ type: "effect_ended", activation: 1, turn: 1, id: "1/1.c1", kind: "tool", outcome: "completed" }] });
  deltas.draw(run);
  expect(deltas.progressOf("1/1.c1")).toBe(undefined);
  vi.useRealTimers();
});

test("pieces of a reply: what comes again counts once, a later beginning is told, a failed attempt is forgotten", () => {
  const deltas = new Deltas();
  const say = (text: string, offset: number, kind = "text") => deltas.add({ effect_id: "e", kind, text, offset });
  say("world", 70_000);
  say("world, again", 70_000);
  say(" and", 70_012);
  expect(deltas.of("e")!.text).toBe("world, again and");
  say("later", 90_000);
  expect(deltas.of("e")!.text).toBe("later");
  say("all from its beginning", 0);
  expect(deltas.of("e")!.text).toBe("all from its beginning");
  deltas.add({ effect_id: "e", kind: "call_name", text: "look" });
  deltas.add({ effect_id: "e", kind: "call_arguments", text: '{"where":' });
  deltas.add({ effect_id: "e", kind: "call_arguments", text: '"here"}' });
  expect(deltas.of("e")).toMatchObject({ other: 'look {"where":"here"}' });
  say("", 0, "void");
  expect(deltas.of("e")!.text).toBe("");
});
