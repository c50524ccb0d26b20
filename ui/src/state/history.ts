// All records of a run, and the run as of any of them: a folded state is kept every so many.
import { Run } from "./run";
import type { Frame } from "./wire";

const EVERY = 500;

export class History {
  readonly frames: Frame[] = [];
  /** The run as of the last record. It grows; whoever draws it asks `version` whether it did. */
  readonly latest = new Run();
  private readonly marks: Run[] = [new Run()];
  private last = new Run();

  /** Take in the next record; one that is known already is left out. Says whether it was new. */
  add(frame: Frame): boolean {
    if (frame.seq <= this.latest.seq) return false;
    this.frames.push(frame);
    this.latest.add(frame);
    if (this.frames.length % EVERY === 0) this.marks.push(this.latest.copy());
    return true;
  }

  get seq(): number {
    return this.latest.seq;
  }

  /** The run as of record `seq`: from the nearest state before it, or from the one that was asked for last. */
  at(seq: number): Run {
    if (seq >= this.latest.seq) return this.latest;
    if (this.last.seq === seq) return this.last;
    const mark = this.marks[Math.floor(seq / EVERY)]!;
    const from = this.last.seq < seq && this.last.seq >= mark.seq ? this.last : mark;
    const run = from.copy();
    for (let index = from.seq; index < seq; index++) run.add(this.frames[index]!);
    return (this.last = run);
  }

  /** The last record at or before an instant, Unix seconds; at least 1. */
  before(instant: number): number {
    let low = 0;
    let high = this.frames.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.frames[middle]!.at <= instant) low = middle + 1;
      else high = middle;
    }
    return Math.max(1, low);
  }
}
