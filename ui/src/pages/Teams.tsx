import { Glyph } from "../parts/Glyph";
import { TeamGraph } from "../start/Graph";
import type { Api } from "../server/api";
import type { TeamView, ToolsetView, ToolView } from "../server/wire";
import { line, plural, visible } from "../state/words";
import { useLoaded } from "./load";
import { Source } from "./Source";
import { Empty, Loading, Trouble } from "./states";

/** The teams that are served, or that can be started in a project: who is in them, who reaches whom, what their tools do. */
export function Teams({ api, project = "" }: { api: Api; project?: string }) {
  const { value, error, again } = useLoaded(() => api.teams(project), 30, project);
  return (
    <main className="main"><div className="page"><div className="in">
      <h1 className="toolbar">Teams{project && <span className="faint sm">in <a className="link" href={`#/projects/${project}`}>{visible(project)}</a></span>}</h1>
      {error && <Trouble again={again}>{error}</Trouble>}
      {!value && !error && <Loading />}
      {value?.teams.length === 0 && (project
        ? <Empty title="No team can be started in this project" todo={<a className="btn" href="#/teams">Teams of the server</a>}>Its file names none that is there.</Empty>
        : <Empty title="No team is served" todo={<code className="faint">antiphon serve examples/research</code>}>Serve one to see it here.</Empty>)}
      <div className="form">{value?.teams.map((each) => <Team key={each.name} api={api} name={each.name} project={project} />)}</div>
    </div></div></main>
  );
}

function Team({ api, name, project }: { api: Api; name: string; project: string }) {
  const { value: team, error, again } = useLoaded(() => api.team(name, project), 60, `${name} ${project}`);
  if (!team) return error ? <Trouble again={again}>{error}</Trouble> : <Loading />;
  return <TeamSheet api={api} name={name} team={team} project={project} />;
}

const RULES: Record<string, string> = { ask: "; asks you first", deny: "; denied" };
const EFFECTS: Record<string, string> = { read: "only reads", idempotent: "may be repeated", once: "acts once" };

const Tool = ({ tool }: { tool: ToolView }) => (
  <p className="sm tool"><Glyph shape="tool" /> <code>{visible(tool.name)}</code>{" "}
    <span className="faint">{EFFECTS[tool.effect] ?? visible(tool.effect)}{RULES[tool.rulings[""] ?? ""]}</span></p>
);

/** How a toolset stands, in a few words. */
export function offered({ tools, reason, required }: ToolsetView): string {
  const needed = required ? "; a run does not start without it" : "";
  if (reason) return `toolset; down: ${line(reason, 200)}${needed}`;
  return tools === null ? `toolset; its tools are known once a run has opened it${needed}` : `toolset; ${plural(tools.length, "tool")}${needed}`;
}

function TeamSheet({ api, name, team, project }: { api: Api; name: string; team: TeamView; project: string }) {
  return (
    <section className="sheet pad" aria-label={visible(team.name)}>
      <h2>{visible(team.name)}</h2>
      <p className="dim sm">{plural(team.agents.length, "agent")}; {visible(team.entry)} is asked. Policy: {team.policy || "open"}.{" "}
        <a className="link" href={`#/new?team=${encodeURIComponent(team.name)}${project && `&project=${project}`}`}>New run</a></p>
      <div className="team-two"><TeamGraph team={team} />
      <ul className="agents">
        {team.agents.map((agent) => (
          <li key={agent.name}>
            <p><Glyph shape="agent" /> <b className="strong">{visible(agent.name)}</b>{" "}
              <span className="dim">{line(agent.description, 160)}</span></p>
            {team.edges.some(([from]) => from === agent.name) && (
              <p className="faint sm">reaches {team.edges.filter(([from]) => from === agent.name).map(([, to]) => visible(to)).join(", ")}</p>)}
            {agent.tools.map((tool) => <Tool key={tool.name} tool={tool} />)}
            {agent.toolsets.map((toolset) => (
              <div key={toolset.name} role="group" aria-label={`Toolset ${line(toolset.name, 60)}`}>
                <p className="sm tool"><Glyph shape={toolset.reason ? "error" : "rest"} /> {line(toolset.name, 60)}{" "}
                  <span className={toolset.reason ? "kt k-error" : "faint"}>{offered(toolset)}</span></p>
                <div className="tool">{(toolset.tools ?? []).map((tool) => <Tool key={tool.name} tool={tool} />)}</div>
              </div>))}
          </li>
        ))}
      </ul></div>
      {team.findings.length > 0 && <ul className="why">{team.findings.map((each) => <li key={each}><Glyph shape="human" /><span>{visible(each)}</span></li>)}</ul>}
      <Source api={api} name={name} team={team} project={project} />
    </section>
  );
}
