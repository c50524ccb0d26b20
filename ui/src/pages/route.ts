// Which page is shown: the part of the address after `#`.
import { useSyncExternalStore } from "react";

export type Route =
  | { page: "runs" | "inbox" | "projects" }
  | { page: "teams"; project: string }
  | { page: "new"; team: string; project: string }
  | { page: "project"; project: string }
  | { page: "run"; run: string };

export function routeOf(hash: string): Route {
  const [path = "", query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page = "", run = ""] = path.split("/");
  const said = new URLSearchParams(query);
  if (page === "new") return { page, team: said.get("team") ?? "", project: said.get("project") ?? "" };
  if (page === "run" && /^[\w-]+$/.test(run)) return { page, run };
  if (page === "projects" && /^[\w.-]+$/.test(run)) return { page: "project", project: run };
  if (page === "teams") return { page, project: said.get("project") ?? "" };
  if (page === "inbox" || page === "projects") return { page };
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
