import type { Frame } from "./wire";

/** Frames that are folded in one go: so many make no task that a reader would feel, on a slow machine too. */
const SLICE = 250;
const soon = (): Promise<void> => new Promise((done) => { setTimeout(done, 0); });

/** Take frames in, so many at a time; `more` follow at once. stopped: no further ones are wanted. */
export async function inSlices(
  frames: Frame[], take: (some: Frame[], more: boolean) => void, pause = soon, stopped: () => boolean = () => false,
): Promise<void> {
  for (let at = 0; at < frames.length && !stopped(); at += SLICE) {
    if (at) await pause();
    if (!stopped()) take(frames.slice(at, at + SLICE), at + SLICE < frames.length);
  }
}
