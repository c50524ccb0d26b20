import { useState } from "react";
import { Glyph, Icon } from "../parts/Glyph";
import type { Kind } from "../state/doing";
import { ago, count, line } from "../state/words";
import type { Api } from "../server/api";
import { commandOf, useSession } from "../server/session";
import type { RunLine } from "../server/wire";
import { useLoaded } from "./load";
import { matches } from "./search";
import { Empty, Loading, ReadOnly, Trouble } from "./states";

const WORDS: Record<string, [Kind, string]> = {
  waiting: ["human", "Asks you"], running: ["agent", "Running"], queued: ["agent", "Queued"], suspended: ["wait", "Suspended"],
  completed: ["wait", "Completed"], failed: ["error", "Failed"], limit: ["error", "Limit"], cancelled: ["wait", "Cancelled"],
  idle: ["wait", "Idle"], closed: ["wait", "Closed"], damaged: ["error", "Damaged"],
};
export const wordOf = (state: string): [Kind, string] => WORDS[state] ?? ["wait", state];

/** All runs: what needs a person first, then the newest. */
export function Runs({ api }: { api: Api }) {
  const { value, error, again } = useLoaded(() => api.runs(), 3);
  const session = useSession();
  const [search, setSearch] = useState("");
  const all = value?.runs ?? [];
  const found = all.filter((each) => matches(each, search));
  const sorted = [...found.filter((each) => each.state === "waiting"), ...found.filter((each) => each.state !== "waiting")];
  const states = [...new Set(all.map((each) => each.state))];
  return (
    <main className="main">
      {error && <Trouble again={again}>{error}</Trouble>}
      <div className="page"><div className="in">
        <div className="toolbar"><h1 className="grow">Runs</h1><ReadOnly />
          {session.writes && <a className="btn ink" href="#/new"><Icon name="plus" />New run</a>}</div>
        <div className="toolbar">
          <label className="search"><Icon name="search" /><span className="sr">Search</span>
            <input className="field" type="search" value={search} onChange={(event) => setSearch(event.target.value)}
              placeholder="Search, or state:failed team:research cost:>0.01" /></label>
        </div>
        <div className="toolbar chips">
          <button className="chip" aria-pressed={!search} onClick={() => setSearch("")}>All {all.length}</button>
          {states.map((each) => (
            <button key={each} className="chip" aria-pressed={search === `state:${each}`} onClick={() => setSearch(`state:${each}`)}>
              {wordOf(each)[1]} {all.filter((run) => run.state === each).length}</button>
          ))}
        </div>
        {!value && !error && <Loading />}
        {value && all.length === 0 && (
          <Empty title="No run yet" todo={<>{session.writes && <a className="btn ink" href="#/new">New run</a>}
            <code className="faint">{commandOf(session, "start") || 'antiphon run examples/research "…"'}</code></>}>
            Start one {session.writes && "here, or "}in a terminal: it shows up at once.</Empty>)}
        {all.length > 0 && found.length === 0 && (
          <Empty title={`Nothing matches ${search}`} todo={<button className="btn" onClick={() => setSearch("")}>Clear search</button>}>
            {all.length} runs do not.</Empty>)}
        {sorted.length > 0 && <div className="sheet"><table className="runs">
          <thead><tr><th>State</th><th>Run</th><th className="hide">Team</th><th className="num hide">Tokens</th><th className="num hide">Cost</th><th className="num">Changed</th></tr></thead>
          <tbody>{sorted.map((each) => <Line key={each.run_id} run={each} />)}</tbody>
        </table></div>}
        {value !== undefined && value.next > 0 && <p className="faint sm">These are the newest 100; search in a terminal for older ones: <code>antiphon runs ls</code></p>}
      </div></div>
    </main>
  );
}

function Line({ run }: { run: RunLine }) {
  const [kind, word] = wordOf(run.state);
  const cost = `${run.unpriced_calls ? "≥ " : ""}$${run.cost_usd.toFixed(4)}`;
  return (
    <tr onClick={() => { location.hash = `#/run/${run.run_id}`; }}>
      <td><span className={`state k-${kind}`}><Glyph shape={kind === "wait" ? (run.state === "completed" ? "done" : "rest") : kind} kind={kind} />{word}</span></td>
      <td className="t"><a className="cut strong" href={`#/run/${run.run_id}`}>{line(run.name || run.title || run.run_id, 140)}</a>
        {run.reason && <span className="faint sm cut"> {line(run.reason, 80)}</span>}</td>
      <td className="hide dim">{line(run.team || run.entry, 30)}</td>
      <td className="num hide">{count(run.tokens)}</td>
      <td className="num hide">{cost}</td>
      <td className="num dim">{ago(Date.now() / 1000 - run.updated_at)}</td>
    </tr>
  );
}
