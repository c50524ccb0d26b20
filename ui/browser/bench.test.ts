// How fast the page is: `scripts/page.sh bench`. It judges nothing; the figures are told with what else the machine does.
import { loadavg, cpus } from "node:os";
import type { Page } from "playwright-core";
import { expect, test } from "vitest";
import { Fake, until } from "../tests/fake";
import { FOLDER, fixture } from "../tests/fixtures";
import { launch } from "./page";

const STEPS = 100;
const rows: [string, string, string][] = [];
const ms = (value: number): string => `${value < 10 ? value.toFixed(1) : Math.round(value)} ms`;
const at = (sorted: number[], part: number): number => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!;

/** From now on the page keeps every task longer than 50 ms; and when a selector was there first. */
const watched = (page: Page, selector: string): Promise<unknown> => page.addInitScript((wanted) => {
  const kept = window as unknown as { tasks: number[]; first: number };
  kept.tasks = [];
  kept.first = 0;
  new PerformanceObserver((list) => { for (const each of list.getEntries()) kept.tasks.push(each.duration); }).observe({ type: "longtask", buffered: true });
  new MutationObserver((_, observer) => {
    if (!document.querySelector(wanted)) return;
    observer.disconnect();
    requestAnimationFrame(() => setTimeout(() => { kept.first = performance.now(); }));
  }).observe(document, { subtree: true, childList: true });
}, selector);
const first = async (page: Page): Promise<number> => {
  await page.waitForFunction(() => (window as unknown as { first: number }).first > 0);
  return page.evaluate(() => (window as unknown as { first: number }).first);
};
const longest = (page: Page): Promise<number> =>
  page.evaluate(() => Math.max(0, ...(window as unknown as { tasks: number[] }).tasks));
const forget = (page: Page): Promise<void> => page.evaluate(() => { (window as unknown as { tasks: number[] }).tasks = []; });

/** Milliseconds that the page's own thread has worked: what else the machine does is not in it. */
async function thread(page: Page): Promise<() => Promise<number>> {
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  return async () => {
    const { metrics } = await session.send("Performance.getMetrics");
    return (metrics.find((each) => each.name === "TaskDuration")?.value ?? 0) * 1000;
  };
}

/** Each step until its picture is there, sorted. */
const scrubbed = (page: Page, key: string, shift: boolean): Promise<number[]> => page.evaluate(async ([key, shift, steps]) => {
  const took: number[] = [];
  for (let step = 0; step < steps; step++) {
    const before = performance.now();
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key, shiftKey: shift, bubbles: true }));
    await new Promise<void>((done) => requestAnimationFrame(() => {
      const after = new MessageChannel();
      after.port1.onmessage = () => done();
      after.port2.postMessage(0);
    }));
    took.push(performance.now() - before);
  }
  return took.sort((one, other) => one - other);
}, [key, shift, STEPS] as const);

/** As many screens down, and from the end up again, each until its picture is there, sorted. */
const scrolled = (page: Page, box: string): Promise<number[]> => page.evaluate(async ([box, steps]) => {
  const element = document.querySelector(box)!;
  const took: number[] = [];
  element.scrollTop = 0;
  for (let step = 0; step < steps; step++) {
    const before = performance.now();
    const end = element.scrollTop + element.clientHeight >= element.scrollHeight - 1;
    element.scrollTop = end ? 0 : element.scrollTop + element.clientHeight;
    await new Promise<void>((done) => requestAnimationFrame(() => {
      const after = new MessageChannel();
      after.port1.onmessage = () => done();
      after.port2.postMessage(0);
    }));
    took.push(performance.now() - before);
  }
  return took.sort((one, other) => one - other);
}, [box, STEPS] as const);

