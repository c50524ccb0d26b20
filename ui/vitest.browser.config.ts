import { defineConfig } from "vitest/config";

const { BENCH, PICTURES } = process.env;

export default defineConfig({
  test: {
    // A page waits more than it works: two files at once keep two cores busy, and all of them share a browser.
    maxWorkers: 2, isolate: false, pool: "threads", globalSetup: "browser/setup.ts",
    include: BENCH ? ["browser/bench.test.ts"] : PICTURES ? ["browser/pictures.test.ts"] : ["browser/**/*.test.ts"],
    exclude: BENCH || PICTURES ? [] : ["browser/bench.test.ts", "browser/pictures.test.ts"],
    environment: "node", testTimeout: 60_000, hookTimeout: 60_000,
    // A page draws when it can: tests say what must come to be seen, never look once.
    expect: { poll: { interval: 20, timeout: 10_000 } },
  },
});
