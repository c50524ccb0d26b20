import { useEffect, useMemo, useState } from "react";
import { parsed, WHOLE } from "./json";

/** What a JSON text holds; null for what is none. A long one is read in short tasks, and is undefined until it was. */
export function useParsed(json: string): unknown {
  const small = useMemo(() => (json.length > WHOLE ? undefined : read(json)), [json]);
  const [large, setLarge] = useState<{ json: string; value: unknown }>();
  useEffect(() => {
    if (json.length <= WHOLE) return;
    let left = false;
    parsed(json).catch(() => null).then((value) => { if (!left) setLarge({ json, value }); });
    return () => { left = true; };
  }, [json]);
  return json.length <= WHOLE ? small : large?.json === json ? large.value : undefined;
}

function read(json: string): unknown {
  try {
    return JSON.parse(json || "null") as unknown;
  } catch {
    return null;
  }
}
