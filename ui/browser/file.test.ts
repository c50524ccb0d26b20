// What people do in an exported file. A file is read once for the tests that follow one another in it.
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { until } from "../tests/fake";
import { launch, open, serious, tabOf, type Tab } from "./page";

let browser: Browser;
let tab: Tab;
beforeAll(async () => {
  browser = await launch();
  tab = await tabOf(browser);
});
afterAll(() => browser.close());

const record = (page: Page) => page.locator(".pos b").innerText();
const looked = (page: Page) => page.locator(".p-look .bar-top code").innerText();

/** axe finds nothing serious in it at a place, width and light. */
function accessible(name: string, hash: string, width: number, dark: boolean): void {
  test(`axe finds nothing serious: ${name} ${hash} at ${width}, ${dark ? "dark" : "light"}`, async () => {
    const { page } = await open(tab, name, { hash, width, dark });
    await page.locator(".react-flow__node").first().waitFor({ state: "attached" });
    await page.locator(hash.includes("tab=records") ? ".rec" : ".turn").first().waitFor();
    await expect.poll(() => serious(page)).toEqual([]);
  });
}

/** Rows of the transcript that overlap, or leave a gap, by how much; all of their long texts opened. */
function flush(name: string, hash: string): void {
  test(`rows of the transcript never overlap and leave no gap, also when one of them grows: ${name}`, async () => {
    const { page } = await open(tab, name, { hash });
    await page.locator(".talk > div > div").nth(1).waitFor();
    for (const each of await page.locator(".talk").getByRole("button", { name: /show more of/ }).all()) await each.click().catch(() => undefined);
    await expect.poll(() => page.locator(".talk > div > div").evaluateAll((rows) => {
      const boxes = rows.map((each) => each.getBoundingClientRect());
      return boxes.slice(1).map((each, index) => Math.round(Math.abs(each.top - boxes[index]!.bottom))).filter((gap) => gap > 1);
    })).toEqual([]);
  });
}

test("an exported file shows the question, its state, what it cost, and who was at work", async () => {
  const { page, faults } = await open(tab, "research");
  await expect.poll(() => page.locator("h1").innerText()).toContain("What happens to a tool call");
  await expect.poll(() => page.locator(".head .state").innerText()).toContain("Completed");
  await expect.poll(() => page.locator(".meters").innerText()).toMatch(/Tokens\s+[\d,]+ of 150k/);
  await page.locator(".react-flow__node", { hasText: "Reader #3" }).waitFor();
  await expect.poll(() => page.locator(".turn .name").allInnerTexts()).toContain("Principal");
  expect(faults).toEqual([]);
});

test("a click on a bar looks at it, and every pane follows", async () => {
  const { page } = await open(tab, "research");
  const box = (await page.locator(".tracks").boundingBox())!;
  // Reader #2's first model call failed: its bar is the first in the fourth lane.
  await page.mouse.click(box.x + box.width * 0.26, box.y + 3 * 30 + 10);
  await expect.poll(() => looked(page)).toBe("4/1.m1");
  await expect.poll(() => page.locator(".p-look .insp").innerText()).toContain("The provider is overloaded");
  await expect.poll(() => page.locator(".turn.sel .name").innerText()).toBe("Reader #2");
  await expect.poll(() => page.url()).toContain("effect=4%2F1.m1");
  await page.goBack();
  await until(async () => (await looked(page)) === "1/2.m1");
});

test("a drag over the lanes scrubs, and every pane is as it was then", async () => {
  const { page } = await open(tab, "research");
  const box = (await page.locator(".strip .over").boundingBox())!;
  await page.mouse.move(box.x + box.width * 0.9, box.y + 10);
  await page.mouse.down();
  for (const at of [0.8, 0.6, 0.4, 0.3]) await page.mouse.move(box.x + box.width * at, box.y + 10);
  await page.mouse.up();
  await expect.poll(async () => Number(await record(page))).toSatisfy((seq: number) => seq > 20 && seq < 60);
  await expect.poll(() => page.locator(".head .state").innerText()).toContain("Running at +");
  await expect.poll(() => page.locator(".node.on").count()).toBeGreaterThan(0);
  await page.keyboard.press("l");
  await expect.poll(() => record(page)).toBe("100");
  await expect.poll(() => page.locator(".head .state").innerText()).toContain("Completed");
});

