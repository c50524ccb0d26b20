// What somebody must know before they allow a call, and how far "always" reaches; toolsets, and where a fork began.
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Door, Fake, until } from "../tests/fake";
import { fixture } from "../tests/fixtures";
import type { Frame } from "../src/state/wire";
import { launch, looks, open as opened, serious, served, tabOf, type Tab } from "./page";

const HOSTILE = "<img src=x onerror=document.title='owned'>\u202egnp.exe";
let browser: Browser;
let tab: Tab;
let page: Page;
let fake: Fake;
const door = new Door();
beforeAll(async () => {
  browser = await launch();
  tab = await tabOf(browser);
  ({ page } = tab);
  await door.open();
});
afterAll(async () => {
  await browser.close();
  await door.close();
});
beforeEach(() => {
  const { frames } = fixture("mail");
  const later = Date.now() / 1000 - frames.at(-1)!.at - 20;
  fake = new Fake(frames.map((each): Frame => ({ ...each, at: each.at + later })), Infinity);
  fake.recorded = fake.frames.length;
  door.behind = fake;
});
afterEach(() => {
  expect(tab.faults).toEqual([]);
  door.shut();
});
const live = (more = ""): Promise<Page> => served(tab, door.root, `/run/${fake.run}${more}`, { width: 1600 });

test("an approval by labels says what the agent was shown, and leads there", async () => {
  await live();
  const shown = page.locator(".ask").getByRole("list", { name: "What it was shown" });
  await expect.poll(() => shown.locator("li").allInnerTexts()).toEqual([
    expect.stringContaining("something private, which must not get out: read_mail 1/1.c1"),
    expect.stringContaining("something untrusted, which a stranger may have written: fetch 2/1.c1")]);
  await shown.getByRole("button", { name: /fetch/ }).click();
  const look = page.locator(".p-look");
  await look.locator(".bar-top code", { hasText: "2/1.c1" }).waitFor();
  await look.locator(".facts", { hasText: "Carries" }).getByText("untrusted").waitFor();
  await page.locator(".turn", { hasText: "fetch" }).locator(".tag", { hasText: "untrusted" }).first().waitFor();
  await page.goto(`${door.root}/#/run/${fake.run}?effect=${encodeURIComponent("1/4.c1?")}`);
  await look.getByText("what it was shown wants a person asked").waitFor();
  await look.getByRole("list", { name: "What it was shown" }).getByRole("button", { name: /read_mail/ }).waitFor();
  await expect.poll(() => serious(page)).toEqual([]);
});

test("always reaches as far as is chosen: a pattern, one agent, a project, a while", async () => {
  fake.spoil = (found, path) => (path === `/runs/${fake.run}` ? { ...(found as object), project: "docs" } : found);
  await live();
  const ask = page.locator(".ask");
  await ask.locator("form.reply").focus();
  await page.keyboard.press("Shift+A");
  await ask.getByText("it is asked each time all the same").waitFor();
  await ask.getByLabel("to: which").selectOption("own");
  const pattern = ask.getByLabel("to: pattern");
  await expect.poll(() => pattern.inputValue()).toBe("eve@example.org");
  await pattern.fill("*@ours.example");
  await ask.getByText("As it is asked, to does not fit: this call is allowed").waitFor();
  await pattern.fill("");
  await expect.poll(() => ask.getByRole("button", { name: "Always allow" }).isDisabled()).toBe(true);
  await pattern.fill("*@example.org");
  await ask.getByText("As it is asked, to does not fit").waitFor({ state: "detached" });
  await ask.getByLabel("Always: whose calls").selectOption("one");
  await ask.getByLabel("Always: where").selectOption("project");
  await ask.getByLabel("Always: how long").selectOption("for a day");
  for (const [width, dark] of [[1600, false], [390, true]] as const) {
    await looks(page, { width, dark });
    await expect.poll(() => serious(page, "#pane-talk")).toEqual([]);
  }
  await looks(page, { width: 1600 });
  await ask.getByRole("button", { name: "Always allow" }).click();
  await until(() => fake.posted.length === 1);
  const { grant, ...body } = fake.posted[0]!.body as { grant: { until: number } };
  expect(body).toEqual({ question: "1/4.c1?", content: "always", scope: "project" });
  expect(grant).toEqual({ arguments: [["to", "*@example.org"]], agent: "Clerk", until: grant.until });
  expect(Math.abs(grant.until - Date.now() / 1000 - 86_400)).toBeLessThan(60);
});

