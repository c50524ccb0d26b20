// Patterns of arguments as `Grant` has them: as in file names, `*` for any text, `?` for one sign, `[ab]` for one of these.

/** A value as it is compared with a pattern. */
const textOf = (value: unknown): string => (typeof value === "string" ? value : JSON.stringify(value));
const isLarge = (value: unknown): boolean => typeof value === "object" && value !== null;
/** A path that leads upwards may be any place: it is only ever compared as it is. */
const leadsUp = (text: string): boolean => text.replaceAll("\\", "/").split("/").includes("..");

/** The pattern that only this value fits. */
export function exactly(value: unknown): string {
  const text = textOf(value);
  return isLarge(value) || leadsUp(text) ? text : text.replace(/[*?[]/g, "[$&]");
}

/** A wider pattern that people mean more often than one value: all below a folder or a site; empty for none. */
export function around(value: unknown): string {
  if (typeof value !== "string" || /\s/.test(value) || leadsUp(value)) return "";
  const [, place = ""] = /^(https?:\/\/[^/]+\/|.*[^/:]\/)[^/]*[^]*$/.exec(value) ?? [];
  return place ? `${place.replace(/[*?[]/g, "[$&]")}*` : "";
}

/** Whether a value fits a pattern, as the runtime compares them. */
export function fits(pattern: string, value: unknown): boolean {
  const text = textOf(value);
  if (text === pattern || text === pattern.replace(/\[([*?[])\]/g, "$1")) return true;
  return !isLarge(value) && !leadsUp(text) && matcher(pattern).test(text);
}

function matcher(pattern: string): RegExp {
  let found = "";
  for (let at = 0; at < pattern.length; at++) {
    const sign = pattern[at]!;
    const end = sign === "[" ? pattern.indexOf("]", at + (pattern[at + 1] === "!" ? 3 : 2)) : -1;
    if (sign === "*") found += found.endsWith("[^]*") ? "" : "[^]*";
    else if (sign === "?") found += "[^]";
    else if (end > 0) {
      const among = pattern.slice(at + 1, end).replace(/[\\\]^[]/g, "\\$&").replace(/^!/, "^");
      // A range that runs backwards holds nothing.
      found += `[${among.replace(/([^])-([^])/g, (each, from: string, to: string) => (from <= to ? each : ""))}]`.replace(/^\[\]$/, "(?!)").replace(/^\[\^\]$/, "[^]");
      at = end;
    } else found += sign.replace(/[\\^$.|?*+()[\]{}]/, "\\$&");
  }
  return new RegExp(`^(?:${found})$`, "u");
}
