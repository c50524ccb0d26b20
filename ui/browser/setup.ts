// Debian's Chromium, once for all tests: each has tabs of its own in it.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";
import type { TestProject } from "vitest/node";

const PLACES = [process.env.CHROMIUM ?? "", "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export default async function launch(project: TestProject): Promise<() => Promise<void>> {
  const server = await chromium.launchServer({
    executablePath: PLACES.find((each) => each && existsSync(each)) ?? "", args: ["--no-sandbox", "--force-color-profile=srgb"],
  });
  project.provide("browser", server.wsEndpoint());
  return () => server.close();
}

declare module "vitest" {
  export interface ProvidedContext {
    browser: string;
  }
}
