// What `python -m tests.page.shown` wrote: runs as frames, and what the runtime itself says of them.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Frame } from "../src/state/wire";

export interface Told {
  closed: boolean;
  asked: string[];
  tokens: number;
  nano_usd: number;
  effects: Record<string, [string, string, string, number | null, number | null, string]>;
  activations: Record<string, [string, string, [number, number][]]>;
}
export interface Fixture {
  frames: Frame[];
  /** What people are asked after each record. */
  asked: string[][];
  told: Told;
  /** Of records that have files: their frames with what these hold. */
  held: Record<string, Frame>;
}

export const FOLDER = process.env.SHOWN ?? join(import.meta.dirname, "..", ".shown");

export const fixture = (name: string): Fixture => JSON.parse(readFileSync(join(FOLDER, `${name}.json`), "utf8")) as Fixture;

export function scenarios(): [string, Fixture[]][] {
  const folder = join(FOLDER, "frames");
  return readdirSync(folder).sort().map((each) =>
    [each.replace(".json", ""), JSON.parse(readFileSync(join(folder, each), "utf8")) as Fixture[]]);
}
