// What `scripts/page.sh` built, as users get it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";

const BUILT = join(import.meta.dirname, "..", "..", "src", "antiphon", "view", "page", "assets");
const MOST = 250_000;
const packed = (path: string): number => (path.endsWith(".woff2") ? readFileSync(path).length : gzipSync(readFileSync(path)).length);

test("a file's program and style are at most 250 KB, and so are all parts of a server's pages", () => {
  const file = ["file.js", "file.css"].map((each) => packed(join(BUILT, each)));
  expect(file.reduce((sum, each) => sum + each)).toBeLessThan(MOST);
  const served = readdirSync(join(BUILT, "served"), { recursive: true, withFileTypes: true }).filter((each) => each.isFile());
  const all = served.map((each) => packed(join(each.parentPath, each.name)));
  expect(all.length).toBeGreaterThan(4);
  expect(all.reduce((sum, each) => sum + each)).toBeLessThan(MOST);
});

test("fonts hold the weights that styles ask for, and no more", () => {
  const styles = join(import.meta.dirname, "..", "src", "styles");
  const text = readdirSync(styles).filter((each) => each.endsWith(".css")).map((each) => readFileSync(join(styles, each), "utf8")).join("\n");
  const weights = [...text.matchAll(/(?:font-weight|--w-\w+|font): *(\d{3})\b(?! *\d{3})/g)].map((each) => Number(each[1]));
  expect([Math.min(...weights), Math.max(...weights)]).toEqual([400, 620]);
  expect(text).toContain("font-weight: 400 620");
  expect(text).not.toMatch(/\bbold(er)?\b/);
});

test("what the graph never does is not in it: it moves nothing by itself", () => {
  const parts = readdirSync(join(BUILT, "served", "assets"));
  const team = readFileSync(join(BUILT, "served", "assets", parts.find((each) => each.startsWith("Team-"))!), "utf8");
  expect(team).not.toMatch(/too late; already scheduled|transition \d+ not found/);
});

test("the team's graph is loaded after the rest", () => {
  const parts = readdirSync(join(BUILT, "served", "assets"));
  expect(parts.filter((each) => each.startsWith("Team-") && each.endsWith(".js")).length).toBe(1);
  const main = readFileSync(join(BUILT, "served", "assets", parts.find((each) => /^index-.*\.js$/.test(each))!), "utf8");
  expect(main).not.toContain("react-flow__pane");
});

test("printed to a terminal or a pipe, a file stays the same: nothing in it would be changed on the way", () => {
  for (const name of ["file.js", "file.css"]) {
    const text = readFileSync(join(BUILT, name), "utf8");
    expect(text).not.toMatch(/[\t\r\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/);
    expect(text).not.toMatch(/<\/(script|style)|<!--/i);
  }
});

test("what a file draws has none of its classes styled by the pages that it lacks", () => {
  const source = join(import.meta.dirname, "..", "src");
  const drawn = ["graph", "inspect", "lanes", "parts", "records", "talk"].flatMap((folder) => readdirSync(join(source, folder)).map((each) => join(source, folder, each)));
  const used = new Set([...drawn, join(source, "Head.tsx"), join(source, "RunView.tsx")].filter((each) => each.endsWith(".tsx"))
    .flatMap((each) => [...readFileSync(each, "utf8").matchAll(/className=(?:"([^"]*)"|\{`([^`]*)`\})/g)].flatMap(([, plain, made]) => (plain ?? made ?? "").split(/[\s${}?:"]+/))));
  const bare = (name: string): Set<string> => new Set([...readFileSync(join(source, "styles", `${name}.css`), "utf8").matchAll(/^\.([\w-]+) \{/gm)].map(([, each]) => each!));
  const [pages, parts, run] = [bare("pages"), bare("parts"), bare("run")];
  expect(used.size).toBeGreaterThan(60);
  expect(pages.size).toBeGreaterThan(20);
  expect([...pages].filter((each) => used.has(each) && !parts.has(each) && !run.has(each))).toEqual([]);
});

test("no part asks for anything elsewhere", () => {
  for (const name of ["file.js", "file.css"]) {
    const asked = readFileSync(join(BUILT, name), "utf8").match(/(?:fetch|import)\(["'`]https?:|url\(["']?https?:|@import/g);
    expect(asked).toBe(null);
  }
});
