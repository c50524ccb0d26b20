import { useState, type FormEvent } from "react";
import { Glyph, Icon } from "../parts/Glyph";
import { useLoaded } from "../pages/load";
import { Runs } from "../pages/Runs";
import { Loading, Trouble } from "../pages/states";
import type { Api } from "../server/api";
import { reason } from "../server/problem";
import type { ProjectView } from "../server/wire";
import { ago, line, plural, visible } from "../state/words";
import { Files } from "./Files";

/** One project: its teams, files, rules and runs. */
export function Project({ api, project }: { api: Api; project: string }) {
  const { value, error, again } = useLoaded(() => api.project(project), 5, project);
  const [doing, act] = useState<"" | "name" | "delete">("");
  return (
    <main className="main">
      {error && <Trouble again={again}>{error}</Trouble>}
      <div className="page"><div className="in">
        <div className="toolbar"><h1 className="grow cut">{value ? line(value.name, 200) : visible(project)}
          {value && value.name !== project && <span className="faint sm mono"> {visible(project)}</span>}</h1>
          {value && <>
            <button className="btn" onClick={() => act("name")}>Rename</button>
            <button className="btn danger" onClick={() => act("delete")}>Delete</button>
            <a className="btn ink" href={`#/new?project=${project}`}><Icon name="plus" />New run</a></>}</div>
        {!value && !error && <Loading />}
        {value && doing === "name" && <Rename api={api} project={value} done={() => { act(""); again(); }} />}
        {value && doing === "delete" && <Delete api={api} project={value} done={() => act("")} />}
        {value && <>
          {value.findings.length > 0 && <ul className="why">{value.findings.map((each) => <li key={each}><Glyph shape="human" /><span>{visible(each)}</span></li>)}</ul>}
          <div className="two even">
            <Files api={api} project={project} changed={again} />
            <div className="form">
              <section className="sheet pad" aria-label="Teams"><h2>{value.teams.length > 0 ? <a className="link" href={`#/teams?project=${project}`}>Teams</a> : "Teams"}</h2>
                {value.teams.length === 0 && <p className="faint">None can be started in it.</p>}
                <ul>{value.teams.map((each) => (
                  <li key={each} className="row"><Glyph shape="agent" /><span className="grow cut">{visible(each)}</span>
                    <a className="link sm" href={`#/new?project=${project}&team=${encodeURIComponent(each)}`}>New run</a></li>))}</ul></section>
              <Rules project={value} />
            </div>
          </div>
          <h2 className="toolbar">Runs</h2>
          <Runs api={api} project={project} />
        </>}
      </div></div>
    </main>
  );
}

const VERDICTS: Record<string, ["done" | "human" | "error", string]> = { allow: ["done", "allowed"], ask: ["human", "asks"], deny: ["error", "denied"] };

function Rules({ project }: { project: ProjectView }) {
  return (
    <section className="sheet pad" aria-label="Rules"><h2>Rules</h2>
      {project.rules.length === 0 && <p className="faint">None. A rule stands in the project's file, or comes of an approval that is remembered for the project.</p>}
      <ul className="why">{project.rules.map((each) => {
        const [shape, word] = VERDICTS[each.verdict] ?? ["human", each.verdict];
        const { agent = "", arguments: given = [], also = [], until = 0 } = each.grant ?? {};
        const reaches = [given, ...also].filter((reach) => reach.length > 0);
        return (
          <li key={each.id}><Glyph shape={shape} /><span><code>{line(each.tool, 60)}</code> {word}
            {agent && ` for ${line(agent, 40)}`}{reaches.map((reach, at) => (at ? " or" : "") + reach.map(([name, pattern]) => ` · ${line(name, 40)} like ${line(pattern, 80)}`).join(""))}
            {until > 0 && ` · until ${new Date(until * 1000).toLocaleString("en")}`}
            <span className="faint sm"> {each.author ? `by ${line(each.author, 40)}, ` : ""}{each.created_at ? `${ago(Date.now() / 1000 - each.created_at)}, ` : ""}{line(each.id, 60)}</span></span></li>);
      })}</ul></section>
  );
}

function Rename({ api, project, done }: { api: Api; project: ProjectView; done(): void }) {
  const [name, setName] = useState(project.name);
  const [wrong, setWrong] = useState("");
  const rename = (event: FormEvent): void => {
    event.preventDefault();
    api.renameProject(project.project, name.trim()).then(done, (error: unknown) => setWrong(reason(error)));
  };
  return (
    <form className="sheet pad make" onSubmit={rename} aria-label="Rename" onKeyDown={(event) => { if (event.key === "Escape") done(); }}>
      <label><span className="label">Name <span className="faint">the id stays {visible(project.project)}</span></span>
        <input className="field" autoFocus value={name} maxLength={200} onChange={(event) => setName(event.target.value)} /></label>
      {wrong && <p className="kt k-error sm" role="alert">{wrong}</p>}
      <div className="row"><button className="btn ink">Rename it</button><button className="btn plain" type="button" onClick={done}>Leave it</button></div>
    </form>
  );
}

function Delete({ api, project, done }: { api: Api; project: ProjectView; done(): void }) {
  const [typed, setTyped] = useState("");
  const [wrong, setWrong] = useState("");
  const remove = (event: FormEvent): void => {
    event.preventDefault();
    if (typed !== project.project) return;
    api.deleteProject(project.project).then(() => { location.hash = "#/projects"; }, (error: unknown) => setWrong(reason(error)));
  };
  return (
    <form className="sheet pad make" onSubmit={remove} aria-label="Delete" onKeyDown={(event) => { if (event.key === "Escape") done(); }}>
      <p><b className="strong">Delete {line(project.name, 80)}?</b> Its {plural(project.files, "file")} and {plural(project.rules.length, "rule")} go for good.
        Its {plural(project.runs, "run")} stay.</p>
      <label><span className="label">Type <code>{visible(project.project)}</code> to delete it</span>
        <input className="field mono" autoFocus value={typed} onChange={(event) => setTyped(event.target.value)} /></label>
      {wrong && <p className="kt k-error sm" role="alert">{wrong}</p>}
      <div className="row"><button className="btn danger" disabled={typed !== project.project}>Delete it</button>
        <button className="btn plain" type="button" onClick={done}>Leave it</button></div>
    </form>
  );
}
