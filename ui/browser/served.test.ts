// What people do in a page of a server that a test holds in its hand: one tab, which each test loads anew.
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Door, Fake, until } from "../tests/fake";
import { fixture } from "../tests/fixtures";
import type { Frame } from "../src/state/wire";
import { launch, looks, served, tabOf, type Tab } from "./page";

let browser: Browser;
let tab: Tab;
let fake: Fake;
const door = new Door();
beforeAll(async () => {
  browser = await launch();
  tab = await tabOf(browser);
  await door.open();
});
afterAll(async () => {
  await browser.close();
  await door.close();
});
beforeEach(() => {
  // Of the run whose approval is still open; the first model call has just begun.
  fake = new Fake(recently(fixture("question").frames), 7);
  door.behind = fake;
});
afterEach(() => {
  expect(tab.faults).toEqual([]);
  door.shut();
});

const open = (hash = ""): Promise<Page> => served(tab, door.root, hash);
/** The same as if it had begun a minute ago. */
function recently(frames: Frame[]): Frame[] {
  const later = Date.now() / 1000 - frames.at(-1)!.at - 40;
  return frames.map((each) => ({ ...each, at: each.at + later }));
}

const live = () => `/run/${fake.run}`;
const record = (page: Page) => page.locator(".pos b").innerText();

test("the list of runs leads to a run, which is drawn as it goes on", async () => {
  const page = await open();
  await page.getByRole("link", { name: "What happens to a tool call?" }).click();
  await until(() => fake.connections === 1);
  await expect.poll(() => record(page)).toBe("7");
  fake.record(4);
  await until(async () => (await record(page)) === "11");
  await expect.poll(() => page.locator(".head .state").innerText()).toContain("Running");
  await page.getByText("Live", { exact: true }).waitFor();
});

test("a page that opens in the middle of a reply has its beginning, and then each piece", async () => {
  const page = await open(live());
  await until(() => fake.connections === 1);
  const id = "1/1.m1";
  fake.delta({ effect_id: id, kind: "text", text: "The beginning, and ", offset: 0 });
  fake.delta({ effect_id: id, kind: "text", text: "more of it", offset: 19 });
  await page.getByText("The beginning, and more of it").waitFor();
  fake.cut();
  await until(() => fake.connections === 1);
  fake.delta({ effect_id: id, kind: "text", text: "The beginning, and more of it, <b>whole</b>", offset: 0 });
  await page.getByText("The beginning, and more of it, <b>whole</b>", { exact: true }).waitFor();
});

test("who follows a run sees the end of a reply as it grows, until they scroll away", async () => {
  const page = await open(live());
  await until(() => fake.connections === 1);
  const talk = page.locator(".talk");
  const left = () => talk.evaluate((box) => box.scrollHeight - box.scrollTop - box.clientHeight);
  let said = 0;
  let offset = 0;
  const say = (lines: number): void => {
    for (const end = said + lines; said < end; said++) {
      const text = `line ${said}\n\n`;
      fake.delta({ effect_id: "1/1.m1", kind: "text", text, offset });
      offset += text.length;
    }
  };
  for (let round = 0; round < 6; round++) {
    say(20);
    await page.locator(".open-text .said", { hasText: `line ${said - 1}` }).waitFor();
    await until(async () => (await left()) < 40);
  }
  await talk.evaluate((box) => { box.scrollTop = 10; });
  await until(async () => (await left()) > 200);
  const above = await talk.evaluate((box) => box.scrollTop);
  say(20);
  await page.locator(".open-text .said", { hasText: `line ${said - 1}` }).waitFor();
  await expect.poll(() => talk.evaluate((box) => box.scrollTop)).toBe(above);
});

test("a list in what an agent says is a list, line after line, on a server's page too", async () => {
  fake = new Fake(recently(fixture("research").frames), Infinity);
  fake.recorded = fake.frames.length;
  door.behind = fake;
  const page = await open(live());
  const point = page.locator(".said .point", { hasText: "asks its" }).first();
  await point.waitFor();
  await expect.poll(() => point.evaluate((each) => [getComputedStyle(each).display, Math.round(each.getBoundingClientRect().height / 20) <= 2])).toEqual(["block", true]);
});

