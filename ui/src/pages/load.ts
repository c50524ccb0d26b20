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

/** key: another one asks anew at once; what came for the one before counts no more once it is answered. */
export function useLoaded<Value>(ask: () => Promise<Value>, seconds: number, key = ""): Loaded<Value> {
  const [value, setValue] = useState<Value>();
  const [error, setError] = useState("");
  const asked = useRef(ask);
  asked.current = ask;
  const ticket = useRef(0);
  const again = useCallback(() => {
    const mine = ++ticket.current;
    const done = (act: () => void): void => { if (ticket.current === mine) act(); };
    asked.current().then(
      (found) => done(() => { setValue(found); setError(""); }), (why: unknown) => done(() => setError(reason(why))),
    );
  }, []);
  useEffect(() => {
    again();
    const timer = window.setInterval(() => { if (!document.hidden) again(); }, seconds * 1000);
    document.addEventListener("visibilitychange", again);
    return () => {
      ticket.current++;
      window.clearInterval(timer);
      document.removeEventListener("visibilitychange", again);
    };
  }, [again, seconds, key]);
  return { value, error, again };
}
