import { useEffect, useMemo, useRef, useState, type FormEvent } from "react";
import { Drop } from "../projects/Drop";
import type { Api } from "../server/api";
import { reason } from "../server/problem";
import type { CreateRun, TeamView } from "../server/wire";
import { line, plural, visible } from "../state/words";
import { useLoaded } from "../pages/load";
import { Empty, Loading, Trouble } from "../pages/states";
import { breachOf } from "./forecast";
import { bodyOf, BLANK, POLICIES, rank, type Chosen } from "./form";
import { WillRun } from "./WillRun";

const MOST = 50 * 1024 * 1024;

/** Start a run: whom, what, with which files, model, rules and limits; and what will run. */
export function NewRun({ api, team: named = "", project: within = "" }: { api: Api; team?: string | undefined; project?: string | undefined }) {
  const [chosen, choose] = useState<Chosen>({ ...BLANK, team: named, project: within });
  const set = (more: Partial<Chosen>): void => choose((old) => ({ ...old, ...more }));
  const [files, setFiles] = useState<File[]>([]);
  const [team, setTeam] = useState<TeamView>();
  const [wrong, setWrong] = useState("");
  const [starting, setStarting] = useState(false);
  const teams = useLoaded(() => api.teams(chosen.project), 30, chosen.project);
  const projects = useLoaded(api.projects, 30);
  const models = useLoaded(api.models, 60);
  const stored = useLoaded(async () => (chosen.project ? (await api.files(chosen.project)).files : []), 15, chosen.project);
  // The same form sent twice starts one run.
  const key = useRef(crypto.randomUUID());
  const there = teams.value?.teams ?? [];
  const name = there.some((each) => each.name === chosen.team) ? chosen.team : (there[0]?.name ?? "");
  const policy = team && chosen.policy && rank(chosen.policy) < rank(team.policy) ? "" : chosen.policy;

  useEffect(() => {
    let left = false;
    if (name) api.team(name, chosen.project).then((found) => { if (!left) setTeam(found); }, (error: unknown) => { if (!left) setWrong(reason(error)); });
    return () => { left = true; };
  }, [api, name, chosen.project]);
  const { body, faults } = useMemo(() => bodyOf({ ...chosen, team: name, policy }, files), [chosen, name, policy, files]);

  const start = async (event: FormEvent | { preventDefault(): void }): Promise<void> => {
    event.preventDefault();
    const large = files.find((each) => each.size > MOST);
    if (large) return setWrong(`${large.name} has ${large.size} bytes; a file may have 50 MB`);
    if (Object.keys(faults).length || starting || !chosen.message.trim()) return;
    setWrong("");
    setStarting(true);
    try {
      const attachments = await Promise.all(files.map(async (each) => ({
        media_type: each.type || "application/octet-stream", name: each.name, data: await encoded(each),
      })));
      const made = await api.start({ ...body, ...(files.length ? { attachments } : {}) }, key.current);
      location.hash = `#/run/${made.run_id}`;
    } catch (error) {
      setWrong(reason(error));
      setStarting(false);
    }
  };
  const number = (field: "tokens" | "dollars" | "turns" | "calls" | "seconds", title: string, hint: string) => (
    <label><span className="label">{title}</span>
      <input className="field" inputMode="decimal" value={chosen[field]} placeholder={hint} aria-invalid={Boolean(faults[field])}
        onChange={(event) => set({ [field]: event.target.value })} />
      {faults[field] && <span className="kt k-error sm" role="alert">{faults[field]}</span>}</label>);

  return (
    <main className="main"><div className="page"><div className="in">
      <h1 className="toolbar">New run</h1>
      {teams.error && <Trouble again={teams.again}>{teams.error}</Trouble>}
      {!teams.value && !teams.error && <Loading />}
      {teams.value && there.length === 0 && (
        <Empty title={chosen.project ? "No team can be started in this project" : "No team is served"} todo={chosen.project
          ? <button className="btn" onClick={() => set({ project: "" })}>Without a project</button>
          : <code className="faint">antiphon serve examples/research</code>}>Serve one to start runs of it.</Empty>)}
      {there.length > 0 && (
        <div className="two">
          <form className="form" onSubmit={(event) => void start(event)} onKeyDown={(event) => {
            if ((event.metaKey || event.ctrlKey) && event.key === "Enter") void start(event);
          }}>
            <fieldset><legend className="label">Team</legend><div className="opts">
              {there.map((each) => (
                <label key={each.name} className="opt"><input type="radio" name="team" checked={each.name === name} onChange={() => set({ team: each.name, entry: "" })} />
                  <b className="strong">{visible(each.name)}</b><span className="dim sm">{plural(each.agents.length, "agent")}{each.findings.length ? `, ${plural(each.findings.length, "finding")}` : ""}</span></label>))}
            </div></fieldset>
            <label><span className="label">Message <span className="faint">to {visible(chosen.entry || team?.entry || "")}</span></span>
              <textarea className="field" rows={4} required value={chosen.message} onChange={(event) => set({ message: event.target.value })} /></label>
            <Drop what="Files" hint="or drop them here, 50 MB each" take={(more) => setFiles([...files, ...more])}>
              {files.map((each, index) => (
                <button key={index} type="button" className="chip" aria-label={`Leave out ${line(each.name, 80)}`} onClick={() => setFiles(files.filter((one) => one !== each))}>
                  {line(each.name, 40)} ✕</button>))}
            </Drop>
            {chosen.project && (stored.value?.length ?? 0) > 0 && (
              <fieldset><legend className="label">Files of the project <span className="faint">10 at most go with the message</span></legend><div className="checks">
                {stored.value!.map((each) => (
                  <label key={each.path} className="row"><input type="checkbox" checked={chosen.files.includes(each.path)}
                    onChange={(event) => set({ files: event.target.checked ? [...chosen.files, each.path] : chosen.files.filter((one) => one !== each.path) })} />
                    <span className="cut">{visible(each.path)}</span></label>))}
              </div>{faults.files && <p className="kt k-error sm" role="alert">{faults.files}</p>}</fieldset>)}
            <div className="three">
              <label><span className="label">Model</span><select className="field" value={chosen.model} onChange={(event) => set({ model: event.target.value })}>
                <option value="">each agent's own</option>{models.value?.models.map((each) => <option key={each} value={each}>{line(each, 80)}</option>)}</select></label>
              <label><span className="label">Project</span><select className="field" value={chosen.project} onChange={(event) => set({ project: event.target.value, files: [] })}>
                <option value="">none</option>
                {projects.value?.projects.map((each) => <option key={each.project} value={each.project}>{line(each.name, 60)}</option>)}</select></label>
              <label><span className="label">Name <span className="faint">optional</span></span>
                <input className="field" maxLength={200} value={chosen.name} onChange={(event) => set({ name: event.target.value })} /></label>
            </div>
            <fieldset><legend className="label">What tools may do</legend><div className="opts">
              {POLICIES.map(([each, told]) => {
                const loose = team !== undefined && rank(each) < rank(team.policy);
                const own = team?.policy === each;
                return (
                  <label key={each} className="opt" aria-disabled={loose}><input type="radio" name="policy" disabled={loose} checked={policy ? policy === each : own}
                    onChange={() => set({ policy: own ? "" : each })} />
                    <b className="strong">{each}</b><span className="dim sm">{loose ? `More than the team's, which is ${team.policy}.` : told}</span></label>);
              })}
            </div></fieldset>
            <div className="three">
              {number("tokens", "Tokens, at most", "2,000,000")}{number("dollars", "Dollars, at most", "no limit")}
              <label><span className="label">When it is used up</span>
                {body.limits?.on_breach
                  ? <select className="field" value={chosen.breach} onChange={(event) => set({ breach: event.target.value as "ask" | "stop" })}>
                      <option value="ask">ask me</option><option value="stop">stop</option></select>
                  : <select className="field" disabled><option>{team ? `as the team has it: ${breachOf(team)}` : ""}</option></select>}</label>
            </div>
            <details><summary>More: whom, data, further limits</summary><div className="form">
              <div className="three">{number("turns", "Turns of one agent", "200")}{number("calls", "Calls", "5,000")}{number("seconds", "Seconds, at most", "no limit")}</div>
              <label><span className="label">Who is asked</span><select className="field" value={chosen.entry} onChange={(event) => set({ entry: event.target.value })}>
                <option value="">{visible(team?.entry ?? "")}</option>
                {team?.agents.filter((each) => each.name !== team.entry).map((each) => <option key={each.name}>{each.name}</option>)}</select></label>
              <label><span className="label">Data <span className="faint">JSON, for the team's own hooks and actions</span></span>
                <textarea className="field mono" rows={3} value={chosen.data} aria-invalid={Boolean(faults.data)} onChange={(event) => set({ data: event.target.value })} />
                {faults.data && <span className="kt k-error sm" role="alert">{faults.data}</span>}</label>
            </div></details>
            {wrong && <p className="kt k-error" role="alert">{wrong}</p>}
            <div className="row"><button className="btn ink" disabled={starting || !chosen.message.trim() || Object.keys(faults).length > 0}>{starting ? "Starting" : "Start"}<kbd>⌘↵</kbd></button>
              <span className="faint sm">It runs in the server; closing the page does not stop it.</span></div>
          </form>
          {team && <WillRun api={api} team={team} body={body as CreateRun} policy={policy} models={models.value} />}
        </div>)}
    </div></div></main>
  );
}

async function encoded(file: File): Promise<string> {
  const bytes = new Uint8Array(await file.arrayBuffer());
  let text = "";
  for (let at = 0; at < bytes.length; at += 32_768) text += String.fromCharCode(...bytes.subarray(at, at + 32_768));
  return btoa(text);
}
