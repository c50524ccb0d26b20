// What people do around a run: look up exactly what was sent, find, answer, start, keep files, steer the plan.
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { Door, Fake, until } from "../tests/fake";
import { fixture } from "../tests/fixtures";
import type { CutText, Frame } from "../src/state/wire";
import { launch, looks, serious, served, tabOf, type Tab } from "./page";

const HOSTILE = "<img src=x onerror=document.title='owned'>\u202egnp.exe'; rm -rf / #";
let browser: Browser;
let tab: Tab;
let fake: Fake;
const door = new Door();
let page: Page;
beforeAll(async () => {
  browser = await launch();
  tab = await tabOf(browser);
  ({ page } = tab);
  await door.open();
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
});
afterAll(async () => {
  await browser.close();
  await door.close();
});
beforeEach(() => {
  fake = new Fake(recently(fixture("question").frames), Infinity);
  fake.recorded = fake.frames.length;
  door.behind = fake;
});
afterEach(() => {
  expect(tab.faults).toEqual([]);
  door.shut();
});

function recently(frames: Frame[]): Frame[] {
  const later = Date.now() / 1000 - frames.at(-1)!.at - 40;
  return frames.map((each) => ({ ...each, at: each.at + later }));
}

const open = (hash: string): Promise<Page> => served(tab, door.root, hash, { width: 1280 });
const live = (more = ""): string => `/run/${fake.run}${more}`;
const copied = (): Promise<string> => page.evaluate(() => navigator.clipboard.readText());

test("a model call shows its request to the letter, what compaction removed, and a handle's whole result", async () => {
  fake.request.removed = [{ role: "user", content: `Long ago ${HOSTILE}` }];
  fake.request.request.system = `System ${HOSTILE}`;
  const cut = fake.frames.findIndex((frame) => frame.changes.some((each) => each.type === "effect_ended" && each.id === "2/2.m1"));
  const replied = (content: CutText) => (frame: Frame): Frame => ({ ...frame, changes: frame.changes.map((each) =>
    each.type === "effect_ended" && each.reply ? { ...each, reply: { ...each.reply, content } } : each) });
  fake.frames[cut] = replied({ text: "Its beginning", length: 90_000 })(fake.frames[cut]!);
  const ended = fake.frames.findIndex((frame) => frame.changes.some((each) => each.type === "turn_ended" && each.activation === 2 && each.turn === 2));
  fake.frames[ended] = { ...fake.frames[ended]!, changes: fake.frames[ended]!.changes.map((each) => (each.type === "turn_ended" ? { ...each, rules: [`closing ${HOSTILE} (a.yaml:7)`] } : each)) };
  fake.whole = (frame) => replied({ text: `Its beginning, and all that a page that came late never heard ${HOSTILE}` })({
    ...frame, changes: frame.changes.map((each) =>
      each.type === "effect_ended" && each.kind === "tool" ? { ...each, content: { text: `All of it ${HOSTILE}` } } : each) });
  await open(live("?effect=2/2.m1"));
  await page.locator(".p-look").getByText(/all that a page that came late never heard <img/).waitFor();
  // The rule that spoke is a line of its turn.
  await page.locator(".turn", { hasText: "Its beginning" }).getByText(/^rule: closing <img.*\(a\.yaml:7\)$/).waitFor();
  const look = page.locator(".p-look");
  await look.getByText("To the letter").waitFor();
  await look.getByText("Told for this call only").waitFor();
  await look.getByRole("button", { name: "Show 1 message", exact: true }).click();
  await look.getByText("Long ago <img").waitFor();
  await look.getByRole("button", { name: /Show the whole result/ }).click();
  await look.getByText("The whole result, of which the model was shown less").waitFor();
  await look.locator("summary", { hasText: "System prompt" }).click();
  await look.getByText("System <img").waitFor();
  await expect.poll(() => page.locator("img").count()).toBe(0);
  await expect.poll(() => look.innerText()).not.toMatch(/\u202e/);
  // All calls of that agent stand beside it, and lead to one another.
  const calls = look.locator(".sec", { hasText: "All model calls of Principal" }).getByRole("button");
  await expect.poll(() => calls.evaluateAll((all) => all.map((each) => each.getAttribute("aria-current")))).toEqual(["false", "true", "false"]);
  await calls.first().click();
  await look.locator(".bar-top code", { hasText: "2/1.m1" }).waitFor();
});

