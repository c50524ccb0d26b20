// Which page is shown: the part of the address after `#`.
import { useSyncExternalStore } from "react";

export type Route =
  | { page: "runs" | "inbox" | "new" | "teams" }
  | { page: "run"; run: string };

export function routeOf(hash: string): Route {
  const [page = "", run = ""] = hash.replace(/^#\/?/, "").split("?")[0]!.split("/");
  if (page === "run" && /^[\w-]+$/.test(run)) return { page, run };
  if (page === "inbox" || page === "new" || page === "teams") return { page };
  return { page: "runs" };
}

const subscribe = (listener: () => void): (() => void) => {
  window.addEventListener("hashchange", listener);
  return () => window.removeEventListener("hashchange", listener);
};
let known: Route = routeOf(location.hash);

function snapshot(): Route {
  const next = routeOf(location.hash);
  if (JSON.stringify(next) !== JSON.stringify(known)) known = next;
  return known;
}

export const useRoute = (): Route => useSyncExternalStore(subscribe, snapshot);
