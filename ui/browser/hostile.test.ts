// Whatever a model, a tool or a user may have written, in every field of a server's answers: shown, and never acted on.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import type { Frame } from "../src/state/wire";
import { Fake } from "../tests/fake";
import { fixture } from "../tests/fixtures";
import { launch } from "./page";

const ATTACK = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
  + "<a href=\"javascript:document.title='owned'\">x</a>\u202egnp.exe\u2066\u200b\u0000\u001b[31m";
const LONG = ATTACK + "x".repeat(1_000_000);
/** A megabyte where few texts are; the others of them are short. */
let megabytes = 12;
const long = (): string => (megabytes-- > 0 ? LONG : ATTACK);
/** What programs wrote and not people: it tells apart, and never comes from a model. */
const OURS = new Set(["type", "id", "kind", "purpose", "call_id", "run_id", "outcome", "effect_id", "seq", "prefix", "call", "mode", "on_breach", "policy", "state", "scopes", "effect", "severity"]);

/** Every text spoiled; the longest ones where a reader would read them. */
function spoiled(value: unknown, key = ""): unknown {
  if (Array.isArray(value)) return value.map((each) => spoiled(each, key));
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, spoiled(each, name)]));
  }
  if (typeof value !== "string" || OURS.has(key)) return value;
  return key === "text" || key === "content" ? (value.startsWith("{") ? JSON.stringify({ [ATTACK]: long() }) : value.slice(0, 40) + long()) : value + ATTACK;
}

let browser: Browser;
beforeAll(async () => { browser = await launch(); });
afterAll(() => browser.close());

test("hostile texts in every field of a live run, the lists and the inbox are shown and do nothing", async () => {
  const fake = new Fake(fixture("question").frames.map((each) => spoiled(each) as Frame), Infinity);
  fake.recorded = fake.frames.length;
  // A team's name stands in addresses: the server takes no other than letters and digits.
  fake.spoil = (found, path) => (path === "/teams" ? found : spoiled(found));
  fake.asks = [{
    run_id: fake.run, name: "name", team: "team",
    question: { id: "2/3.c1", kind: "approval", agent: "Guest", tool: "write", text: "May I?", arguments: "{}", options: ["yes", "no"], since: 1 },
  }, {
    run_id: fake.run, name: "name", team: "team",
    question: { id: "2/3.c2", kind: "question", agent: "Guest", text: "Which?", options: ["north", "south"], since: 2 },
  }];
  const root = await fake.open();
  const page = await browser.newPage({ viewport: { width: 1600, height: 900 }, reducedMotion: "reduce" });
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (said) => { if (said.type() === "error") faults.push(said.text()); });
  page.on("request", (request) => { if (!request.url().startsWith(root)) faults.push(request.url()); });
  page.on("dialog", (dialog) => { faults.push(dialog.message()); void dialog.dismiss(); });
  await page.goto(`${root}/#/runs?token=secret`);
  const title = await page.title();
  const run = `#/run/${fake.run}`;
  for (const [hash, selector] of [
    ["#/runs", ".runs tbody tr"], ["#/inbox", ".answer h1"], ["#/teams", ".agents"], ["#/new", "form"], [run, ".turn"],
    [`${run}?tab=records`, ".rec"], [`${run}?effect=4/2.c1`, ".insp"], [`${run}?record=40&effect=2/1.m1`, ".insp"],
  ] as const) {
    await page.goto(`${root}/${hash}`);
    await page.locator(selector).first().waitFor();
    if (hash === "#/teams") {
      await page.getByText("Where it is written").click();
      await page.locator(".lines .found").first().waitFor();
    }
    await page.locator("body", { hasText: "<script>document.title='owned'" }).waitFor();
    if (selector === ".insp" && hash.includes(".m1")) await page.getByText("To the letter").waitFor();
    const text = await page.locator("body").innerText();
    expect(text.split("\n").filter((each) => /[\u202e\u2066\u200b\u0000\u001b]/.test(each)).map((each) => each.slice(0, 160)), hash).toEqual([]);
    await expect.poll(() => page.locator("img, iframe, object, embed, script:not([src]), a[href^='javascript:']").count(), { message: hash }).toBe(0);
    await expect.poll(() => page.title(), { message: hash }).toBe(title);
  }
  await page.goto(`${root}/#/inbox`);
  await page.locator(".item").nth(1).click();
  await page.getByRole("button", { name: /^north/ }).waitFor();
  await expect.poll(() => page.locator(".answer").innerText()).not.toMatch(/[\u202e\u2066\u200b\u0000\u001b]/);
  expect(faults).toEqual([]);
  await fake.close();
});