test("a model call is copied as JSON and as curl, and its link with the run in it", async () => {
  fake.request.request.messages[0]!.content = HOSTILE;
  await open(live("?effect=2/2.m1"));
  await page.locator(".p-look").getByText("To the letter").waitFor();
  fake.request.verified = false;
  await page.keyboard.press("Shift+C");
  await page.getByText("Copied as curl").waitFor();
  const command = await copied();
  expect(command).toContain("$OPENAI_API_KEY");
  expect(command).not.toContain("secret");
  expect(command).not.toMatch(/\u202e/);
  await page.getByRole("button", { name: "Copy as JSON" }).click();
  await until(async () => (await copied()).startsWith("{"));
  expect(JSON.parse(await copied()).request.messages[0].content).toBe(HOSTILE);
  await page.goto(`${door.root}/#${live("?effect=2/1.m1")}`);
  await page.locator(".p-look").getByText(/NOT to the letter/).waitFor();
  await page.goBack();
  await page.keyboard.press("c");
  await until(async () => (await copied()).startsWith("http"));
  await expect.poll(copied).toBe(`${door.root}/#${live("?effect=2%2F2.m1")}`);
});

test("find or do: runs, agents and commands, from the keyboard", async () => {
  await open(live());
  await page.locator(".turn").first().waitFor();
  await page.keyboard.press("Control+k");
  const input = page.getByRole("combobox", { name: "Find or do" });
  await input.fill("princip");
  await page.locator("#found [role=option]", { hasText: "Principal" }).first().waitFor();
  await page.keyboard.press("Enter");
  await until(async () => /^2\//.test(await page.locator(".p-look .bar-top code").innerText()));
  await page.keyboard.press("Control+k");
  await input.fill("which contradict");
  await page.locator("#found [role=option]", { hasText: "Which invoices contradict" }).waitFor();
  await until(() => fake.queries.some((each) => each.includes("text=contradict")));
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("Enter");
  await until(() => page.url().endsWith("#/run/run2"));
  await page.keyboard.press("g");
  await page.keyboard.press("p");
  await page.getByRole("heading", { name: "Projects" }).waitFor();
  await page.keyboard.press("n");
  await page.getByRole("heading", { name: "New run" }).waitFor();
});

test("older runs come as one scrolls, and the server looks for what it can", async () => {
  fake.more = 220;
  await open("/runs");
  await page.getByRole("link", { name: "Old question 0", exact: true }).waitFor();
  await until(async () => {
    await page.locator(".page").evaluate((each) => each.scrollTo(0, each.scrollHeight));
    return (await page.locator(".runs tbody tr").count()) === 225;
  });
  await page.getByText("These are all 225 runs.").waitFor();
  await page.getByLabel("Search").fill("state:completed question 219");
  await page.getByRole("link", { name: "Old question 219", exact: true }).waitFor();
  await until(() => fake.queries.some((each) => each.includes("state=completed") && each.includes("text=question")));
  await page.getByLabel("Search").fill("state:nothing");
  await page.getByText("Nothing matches state:nothing").waitFor();
  await page.getByLabel("Search").fill("");
  await page.getByRole("link", { name: "How do tides work?", exact: true }).waitFor();
  await page.getByRole("heading", { name: "Runs" }).click();
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await until(() => page.url().includes("#/run/"));
});

const limit = (more: object = {}) => ({ run_id: fake.run, name: "", team: "research", question: {
  id: "2/2.l1", kind: "limit", agent: "Reader", also: ["Reader", HOSTILE, "Critic", "Editor"], text: `40,000 tokens ${HOSTILE}`, since: Date.now() / 1000 - 70,
  options: ["yes", "no", "always"], ...more,
} });

test("several agents at one budget are one item, which is answered from the keyboard", async () => {
  fake.asks = [limit(), limit({ id: "2/3.c1?", kind: "approval", tool: "write_report", arguments: '{"path":"a.md"}', also: [] })];
  await open("/inbox");
  await page.locator(".item", { hasText: "Reader, <img" }).waitFor();
  await expect.poll(() => page.locator(".item").first().innerText()).toContain("and 2 more ask for more");
  // Where no question has the focus, a letter answers nothing.
  await page.keyboard.press("a");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await page.locator(".answer h1", { hasText: "write_report" }).waitFor();
  await page.locator("form.reply:focus").waitFor();
  await page.keyboard.press("e");
  await page.locator(".answer").getByLabel("path").fill("b.md");
  await page.locator(".answer").getByRole("tab", { name: "Asked" }).click();
  await page.keyboard.press("d");
  await page.getByLabel(/Why not/).fill("Not there");
  await page.keyboard.press("Control+Enter");
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]!.body).toMatchObject({ question: "2/3.c1?", content: "no", reason: "Not there" });
  await page.locator(".item").first().click();
  await page.locator("form.reply:focus").waitFor();
  await page.keyboard.press("a");
  await until(() => fake.posted.length === 2);
  expect(fake.posted[1]!.body).toMatchObject({ question: "2/2.l1", content: "yes" });
  await page.getByRole("button", { name: /Sent/ }).waitFor();
});

