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

// One file that needs no other: everything in it, fonts too.
export default defineConfig({
  plugins: [react(), written],
  build: {
    outDir: "../src/antiphon/view/assets",
    emptyOutDir: true,
    target: "es2022",
    assetsInlineLimit: Infinity,
    cssCodeSplit: false,
    modulePreload: false,
    reportCompressedSize: true,
    rolldownOptions: {
      input: "src/file.tsx",
      output: { format: "es", codeSplitting: false, entryFileNames: "file.js", assetFileNames: "file[extname]" },
    },
  },
});
