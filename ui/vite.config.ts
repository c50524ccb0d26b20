import { resolve } from "node:path";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

/** Signs that steer a terminal or end a script are written as escapes: the program stands in files. */
const written: Plugin = {
  name: "written-for-files",
  generateBundle(_, bundle) {
    for (const each of Object.values(bundle)) {
      if (each.type !== "chunk") continue;
      each.code = each.code
        .replace(/<(\/script|!--)/gi, "\\x3c$1")
        .replace(/[\t\u0000-\u0008\u000b-\u001f\u007f-\u{10ffff}]/gu, (found) =>
          [...Array(found.length).keys()].map((at) => `\\u${found.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""));
    }
  },
};

// `file`: one script and one style that need no other file, fonts included. Else the pages of a server, in parts.
export default defineConfig(({ mode }) => ({
  plugins: [react(), written],
  base: "./",
  // With it go colours, easings and timers that no graph of ours moves by.
  resolve: { alias: { "d3-transition": resolve(import.meta.dirname, "src/graph/still.ts") } },
  build: {
    outDir: `../src/antiphon/view/page/assets${mode === "file" ? "" : "/served"}`,
    emptyOutDir: true,
    target: "es2022",
    modulePreload: false,
    // One script holds all of an exported file; tests/built.test.ts bounds what it weighs.
    chunkSizeWarningLimit: 1_000,
    ...(mode === "file"
      ? {
          assetsInlineLimit: Infinity,
          cssCodeSplit: false,
          rolldownOptions: {
            input: "src/file.tsx",
            output: { format: "es" as const, codeSplitting: false, entryFileNames: "file.js", assetFileNames: "file[extname]" },
          },
        }
      : { assetsInlineLimit: 0 }),
  },
}));