test("on a phone a question has the whole screen, and one goes back to the others", async () => {
  fake.asks = [limit(), limit({ id: "2/3.c1?", kind: "approval", tool: "write_report", arguments: '{"path":"a.md"}', also: [], rule: `policy of ${HOSTILE} (a.py:7)` })];
  await served(tab, door.root, "/inbox", { width: 390 });
  await page.locator(".item").nth(1).click();
  await page.locator(".answer h1", { hasText: "write_report" }).waitFor();
  // Why it is asked, with the place of the rule.
  await page.locator(".answer").getByText(/policy of <img.* a\.py:7 wants a person asked/).waitFor();
  await expect.poll(() => page.locator(".list").isVisible()).toBe(false);
  await page.getByRole("button", { name: "Inbox", exact: true }).click();
  await page.locator(".item").nth(1).waitFor();
  await expect.poll(() => page.locator(".answer").isVisible()).toBe(false);
  await looks(page, { width: 1280 });
  await expect.poll(() => page.locator(".answer").isVisible()).toBe(true);
});

test("a permission is remembered for the run, its project or its owner, and what led to it is told", async () => {
  const approval = limit({ id: "2/3.c1?", kind: "approval", tool: "write_report", arguments: '{"path":"a.md"}', also: [] });
  fake.asks = [approval];
  const effect = (id: string, kind: string, content: string) => ({ id, kind, purpose: "", name: kind, arguments: "{}", content, outcome: "completed" });
  fake.told = [{ agent: "Reader", asked: `Read it ${HOSTILE}`, turns: [{ effects: [effect("2/3.m1", "model", "I keep it."), effect("2/3.c1?", "wait", "")] }] }];
  fake.spoil = (found, path) => (path === `/runs/${fake.run}` ? { ...(found as object), project: "docs" } : found);
  await open("/inbox");
  await page.getByText("What led here").click();
  await page.locator(".led", { hasText: "Read it <img" }).getByText("I keep it.").waitFor();
  await page.getByRole("button", { name: /^Always/ }).click();
  const where = page.getByLabel("Always: where");
  await expect.poll(() => where.locator("option").allInnerTexts()).toEqual(["in this run", "in its project", "in all of my runs"]);
  await where.selectOption("project");
  await page.getByRole("button", { name: "Always allow" }).click();
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]!.body).toEqual({ question: "2/3.c1?", content: "always", scope: "project" });
  // The answer is within reach however long the arguments are.
  fake.asks = [{ ...approval, question: { ...approval.question, arguments: JSON.stringify({ text: "line\n".repeat(30).repeat(4) }) } }];
  await page.setViewportSize({ width: 1280, height: 420 });
  await page.reload();
  await page.getByRole("button", { name: /^Allow/ }).waitFor();
  await expect.poll(() => page.getByRole("button", { name: /^Allow/ }).evaluate((each) => each.getBoundingClientRect().bottom <= innerHeight)).toBe(true);
  await page.setViewportSize({ width: 1280, height: 900 });
});

