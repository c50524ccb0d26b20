import { useEffect, useMemo, useRef, useState } from "react";
import { Glyph, Icon } from "../parts/Glyph";
import type { Kind } from "../state/doing";
import { ago, count, line, plural, visible } from "../state/words";
import type { Api } from "../server/api";
import { commandOf, useSession } from "../server/session";
import type { RunLine } from "../server/wire";
import { useListKeys } from "./keys";
import { useLoaded } from "./load";
import { useRuns } from "./pages";
import { limited, matches } from "./search";
import { Spark } from "./Spark";
import { Empty, Loading, ReadOnly, Trouble } from "./states";

const WORDS: Record<string, [Kind, string]> = {
  waiting: ["human", "Asks you"], running: ["agent", "Running"], queued: ["agent", "Queued"], suspended: ["wait", "Parked"],
  completed: ["wait", "Completed"], failed: ["error", "Failed"], limit: ["error", "Limit"], cancelled: ["wait", "Cancelled"],
  idle: ["wait", "Idle"], closed: ["wait", "Closed"], damaged: ["error", "Damaged"],
};
export const wordOf = (state: string): [Kind, string] => WORDS[state] ?? ["wait", state];
const CHIPS = ["waiting", "running", "suspended", "failed", "completed"];
const PAGE = 100;
/** Runs that are looked through without a find before somebody is asked whether to go on. */
const FRUITLESS = 1_000;

/** All runs: what needs a person first, then the newest. */
export function Runs({ api, project }: { api: Api; project?: string }) {
  const session = useSession();
  const [search, setSearch] = useState("");
  const [wanted, setWanted] = useState("");
  useEffect(() => {
    const timer = window.setTimeout(() => setWanted(search), 200);
    return () => window.clearTimeout(timer);
  }, [search]);
  const whole = project ? `project:${project} ${wanted}` : wanted;
  const listed = useRuns(api, limited(whole, PAGE));
  const waiting = useLoaded(() => api.runs({ ...limited(whole, PAGE), state: "waiting" }), 5, whole);
  const all = listed.runs ?? [];
  const found = all.filter((each) => matches(each, whole));
  const asking = (waiting.value?.runs ?? []).filter((each) => matches(each, whole));
  const top = [...new Map([...asking, ...found.filter((each) => each.state === "waiting")].map((each) => [each.run_id, each])).values()];
  const sorted = [...top, ...found.filter((each) => each.state !== "waiting" && !top.some((one) => one.run_id === each.run_id))];
  const end = useRef<HTMLDivElement>(null);
  const [further, setFurther] = useState(FRUITLESS);
  useEffect(() => setFurther(FRUITLESS), [whole]);
  const held = found.length < PAGE / 2 && all.length >= further;

  // Older runs come as the end of the list comes into sight; also where a search left few of those that came.
  useEffect(() => {
    const element = end.current;
    if (!element || !listed.more || listed.loading || listed.error || held) return;
    const watch = new IntersectionObserver((seen) => { if (seen.some((each) => each.isIntersecting)) listed.older(); }, { rootMargin: "400px" });
    watch.observe(element);
    return () => watch.disconnect();
  }, [listed.more, listed.loading, listed.error, listed.older, held, all.length]);
  const box = useRef<HTMLInputElement>(null);
  useListKeys(".runs tbody a", useMemo(() => ({ "/": () => box.current?.focus() }), []));
  const number = (state: string): string => (!wanted && !listed.more ? ` ${all.filter((each) => each.state === state).length}` : "");
  return (
    <>
      {listed.error && <Trouble again={listed.again}>{listed.error}</Trouble>}
      <div className="toolbar">
        <label className="search"><Icon name="search" /><span className="sr">Search</span>
          <input ref={box} className="field" type="search" value={search} onChange={(event) => setSearch(event.target.value)}
            placeholder="Search, or state:failed team:research project:docs cost:>0.01" /></label>
      </div>
      <div className="toolbar chips">
        <button className="chip" aria-pressed={!search} onClick={() => setSearch("")}>All{!wanted && !listed.more && listed.runs ? ` ${all.length}` : ""}</button>
        {CHIPS.map((each) => (
          <button key={each} className="chip" aria-pressed={search === `state:${each}`} onClick={() => setSearch(`state:${each}`)}>
            {wordOf(each)[1]}{number(each)}</button>
        ))}
      </div>
      {!listed.runs && !listed.error && <Loading />}
      {listed.runs && all.length === 0 && !wanted && (
        <Empty title="No run yet" todo={<>{session.writes && <a className="btn ink" href={`#/new${project ? `?project=${project}` : ""}`}>New run</a>}
          <code className="faint">{commandOf(session, "start") || 'antiphon run examples/research "…"'}{project && ` --project ${project}`}</code></>}>
          {project ? "Start one in this project, or move one here." : `Start one ${session.writes ? "here, or " : ""}in a terminal: it shows up at once.`}</Empty>)}
      {listed.runs && sorted.length === 0 && wanted && !listed.loading && (!listed.more || held) && (
        <Empty title={`Nothing matches ${visible(wanted)}`} todo={<button className="btn" onClick={() => setSearch("")}>Clear search</button>}>
          A state, a team and a project are named in full; words are looked for in what was asked, and in names.</Empty>)}
      {sorted.length > 0 && <div className="sheet"><table className="runs">
        <thead><tr><th>State</th><th>Run</th><th className="hide">Team</th><th className="hide">Activity</th><th className="num hide">Tokens</th><th className="num hide">Cost</th><th className="num">Changed</th></tr></thead>
        <tbody>{sorted.map((each) => <Line key={each.run_id} run={each} />)}</tbody>
      </table></div>}
      <div ref={end} className="ends faint sm">
        {listed.loading && "Older runs are fetched"}
        {listed.more && held && <button className="btn" onClick={() => setFurther(all.length + FRUITLESS)}>
          {plural(all.length, "run")} looked through; look further</button>}
        {!listed.more && all.length > PAGE && `These are all ${plural(sorted.length, "run")}.`}
      </div>
    </>
  );
}

