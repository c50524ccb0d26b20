// Antiphon itself: servers that are killed, runs of other terminals. Most of it is waiting, so all go on at once.
import { afterAll, beforeAll, test, type TestContext } from "vitest";
import type { Browser, Page } from "playwright-core";
import { until as eventually } from "../tests/fake";
import { launch } from "./page";
import { Place, TOKEN, canStart, post, tab, until } from "./real";

let browser: Browser;
beforeAll(async () => { browser = await launch(); });
afterAll(() => browser.close());
/** A folder and processes of a test's own. */
function placeOf({ onTestFinished }: TestContext): Place {
  const place = new Place();
  onTestFinished(() => place.close());
  return place;
}

const real = test.skipIf(!canStart).concurrent;
const state = (page: Page, word: RegExp) => page.locator(".head .state", { hasText: word }).waitFor();

real("the server is killed in the middle of a reply and restarted: nothing is missing, nothing comes twice", async (context) => {
  const { expect } = context;
  const place = placeOf(context);
  const { server, root } = await place.serve();
  const { run_id: run } = await post(root, "/runs", { team: "clerk", message: "Write" });
  // It opens in the middle: what was said before is there.
  const page = await tab(browser, `${root}/#/run/${run}?token=${encodeURIComponent(TOKEN)}`);
  await page.locator(".open-text .said", { hasText: "Half an" }).waitFor();
  server.kill("SIGKILL");
  await page.getByText("Reconnecting.").waitFor();
  await expect.poll(() => page.locator(".head .state").innerText()).toContain("Running");
  place.goOn();
  await place.serve(new URL(root).port);
  await page.getByText("Half an answer.").first().waitFor();
  await state(page, /Completed/);
  await page.getByText("Reconnecting.").waitFor({ state: "detached" });
  await page.getByRole("tab", { name: "Records" }).click();
  await page.locator(".rec").nth(2).waitFor();
  const numbers = async () => (await page.locator(".rec .num:first-child").allInnerTexts()).map(Number);
  const last = Number(await page.locator(".pos b").innerText());
  await expect.poll(numbers).toEqual([...Array(last).keys()].map((each) => each + 1));
});

real("a run of another terminal appears, is watched in two tabs, and answered from one: a wrong edit first", async (context) => {
  const { expect } = context;
  const place = placeOf(context);
  const { root } = await place.serve();
  const token = `token=${encodeURIComponent(TOKEN)}`;
  const list = await tab(browser, `${root}/#/runs?${token}`);
  await list.getByText("No run yet").waitFor();
  const terminal = place.start(["run", "team.py:payer", "Pay ann"], true);
  const ended = new Promise((done) => terminal.on("exit", done));
  const row = list.locator(".runs tbody tr", { hasText: "Pay ann" });
  await row.filter({ hasText: "Asks you" }).waitFor();
  await row.getByRole("link").click();
  const ask = list.locator(".ask");
  await ask.waitFor();
  const other = await tab(browser, `${root}/#/inbox?${token}`);
  await other.getByRole("heading", { name: /payer asks to use pay/ }).waitFor();
  // What the tool does not take is refused where it stands, and the call still waits.
  await ask.getByRole("tab", { name: "Edit" }).click();
  await ask.getByLabel("euros").fill("three");
  await ask.getByRole("button", { name: /^Allow/ }).click();
  await ask.getByText("An argument is wrong; the call still waits.").waitFor();
  await ask.getByLabel("euros").fill("2");
  await ask.getByRole("button", { name: /Allow as edited/ }).click();
  await list.getByText("All paid.").first().waitFor();
  await list.getByText("paid 2 to ann").first().waitFor();
  await state(list, /Completed/);
  await other.getByText("Nothing waits for you").waitFor();
  const code = await ended;
  expect(code).toBe(0);
});

real("a read-only look: a run of another terminal is watched, and the page says which command answers it", async (context) => {
  const { expect } = context;
  const place = placeOf(context);
  const terminal = place.start(["run", "team.py:payer", "Pay ann"], true);
  await until(terminal, /pay/);
  const looking = place.start(["ui", "--no-open"]);
  const [, address] = await until(looking, /browser: (http:\S+)\s/);
  const page = await tab(browser, address!);
  await page.getByText("Read-only", { exact: true }).waitFor();
  await expect.poll(() => page.getByRole("link", { name: "New run" }).count()).toBe(0);
  await page.getByRole("link", { name: "Pay ann" }).click();
  await page.locator(".ask").getByText("Answer it in a terminal").waitFor();
  await expect.poll(() => page.locator(".ask").getByRole("button", { name: /Allow/ }).count()).toBe(0);
  const command = await page.locator(".ask code", { hasText: /answer \w{12}/ }).innerText();
  const answering = place.start([...command.split(/antiphon(?:\.cli)? /).at(-1)!.split(" "), "yes"]);
  const code = await new Promise((done) => answering.on("exit", done));
  expect(code).toBe(0);
  await page.getByText("All paid.").first().waitFor();
  await state(page, /Completed/);
  expect(page.url()).not.toContain("token");
  await page.close();
  looking.kill("SIGINT");
  await eventually(() => looking.exitCode === 0);
});

real("the plan of a team of profiles is changed on its board, and its files are shown", async (context) => {
  const place = placeOf(context);
  const { root } = await place.serve("0", ["plan=planners.py:team"]);
  const { run_id: run } = await post(root, "/runs", { team: "plan", message: "Why are there tides?" });
  const page = await tab(browser, `${root}/#/run/${run}?token=${encodeURIComponent(TOKEN)}`);
  await state(page, /Completed|Idle/);
  await post(root, `/runs/${run}/work-modules`, { action: "create", name: "Moon", description: "Look up" });
  await page.getByRole("tab", { name: "Board" }).click();
  const column = (name: RegExp) => page.getByRole("region", { name }).locator("article.card");
  await column(/Pending/).getByText("Moon").waitFor();
  await page.getByRole("button", { name: "Module", exact: true }).click();
  const form = page.getByRole("form", { name: "New module" });
  await form.getByLabel("Name").fill("Sun");
  await form.getByRole("button", { name: "Add" }).click();
  await column(/Pending/).getByText("Sun").waitFor();
  await page.getByRole("button", { name: "Edit WM_1" }).click();
  await page.getByLabel("What is to be done").fill("Look higher");
  await page.getByRole("button", { name: "Save" }).click();
  await column(/Pending/).getByText("Look higher").waitFor();
  await page.getByLabel("Status of WM_1").selectOption("completed");
  await column(/Completed/).getByText("Moon").waitFor();
  // What the server holds is what the board shows.
  await page.reload();
  await column(/Completed/).getByText("Look higher").waitFor();
  await column(/Pending/).getByText("Sun").waitFor();
  await page.goto(`${root}/#/teams`);
  await page.getByText("Where it is written").click();
  await page.getByText("planners.py:6 (team)").waitFor();
  await page.locator("summary", { hasText: "profiles/Partner.yaml" }).click();
  await page.getByRole("group", { name: "Lines of profiles/Partner.yaml" }).getByText("name: Partner").waitFor();
});