test.skipIf(!process.env.BENCH)("figures", { timeout: 180_000 }, async () => {
  const load = loadavg()[0]!;
  const browser = await launch();
  const blank = async (selector: string): Promise<Page> => {
    const page = await browser.newPage({ viewport: { width: 1600, height: 900 } });
    await watched(page, selector);
    return page;
  };
  const small = new Fake(fixture("question").frames, Infinity);
  small.recorded = small.frames.length;
  let root = await small.open();
  for (const [what, hash, selector] of [["runs", "/runs", ".runs tbody tr"], ["a run", `/run/${small.run}`, ".turn"]] as const) {
    const page = await blank(selector);
    await page.goto(`${root}/#${hash}${hash.includes("?") ? "&" : "?"}token=secret`);
    rows.push([`first useful picture: ${what}`, ms(await first(page)), "1 s"]);
    await page.close();
  }
  await small.close();

  const large = fixture("large").frames;
  const many = new Fake(large, Infinity);
  many.recorded = large.length;
  root = await many.open();
  let page = await blank(".turn");
  await page.goto(`${root}/#/run/${many.run}?token=secret`);
  await first(page);
  await page.locator(".pos", { hasText: `of ${large.length}` }).waitFor();
  rows.push([`${large.length} records from a server`, ms(await page.evaluate(() => performance.now())), "2 s"]);
  rows.push(["… longest task", ms(await longest(page)), "100 ms"]);
  await page.close();
  await many.close();

  page = await blank(".turn");
  await page.goto(`file://${FOLDER}/large.html`);
  rows.push([`${large.length} records from a file`, ms(await first(page)), "2 s"]);
  let worked = await thread(page);
  for (const [what, key, shift] of [["one record", "ArrowLeft", false], ["ten records", "ArrowLeft", true], ["ten forward", "ArrowRight", true]] as const) {
    await forget(page);
    const before = await worked();
    const took = await scrubbed(page, key, shift);
    rows.push([`a step of ${what}, work of the page's thread`, ms((await worked() - before) / STEPS), "50 ms"]);
    rows.push(["… until the picture is there, median", ms(at(took, 0.5)), "50 ms"]);
    rows.push(["… of 100 the 95th", ms(at(took, 0.95)), ""]);
    rows.push(["… longest task", ms(await longest(page)), "100 ms"]);
  }
  for (const [what, box] of [["transcript", ".talk"], ["list of records", ".records"]] as const) {
    if (box === ".records") await page.getByRole("tab", { name: "Records" }).click();
    await page.locator(box).waitFor();
    await forget(page);
    const before = await worked();
    const took = await scrolled(page, box);
    rows.push([`scrolling the ${what} by a screen, work of the page's thread`, ms((await worked() - before) / STEPS), "50 ms"]);
    rows.push(["… until the picture is there, median", ms(at(took, 0.5)), "50 ms"]);
    rows.push(["… of 100 the 95th", ms(at(took, 0.95)), ""]);
    rows.push(["… longest task", ms(await longest(page)), "100 ms"]);
  }
  await page.close();

  const live = new Fake(fixture("question").frames, 7);
  root = await live.open();
  page = await blank(".turn");
  await page.goto(`${root}/#/run/${live.run}?token=secret`);
  await until(() => live.connections === 1);
  await forget(page);
  worked = await thread(page);
  const idle = await worked();
  const began = performance.now();
  let sent = 0;
  while (sent < 10_000) {
    const due = Math.min(10_000, (performance.now() - began) * 2);
    for (; sent < due; sent++) live.delta({ effect_id: "1/1.m1", kind: "text", text: "word ", offset: 5 * sent });
    await new Promise((done) => { setTimeout(done, 4); });
  }
  const last = performance.now();
  live.delta({ effect_id: "1/1.m1", kind: "text", text: "the last", offset: 5 * sent });
  await page.locator(".open-text .said", { hasText: "the last" }).waitFor();
  rows.push([`2,000 pieces a second for ${((last - began) / 1000).toFixed(1)} s: behind at the end`, ms(performance.now() - last), ""]);
  rows.push(["… work of the page's thread, of each second", ms((await worked() - idle) / ((performance.now() - began) / 1000)), "1,000 ms"]);
  rows.push(["… longest task", ms(await longest(page)), "100 ms"]);
  await live.close();
  await browser.close();
  expect(rows.length).toBeGreaterThan(10);
  const told = rows.map(([what, found, bound]) => `| ${what} | ${found} | ${bound && `≤ ${bound}`} |`).join("\n");
  process.stdout.write(`load ${load.toFixed(1)} on ${cpus().length} cores before it\n| | | bound |\n|---|---|---|\n${told}\n`);
});