test("everything is reached with keys", async () => {
  const { page } = await open(tab, "research");
  await page.keyboard.press("Home");
  await expect.poll(() => record(page)).toBe("1");
  await page.keyboard.press("ArrowRight");
  await expect.poll(() => record(page)).toBe("2");
  await page.keyboard.press("Shift+ArrowRight");
  await expect.poll(() => record(page)).toBe("12");
  await page.keyboard.press("]");
  await expect.poll(() => looked(page)).toBe("4/1.m1");
  await page.keyboard.press("]");
  await expect.poll(() => looked(page)).toBe("4/1.w1");
  await page.keyboard.press("[");
  await expect.poll(() => looked(page)).toBe("4/1.m1");
  await page.keyboard.press("Alt+ArrowRight");
  await expect.poll(() => looked(page)).toBe("4/2.m1");
  await page.keyboard.press("Space");
  await page.getByRole("button", { name: "Pause" }).waitFor();
  await page.keyboard.press("Space");
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "detached" });
  await page.keyboard.press("3");
  await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute("role"))).toBe("slider");
});

test("a link leads to a record, a call and a list", async () => {
  const { page } = await open(tab, "research", { hash: "record=55&effect=5/2.c1&tab=records" });
  await expect.poll(() => record(page)).toBe("55");
  await expect.poll(() => looked(page)).toBe("5/2.c1");
  await expect.poll(() => page.locator(".rec[aria-current=true]").innerText()).toContain("55");
  await page.locator(".rec", { hasText: "retry" }).first().click();
  await expect.poll(() => looked(page)).toBe("4/1.w1");
});

test("the policy of the file lets no other program run, and nothing be fetched", async () => {
  const { page } = await open(tab, "research");
  const done = await page.evaluate(async () => {
    const script = document.createElement("script");
    script.textContent = "document.title = 'owned'";
    document.body.append(script);
    const fetched = await fetch("https://example.invalid/").then(() => true, () => false);
    return [document.title, fetched];
  });
  expect(done).toEqual(["A run · Antiphon", false]);
  const policy = await page.locator("meta[http-equiv]").getAttribute("content");
  expect(policy).toContain("default-src 'none'");
  expect(policy).not.toContain("unsafe");
});

accessible("research", "", 1600, false);
accessible("research", "record=55&effect=4/4.m1", 1280, true);
accessible("research", "tab=records", 1280, false);

/** Milliseconds of forty steps through the records, the quickest first. */
async function steps(name: string): Promise<number[]> {
  const { page, faults } = await open(tab, name);
  await page.locator(".turn").first().waitFor();
  const found = await page.evaluate(async () => {
    const took: number[] = [];
    const frame = () => new Promise((done) => requestAnimationFrame(done));
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "Home", bubbles: true }));
    await frame();
    for (let step = 0; step < 40; step++) {
      const before = performance.now();
      document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", shiftKey: true, bubbles: true }));
      await Promise.resolve();
      took.push(performance.now() - before);
      await frame();
    }
    return took.sort((one, other) => one - other);
  });
  expect(faults).toEqual([]);
  return found;
}

test("a step through 10,000 records costs little more than one through a hundred", async () => {
  const [few, many] = [await steps("research"), await steps("large")];
  expect(many[20]! / few[20]!).toBeLessThan(10);
});

test("words are found in all of the run, and lead to where they stand", async () => {
  const { page } = await open(tab, "large");
  await page.keyboard.press("Control+f");
  await page.getByLabel("Find in this run").fill("effect contracts 17");
  await page.getByRole("status").filter({ hasText: /^10$/ }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByText("1 of 10", { exact: true }).waitFor();
  await expect.poll(() => page.locator(".p-look .insp").innerText()).toContain("Effect contracts 17");
  await page.keyboard.press("Shift+Enter");
  await page.getByText("10 of 10", { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await expect.poll(() => page.getByLabel("Find in this run").count()).toBe(0);
});

flush("large", "record=4000");

test("hostile texts are shown, and nothing of them acts", async () => {
  const { page, faults } = await open(tab, "hostile");
  await expect.poll(() => page.title()).toBe("hostile · Antiphon");
  await expect.poll(() => page.locator("img, iframe, object").count()).toBe(0);
  const text = () => page.locator("body").innerText();
  await expect.poll(text).toContain("</script><script>document.title='owned'</script><img src=x");
  await expect.poll(text).toContain("\\u202egnp.exe");
  await expect.poll(text).not.toMatch(/[\u202e\u2066\u0000\u001b]/);
  await page.locator(".react-flow__node", { hasText: "Guest" }).click();
  await page.getByRole("button", { name: /show more of/ }).first().click();
  await expect.poll(() => page.title()).toBe("hostile · Antiphon");
  expect(faults).toEqual([]);
});

flush("hostile", "");
accessible("hostile", "", 1280, true);

test("what asks a person is there, with the command that answers it", async () => {
  const { page } = await open(tab, "question");
  await expect.poll(() => page.locator(".head .state").innerText()).toContain("Asks you");
  await expect.poll(() => page.locator(".ask").innerText()).toContain("asks to use write_report");
  await expect.poll(() => page.locator(".ask").innerText()).toMatch(/antiphon answer \w{12}/);
});

flush("question", "record=60");
accessible("question", "", 1600, true);
accessible("question", "", 390, false);
