// An exported file in Debian's Chromium.
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { chromium, type Browser, type Page } from "playwright-core";
import { FOLDER } from "../tests/fixtures";

const PLACES = [process.env.CHROMIUM ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
export const BROWSER = PLACES.find((each) => each && existsSync(each)) ?? "";

export const launch = (): Promise<Browser> =>
  chromium.launch({ executablePath: BROWSER, args: ["--no-sandbox", "--force-color-profile=srgb"] });

export interface Opened {
  page: Page;
  /** What went wrong in the page, and every address that it asked for beside its own. */
  faults: string[];
}

export async function open(
  browser: Browser, name: string, { hash = "", width = 1600, dark = false } = {},
): Promise<Opened> {
  const page = await browser.newPage({
    viewport: { width, height: width < 900 ? 844 : 900 }, colorScheme: dark ? "dark" : "light", reducedMotion: "reduce",
  });
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(String(error)));
  page.on("console", (said) => { if (said.type() === "error") faults.push(said.text()); });
  page.on("request", (request) => {
    if (!request.url().startsWith("file:") && !request.url().startsWith("data:")) faults.push(request.url());
  });
  await page.goto(`file://${join(FOLDER, `${name}.html`)}#${hash}`);
  await page.locator(".p-lanes").waitFor();
  return { page, faults };
}

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
type Found = { id: string; impact: string; nodes: { html: string; failureSummary: string }[] };

/** What axe finds in a page that keeps people out: rules of WCAG A and AA, and where they are broken. */
export async function serious(page: Page): Promise<[string, string[]][]> {
  // What the driver evaluates is not bound by the page's policy.
  if (!(await page.evaluate("typeof axe === 'object'"))) await page.evaluate(`${AXE}; 0`);
  const found = await page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(what: object): Promise<{ violations: unknown[] }> } };
    return (await axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"] })).violations;
  }) as Found[];
  return found
    .filter((each) => each.impact === "serious" || each.impact === "critical")
    .map((each) => [each.id, each.nodes.slice(0, 3).map((node) => `${node.html.slice(0, 200)} ${node.failureSummary}`)]);
}