test("4,000 pieces at once are all drawn", async () => {
  const page = await open(live());
  await until(() => fake.connections === 1);
  for (let at = 0; at < 4_000; at++) fake.delta({ effect_id: "1/1.m1", kind: "text", text: "word ", offset: 5 * at });
  await expect.poll(async () => (await page.locator(".open-text .said").innerText()).trim().split(/\s+/).length).toBe(4_000);
});

test("an edited call: a wrong edit is refused at the field, a refusal of the server leaves it open, then it is allowed", async () => {
  fake.recorded = fake.frames.length;
  fake.refuse = (_, body) => String(body.arguments).includes("refused")
    ? { status: 422, title: "The arguments do not fit", detail: "Expected a file below reports/" } : null;
  const page = await open(live());
  const ask = page.locator(".ask");
  await ask.getByRole("tab", { name: "Edit" }).click();
  const path = ask.getByLabel("path");
  await path.fill("refused.md");
  await ask.getByRole("button", { name: /Allow as edited/ }).click();
  await ask.getByText("The arguments do not fit. Expected a file below reports/").waitFor();
  await expect.poll(() => path.inputValue()).toBe("refused.md");
  await path.fill("reports/better.md");
  await ask.getByRole("tab", { name: "Difference" }).click();
  await expect.poll(() => ask.locator(".diff").innerText()).toContain("path: reports/better.md");
  await ask.getByRole("button", { name: /Allow as edited/ }).click();
  await until(() => fake.posted.length === 2);
  const { path: where, body } = fake.posted.at(-1)!;
  expect(where).toBe(`/runs/${fake.run}/answers`);
  expect(body.content).toBe("yes");
  expect(JSON.parse(String(body.arguments)).path).toBe("reports/better.md");
});

test("a call is denied with a reason, from the keyboard", async () => {
  fake.recorded = fake.frames.length;
  const page = await open(live());
  await page.locator(".ask").getByRole("tab", { name: "Asked" }).focus();
  await page.keyboard.press("d");
  await page.getByLabel(/Why not/).fill("Not there");
  await page.keyboard.press("Control+Enter");
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]!.body).toMatchObject({ content: "no", reason: "Not there", question: "2/3.c1?" });
});

test("a question of the inbox is answered with one of its options", async () => {
  fake.asks = [{
    run_id: fake.run, name: "", team: "research",
    question: { id: "2/3.c1", kind: "question", agent: "Principal", text: "North or <b>south</b>?", options: ["north", "south"], since: 1 },
  }];
  const page = await open("/inbox");
  await page.getByText("North or <b>south</b>?").first().waitFor();
  await page.getByRole("button", { name: "south", exact: true }).click();
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]!.body).toMatchObject({ question: "2/3.c1", content: "south" });
});

test("a question with a schema is a form, whose answer is checked before it is sent", async () => {
  const at = Date.now() / 1000;
  const frames: Frame[] = fake.frames.slice(0, 11);
  frames.push({ seq: 12, at, changes: [{
    type: "effect_started", activation: 2, turn: 1, id: "2/1.c9", kind: "wait", purpose: "question", name: "user",
    text: { text: "How many, and of what?" },
    schema: { type: "object", properties: { what: { type: "string", enum: ["tea", "coffee"] }, many: { type: "integer" } } },
  }] });
  door.behind = fake = new Fake(frames, 12);
  const page = await open(live());
  const ask = page.locator(".ask");
  await ask.getByLabel("what").selectOption("coffee");
  await ask.getByLabel("many").fill("two");
  await ask.getByRole("button", { name: /Answer/ }).click();
  await ask.getByText("Expected a value of type integer, got \"two\"").waitFor();
  expect(fake.posted).toEqual([]);
  await ask.getByLabel("many").fill("2");
  await ask.getByRole("button", { name: /Answer/ }).click();
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]!.body).toMatchObject({ question: "2/1.c9", content: '{"what":"coffee","many":2}' });
});

