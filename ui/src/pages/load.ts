// Something from the server that is asked for again and again while it is shown.
import { useCallback, useEffect, useRef, useState } from "react";
import { reason } from "../server/problem";

export interface Loaded<Value> {
  /** The last that came; it stays while the server does not answer. */
  value: Value | undefined;
  /** Why nothing newer came; empty when all is well. */
  error: string;
  again(): void;
}

export function useLoaded<Value>(ask: () => Promise<Value>, seconds: number): Loaded<Value> {
  const [value, setValue] = useState<Value>();
  const [error, setError] = useState("");
  const asked = useRef(ask);
  asked.current = ask;
  const again = useCallback(() => {
    asked.current().then((found) => { setValue(found); setError(""); }, (why: unknown) => setError(reason(why)));
  }, []);
  useEffect(() => {
    again();
    const timer = window.setInterval(() => { if (!document.hidden) again(); }, seconds * 1000);
    document.addEventListener("visibilitychange", again);
    return () => {
      window.clearInterval(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, [again, seconds]);
  return { value, error, again };
}
