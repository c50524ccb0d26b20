// Tabs of the browser that all tests share, and exported files in them.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { inject } from "vitest";
import { FOLDER } from "../tests/fixtures";

/** The browser that runs already. To close it closes what was opened through it. */
export const launch = (): Promise<Browser> => chromium.connect(inject("browser"));

export interface Tab {
  page: Page;
  /** What went wrong in the page, and every address that an exported file asked for beside its own. */
  faults: string[];
  /** The exported file that it shows; empty for none. */
  shown: string;
}
export interface Look {
  width?: number;
  dark?: boolean;
}

export async function tabOf(browser: Browser): Promise<Tab> {
  const page = await browser.newPage({ viewport: { width: 1600, height: 900 }, colorScheme: "light", reducedMotion: "reduce" });
  const tab: Tab = { page, faults: [], shown: "" };
  page.on("pageerror", (error) => tab.faults.push(String(error)));
  page.on("console", (said) => { if (said.type() === "error" && tab.shown) tab.faults.push(said.text()); });
  page.on("request", (request) => {
    if (tab.shown && !request.url().startsWith("file:") && !request.url().startsWith("data:")) tab.faults.push(request.url());
  });
  return tab;
}

/** Show it as wide, light or dark. */
export async function looks(page: Page, { width = 1600, dark = false }: Look): Promise<void> {
  if (page.viewportSize()?.width !== width) await page.setViewportSize({ width, height: width < 900 ? 844 : 900 });
  await page.emulateMedia({ colorScheme: dark ? "dark" : "light" });
}

/** Show an exported file at a place in it; one that is shown goes there without being read anew. */
export async function open(tab: Tab, name: string, { hash = "", ...look }: Look & { hash?: string } = {}): Promise<Tab> {
  const { page } = tab;
  await looks(page, look);
  // A server's page says that its stream was cut; what goes wrong from now on is the file's.
  if (!tab.shown) await page.goto("about:blank");
  tab.faults.length = 0;
  if (tab.shown === name) {
    await page.evaluate((place) => {
      history.replaceState(null, "", `#${place}`);
      window.dispatchEvent(new PopStateEvent("popstate"));
    }, hash);
  } else {
    tab.shown = name;
    await page.goto(`file://${join(FOLDER, `${name}.html`)}#${hash}`);
  }
  await page.locator(".p-lanes").waitFor();
  return tab;
}

/** Load a server's page anew, at a place in it. */
export async function served(tab: Tab, root: string, hash: string, look: Look = {}): Promise<Page> {
  const { page } = tab;
  const address = `${root}/#${hash}${hash.includes("?") ? "&" : "?"}token=secret`;
  await looks(page, look);
  // In the same process: what was on the page goes, its program need not be started from nothing.
  tab.shown = "";
  const there = page.url().startsWith(`${root}/`);
  if (there) {
    // The page that is left writes where it was into its address a moment after the last key: no more.
    await page.evaluate((to) => {
      history.replaceState(null, "", to);
      history.replaceState = history.pushState = () => undefined;
    }, address);
  }
  tab.faults.length = 0;
  await (there ? page.reload() : page.goto(address));
  return page;
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
type Found = { id: string; impact: string; nodes: { html: string; failureSummary: string }[] };

/** What axe finds in a page, or a part of it, that keeps people out: rules of WCAG A and AA, and where they are broken. */
export async function serious(page: Page, part = "html"): Promise<[string, string[]][]> {
  // What the driver evaluates is not bound by the page's policy.
  if (!(await page.evaluate("typeof axe === 'object'"))) await page.evaluate(`${AXE}; 0`);
  const found = await page.evaluate(async (within) => {
    const { axe } = window as unknown as { axe: { run(where: object, what: object): Promise<{ violations: unknown[] }> } };
    return (await axe.run({ include: [within] }, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], resultTypes: ["violations"] })).violations;
  }, part) as Found[];
  return found
    .filter((each) => each.impact === "serious" || each.impact === "critical")
    .map((each) => [each.id, each.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`)]);
}
