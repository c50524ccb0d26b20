// The pictures of the documentation: `scripts/page.sh pictures`. Nothing is judged here; people look at them.
import { join } from "node:path";
import { expect, test } from "vitest";
import { Fake } from "../tests/fake";
import { fixture } from "../tests/fixtures";
import type { Frame } from "../src/state/wire";
import { launch, open } from "./page";

const FOLDER = process.env.PICTURES ?? "";
const FILES = [
  ["run", "research", "", [1600, 1280, 390]], ["past", "research", "record=55&effect=3/4.m1", [1600, 390]],
  ["question", "question", "", [1280]], ["many", "large", "record=4000", [1600]],
] as const;
const PAGES = [["runs", [1280, 390]], ["inbox", [1280, 390]], ["new", [1280, 390]], ["live", [1600, 390]]] as const;

test.skipIf(!FOLDER)("pictures of every view", async () => {
  const browser = await launch();
  for (const dark of [false, true]) {
    const look = dark ? "dark" : "light";
    for (const [name, file, hash, widths] of FILES) {
      for (const width of widths) {
        const { page } = await open(browser, file, { hash, width, dark });
        await page.waitForTimeout(500);
        await page.screenshot({ path: join(FOLDER, `${name}-${width}-${look}.png`) });
        await page.close();
      }
    }
    for (const [name, widths] of PAGES) {
      for (const width of widths) {
        const fake = new Fake(recent(fixture("question").frames), Infinity);
        fake.recorded = fake.frames.length;
        const written = fake.frames.flatMap((each) => each.changes).find((each) => each.type === "effect_started" && each.purpose === "approval");
        const json = written?.type === "effect_started" ? (written.arguments?.text ?? "") : "";
        fake.asks = [{ run_id: fake.run, name: "", team: "research", question: {
          id: "2/3.c1?", kind: "approval", agent: "Principal", tool: "write_report", text: "write_report needs approval",
          arguments: json, since: Date.now() / 1000 - 42, options: ["yes", "no", "always"],
        } }];
        const root = await fake.open();
        const page = await browser.newPage({ viewport: { width, height: width < 900 ? 844 : 900 }, colorScheme: look, reducedMotion: "reduce" });
        await page.goto(`${root}/#token=secret`);
        await page.goto(`${root}/#/${name === "live" ? `run/${fake.run}` : name}`);
        await page.waitForTimeout(700);
        await page.screenshot({ path: join(FOLDER, `${name}-${width}-${look}.png`) });
        await page.close();
        await fake.close();
      }
    }
  }
  await browser.close();
  expect(FOLDER).not.toBe("");
}, 180_000);

function recent(frames: Frame[]): Frame[] {
  const later = Date.now() / 1000 - frames.at(-1)!.at - 42;
  return frames.map((each) => ({ ...each, at: each.at + later }));
}