test("a run that is not there says so, and a server that is away is told as that", async () => {
  await open("/run/nothere");
  await page.getByRole("heading", { name: "This run cannot be shown" }).waitFor();
  await expect.poll(() => page.getByLabel("Message").count()).toBe(0);
  await page.getByRole("link", { name: "All runs" }).click();
  await page.getByRole("link", { name: "How do tides work?", exact: true }).waitFor();
  fake.down = true;
  await page.getByRole("alert").getByText("The server does not answer.").waitFor();
  await expect.poll(() => page.getByRole("link", { name: "How do tides work?", exact: true }).count()).toBe(1);
});

test("an answer that comes too late says who answered what, and the draft stays", async () => {
  fake.refuse = () => ({ status: 409, type: "urn:antiphon:problem:answered", title: "2/3.c1? was answered 'yes' by ada", detail: "" });
  fake.asks = [limit({ id: "2/3.c1?", kind: "question", also: [], options: [], text: "Which?" })];
  await open("/inbox");
  await page.getByLabel("Your answer").fill("A long draft");
  await page.getByRole("button", { name: /Answer/ }).click();
  await page.getByText("2/3.c1? was answered 'yes' by ada").waitFor();
  fake.asks = [];
  await page.getByText("Nothing else waits for you.").waitFor();
  await expect.poll(() => page.getByLabel("Your answer").inputValue()).toBe("A long draft");
  await page.getByRole("button", { name: "Leave it" }).click();
  await page.getByText("Nothing waits for you", { exact: true }).waitFor();
});

test("a run is started with a model, a policy, data, files and a project, and is told as a command", async () => {
  await open("/new?project=docs");
  await page.getByLabel("Message").fill("Don't stop");
  await page.getByText("At most $16.00, for 2,000,000 tokens; held before it is spent.").waitFor();
  await page.getByText(/^Its last .* tokens/).waitFor();
  await page.getByRole("region", { name: "Tools" }).getByText("asks you").waitFor();
  await page.getByRole("radio", { name: /^strict/ }).check({ force: true });
  await page.getByRole("region", { name: "Tools" }).getByText("denied").first().waitFor();
  await expect.poll(() => page.getByRole("radio", { name: /^open/ }).isDisabled()).toBe(true);
  await page.getByRole("checkbox", { name: "notes/tides.md" }).check();
  await page.getByLabel("Model").selectOption("local");
  await page.getByText("More: whom").click();
  await page.getByLabel(/^Data/).fill("{");
  await page.getByText(/Expected JSON/).waitFor();
  await expect.poll(() => page.getByRole("button", { name: /Start/ }).isDisabled()).toBe(true);
  await page.getByLabel(/^Data/).fill('{"a":1}');
  // Nobody is asked at a limit that is the team's own, which stops there.
  const breach = page.getByLabel("When it is used up");
  await expect.poll(() => breach.inputValue()).toBe("as the team has it: stop");
  await expect.poll(() => breach.isDisabled()).toBe(true);
  await page.getByLabel("Tokens, at most").fill("many");
  await page.getByText("Expected a whole number, 0 or more, got many").waitFor();
  await page.getByLabel("Tokens, at most").fill("1,000");
  await page.getByText("At most $0: 1,000 tokens that nobody bills, then it asks you.").waitFor();
  await expect.poll(() => breach.inputValue()).toBe("ask");
  await expect.poll(() => page.locator("aside .well").innerText()).toContain(`curl ${door.root}/runs`);
  await page.getByRole("button", { name: /Start/ }).click();
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]!.body).toEqual({
    team: "research", message: "Don't stop", project: "docs", data: { a: 1 }, model: "local", policy: "strict", files: ["notes/tides.md"],
    limits: { tokens: 1_000, on_breach: "ask" },
  });
});

