// Texts that anybody may have written, in commands for a shell: nothing of them acts there, or on the terminal.
import { HARMFUL } from "../state/words";

/** A text as one word: of any POSIX shell, and of bash, zsh and ksh where it holds signs that act on a terminal. */
export function quoted(text: string): string {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (text.search(HARMFUL) < 0) return `'${text.replaceAll("'", "'\\''")}'`;
  const octal = (each: string): string => [...new TextEncoder().encode(each)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
  return `$'${text.replace(/[\\']/g, "\\$&").replace(HARMFUL, octal)}'`;
}

/** A JSON text as what a command reads: one line, whose quoted mark keeps the shell from reading anything in it. */
export function hereDocument(json: string): string {
  // In JSON these signs stand within texts only, where their escapes mean the same.
  const inert = json.replaceAll(/[\n\t]/g, " ").replace(HARMFUL, (each) =>
    [...Array(each.length).keys()].map((at) => `\\u${each.charCodeAt(at).toString(16).padStart(4, "0")}`).join(""));
  return `--data-binary @- <<'REQUEST'\n${inert}\nREQUEST\n`;
}