test("the server is killed and comes back: the page says so, stays readable, and misses nothing", async () => {
  const page = await open(live());
  await until(() => fake.connections === 1);
  await door.close();
  await page.getByText("Reconnecting.").waitFor();
  await expect.poll(() => record(page)).toBe("7");
  // It stands as it stood, and says that nothing is known to go on.
  const node = page.locator(".node.on", { hasText: "Partner" });
  await expect.poll(() => node.locator(".sub").innerText()).toMatch(/^thinking · (\d+ min )?\d/);
  await expect.poll(() => node.evaluate((each) => getComputedStyle(each).backgroundColor)).toBe("rgb(255, 255, 255)");
  await expect.poll(() => node.locator(".sub").innerText()).not.toBe("thinking · 0 s");
  door.behind = fake = new Fake(fake.frames, 30, fake.run);
  await door.open();
  await until(async () => (await record(page)) === "30");
  await page.getByText("Reconnecting.").waitFor({ state: "detached" });
  fake.record(2);
  await until(async () => (await record(page)) === "32");
  await page.keyboard.press("Home");
  for (let at = 1; at < 10; at++) await page.keyboard.press("ArrowRight");
  await expect.poll(() => record(page)).toBe("10");
});

test("what is looked at in the past stays while the run goes on, and live is one key away", async () => {
  const page = await open(live());
  await until(() => fake.connections === 1);
  await page.keyboard.press("ArrowLeft");
  await expect.poll(() => record(page)).toBe("6");
  fake.record(10);
  await page.getByText("of 17").waitFor();
  await expect.poll(() => record(page)).toBe("6");
  await page.keyboard.press("l");
  await expect.poll(() => record(page)).toBe("17");
});

test("two tabs see the same", async () => {
  const one = await open(live());
  const other = await tabOf(browser);
  await looks(other.page, { width: 390 });
  await served(other, door.root, live());
  await until(() => fake.connections === 2);
  fake.record(20);
  await until(async () => (await record(one)) === "27" && (await record(other.page)) === "27");
  expect(other.faults).toEqual([]);
  await other.page.close();
});

test("a link that is opened in a new tab has the token of the others; without one the page says where to get it", async () => {
  fake.token = "secret";
  const context = await browser.newContext();
  const [first, second] = [await context.newPage(), await context.newPage()];
  await first.goto(`${door.root}/#${live()}?token=secret`);
  await first.locator(".turn").first().waitFor();
  await second.goto(`${door.root}/#${live()}?record=3`);
  await expect.poll(() => record(second)).toBe("3");
  expect(second.url()).not.toContain("secret");
  await context.close();
  const alone = await browser.newContext();
  const page = await alone.newPage();
  await page.goto(`${door.root}/#${live()}`);
  await page.getByText("This tab has no token that is good here. Open the address that `antiphon serve`").waitFor();
  await alone.close();
});

test("a run is stopped, and told something while it works", async () => {
  const page = await open(live());
  await until(() => fake.connections === 1);
  await page.getByRole("combobox", { name: "To" }).selectOption({ label: "Partner, at work" });
  await page.getByLabel("Message").fill("Be brief");
  await page.keyboard.press("Enter");
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]).toMatchObject({ path: `/runs/${fake.run}/messages`, body: { call_id: "0/1.c1", message: "Be brief" } });
  await page.getByRole("button", { name: "Stop" }).click();
  await until(() => fake.posted.length === 2);
  expect(fake.posted[1]!.path).toBe(`/runs/${fake.run}/cancel`);
});

test("a run is started with limits and a file, and opens", async () => {
  const page = await open("/new");
  await page.getByLabel("Message").fill("How do tides work?");
  await page.getByLabel("Tokens, at most").fill("150,000");
  await page.getByLabel("Files").setInputFiles({ name: "a.txt", mimeType: "text/plain", buffer: Buffer.from("hello") });
  await page.getByRole("button", { name: /Start/ }).click();
  await page.locator(".p-lanes").waitFor();
  expect(fake.posted[0]).toMatchObject({
    path: "/runs", body: {
      team: "research", message: "How do tides work?", limits: { tokens: 150_000, on_breach: "ask" },
      attachments: [{ name: "a.txt", media_type: "text/plain", data: "aGVsbG8=" }],
    },
  });
});