test("a project: files are uploaded, saved and deleted, it is renamed, and deleted once its id was typed", async () => {
  fake.project.name = HOSTILE;
  fake.project.findings = [`finding ${HOSTILE}`];
  fake.stored.push({ path: `a/${HOSTILE}`, size: 5, modified: 1 });
  await open("/projects");
  await page.getByRole("link", { name: /<img/ }).click();
  const files = page.getByRole("region", { name: "Files" });
  await files.getByText("notes/tides.md").waitFor();
  await files.locator("input[type=file]").setInputFiles({ name: "new #1.txt", mimeType: "text/plain", buffer: Buffer.from("hello") });
  await until(() => fake.posted.some((each) => each.method === "PUT"));
  expect(fake.posted.find((each) => each.method === "PUT")).toMatchObject({ path: "/projects/docs/files/new%20%231.txt", body: { text: "hello" } });
  await files.getByRole("button", { name: "Delete notes/tides.md" }).click();
  await files.getByRole("button", { name: "Delete for good" }).click();
  await until(() => fake.posted.some((each) => each.method === "DELETE" && each.path === "/projects/docs/files/notes/tides.md"));
  await page.getByRole("region", { name: "Rules" }).getByText("path like reports/*").waitFor();
  // Its teams are its own: what is looked at is not what the server has under that name.
  await page.getByRole("region", { name: "Teams" }).getByRole("link", { name: "Teams" }).click();
  await page.getByText("Where it is written").click();
  await page.getByText("examples/research").waitFor();
  for (const each of ["/teams", "/teams/research", "/teams/research/source"]) expect(fake.queries).toContain(`${each}?project=docs`);
  await page.getByRole("link", { name: "docs", exact: true }).click();
  await page.getByRole("button", { name: "Rename" }).click();
  await page.getByLabel(/^Name/).fill("Handbook");
  await page.getByRole("button", { name: "Rename it" }).click();
  await until(() => fake.posted.some((each) => each.method === "PATCH" && each.body.name === "Handbook"));
  await page.locator(".toolbar").getByRole("button", { name: "Delete", exact: true }).click();
  const sure = page.getByRole("button", { name: "Delete it" });
  await expect.poll(() => sure.isDisabled()).toBe(true);
  await page.getByLabel(/to delete it/).fill("docs");
  await sure.click();
  await until(() => fake.posted.at(-1)!.method === "DELETE" && fake.posted.at(-1)!.path === "/projects/docs");
  await page.getByRole("heading", { name: "Projects" }).waitFor();
  await expect.poll(() => page.locator("img").count()).toBe(0);
});

test("a run is renamed and moved to a project", async () => {
  await open(live());
  await page.getByRole("button", { name: /About this run/ }).click();
  await page.getByLabel("Name", { exact: true }).fill("Tides");
  await page.getByRole("dialog").getByLabel("Project").selectOption("docs");
  await page.getByRole("button", { name: "Save" }).click();
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]).toMatchObject({ method: "PATCH", path: `/runs/${fake.run}`, body: { name: "Tides", project: "docs" } });
});

const plan = (modules: Record<string, unknown>) => {
  const { seq, at } = fake.frames.at(-1)!;
  fake.frames.push({ seq: seq + 1, at, changes: [{ type: "data_changed", activation: 0, set: { work_modules: modules } }] });
};
const MODULE = { name: `Tides ${HOSTILE}`, description: "Why they come", status: "pending" };

