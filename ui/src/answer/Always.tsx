// How far an approval that is remembered reaches: which arguments, whose calls, where, and how long.
import { useState } from "react";
import { Glyph } from "../parts/Glyph";
import type { AnswerBody } from "../server/wire";
import { line, visible } from "../state/words";
import { around, exactly, fits } from "./pattern";

export type Scope = NonNullable<AnswerBody["scope"]>;
type Given = NonNullable<AnswerBody["grant"]>;
type Way = "any" | "around" | "same" | "own";

const SPANS: [string, number][] = [["for good", 0], ["for an hour", 3_600], ["for a day", 86_400], ["for a week", 604_800]];
const WHERE: Record<Scope, string> = { run: "in this run", project: "in its project", owner: "in all of my runs" };

/** Of an answer `always`, what goes with it: nothing where all calls of the tool in this run are meant. */
export function reach(arguments_: [string, string][], agent: string, seconds: number, scope: Scope, now = Date.now() / 1_000): Partial<AnswerBody> {
  const grant: Given = {
    ...(arguments_.length ? { arguments: arguments_ } : {}), ...(agent ? { agent } : {}), ...(seconds ? { until: Math.round(now + seconds) } : {}),
  };
  return { ...(Object.keys(grant).length ? { grant } : {}), ...(scope === "run" ? {} : { scope }) };
}

/** asked: the arguments, JSON, as they would be allowed now. project: what the run is a part of; empty for nothing. */
export function Always({ tool, agent, asked, project, busy, exposed, send, leave }: {
  tool: string; agent: string; asked: string; project: string; busy: boolean;
  /** It was shown something untrusted and something private, and so asks each time. */
  exposed: boolean;
  send(more: Partial<AnswerBody>): void; leave(): void;
}) {
  const values = valuesOf(asked);
  const [ways, setWays] = useState<Record<string, Way>>({});
  const [own, setOwn] = useState<Record<string, string>>({});
  const [mine, setMine] = useState(false);
  const [seconds, setSeconds] = useState(0);
  const [scope, setScope] = useState<Scope>("run");
  const patternOf = (name: string): string => {
    const way = ways[name] ?? "any";
    return way === "any" ? "" : way === "same" ? exactly(values[name]) : way === "around" ? around(values[name]) : (own[name] ?? "");
  };
  const patterns = Object.keys(values).filter((name) => (ways[name] ?? "any") !== "any").map((name): [string, string] => [name, patternOf(name)]);
  const empty = patterns.some(([, pattern]) => !pattern);
  const misses = patterns.filter(([name, pattern]) => pattern && !fits(pattern, values[name])).map(([name]) => name);
  return (
    <div className="always" role="group" aria-label={`Always allow ${line(tool, 60)}`} onKeyDown={(event) => { if (event.key === "Escape") { event.stopPropagation(); leave(); } }}>
      <p className="strong">Always allow <code>{line(tool, 60)}</code></p>
      {Object.entries(values).map(([name, value]) => {
        const way = ways[name] ?? "any";
        const wide = around(value);
        return (
          <div key={name} className="row">
            <code className="cut">{visible(name)}</code>
            <select className="field" aria-label={`${line(name, 60)}: which`} value={way} onChange={(event) => {
              const next = event.target.value as Way;
              if (next === "own" && own[name] === undefined) setOwn({ ...own, [name]: wide || exactly(value) });
              setWays({ ...ways, [name]: next });
            }}>
              <option value="any">anything</option>
              {wide && <option value="around">{line(wide, 60)}</option>}
              <option value="same">as it is asked now</option>
              <option value="own">a pattern</option>
            </select>
            {way === "own" && <input className="field mono grow" aria-label={`${line(name, 60)}: pattern`} value={own[name] ?? ""} spellCheck={false}
              onChange={(event) => setOwn({ ...own, [name]: event.target.value })} />}
          </div>);
      })}
      <div className="row">
        {agent && <select className="field" aria-label="Always: whose calls" value={mine ? "one" : "all"} onChange={(event) => setMine(event.target.value === "one")}>
          <option value="all">whoever calls it</option><option value="one">only {line(agent, 40)}</option></select>}
        <select className="field" aria-label="Always: where" value={scope} onChange={(event) => setScope(event.target.value as Scope)}>
          {(["run", ...(project ? ["project" as const] : []), "owner"] as const).map((each) => <option key={each} value={each}>{WHERE[each]}</option>)}</select>
        <select className="field" aria-label="Always: how long" value={seconds} onChange={(event) => setSeconds(Number(event.target.value))}>
          {SPANS.map(([told, span]) => <option key={told} value={span}>{told}</option>)}</select>
      </div>
      {patterns.some(([, pattern]) => /[*?]/.test(pattern)) && <p className="faint sm"><code>*</code> stands for any text, also over several folders, and <code>?</code> for one sign. A path with <code>..</code> in it is never meant.</p>}
      {exposed && <p className="row sm kt k-human"><Glyph shape="human" /><span>This agent was shown something untrusted and something private: it is asked each time all the same. What you allow here holds for others.</span></p>}
      {misses.length > 0 && <p className="row sm kt k-human" role="status"><Glyph shape="human" />As it is asked, {misses.map((each) => visible(each)).join(", ")} {misses.length === 1 ? "does" : "do"} not
        fit: this call is allowed, and the next like it may be asked again.</p>}
      <div className="row">
        <button className="btn ink" type="button" disabled={busy || empty} onClick={() => send(reach(patterns, mine ? agent : "", seconds, scope))}>{busy ? "Sent" : "Always allow"}</button>
        <button className="btn plain" type="button" onClick={leave}>Leave it</button>
      </div>
    </div>
  );
}

function valuesOf(json: string): Record<string, unknown> {
  try {
    const found: unknown = JSON.parse(json || "{}");
    return typeof found === "object" && found !== null && !Array.isArray(found) ? (found as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
