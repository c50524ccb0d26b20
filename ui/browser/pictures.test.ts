// The pictures of the documentation: `scripts/page.sh pictures`. Nothing is judged here; people look at them.
// A new view is one line of SCENES. ONLY=runs,inbox takes these alone.
import { readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { expect, test } from "vitest";
import { Fake } from "../tests/fake";
import { FOLDER as FILES, fixture } from "../tests/fixtures";
import type { Frame } from "../src/state/wire";
import { launch } from "./page";

const FOLDER = process.env.PICTURES ?? "";
const ONLY = (process.env.ONLY ?? "").split(",").filter(Boolean);
const WIDTHS = [1600, 1280, 390];
const QUALITY = 0.62;

interface Scene {
  name: string;
  /** An exported file, or what stands after `#` of a server's page; of a run `RUN`. */
  file?: string;
  hash?: string;
  /** Of a server: the run that it has, and how many of its records. */
  run?: string;
  records?: number;
  /** Nobody drives it. */
  parked?: boolean;
  /** It only looks. */
  looks?: boolean;
  /** What is done before the picture. */
  act?: (page: Page, fake: Fake, width: number) => Promise<unknown>;
}

const MODULES = {
  WM_1: { name: "Effect contracts", description: "What becomes of a call by its effect", status: "completed" },
  WM_2: { name: "Recovery of a run", description: "What is read again, and what is not", status: "ongoing" },
  WM_3: { name: "Questions that were open", description: "Who is asked again, and how", status: "pending" },
};
const narrow = (pane: string) => async (page: Page, _: Fake, width: number) =>
  width < 900 && page.getByRole("tab", { name: pane, exact: true }).click();

const SCENES: Scene[] = [
  { name: "runs", hash: "/runs" },
  { name: "inbox", hash: "/inbox" },
  { name: "new", hash: "/new", act: (page) => page.getByLabel("Message").fill("What happens to a tool call when the process dies?") },
  { name: "teams", hash: "/teams" },
  { name: "projects", hash: "/projects" },
  { name: "project", hash: "/projects/docs" },
  {
    name: "board", hash: "/run/RUN?tab=board", run: "research", records: 62, act: (page, fake) => {
      const { seq, at } = fake.frames[fake.recorded - 1]!;
      fake.frames.splice(fake.recorded, Infinity, { seq: seq + 1, at, changes: [{ type: "data_changed", activation: 0, set: { work_modules: MODULES } }] });
      fake.record(1);
      return page.locator(".card").first().waitFor();
    },
  },
  { name: "parked", hash: "/run/RUN", run: "research", records: 62, parked: true },
  {
    name: "working", hash: "/run/RUN", run: "research", records: 62, act: async (page, fake) => {
      await page.waitForTimeout(100);
      for (const each of fake.openModels()) {
        fake.delta({ effect_id: each, kind: "reasoning", text: "I read around the best hit before I answer.", offset: 0 });
        fake.delta({ effect_id: each, kind: "text", text: "What was in flight is resolved by the tool's own contract: a `read` runs again, and", offset: 0 });
      }
    },
  },
  {
    name: "asks", hash: "/run/RUN", act: async (page) => {
      const ask = page.locator(".ask");
      await ask.getByRole("tab", { name: "Edit" }).click();
      await ask.getByLabel("path").fill("reports/when-a-process-dies.md");
      await ask.getByRole("tab", { name: "Difference" }).click();
      await ask.scrollIntoViewIfNeeded();
    },
  },
  { name: "answered", hash: "/run/RUN?effect=2/3.c1", run: "research", act: narrow("Inspect") },
  {
    name: "tools", hash: "/run/RUN?effect=1/2.c1", run: "at-sea", records: 33, act: async (page, _, width) => {
      if (width < 900) await page.getByRole("tab", { name: "Transcript", exact: true }).click();
      await page.locator(".inside").waitFor();
    },
  },
  {
    name: "labels", hash: "/run/RUN", run: "mail", act: async (page, _, width) => {
      if (width < 900) await page.getByRole("tab", { name: "Transcript", exact: true }).click();
      await page.locator(".ask").getByRole("button", { name: /^Always/ }).click();
      await page.getByLabel("to: which").selectOption("same");
      await page.locator(".ask").scrollIntoViewIfNeeded();
    },
  },
  { name: "look", hash: "/run/RUN", looks: true },
  { name: "run", file: "research" },
  { name: "call", file: "research", hash: "effect=2/3.m1", act: narrow("Inspect") },
  { name: "past", file: "research", hash: "record=55&effect=3/4.m1", act: narrow("Lanes") },
  { name: "many", file: "large", hash: "record=4000", act: narrow("Lanes") },
];

test.skipIf(!FOLDER)("pictures of every view", async () => {
  const browser = await launch();
  const scenes = SCENES.filter((each) => !ONLY.length || ONLY.includes(each.name));
  const written = new Set<string>();
  for (const scene of scenes) {
    for (const width of WIDTHS) {
      for (const look of ["light", "dark"] as const) {
        const name = `${scene.name}-${width}-${look}.webp`;
        writeFileSync(join(FOLDER, name), await taken(browser, scene, width, look));
        written.add(name);
      }
    }
  }
  await browser.close();
  const there = readdirSync(FOLDER).filter((each) => /\.(png|webp)$/.test(each));
  if (!ONLY.length) for (const each of there) if (!written.has(each)) rmSync(join(FOLDER, each));
  const bytes = readdirSync(FOLDER).reduce((all, each) => all + statSync(join(FOLDER, each)).size, 0);
  process.stdout.write(`${written.size} pictures taken; all have ${(bytes / 1e6).toFixed(1)} MB\n`);
  expect(bytes).toBeLessThan(4_500_000);
}, 900_000);

async function taken(browser: Browser, scene: Scene, width: number, look: "light" | "dark"): Promise<Buffer> {
  const shown = fixture(scene.run ?? "question");
  const fake = new Fake(recent(shown.frames, scene.records), Infinity);
  fake.held = shown.held;
  if (scene.parked) fake.state = "suspended";
  fake.recorded = scene.records ?? fake.frames.length;
  const asked = fake.frames.flatMap((each) => each.changes).find((each) => each.type === "effect_started" && each.purpose === "approval");
  fake.asks = scene.looks || scene.run ? [] : [{ run_id: fake.run, name: "", team: "research", question: {
    id: "2/3.c1?", kind: "approval", agent: "Principal", tool: "write_report", text: "write_report needs approval",
    arguments: asked?.type === "effect_started" ? (asked.arguments?.text ?? "") : "", since: Date.now() / 1000 - 42, options: ["yes", "no", "always"],
  } }];
  if (scene.looks) {
    fake.drives = false;
    fake.scopes = ["read"];
    fake.commands = { answer: "antiphon answer {run}", resume: "antiphon runs resume {run} TARGET", ask: "antiphon chat TARGET --resume {run}" };
  }
  const root = await fake.open();
  const page = await browser.newPage({ viewport: { width, height: width < 900 ? 844 : 900 }, colorScheme: look, reducedMotion: "reduce" });
  const hash = (scene.hash ?? "").replace("RUN", fake.run);
  await page.goto(scene.file ? `file://${join(FILES, `${scene.file}.html`)}#${hash}` : `${root}/#${hash}${hash.includes("?") ? "&" : "?"}token=secret`);
  await page.locator(".head, h1").first().waitFor();
  await page.waitForTimeout(400);
  await scene.act?.(page, fake, width);
  await page.waitForTimeout(500);
  const small = await compressed(page, await page.screenshot());
  await page.close();
  await fake.close();
  return small;
}

/** A picture as WebP, which the browser itself can write: a third of the size. */
async function compressed(page: Page, png: Buffer): Promise<Buffer> {
  const blank = await page.context().browser()!.newPage();
  const url = await blank.evaluate(async ([data, quality]) => {
    const picture = await createImageBitmap(await (await fetch(data)).blob());
    const canvas = Object.assign(document.createElement("canvas"), { width: picture.width, height: picture.height });
    canvas.getContext("2d")!.drawImage(picture, 0, 0);
    return canvas.toDataURL("image/webp", quality);
  }, [`data:image/png;base64,${png.toString("base64")}`, QUALITY] as const);
  await blank.close();
  return Buffer.from(url.split(",")[1]!, "base64");
}

/** The same as if its last record were a moment ago. */
function recent(frames: Frame[], records = frames.length): Frame[] {
  const later = Date.now() / 1000 - frames[records - 1]!.at - (records < frames.length ? 1.2 : 42);
  return frames.map((each) => ({ ...each, at: each.at + later }));
}
