// An exported file in Debian's Chromium.
import { existsSync } from "node:fs";
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
