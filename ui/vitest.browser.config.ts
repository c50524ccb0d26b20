import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["browser/**/*.test.ts"], environment: "node", testTimeout: 60_000, hookTimeout: 60_000, maxWorkers: 2,
    // A page draws when it can: tests say what must come to be seen, never look once.
    expect: { poll: { interval: 10, timeout: 10_000 } },
  },
});
