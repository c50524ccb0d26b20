// Light or dark: as the machine says, until the reader does.
import { useSyncExternalStore } from "react";

const dark = window.matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();
let chosen: string | null = read();

function read(): string | null {
  try {
    return localStorage.getItem("antiphon-theme");
  } catch {
    return null; // a file may have no storage
  }
}

const theme = (): string => chosen ?? (dark.matches ? "dark" : "light");
/** As the page is drawn: the machine says something else some time before its event does. */
let shown = "";

function apply(): void {
  shown = theme();
  document.documentElement.dataset.theme = shown;
  for (const each of listeners) each();
}

dark.addEventListener("change", apply);
apply();

export function toggleTheme(): void {
  chosen = shown === "dark" ? "light" : "dark";
  try {
    localStorage.setItem("antiphon-theme", chosen);
  } catch {
    // it is kept as long as the page is open
  }
  apply();
}

export const useTheme = (): string => useSyncExternalStore((listener) => {
  listeners.add(listener);
  return () => listeners.delete(listener);
}, () => shown);