export const RunsPage = ({ api }: { api: Api }) => (
  <main className="main"><div className="page"><div className="in">
    <div className="toolbar"><h1 className="grow">Runs</h1><ReadOnly />
      {useSession().writes && <a className="btn ink" href="#/new"><Icon name="plus" />New run<kbd>N</kbd></a>}</div>
    <Runs api={api} />
  </div></div></main>
);

function Line({ run }: { run: RunLine }) {
  const [kind, word] = wordOf(run.state);
  const cost = `${run.unpriced_calls ? "≥ " : ""}$${run.cost_usd.toFixed(4)}`;
  return (
    <tr onClick={() => { location.hash = `#/run/${run.run_id}`; }}>
      <td><span className={`state k-${kind}`}><Glyph shape={kind === "wait" ? (run.state === "completed" ? "done" : run.state === "suspended" ? "wait" : "rest") : kind} kind={kind} />{visible(word)}</span></td>
      <td className="t"><a className="cut strong" href={`#/run/${run.run_id}`}>{line(run.name || run.title || run.run_id, 140)}</a>
        {run.project && <span className="faint sm cut"> in {line(run.project, 40)}</span>}
        {run.reason && <span className="faint sm cut"> {line(run.reason, 80)}</span>}</td>
      <td className="hide dim">{line(run.team || run.entry, 30)}</td>
      <td className="hide"><Spark counts={run.summary.activity ?? []} /></td>
      <td className="num hide">{count(run.tokens)}</td>
      <td className="num hide">{cost}</td>
      <td className="num dim">{ago(Date.now() / 1000 - run.updated_at)}</td>
    </tr>
  );
}
