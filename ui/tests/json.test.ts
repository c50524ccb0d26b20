import { expect, test } from "vitest";
import { parsed } from "../src/parts/json";

/** A generator of numbers that is the same each time. */
function seeded(seed: number): () => number {
  return () => {
    seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
    return seed / 2_147_483_648;
  };
}

const TEXTS = ["", "a", '"', "\\", '\\"', "]}", ",:[{", "\u2028\ud83d", "\n\t", "__proto__", "constructor", "x".repeat(90)];
function made(random: () => number, depth: number): unknown {
  const kind = Math.floor(random() * (depth > 0 ? 7 : 5));
  const some = () => Math.floor(random() * 9);
  const text = () => TEXTS[Math.floor(random() * TEXTS.length)]!;
  if (kind === 0) return text();
  if (kind === 1) return [0, -1.5, 1e21, 7][some() % 4];
  if (kind < 5) return [true, false, null][kind - 2];
  if (kind === 5) return [...Array(some())].map(() => made(random, depth - 1));
  return Object.fromEntries([...Array(some())].map(() => [text() + String(some()), made(random, depth - 1)]));
}

test("what is read in slices is what JSON.parse gives, for any value, however it is written and cut", async () => {
  const random = seeded(7);
  for (let round = 0; round < 400; round++) {
    const text = JSON.stringify(made(random, 5), null, round % 3);
    for (const slice of [0, 1, 7, 40]) expect(await parsed(text, slice, async () => undefined), text).toStrictEqual(JSON.parse(text));
  }
});

test("what is no JSON is refused, wherever it is broken", async () => {
  const random = seeded(11);
  const outcome = (read: () => unknown): unknown => { try { return read(); } catch (error) { return (error as Error).name; } };
  let refused = 0;
  for (let round = 0; round < 1_500; round++) {
    const whole = JSON.stringify(made(random, 4));
    const at = Math.floor(random() * whole.length);
    const broken = round % 2 ? whole.slice(0, at) : whole.slice(0, at) + ",[]{}:\"x 1"[Math.floor(random() * 10)]! + whole.slice(at + (round % 3 ? 1 : 0));
    const wanted = outcome(() => JSON.parse(broken));
    const found = await parsed(broken, 5, async () => undefined).catch((error: Error) => error.name);
    expect(found, broken).toStrictEqual(wanted);
    refused += wanted === "SyntaxError" ? 1 : 0;
  }
  expect(refused).toBeGreaterThan(500);
});

test("a key that means something to JavaScript is a key", async () => {
  const text = `{"__proto__":{"evil":[${"1,".repeat(50)}1]},"a":1}`;
  const found = await parsed(text, 10, async () => undefined) as object;
  expect(Object.getPrototypeOf(found)).toBe(Object.prototype);
  expect(Object.keys(found)).toEqual(["__proto__", "a"]);
});

test("a long text is read in many short tasks", async () => {
  const text = JSON.stringify([...Array(60_000)].map((_, at) => ({ at, said: `words ${at} "and" more of them` })));
  let rests = 0;
  const found = await parsed(text, 65_536, () => new Promise((done) => { rests++; setTimeout(done, 0); }));
  expect(found).toEqual(JSON.parse(text));
  expect(rests).toBeGreaterThan(0);
});
