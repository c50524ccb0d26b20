// What tools ask in their middle, what others do for them, how far they are, and the files that they bring.
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { Door, Fake, until } from "../tests/fake";
import { fixture } from "../tests/fixtures";
import type { ChangeFrame, FileFrame, Frame } from "../src/state/wire";
import { launch, looks, open, serious, served, tabOf, type Tab } from "./page";

const HOSTILE = "<img src=x onerror=document.title='owned'>\u202egnp.exe";
const { frames, held } = fixture("at-sea");
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
afterEach(() => {
  expect(tab.faults).toEqual([]);
  door.shut();
});

/** The record with which something begins or ends. */
const recordOf = (type: ChangeFrame["type"], id: RegExp): number =>
  frames.find((frame) => frame.changes.some((each) => each.type === type && "id" in each && id.test(each.id)))!.seq;
/** The run as of a record, which was a moment ago. */
async function live(records: number, { effect = "", edit = (all: Frame[]): Frame[] => all, more = {} } = {}): Promise<void> {
  const later = Date.now() / 1000 - frames[records - 1]!.at - 2;
  fake = new Fake(edit(frames).map((each) => ({ ...each, at: each.at + later })), Infinity);
  Object.assign(fake, { recorded: records, held: { ...held, ...more } });
  door.behind = fake;
  await served(tab, door.root, `/run/${fake.run}${effect && `?effect=${effect}`}`, { width: 1600 });
  await page.locator(".turn").first().waitFor();
}
const inside = () => page.getByRole("group", { name: "Inside of book_boat" });

test("the call of an outside tool shows its arguments, takes a result that fits, or why it failed", async () => {
  await live(recordOf("effect_started", /^1\/1\.c1$/));
  const ask = page.locator(".ask");
  await ask.getByText("Clerk asks you to do read_calendar").waitFor();
  await expect.poll(() => ask.locator(".kv").innerText()).toMatch(/month\s+June/);
  await ask.getByLabel("answer").fill("12 June");
  await ask.getByRole("button", { name: /Give its result/ }).click();
  await ask.getByText("Expected a value of type array").waitFor();
  expect(fake.posted).toEqual([]);
  await ask.getByLabel("answer").fill('["12 June"]');
  await ask.getByRole("button", { name: /Give its result/ }).click();
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]!.body).toEqual({ question: "1/1.c1", content: '["12 June"]' });
  await page.reload();
  await ask.locator("form.reply").focus();
  await page.keyboard.press("d");
  await ask.getByLabel(/Why not/).fill("The calendar is closed");
  await page.keyboard.press("Control+Enter");
  await until(() => fake.posted.length === 2);
  expect(fake.posted[1]!.body).toEqual({ question: "1/1.c1", content: "", reason: "The calendar is closed" });
});

test("an outside call in the inbox says so, with its arguments", async () => {
  await live(recordOf("effect_started", /^1\/1\.c1$/));
  fake.asks = [{ run_id: fake.run, name: "", team: "boats", question: {
    id: "1/1.c1", kind: "question", agent: "Clerk", tool: "read_calendar", text: "Do it", arguments: `{"month":${JSON.stringify(HOSTILE)}}`, since: 1, options: [],
  } }];
  await page.goto(`${door.root}/#/inbox`);
  await page.getByRole("heading", { name: "Clerk asks you to do read_calendar" }).waitFor();
  await page.locator(".answer .kv", { hasText: "<img src=x" }).waitFor();
  await page.getByLabel("Its result").fill("done");
  await page.getByRole("button", { name: /Give its result/ }).click();
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]!.body).toEqual({ question: "1/1.c1", content: "done" });
  await expect.poll(() => page.locator("img").count()).toBe(0);
});

test("what a tool asks in its middle stands under it, and is answered there", async () => {
  await live(recordOf("effect_started", /^1\/2\.c1:question/));
  await inside().locator(".ask").getByText("Which boat?").waitFor();
  await inside().getByRole("button", { name: /^Tern/ }).click();
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]!.body).toMatchObject({ question: expect.stringMatching(/^1\/2\.c1:question:/), content: "Tern" });
  await page.locator(".p-look").getByRole("button", { name: "book_boat 1/2.c1" }).click();
  await page.locator(".p-look").getByText("What it began in its middle").waitFor();
  fake.record(17);
  // Its question, two calls that open in place, and a step, in the order that it began them.
  await expect.poll(() => inside().locator("> *").allInnerTexts()).toEqual(
    [/asks you/, /Clerk #2/, /Harbour/, /reserve/].map((each) => expect.stringMatching(each) as string));
  await expect.poll(() => page.locator(".p-look .sec", { hasText: "What it began in its middle" }).getByRole("button").allInnerTexts()).toEqual(
    [/^asks you/, /^its own model/, /^Harbour/, /^reserve/].map((each) => expect.stringMatching(each) as string));
  await inside().getByRole("button", { name: /Harbour/ }).click();
  await page.locator(".turn", { hasText: "Harbour" }).locator(".call", { hasText: "finish" }).waitFor();
});