test("the plan is changed in place; nothing is shown as done before its record is there", async () => {
  plan({ WM_1: MODULE });
  fake.recorded = fake.frames.length;
  let say = (): void => undefined;
  fake.known = new Promise<void>((done) => { say = done; });
  await open(live("?tab=board"));
  const card = page.locator("article.card");
  await card.getByText("Why they come").waitFor();
  say();
  await card.getByLabel("Status of WM_1").selectOption("completed");
  await card.getByText("Sent").waitFor();
  await expect.poll(() => page.getByRole("region", { name: /Pending/ }).getByText("Tides <img").count()).toBe(1);
  plan({ WM_1: { ...MODULE, status: "completed" } });
  fake.record(1);
  await page.getByRole("region", { name: /Completed/ }).getByText("Tides <img").waitFor();
  fake.refuse = () => ({ status: 409, title: "WM_1 is being worked on; wait for its end", detail: "" });
  await page.getByRole("button", { name: "Edit WM_1" }).click();
  await page.getByLabel("What is to be done").fill("Better");
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText(/WM_1 is being worked on/).waitFor();
  await expect.poll(() => page.getByLabel("What is to be done").inputValue()).toBe("Better");
  fake.refuse = () => null;
  await page.getByRole("button", { name: "Leave it" }).click();
  await page.getByRole("button", { name: "Module", exact: true }).click();
  await page.getByRole("form", { name: "New module" }).getByLabel("Name").fill("Moon");
  await page.getByRole("button", { name: "Add" }).click();
  await until(() => fake.posted.length === 3);
  expect(fake.posted.map((each) => each.body)).toEqual([
    { action: "status_change", module_id: "WM_1", new_status: "completed" },
    { action: "update", module_id: "WM_1", name: MODULE.name, description: "Better" },
    { action: "create", name: "Moon", description: "" },
  ]);
  await page.locator("h1").click();
  await page.keyboard.press("ArrowLeft");
  await page.getByText(/As it was then/).waitFor();
  await expect.poll(() => page.getByLabel("Status of WM_1").count()).toBe(0);
});

test("a team's files are shown with their lines, and what is wrong stands at its line", async () => {
  const [first, second] = fake.source.files;
  second!.state = "changed";
  second!.text = `${"x".repeat(1_000_000)}\n${HOSTILE}\n`;
  second!.findings = [{ line: 9, column: 1, severity: "warning", text: `Past the end ${HOSTILE}` }];
  fake.source.files.push({ ...first!, name: "profiles/gone.yaml", state: "missing", text: "", size: 0 });
  fake.source.left_out = 2;
  await open("/teams");
  await page.getByText("Where it is written").click();
  await page.getByText("examples/research").waitFor();
  const lines = page.getByRole("group", { name: "Lines of profiles/principal.yaml" });
  await lines.locator(".ln", { hasText: "flow_decidr" }).waitFor();
  // The finding comes right after its line, and only that line is marked.
  await expect.poll(() => lines.locator(".ln[data-wrong] + .found").allInnerTexts()).toEqual([
    expect.stringMatching(/^Error in line 3\..*did you mean 'flow_decider'/s), expect.stringMatching(/^Warning in line 4\./s)]);
  await expect.poll(() => lines.locator(".ln").count()).toBe(4);
  await page.locator("summary", { hasText: "profiles/reader.yaml" }).click();
  const other = page.getByRole("group", { name: "Lines of profiles/reader.yaml" });
  await page.getByText(/This file has changed since the server loaded it/).waitFor();
  await other.getByRole("button", { name: "… show more of 1,000,000 characters" }).click();
  await other.getByText("Past the end <img").waitFor();
  await page.getByText(/This file is gone/).waitFor();
  await page.getByText("2 files more of this team are not shown").waitFor();
  await expect.poll(() => page.locator("img").count()).toBe(0);
  await expect.poll(() => page.locator("body").innerText()).not.toMatch(/\u202e/);
  fake.source = { place: "team.py:12 (team)", files: [], left_out: 0 };
  await page.reload();
  await page.getByText("Where it is written").click();
  await page.getByText("It is made in code: 3 agents, Partner, Principal, Reader.").waitFor();
  await page.getByText("team.py:12 (team)").waitFor();
});

