import { useMemo, useRef, useState, type FormEvent } from "react";
import { Glyph, Icon } from "../parts/Glyph";
import { useListKeys } from "../pages/keys";
import { useLoaded } from "../pages/load";
import { Empty, Loading, Trouble } from "../pages/states";
import type { Api } from "../server/api";
import { reason } from "../server/problem";
import { line, plural } from "../state/words";

/** All projects: what belongs together, with its files, teams and rules. */
export function Projects({ api }: { api: Api }) {
  const { value, error, again } = useLoaded(api.projects, 10);
  const [making, make] = useState(false);
  useListKeys(".projects tbody a", useMemo(() => ({}), []));
  return (
    <main className="main">
      {error && <Trouble again={again}>{error}</Trouble>}
      <div className="page"><div className="in">
        <div className="toolbar"><h1 className="grow">Projects</h1>
          <button className="btn ink" onClick={() => make(true)}><Icon name="plus" />New project</button></div>
        {making && <Make api={api} done={() => make(false)} />}
        {!value && !error && <Loading />}
        {value?.projects.length === 0 && !making && (
          <Empty title="No project yet" todo={<button className="btn ink" onClick={() => make(true)}>New project</button>}>
            A project keeps runs, files and rules together.</Empty>)}
        {value && value.projects.length > 0 && <div className="sheet"><table className="projects">
          <thead><tr><th>Project</th><th className="hide">Teams</th><th className="num">Runs</th><th className="num">Files</th></tr></thead>
          <tbody>{value.projects.map((each) => (
            <tr key={each.project} onClick={() => { location.hash = `#/projects/${each.project}`; }}>
              <td><a className="strong cut" href={`#/projects/${each.project}`}>{line(each.name, 120)}</a>
                {each.name !== each.project && <span className="faint sm"> {line(each.project, 40)}</span>}
                {each.findings.length > 0 && <span className="kt k-human sm"> <Glyph shape="human" /> {plural(each.findings.length, "finding")}</span>}</td>
              <td className="hide dim">{each.teams.map((one) => line(one, 40)).join(", ")}</td>
              <td className="num">{each.runs}</td><td className="num">{each.files}</td>
            </tr>))}</tbody>
        </table></div>}
      </div></div>
    </main>
  );
}

const ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,39}$/;
/** A name as an id, as far as that goes. */
export const idOf = (name: string): string =>
  name.normalize("NFKD").replace(/\p{M}/gu, "").replace(/[^\w.-]+/g, "-").replace(/^[^A-Za-z0-9]+|-+$/g, "").toLowerCase().slice(0, 40);

function Make({ api, done }: { api: Api; done(): void }) {
  const [name, setName] = useState("");
  const [id, setId] = useState("");
  const [wrong, setWrong] = useState("");
  const making = useRef(false);
  const project = id || idOf(name);
  const fault = project && !ID.test(project) ? "Expected letters, digits, dots, dashes and underscores, 40 at most, a letter or digit first" : "";
  const make = (event: FormEvent): void => {
    event.preventDefault();
    if (!project || fault || making.current) return;
    making.current = true;
    setWrong("");
    api.makeProject({ project, name: name.trim() }).then(
      () => { location.hash = `#/projects/${project}`; }, (error: unknown) => { making.current = false; setWrong(reason(error)); });
  };
  return (
    <form className="sheet pad make" onSubmit={make} aria-label="New project" onKeyDown={(event) => { if (event.key === "Escape") done(); }}>
      <div className="three">
        <label><span className="label">Name</span><input className="field" autoFocus value={name} maxLength={200} onChange={(event) => setName(event.target.value)} /></label>
        <label><span className="label">Id <span className="faint">it stays</span></span>
          <input className="field mono" value={project} aria-invalid={Boolean(fault)} onChange={(event) => setId(event.target.value)} /></label>
      </div>
      {(fault || wrong) && <p className="kt k-error sm" role="alert">{fault || wrong}</p>}
      <div className="row"><button className="btn ink" disabled={!project || fault !== ""}>Make it</button>
        <button className="btn plain" type="button" onClick={done}>Leave it</button></div>
    </form>
  );
}
