import { afterEach, expect, test } from "vitest";
import { Api } from "../src/server/api";
import { Follower, type Connection } from "../src/server/follow";
import { events, type Sent } from "../src/server/stream";
import { Deltas } from "../src/state/deltas";
import { Store } from "../src/state/store";
import { Fake, until } from "./fake";
import { fixture } from "./fixtures";

const open: (() => Promise<void> | void)[] = [];
afterEach(async () => { for (const each of open.splice(0).reverse()) await each(); });
Object.assign(globalThis, { window: globalThis });

async function following(recorded: number, pause = (): Promise<void> => new Promise((done) => { setTimeout(done, 1); })) {
  const fake = new Fake(fixture("research").frames, recorded);
  const root = await fake.open();
  open.push(() => fake.close());
  const store = new Store();
  const deltas = new Deltas();
  const said: Connection[] = [];
  const follower = new Follower(
    new Api(root, "secret"), fake.run, store, deltas, (each) => said.push(each), (draw) => { setTimeout(draw, 0); },
    pause,
  );
  const ended = follower.follow();
  open.push(async () => { follower.stop(); await ended; });
  const seqs = () => store.history.frames.map((each) => each.seq);
  return { fake, store, deltas, said, seqs, ended, follower };
}

const numbers = (last: number): number[] => [...Array(last).keys()].map((each) => each + 1);

test("all records that there are come first, then each that is recorded", async () => {
  const { fake, store, seqs } = await following(40);
  await until(() => fake.connections === 1);
  expect(seqs()).toEqual(numbers(40));
  expect(fake.cursors).toEqual([40]);
  fake.record(3);
  await until(() => store.history.seq === 43);
  expect(seqs()).toEqual(numbers(43));
});

test("when the connection breaks, what was missed is filled in, and nothing comes twice", async () => {
  const { fake, store, said, seqs } = await following(10);
  await until(() => fake.connections === 1);
  for (let round = 0; round < 5; round++) {
    fake.record(4);
    fake.cut();
    fake.record(5);
    await until(() => store.history.seq === fake.recorded && fake.connections === 1);
  }
  expect(seqs()).toEqual(numbers(55));
  expect(said.map((each) => each.state)).toContain("lost");
  await until(() => said.at(-1)?.state === "live");
});

test("a server that is away for a while is waited for, and all that came before stays", async () => {
  const { fake, store, said, seqs } = await following(10);
  await until(() => fake.connections === 1);
  fake.down = true;
  fake.cut();
  await until(() => said.filter((each) => each.state === "lost").length > 3);
  expect(store.snapshot().connected).toBe(false);
  expect(seqs()).toEqual(numbers(10));
  fake.recorded = 60;
  fake.down = false;
  await until(() => store.history.seq === 60);
  expect(seqs()).toEqual(numbers(60));
});

test("whoever does not want to wait for the next try makes it now", async () => {
  const { fake, said, follower } = await following(10, () => new Promise(() => undefined));
  await until(() => fake.connections === 1);
  fake.down = true;
  fake.cut();
  await until(() => said.at(-1)?.state === "lost");
  fake.down = false;
  await until(() => {
    follower.wake();
    return fake.connections === 1;
  });
  await until(() => said.at(-1)?.state === "live");
});

test("the end of the run ends the following; a token that is gone says so", async () => {
  const first = await following(100);
  await until(() => first.fake.connections === 1);
  first.fake.send('event: end\ndata: {"reason":"closed"}\n\n');
  await first.ended;
  expect(first.said.at(-1)).toEqual({ state: "ended", why: "" });
  const second = await following(10);
  await until(() => second.fake.connections === 1);
  second.fake.send('event: end\ndata: {"reason":"token"}\n\n');
  await second.ended;
  expect(second.said.at(-1)!.why).toContain("antiphon serve");
});

test("pieces of a reply join where they belong, whatever was missed or comes again", () => {
  const deltas = new Deltas();
  const add = (text: string, offset?: number) => deltas.add({ effect_id: "1/1.m1", kind: "text", text, ...(offset === undefined ? {} : { offset }) });
  add("Hello", 0);
  add(" wor", 5);
  add(" wor", 5);
  add("ld", 9);
  expect(deltas.of("1/1.m1")!.text).toBe("Hello world");
  add("Hello world, all of it", 0);
  expect(deltas.of("1/1.m1")!.text).toBe("Hello world, all of it");
});

test("events are read however their bytes are cut", async () => {
  const text = ": alive\n\nevent: frame\r\nid: 7\r\ndata: {\"a\":\"ü\"}\r\n\r\ndata: one\ndata: two\n\nevent: lost\ndata: x";
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 3, 7, 1_000]) {
    const body = new ReadableStream<Uint8Array>({
      start(control) {
        for (let at = 0; at < bytes.length; at += size) control.enqueue(bytes.slice(at, at + size));
        control.close();
      },
    });
    const found: Sent[] = [];
    for await (const each of events(body)) found.push(each);
    expect(found).toEqual([
      { event: "frame", id: "7", data: '{"a":"ü"}' }, { event: "message", id: "", data: "one\ntwo" },
    ]);
  }
});
