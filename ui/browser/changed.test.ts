// What tools made of files: named under the call, and shown line by line where one looks.
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Door, Fake } from "../tests/fake";
import { fixture } from "../tests/fixtures";
import { launch, looks, open, serious, served, tabOf, type Tab } from "./page";

let browser: Browser;
let tab: Tab;
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

test("changed files stand under their call, and lead to what differs in them", async () => {
  const { page, faults } = await open(tab, "repair");
  const named = page.getByRole("list", { name: "Changed files" });
  await expect.poll(() => named.allInnerTexts()).toHaveLength(3);
  await expect.poll(() => named.nth(0).innerText()).toMatch(/tides\/height\.py\s+\+3 −1/);
  await expect.poll(() => named.nth(1).innerText()).toMatch(/tests\/test_height\.py\s+new \+5/);
  await expect.poll(() => named.nth(2).innerText()).toMatch(/run\.sh[^]*docs\/old\.md\s+gone −3[^]*60 more files/);
  await named.nth(0).getByRole("button").click();
  const look = page.locator(".p-look");
  await expect.poll(() => look.locator(".diff .del").allInnerTexts()).toEqual([expect.stringContaining("math.sin(hour / 12)")]);
  await expect.poll(() => look.locator(".diff .add .n").allInnerTexts()).toEqual(["5", "7", "10"]);
  await named.nth(2).getByRole("button", { name: "60 more files" }).click();
  await look.getByText("mode 755").waitFor();
  await look.getByText("What it holds is as before.").waitFor();
  await look.getByText("No text that can be shown, 256 bytes").waitFor();
  await look.getByText("data/59.csv").waitFor();
  for (const [width, dark] of [[1600, true], [1280, false], [390, false]] as const) {
    await looks(page, { width, dark });
    await expect.poll(() => serious(page)).toEqual([]);
  }
  expect(faults).toEqual([]);
});

test("what is cut or left out of a live run's changed files is fetched when it is asked for", async () => {
  const { frames } = fixture("repair");
  const fake = new Fake(frames, Infinity);
  fake.whole = (frame) => ({
    ...frame,
    changes: frame.changes.map((each) => each.type === "files_changed"
      ? { ...each, left_out: 0, files: [{ path: "<img src=x onerror=document.title='owned'>\u202e", folder: "/f", change: "created", after: { text: "all\nof it\n" } }] }
      : each),
  });
  fake.recorded = frames.length;
  door.behind = fake;
  await served(tab, door.root, `/run/${fake.run}?effect=1/2.c1`, { width: 1600 });
  const look = tab.page.locator(".p-look");
  await look.getByRole("button", { name: "Show all of it, with 14 more files" }).click();
  await expect.poll(() => look.locator(".diff .add").allInnerTexts()).toEqual([expect.stringContaining("all"), expect.stringContaining("of it")]);
  await look.getByText("<img src=x onerror=document.title='owned'>\\u202e").waitFor();
  await expect.poll(() => tab.page.title()).not.toBe("owned");
});
