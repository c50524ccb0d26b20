// Numbers, times and hostile texts as a reader sees them.

/** Characters that steer, hide or turn what is shown; as `antiphon.values.codec` has them. */
export const HARMFUL =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

/** A text with every character made visible that would act instead of being read. */
export function visible(text: string): string {
  return text.replace(/\r\n/g, "\n").replace(HARMFUL, (each) => {
    const code = each.codePointAt(0)!;
    return code < 256 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}

/** One line of a text, cut. */
export function line(text: string, most = 240): string {
  const cut = text.length > most * 4 ? text.slice(0, most * 4) : text;
  const flat = visible(cut.replace(/\s+/g, " ").trim());
  return flat.length > most || cut.length < text.length ? flat.slice(0, most) + "…" : flat;
}

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
export const count = (value: number): string => grouped.format(value);

export function usd(nano: number): string {
  const value = nano / 1e9;
  return value >= 1 ? `$${value.toFixed(2)}` : `$${value.toFixed(4)}`;
}

/** Money for model calls: at least this where prices are unknown, at most this where a bill never came, both: about this. */
export function cost({ nanoUsd, unpriced, booked }: { nanoUsd: number; unpriced: number; booked: number }): string {
  return `${unpriced && booked ? "≈ " : unpriced ? "≥ " : booked ? "≤ " : ""}${usd(nanoUsd)}`;
}

export function lasted(seconds: number): string {
  const value = Math.max(0, seconds);
  if (value < 0.0005) return "0 s";
  if (value < 0.0995) return `${Math.round(value * 1000)} ms`;
  if (value < 60) return `${value.toFixed(1)} s`;
  if (value < 3600) return `${Math.floor(value / 60)} min ${Math.floor(value % 60)} s`;
  if (value < 172_800) return `${Math.floor(value / 3600)} h ${Math.floor((value % 3600) / 60)} min`;
  return `${Math.floor(value / 86_400)} days`;
}

export const plural = (number: number, one: string, many = one + "s"): string =>
  `${count(number)} ${number === 1 ? one : many}`;

/** The arguments of a call in one line: `path="a.md", first=1`. */
export function briefly(json: string, most = 200): string {
  if (!json || json === "{}") return "";
  if (json.length > 65_536) return line(json, most);
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return line(json, most);
    const parts = Object.entries(value).map(([key, each]) =>
      Array.isArray(each) ? `${key}=[${each.length}]` : `${key}=${JSON.stringify(each)}`);
    return line(parts.join(", "), most);
  } catch {
    return line(json, most);
  }
}

/** With a full stop, where it ends without any. */
export const sentence = (text: string): string => (/[.!?]$/.test(text.trim()) ? text : `${text.trim()}.`);

/** How long ago, roughly. */
export function ago(seconds: number): string {
  if (seconds < 2) return "now";
  if (seconds < 60) return `${Math.floor(seconds)} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86_400)} d ago`;
}