test("Escape leaves always, and the call is allowed once from the keyboard", async () => {
  await live();
  await page.locator(".ask form.reply").focus();
  await page.keyboard.press("Shift+A");
  await page.getByLabel("Always: how long").focus();
  await page.keyboard.press("Escape");
  await page.getByLabel("Always: how long").waitFor({ state: "detached" });
  await page.locator(".ask form.reply").focus();
  await page.keyboard.press("a");
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]!.body).toEqual({ question: "1/4.c1?", content: "yes" });
});

test("toolsets stand beside the team as of the record: what they offer, and why they are down", async () => {
  const down = fake.frames.find((frame) => frame.changes.some((each) => each.type === "toolset_changed" && each.reason))!;
  fake.frames[down.seq - 1] = { ...down, changes: down.changes.map((each) => (each.type === "toolset_changed" ? { ...each, reason: `gone ${HOSTILE}` } : each)) };
  await live(`?record=${down.seq - 1}`);
  const toolsets = page.getByRole("group", { name: "Toolsets" });
  await toolsets.getByText("1 tool: price").waitFor();
  await page.keyboard.press("ArrowRight");
  await toolsets.getByText(/is down: gone <img/).waitFor();
  await page.getByRole("tab", { name: "Records" }).click();
  await page.locator(".rec", { hasText: "toolset shop is down: gone <img" }).waitFor();
  await expect.poll(() => page.locator("img").count()).toBe(0);
  await expect.poll(() => serious(page)).toEqual([]);
});

test("a team's toolsets say what they offer, that nobody has opened them, or why they are down", async () => {
  const tool = { name: "price", description: "", effect: "read", parameters: {}, rulings: { "": "allow", open: "allow", guarded: "allow", strict: "deny" } };
  fake.toolsets = [
    { name: "shop", required: false, tools: [tool], reason: "" }, { name: "web", required: true, tools: null, reason: "" },
    { name: "mail", required: false, tools: [{ ...tool, name: "post" }], reason: `nobody answers ${HOSTILE}` }];
  await served(tab, door.root, "/teams", { width: 1280 });
  await page.getByRole("group", { name: "Toolset shop" }).getByText("toolset; 1 tool").waitFor();
  await page.getByRole("group", { name: "Toolset web" }).getByText("its tools are known once a run has opened it; a run does not start without it").waitFor();
  await page.getByRole("group", { name: "Toolset mail" }).getByText(/down: nobody answers <img/).waitFor();
  await expect.poll(() => serious(page)).toEqual([]);
  await page.goto(`${door.root}/#/new`);
  const tools = page.getByRole("region", { name: "Tools" });
  await tools.locator("tr", { hasText: "price" }).getByText("allowed").waitFor();
  await tools.getByText("web: what it offers is known once a run has opened it.").waitFor();
  await expect.poll(() => serious(page)).toEqual([]);
});

test("a fork says what it was taken over from, and leads there", async () => {
  const { seq, at } = fake.frames.at(-1)!;
  fake.frames.push({ seq: seq + 1, at, changes: [{ type: "run_resumed", run_id: fake.run, origin: "0123456789abcdef", seq: 7 }] });
  fake.recorded++;
  await live();
  const from = page.getByRole("link", { name: "forked from 0123456789ab… at record 7" });
  await expect.poll(() => from.getAttribute("href")).toBe("#/run/0123456789abcdef?record=7");
  await page.getByRole("tab", { name: "Records" }).click();
  await page.locator(".rec", { hasText: "forked from 0123456789abcdef at its record 7" }).waitFor();
});

test("runs are found by the model that answered in them", async () => {
  await served(tab, door.root, "/runs", { width: 1280 });
  const rows = page.locator(".runs tbody tr");
  await rows.first().waitFor();
  await page.getByLabel("Search").fill("model:gpt-4.1");
  await until(() => fake.queries.some((each) => !each.includes("text=")));
  await expect.poll(() => rows.count()).toBe(5);
  await page.getByLabel("Search").fill("model:local");
  await page.getByText("Nothing matches model:local").waitFor();
});

test("an exported file draws all of it, and can answer nothing", async () => {
  door.shut();
  await opened(tab, "mail");
  await page.locator(".ask").getByRole("list", { name: "What it was shown" }).getByRole("button", { name: /read_mail/ }).waitFor();
  await page.getByRole("group", { name: "Toolsets" }).getByText("shop").waitFor();
  await expect.poll(() => page.locator("form.reply").count()).toBe(0);
});
