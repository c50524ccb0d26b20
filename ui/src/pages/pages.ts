// The list of runs, page after page: the newest are asked for again and again, older ones as somebody scrolls.
import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import type { Api, RunQuery } from "../server/api";
import { reason } from "../server/problem";
import type { RunLine, RunPage } from "../server/wire";
import { useLoaded } from "./load";

export interface Listed {
  /** Newest first; undefined until the first came. */
  runs: RunLine[] | undefined;
  /** There are older ones. */
  more: boolean;
  loading: boolean;
  error: string;
  older(): void;
  again(): void;
}

/** All runs that came, by id: what came last counts. A page tells what is gone of the time that it covers. */
export class Known {
  private runs = new Map<string, RunLine>();

  take(page: RunPage, newest: boolean): void {
    const there = new Set(page.runs.map((each) => each.run_id));
    const since = page.next ? Math.min(...page.runs.map((each) => each.created_at)) : -Infinity;
    if (newest) for (const each of this.runs.values()) if (each.created_at > since && !there.has(each.run_id)) this.runs.delete(each.run_id);
    for (const each of page.runs) this.runs.set(each.run_id, each);
  }

  get sorted(): RunLine[] {
    // Of those of one instant, what the server gave first stays first.
    return [...this.runs.values()].sort((one, other) => other.created_at - one.created_at);
  }
}

export function useRuns(api: Api, query: RunQuery): Listed {
  const key = JSON.stringify(query);
  const first = useLoaded(() => api.runs(query).then((page) => ({ key, page })), 3, key);
  const known = useRef({ key: "", runs: new Known(), cursor: 0 });
  const [turned, turn] = useState(0);
  const [loading, setLoading] = useState(false);
  const [error, setError] = useState("");

  const newest = first.value;
  useMemo(() => {
    if (!newest) return;
    if (known.current.key !== newest.key) known.current = { key: newest.key, runs: new Known(), cursor: newest.page.next };
    known.current.runs.take(newest.page, true);
  }, [newest]);
  useEffect(() => setError(""), [key]);

  const older = useCallback(() => {
    const now = known.current;
    if (!now.cursor) return;
    setLoading(true);
    api.runs({ ...(JSON.parse(now.key) as RunQuery), before: now.cursor }).then((page) => {
      now.runs.take(page, false);
      now.cursor = page.next;
      setError("");
      turn((old) => old + 1);
    }, (why: unknown) => setError(reason(why))).finally(() => setLoading(false));
  }, [api]);
  const runs = useMemo(() => (newest ? known.current.runs.sorted : undefined), [newest, turned]);
  return { runs, more: known.current.cursor > 0, loading, error: first.error || error, older, again: first.again };
}
