// What part of the time axis is seen.
import { useCallback, useEffect, useState } from "react";

const LEAST = 1e-4;

export function useWindow() {
  const [[low, high], set] = useState<[number, number]>([0, 1]);
  const zoom = useCallback((by: number, at: number) => set(([from, to]) => {
    const wide = Math.min(1, Math.max(LEAST, (to - from) * by));
    const middle = from + (to - from) * at;
    return within(middle - wide * at, wide);
  }), []);
  const pan = useCallback((by: number) => set(([from, to]) => within(from + (to - from) * by, to - from)), []);
  useEffect(() => {
    const press = (event: Event): void => {
      const { detail } = event as CustomEvent<string>;
      if (detail === "w") zoom(0.6, 0.5);
      if (detail === "s") zoom(1 / 0.6, 0.5);
      if (detail === "a") pan(-0.2);
      if (detail === "d") pan(0.2);
      if (detail === "f") set([0, 1]);
    };
    window.addEventListener("lanes", press);
    return () => window.removeEventListener("lanes", press);
  }, [zoom, pan]);
  return { low, high, zoom, pan };
}

function within(from: number, wide: number): [number, number] {
  const low = Math.max(0, Math.min(1 - wide, from));
  return [low, low + wide];
}
