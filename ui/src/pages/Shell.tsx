import { useCallback, useEffect, useMemo } from "react";
import { useOffers, type Offer } from "../find/offers";
import { openPalette, Palette } from "../find/Palette";
import { Glyph, Icon } from "../parts/Glyph";
import { toggleTheme } from "../parts/theme";
import { Project } from "../projects/Project";
import { Projects } from "../projects/Projects";
import { NewRun } from "../start/NewRun";
import type { Api } from "../server/api";
import { SessionContext, sessionOf } from "../server/session";
import { useLoaded } from "./load";
import { LiveRun } from "./LiveRun";
import { useRoute, type Route } from "./route";
import { RunsPage, wordOf } from "./Runs";
import { limited } from "./search";
import { Teams } from "./Teams";
import { Waiting } from "./Waiting";

const PLACES = [["runs", "Runs", "G R"], ["inbox", "Inbox", "G I"], ["teams", "Teams", "G T"], ["projects", "Projects", "G P"], ["new", "New run", "N"]] as const;
const KEYS: Record<string, string> = { r: "runs", i: "inbox", t: "teams", p: "projects", n: "new" };
const ICONS = { runs: "runs", inbox: "inbox", teams: "teams", projects: "folder", new: "plus" } as const;

/** The rail, and the page beside it. */
export function Shell({ api }: { api: Api }) {
  const route = useRoute();
  const inbox = useLoaded(api.inbox, 3);
  const waiting = inbox.value?.items.length ?? 0;
  const told = useLoaded(api.session, 20);
  const session = useMemo(() => sessionOf(told.value), [JSON.stringify(told.value)]);
  useEffect(() => {
    // A page in the background is still looked at: a server that is there for it alone must hear of it.
    const timer = window.setInterval(() => { if (document.hidden) told.again(); }, 45_000);
    return () => window.clearInterval(timer);
  }, [told.again]);
  const places = PLACES.filter(([page]) => !(page === "new" && !session.writes) && !((page === "teams" || page === "projects") && session.looks));
  useOffers(() => [
    ...places.map(([page, title, keys]): Offer => ({
      key: page, kind: "do", title: page === "new" ? title : `Go to ${title}`, keys, act: () => { location.hash = `#/${page}`; },
    })),
    { key: "theme", kind: "do", title: "Light or dark", act: toggleTheme },
  ]);
  const far = useCallback(async (query: string): Promise<Offer[]> => {
    const [{ runs }, { teams }] = await Promise.all([api.runs(limited(query, 40)), session.writes ? api.teams() : { teams: [] }]);
    return [
      ...teams.map((each): Offer => ({ key: `team ${each.name}`, kind: "do", title: `New run of ${each.name}`, act: () => { location.hash = `#/new?team=${each.name}`; } })),
      ...runs.map((each): Offer => ({
        key: each.run_id, kind: "run", title: each.name || each.title || each.run_id, hint: `${wordOf(each.state)[1]} ${each.team}${each.name ? ` ${each.title}` : ""}`,
        act: () => { location.hash = `#/run/${each.run_id}`; },
      })),
    ];
  }, [api, session.writes]);
  useEffect(() => {
    let went = 0;
    const press = (event: KeyboardEvent): void => {
      if ((event.target as HTMLElement).closest("input, textarea, select, dialog")) return;
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "g") went = Date.now();
      else if (Date.now() - went < 1500 && KEYS[event.key]) {
        went = 0;
        location.hash = `#/${KEYS[event.key]}`;
      } else if (event.key === "n" && session.writes) location.hash = "#/new";
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [session.writes]);
  return (
    <SessionContext value={session}><div className="shell">
      <nav className="rail" aria-label="Main">
        <a className="brand" href="#/runs" aria-label="Antiphon">
          <svg viewBox="0 0 18 18" fill="currentColor" aria-hidden="true">
            <rect x="1" y="1" width="3" height="9" rx="1.5" /><rect x="5.3" y="8" width="3" height="9" rx="1.5" />
            <rect x="9.6" y="1" width="3" height="9" rx="1.5" /><rect x="13.9" y="8" width="3" height="9" rx="1.5" />
          </svg>
          <span>Antiphon</span>
        </a>
        {places.map(([page, title]) => (
          <a key={page} href={`#/${page}`} title={title} aria-current={at(route, page) ? "page" : undefined}>
            <Icon name={ICONS[page]} /><span>{title}</span>
            {page === "inbox" && waiting > 0 && <b className="count k-human">{waiting}</b>}
          </a>
        ))}
        <div className="foot">
          <div className="row"><Glyph shape={inbox.error ? "error" : "agent"} kind={inbox.error ? "error" : "tool"} />
            {inbox.error ? "no answer" : "connected"}</div>
          {location.host}{session.readOnly && <b className="strong"> · read-only</b>}
          <div><button className="ask-palette" onClick={openPalette}><kbd>⌘K</kbd> find or do</button></div>
        </div>
      </nav>
      <Page route={route} api={api} inbox={inbox} />
      <Palette more={far} />
    </div></SessionContext>
  );
}

const at = (route: Route, page: string): boolean =>
  route.page === page || (route.page === "run" && page === "runs") || (route.page === "project" && page === "projects");

function Page({ route, api, inbox }: { route: Route; api: Api; inbox: ReturnType<typeof useLoaded<Awaited<ReturnType<Api["inbox"]>>>> }) {
  if (route.page === "run") return <LiveRun key={route.run} api={api} run={route.run} />;
  if (route.page === "inbox") return <Waiting api={api} inbox={inbox} />;
  if (route.page === "new") return <NewRun key={`${route.team} ${route.project}`} api={api} team={route.team} project={route.project} />;
  if (route.page === "projects") return <Projects api={api} />;
  if (route.page === "project") return <Project key={route.project} api={api} project={route.project} />;
  if (route.page === "teams") return <Teams key={route.project} api={api} project={route.project} />;
  return <RunsPage api={api} />;
}