test("what a tool says of itself is shown while it runs: its places, and a difference as one", async () => {
  const running = recordOf("effect_started", /^1\/2\.c1:ask/);
  await live(running, { effect: "1/2.c1" });
  await until(() => fake.connections === 1);
  const said = page.locator(".p-talk .progress");
  fake.delta({ effect_id: "1/2.c1", kind: "progress", text: `Reads ${HOSTILE}`, locations: [...Array(9).keys()].map((line) => ({ path: `a/${HOSTILE}`, line: line + 1 })) });
  await said.getByText("Reads <img").waitFor();
  await expect.poll(() => said.locator(".places li").last().innerText()).toBe("and 3 places more");
  // The next report takes its place, at once and whole.
  fake.delta({ effect_id: "1/2.c1", kind: "progress", text: "Writes", diffs: [{ path: "book.md", before: `one\ntwo\n${HOSTILE}\n`, after: "one\n2\n" }] });
  await said.getByText("Writes").waitFor();
  await expect.poll(() => said.locator(".places").count()).toBe(0);
  for (const where of [said, page.locator(".p-look .sec", { hasText: "How far it is" })]) {
    await expect.poll(() => where.locator(".diff .del").allInnerTexts()).toEqual([expect.stringContaining("two"), expect.stringContaining("<img src=x")]);
    await expect.poll(() => where.locator(".diff .add").innerText()).toContain("2");
  }
  await expect.poll(() => serious(page, "#pane-talk")).toEqual([]);
  await page.keyboard.press("ArrowLeft");
  await said.waitFor({ state: "detached" });
  await page.keyboard.press("l");
  await said.waitFor();
  // What it said is no record: with its end it goes.
  fake.record(frames.length);
  await page.locator(".turn .name", { hasText: "Result" }).waitFor();
  await expect.poll(() => page.locator(".progress").count()).toBe(0);
  await expect.poll(() => page.locator("img").evaluateAll((all) => all.map((each) => (each as HTMLImageElement).naturalWidth))).not.toContain(0);
});

test("a picture is a picture, everything else is only saved, and nothing of a file acts", async () => {
  const ended = recordOf("effect_ended", /^1\/2\.c1$/);
  const [picture] = held[ended]!.changes.flatMap((each) => (each.type === "effect_ended" ? (each.files ?? []) : []));
  const page_ = Buffer.from(`<script>document.title='owned'</script>${HOSTILE}`).toString("base64");
  const files: FileFrame[] = [
    picture!, { media_type: "image/svg+xml", name: `../../${HOSTILE}.svg`, bytes: 9, data: page_ }, { media_type: "text/html", name: "a/page.html", bytes: 9, data: page_ },
    { media_type: `image/png;base64,x" onerror="document.title='owned'`, name: "x.png", bytes: 9, data: page_ },
    { media_type: "image/png", name: "broken.png", bytes: 9, data: `"><script>${HOSTILE}` }, { media_type: "image/png", name: "far.png", url: "javascript:document.title='owned'" },
  ];
  const given = (all: FileFrame[]) => (frame: Frame): Frame => ({ ...frame, changes: frame.changes.map((each) => (each.type === "effect_ended" && each.id === "1/2.c1" ? { ...each, files: all } : each)) });
  const bare = files.map(({ data: _, ...each }) => each);
  await live(ended, { edit: (all) => all.map((each) => (each.seq === ended ? given(bare)(each) : each)), more: { [ended]: given(files)(frames[ended - 1]!) } });
  const title = await page.title();
  const brought = page.locator(".turn", { hasText: "book_boat" }).locator(".brought").first();
  const shown = brought.locator("img");
  await expect.poll(() => shown.evaluateAll((all) => all.map((each) => (each as HTMLImageElement).naturalWidth))).toEqual([320]);
  await expect.poll(() => shown.getAttribute("alt")).toBe("tides.png");
  for (const [name, kept] of [["page.html", "page.html"], [/gnp\.exe\.svg/, /gnp\.exe\.svg$/]] as const) {
    const saving = page.waitForEvent("download");
    await brought.getByRole("button", { name }).click();
    const saved = await saving;
    expect(saved.suggestedFilename()).toMatch(kept);
    expect(saved.suggestedFilename()).not.toMatch(/[/\u202e]/);
    const read: Buffer[] = [];
    for await (const each of await saved.createReadStream()) read.push(each as Buffer);
    expect(Buffer.concat(read).toString()).toContain("<script>");
  }
  await brought.getByRole("button", { name: "Save broken.png" }).click();
  await brought.getByText("What it holds is not base64").waitFor();
  await brought.getByText("javascript:document.title='owned'").waitFor();
  await expect.poll(() => page.locator("a[href^='javascript:'], a[href^='blob:'], iframe, object, embed").count()).toBe(0);
  await expect.poll(() => page.title()).toBe(title);
  await expect.poll(() => serious(page, "#pane-talk")).toEqual([]);
});

test("a file of a run has the pictures in it, what the request came to, and what was asked inside of tools", async () => {
  await open(tab, "at-sea", { hash: "effect=1/2.c1" });
  await inside().waitFor();
  await expect.poll(() => page.locator(".p-look img").evaluate((each) => (each as HTMLImageElement).naturalWidth)).toBe(320);
  // Nothing chosen, it opens with what it came to.
  await open(tab, "at-sea");
  const result = page.locator(".turn", { has: page.getByRole("button", { name: "Result" }) });
  await result.getByText("The Tern is yours on 12 June.").waitFor();
  await result.getByRole("button", { name: "Save boat.md" }).waitFor();
  await expect.poll(() => result.locator("img").count()).toBe(1);
  await expect.poll(() => result.evaluate((each) => each.getBoundingClientRect().top < each.closest(".talk")!.getBoundingClientRect().bottom - 60)).toBe(true);
  for (const [width, dark] of [[1280, true], [390, false]] as const) {
    await looks(page, { width, dark });
    await expect.poll(() => serious(page)).toEqual([]);
  }
});