test("a parked run says what was in flight, and why it cannot be resumed where its team is gone", async () => {
  fake.recorded = 7;
  fake.state = "suspended";
  await open(live());
  // Nothing of it looks as if it went on.
  await page.locator(".react-flow__node", { hasText: "Partner" }).getByText("parked").waitFor();
  await page.locator(".turn").getByText("it is asked again").waitFor();
  await expect.poll(() => page.locator(".caret, .node.on").count()).toBe(0);
  await page.getByText("1 thing in flight").click();
  await page.getByText("1 model call: asked again").waitFor();
  await page.getByRole("button", { name: "Resume" }).click();
  await until(() => fake.posted.length === 1);
  expect(fake.posted[0]!.path).toBe(`/runs/${fake.run}/resume`);
  fake.team = "";
  await page.reload();
  await page.getByText("Parked, and cannot be resumed here.").waitFor();
  await expect.poll(() => page.getByRole("button", { name: "Resume" }).count()).toBe(0);
});

/** Each view, by what stands in it alone; and at which widths, light or dark. */
const LOOKS = [[1280, true], [390, false], [1600, false]] as const;
const FEW = LOOKS.slice(0, 2);
/** What a narrow page shows of a run. */
const PANES: Record<string, string> = { call: "Inspect", board: "Transcript" };
type Looks = readonly (readonly [number, boolean])[];
/** Of a run that is looked at otherwise, what is looked at: the rest is as it was. */
const VIEWS: [string, string, string, Looks, string?][] = [
  ["runs", "/runs", ".runs tbody tr", [...LOOKS, [390, true]]], ["inbox", "/inbox", ".answer h1", LOOKS], ["new", "/new?project=docs", "aside .well", LOOKS],
  ["projects", "/projects", ".projects tbody tr", FEW], ["teams", "/teams", ".agents", LOOKS], ["project", "/projects/docs", ".files li", LOOKS],
  ["run", "/run/RUN", ".ask", LOOKS], ["call", "/run/RUN?effect=2/2.m1", ".p-look .stack", LOOKS, "#pane-look"],
  ["board", "/run/RUN?tab=board", ".card", LOOKS, "#pane-talk"],
  ["parked", "/run/RUN?", ".parked", FEW],
];

test("axe finds nothing serious in any view, at each width, light and dark", async () => {
  plan({ WM_1: MODULE, WM_2: { ...MODULE, status: "ongoing" }, WM_3: { ...MODULE, status: "completed" } });
  fake.recorded = fake.frames.length;
  fake.asks = [limit(), limit({ id: "2/3.c1?", kind: "approval", tool: "write_report", arguments: '{"path":"a.md"}', also: [] })];
  await open("/runs");
  let seen = 0;
  const look = async (message: string, part?: string): Promise<void> => {
    await expect.poll(() => serious(page, part), { message }).toEqual([]);
    seen++;
  };
  for (const [name, place, there, widths, part] of VIEWS) {
    if (name === "parked") {
      Object.assign(fake, { state: "suspended", recorded: 7 });
      await page.goto(`${door.root}/#/inbox`);
    }
    await page.goto(`${door.root}/#${place.replace("RUN", fake.run)}`);
    await page.locator(there).first().waitFor({ state: "attached" });
    if (name === "inbox") await page.locator(".item").first().click();
    if (name === "teams") {
      await page.getByText("Where it is written").click();
      await page.locator(".lines .found").first().waitFor();
    }
    for (const [width, dark] of widths) {
      await looks(page, { width, dark });
      if (width < 900 && name in PANES) await page.getByRole("tab", { name: PANES[name], exact: true }).click();
      await page.locator(".late").waitFor({ state: "detached" });
      if (process.env.LOOK) await page.screenshot({ path: `${process.env.LOOK}/${name}-${width}-${dark ? "dark" : "light"}.png` });
      await look(`${name} at ${width}, ${dark ? "dark" : "light"}`, part);
    }
  }
  await page.goto(`${door.root}/#/runs`);
  await page.locator(".runs tbody tr").first().waitFor();
  await page.keyboard.press("Control+k");
  await page.locator("#found [role=option]").first().waitFor();
  await look("find or do");
  expect(seen).toBe(30);
});
