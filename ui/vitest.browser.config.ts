import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    // A page waits more than it works: two files at once keep two cores busy.
    maxWorkers: 2,
    include: ["browser/**/*.test.ts"], environment: "node", testTimeout: 60_000, hookTimeout: 60_000,
    // A page draws when it can: tests say what must come to be seen, never look once.
    expect: { poll: { interval: 10, timeout: 10_000 } },
  },
});
