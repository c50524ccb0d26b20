/** Why the server refused: what is wrong, where, and what to do. RFC 9457. */
export class Refused extends Error {
  constructor(
    readonly status: number, readonly code: string, title: string, readonly what: string,
    readonly places: { path: string; expected: string; got?: string }[],
  ) {
    super(title);
  }

  get told(): string {
    const places = this.places.map((each) => `${each.path}: expected ${each.expected}${each.got ? `, got ${each.got}` : ""}`);
    return [this.message, ...places, this.what].filter(Boolean).join(". ");
  }
}

export async function refusal(response: Response): Promise<Refused> {
  try {
    const found = (await response.json()) as { type?: string; title?: string; detail?: string; errors?: [] };
    const code = (found.type ?? "").split(":").at(-1) ?? "";
    return new Refused(response.status, code, found.title ?? response.statusText, found.detail ?? "", found.errors ?? []);
  } catch {
    return new Refused(response.status, "", `The server said ${response.status} ${response.statusText}`, "", []);
  }
}

/** What a browser says when nobody is at the other end says nothing to its reader. */
const AWAY = "The server does not answer. Is it still running, and is this its address?";

/** What the server says of it is for programs. */
const NO_TOKEN = "This tab has no token that is good here. Open the address that `antiphon serve` or `antiphon ui` printed, token and all";

export function reason(error: unknown): string {
  if (error instanceof Refused) return error.code === "no_token" ? NO_TOKEN : error.told;
  if (error instanceof TypeError && /fetch|network|load failed/i.test(error.message)) return AWAY;
  return error instanceof Error ? error.message : String(error);
}
