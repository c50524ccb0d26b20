// What can be found or done from the palette: each view offers its own while it is shown.
import { useEffect, useRef } from "react";

export interface Offer {
  key: string;
  kind: "do" | "agent" | "run";
  title: string;
  hint?: string;
  /** The key that does the same. */
  keys?: string;
  act(): void;
}

const offering = new Set<() => Offer[]>();
export const offered = (): Offer[] => [...offering].flatMap((each) => each());

/** Offer these for as long as the view is shown; asked for anew whenever the palette opens. */
export function useOffers(offers: () => Offer[]): void {
  const latest = useRef(offers);
  latest.current = offers;
  useEffect(() => {
    const give = (): Offer[] => latest.current();
    offering.add(give);
    return () => void offering.delete(give);
  }, []);
}

/** Those that hold every word of a query, the best first: a title that begins with it, then a word that does, then the rest. */
export function ranked(offers: Offer[], query: string): Offer[] {
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const whole = words.join(" ");
  const scored = offers.flatMap((offer, place) => {
    const title = offer.title.toLowerCase();
    const text = `${title} ${(offer.hint ?? "").toLowerCase()}`;
    if (!words.every((word) => text.includes(word))) return [];
    const score = title.startsWith(whole) ? 0 : words.every((word) => ` ${title}`.includes(` ${word}`)) ? 1 : title.includes(whole) ? 2 : 3;
    return [{ offer, score, place }];
  });
  return scored.sort((one, other) => one.score - other.score || one.place - other.place).map((each) => each.offer);
}
