import { useState } from "react";
import { Glyph } from "../parts/Glyph";
import type { Api } from "../server/api";
import type { RunLine } from "../server/wire";
import { asksPerson } from "../state/doing";
import type { Run } from "../state/run";
import { line, plural, sentence, visible } from "../state/words";
import { commandOf, type Session } from "../server/session";
import { useLoaded } from "./load";
import { GoOn } from "./states";

const AGAIN: Record<string, string> = {
  read: "runs again", idempotent: "runs again, under the same key", once: "is not repeated: it may or may not have happened",
};

/** What was going on when nobody drove the run any more, and what becomes of it. effects: of tools, by name. */
export function inFlight(run: Run, effects: Record<string, string>): string[] {
  const open = [...run.effects.values()].filter((each) => !each.end);
  const models = open.filter((each) => each.kind === "model").length;
  const asks = open.filter(asksPerson).length;
  return [
    ...(models ? [`${plural(models, "model call")}: asked again`] : []),
    ...open.filter((each) => each.kind === "tool").map((each) =>
      `${line(each.name, 60)}: ${AGAIN[effects[each.name] ?? ""] ?? "what becomes of it its tool says"}`),
    ...(asks ? [`${plural(asks, "question")}: still open`] : []),
  ];
}

/** Nobody drives the run: what was in flight, and how it goes on, or why it cannot here. */
export function Parked({ api, info, run, session, resume }: { api: Api; info: RunLine; run: Run; session: Session; resume(team: string): void }) {
  const [chosen, choose] = useState("");
  const teams = useLoaded(() => api.teams(), 15);
  const team = info.team || chosen;
  const shown = useLoaded(async () => (team ? api.team(team, info.project) : undefined), 60, team);
  const gone = session.writes && info.team !== "" && shown.value === undefined && shown.error !== "";
  const effects = Object.fromEntries((shown.value?.agents ?? []).flatMap((each) => [...each.tools, ...each.toolsets.flatMap((one) => one.tools ?? [])]).map((each) => [each.name, each.effect]));
  const flight = inFlight(run, effects);
  const many = [...run.effects.values()].filter((each) => !each.end && (each.kind === "model" || each.kind === "tool" || asksPerson(each))).length;
  return (
    <div className={`notice parked ${gone ? "k-human" : ""}`} role="status"><Glyph shape={gone ? "human" : "wait"} />
      <div className="grow">
        {gone
          ? <p><b className="strong">Parked, and cannot be resumed here.</b> {sentence(line(shown.error, 200))} It can be read, scrubbed and exported. Serve its team to go on:{" "}
            <code>antiphon serve {visible(info.team)}=…</code></p>
          : <p><b className="strong">Parked.</b> Nobody drives this run. Nothing is lost: what has ended is not repeated. {line(info.reason, 200)}</p>}
        {flight.length > 0 && <details><summary>{plural(many, "thing")} in flight</summary><ul>{flight.map((each, index) => <li key={index}>{each}</li>)}</ul></details>}
      </div>
      {session.writes && !info.team && (
        <label className="row"><span className="sr">Whose it is</span><select className="field" value={chosen} onChange={(event) => choose(event.target.value)}>
          <option value="">its team</option>{teams.value?.teams.map((each) => <option key={each.name}>{each.name}</option>)}</select></label>)}
      {!session.writes
        ? <GoOn what="Resume it" command={commandOf(session, "resume", info.run_id)} />
        : !gone && <button className="btn" onClick={() => resume(info.team ? "" : chosen)}>Resume</button>}
    </div>
  );
}
