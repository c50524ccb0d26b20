import { Copy } from "../parts/Copy";
import { Glyph } from "../parts/Glyph";
import type { Api } from "../server/api";
import type { CreateRun, TeamView } from "../server/wire";
import { count, line, plural, visible } from "../state/words";
import { useLoaded } from "../pages/load";
import { commandOf } from "./command";
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
    for (const tool of agent.tools) {
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
export function WillRun({ api, team, body, policy }: { api: Api; team: TeamView; body: CreateRun; policy: string }) {
  const last = useLoaded(async () => (await api.runs({ limit: 1, team: team.name })).runs[0], 60, team.name);
  const tools = ruled(team, policy);
  const command = commandOf(body, location.origin);
  const { tokens, usd } = body.limits ?? {};
  return (
    <aside className="form">
      <section className="sheet pad" aria-label="What will run">
        <h2>What will run</h2>
        <p className="dim sm">{plural(team.agents.length, "agent")}; {visible(body.entry || team.entry)} is asked.</p>
        <TeamGraph team={team} />
        <p className="dim sm">{tokens != null || usd != null
          ? `At most${tokens != null ? ` ${count(tokens)} tokens` : ""}${usd != null ? `${tokens != null ? "," : ""} $${usd}` : ""}; held before it is spent.`
          : "The team's own limits hold."}{" "}
          {last.value && `Its last run: ${count(last.value.tokens)} tokens, ${last.value.unpriced_calls ? "≥ " : ""}$${last.value.cost_usd.toFixed(4)}.`}</p>
      </section>
      <section className="sheet" aria-label="Tools">
        {tools.length === 0
          ? <p className="dim sm alone">No agent of this team has tools of its own.</p>
          : <table className="tools"><thead><tr><th>Tool</th><th>Effect</th><th>Under {visible(policy || team.policy)}</th></tr></thead>
            <tbody>{tools.map((each) => {
              const [shape, word] = RULINGS[each.ruling] ?? ["human", "unknown"];
              return (
                <tr key={`${each.name} ${each.ruling}`}><td><code>{line(each.name, 40)}</code><p className="faint sm cut">{each.agents.map((one) => line(one, 30)).join(", ")}</p></td>
                  <td className="dim">{EFFECTS[each.effect] ?? visible(each.effect)}</td>
                  <td><span className={`state k-${shape === "done" ? "wait" : shape}`}><Glyph shape={shape} />{word}</span></td></tr>);
            })}</tbody></table>}
      </section>
      {team.findings.length > 0 && <ul className="why">{team.findings.map((each) => <li key={each}><Glyph shape="human" /><span>{visible(each)}</span></li>)}</ul>}
      <div><div className="row"><p className="label grow">The same in a terminal</p><Copy what="Copy the command" text={() => command} /></div>
        <div className="well" tabIndex={0} role="group" aria-label="The command">{visible(command)}</div></div>
    </aside>
  );
}
