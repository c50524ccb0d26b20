import { Copy } from "../parts/Copy";
import { Glyph } from "../parts/Glyph";
import type { Api } from "../server/api";
import type { CreateRun, ModelChoices, TeamView } from "../server/wire";
import { line, plural, visible } from "../state/words";
import { useLoaded } from "../pages/load";
import { commandOf } from "./command";
import { atMost, usual } from "./forecast";
import { TeamGraph } from "./Graph";

const EFFECTS: Record<string, string> = { read: "reads", idempotent: "may be repeated", once: "acts once" };
const RULINGS: Record<string, ["done" | "human" | "error", string]> = {
  allow: ["done", "allowed"], ask: ["human", "asks you"], deny: ["error", "denied"],
};

export interface Ruled {
  name: string;
  effect: string;
  ruling: string;
  agents: string[];
}

/** The tools of a team, each once, with what becomes of its calls; the same tool twice where agents' own rules differ. */
export function ruled(team: TeamView, policy: string): Ruled[] {
  const found = new Map<string, Ruled>();
  for (const agent of team.agents) {
    for (const tool of [...agent.tools, ...agent.toolsets.flatMap((each) => each.tools ?? [])]) {
      const ruling = tool.rulings[policy] ?? "";
      const key = `${tool.name} ${ruling}`;
      const known = found.get(key);
      if (known) known.agents.push(agent.name);
      else found.set(key, { name: tool.name, effect: tool.effect, ruling, agents: [agent.name] });
    }
  }
  return [...found.values()];
}

/** What a form would start: who reaches whom, what each tool may do, what it may cost, the same as a command. */
export function WillRun({ api, team, body, policy, models }: { api: Api; team: TeamView; body: CreateRun; policy: string; models: ModelChoices | undefined }) {
  const last = useLoaded(() => api.runs({ limit: 20, team: team.name }), 60, team.name);
  const tools = ruled(team, policy);
  const unknown = [...new Set(team.agents.flatMap((each) => each.toolsets).filter((each) => each.tools === null).map((each) => each.name))];
  const command = commandOf(body, location.origin);
  return (
    <aside className="form">
      <section className="sheet pad" aria-label="What will run">
        <h2>What will run</h2>
        <p className="dim sm">{plural(team.agents.length, "agent")}; {visible(body.entry || team.entry)} is asked.</p>
        <TeamGraph team={team} />
        <dl className="kv sm" aria-label="What it may cost">
          <div><dt>May cost</dt><dd>{atMost(team, body, models)}</dd></div>
          <div><dt>Did cost</dt><dd>{usual(last.value?.runs ?? []) || "No run of this team has ended yet."}</dd></div>
        </dl>
      </section>
      <section className="sheet" aria-label="Tools">
        {tools.length === 0 && unknown.length === 0
          ? <p className="dim sm alone">No agent of this team has tools of its own.</p>
          : tools.length > 0 && <table className="tools"><thead><tr><th>Tool</th><th>Effect</th><th>Under {visible(policy || team.policy)}</th></tr></thead>
            <tbody>{tools.map((each) => {
              const [shape, word] = RULINGS[each.ruling] ?? ["human", "unknown"];
              return (
                <tr key={`${each.name} ${each.ruling}`}><td><code>{line(each.name, 40)}</code><p className="faint sm cut">{each.agents.map((one) => line(one, 30)).join(", ")}</p></td>
                  <td className="dim">{EFFECTS[each.effect] ?? visible(each.effect)}</td>
                  <td><span className={`state k-${shape === "done" ? "wait" : shape}`}><Glyph shape={shape} />{word}</span></td></tr>);
            })}</tbody></table>}
        {unknown.length > 0 && <p className="faint sm pad-in">{unknown.map((each) => line(each, 40)).join(", ")}: what {unknown.length === 1 ? "it offers" : "they offer"} is known
          once a run has opened {unknown.length === 1 ? "it" : "them"}.</p>}
      </section>
      {team.findings.length > 0 && <ul className="why">{team.findings.map((each) => <li key={each}><Glyph shape="human" /><span>{visible(each)}</span></li>)}</ul>}
      <div><div className="row"><p className="label grow">The same in a terminal</p><Copy what="Copy the command" text={() => command} /></div>
        <div className="well" tabIndex={0} role="group" aria-label="The command">{visible(command)}</div></div>
    </aside>
  );
}
