import { useEffect, useRef, useState, type FormEvent } from "react";
import type { Api } from "../server/api";
import { reason } from "../server/problem";
import type { RunLine } from "../server/wire";
import { line, visible } from "../state/words";
import { useLoaded } from "./load";

/** What people call a run, and what it is a part of; and the run as a file. */
export function About({ api, info, done }: { api: Api; info: RunLine; done(): void }) {
  const box = useRef<HTMLDialogElement>(null);
  const [name, setName] = useState(info.name);
  const [project, setProject] = useState(info.project);
  const [wrong, setWrong] = useState("");
  const projects = useLoaded(api.projects, 30);
  useEffect(() => box.current?.showModal(), []);
  const save = (event: FormEvent): void => {
    event.preventDefault();
    const change = { ...(name.trim() === info.name ? {} : { name: name.trim() }), ...(project === info.project ? {} : { project }) };
    if (!Object.keys(change).length) return box.current?.close();
    setWrong("");
    api.changeRun(info.run_id, change).then(() => box.current?.close(), (error: unknown) => setWrong(reason(error)));
  };
  const there = projects.value?.projects ?? [];
  return (
    <dialog ref={box} className="keys" aria-label="About this run" onClose={done}>
      <form className="form" onSubmit={save}>
        <h2>About this run</h2>
        <dl className="kv sm"><div><dt>Id</dt><dd><code>{visible(info.run_id)}</code></dd></div>
          <div><dt>Team</dt><dd>{line(info.team, 60) || "of no server"}</dd></div><div><dt>Owner</dt><dd>{line(info.owner, 60) || "nobody"}</dd></div></dl>
        <label><span className="label">Name</span><input className="field" autoFocus value={name} maxLength={200} onChange={(event) => setName(event.target.value)} /></label>
        <label><span className="label">Project</span><select className="field" value={project} onChange={(event) => setProject(event.target.value)}>
          <option value="">none</option>
          {!there.some((each) => each.project === info.project) && info.project && <option value={info.project}>{line(info.project, 60)}</option>}
          {there.map((each) => <option key={each.project} value={each.project}>{line(each.name, 60)}</option>)}</select></label>
        {wrong && <p className="kt k-error sm" role="alert">{wrong}</p>}
        <div className="row"><button className="btn ink">Save</button><button className="btn plain" type="button" onClick={() => box.current?.close()}>Leave it</button></div>
      </form>
    </dialog>
  );
}
