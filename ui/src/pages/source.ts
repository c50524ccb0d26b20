// A file's lines, and what is wrong in which of them.
import type { SourceFinding } from "../server/wire";

/** The lines of a text as editors and YAML count them; none for an empty one. */
export function rows(text: string): string[] {
  const found = text.split(/\r\n|[\n\r\u0085\u2028\u2029]/);
  if (found.at(-1) === "") found.pop();
  return found;
}

/** Findings by their line, errors first; those of the whole file at 0. */
export function margins(findings: SourceFinding[]): Map<number, SourceFinding[]> {
  const found = new Map<number, SourceFinding[]>();
  for (const each of [...findings].sort((one, other) => Number(other.severity === "error") - Number(one.severity === "error"))) {
    found.set(each.line, [...(found.get(each.line) ?? []), each]);
  }
  return found;
}
