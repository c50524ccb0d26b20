import { useLayoutEffect, useState, type RefObject } from "react";

/** How wide an element is, CSS pixels; 0 until it is there. */
export function useSize(element: RefObject<HTMLElement | null>): number {
  const [width, set] = useState(0);
  useLayoutEffect(() => {
    const found = element.current;
    if (!found) return;
    const watch = new ResizeObserver(() => set(found.clientWidth));
    set(found.clientWidth);
    watch.observe(found);
    return () => watch.disconnect();
  }, [element]);
  return width;
}
