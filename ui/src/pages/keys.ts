// The keyboard of lists: J and K move, Enter opens what has the focus.
import { useEffect } from "react";

const TYPING = "input, textarea, select, dialog";
const NONE = {};

/** Move the focus among what the selector finds; `more` are further keys of the view. */
export function useListKeys(selector: string, more: Record<string, () => void> = NONE): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target as HTMLElement).closest(TYPING)) return;
      const act = more[event.key];
      if (act) {
        event.preventDefault();
        return act();
      }
      if (event.key !== "j" && event.key !== "k") return;
      const all = [...document.querySelectorAll<HTMLElement>(selector)];
      const at = all.indexOf(document.activeElement as HTMLElement);
      const next = at < 0 ? all[0] : all[at + (event.key === "j" ? 1 : -1)];
      if (!next) return;
      event.preventDefault();
      next.focus();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [selector, more]);
}
