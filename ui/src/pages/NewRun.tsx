import { useEffect, useRef, useState, type FormEvent } from "react";
import type { Api } from "../server/api";
import { reason } from "../server/problem";
import type { CreateRun, TeamView } from "../server/wire";
import { line, visible } from "../state/words";
import { useLoaded } from "./load";
import { Empty, Loading, Trouble } from "./states";
import { TeamSheet } from "./Teams";

const MOST = 50 * 1024 * 1024;

/** Start a run: whom, what, with which files and limits; and what will run. */
export function NewRun({ api }: { api: Api }) {
  const teams = useLoaded(api.teams, 30);
  const [name, setName] = useState("");
  const [team, setTeam] = useState<TeamView>();
  const [message, setMessage] = useState("");
  const [tokens, setTokens] = useState("");
  const [dollars, setDollars] = useState("");
  const [breach, setBreach] = useState<"ask" | "stop">("ask");
  const [called, setCalled] = useState("");
  const [files, setFiles] = useState<File[]>([]);
  const [wrong, setWrong] = useState("");
  const [starting, setStarting] = useState(false);
  // The same form sent twice starts one run.
  const key = useRef(crypto.randomUUID());
  const chosen = name || teams.value?.teams[0]?.name || "";

  useEffect(() => {
    if (chosen) api.team(chosen).then(setTeam, (error: unknown) => setWrong(reason(error)));
  }, [api, chosen]);

  const start = async (event: FormEvent): Promise<void> => {
    event.preventDefault();
    const large = files.find((each) => each.size > MOST);
    if (large) return setWrong(`${large.name} has ${large.size} bytes; a file may have 50 MB`);
    setWrong("");
    setStarting(true);
    try {
      const limits = {
        ...(tokens ? { tokens: Number(tokens.replaceAll(",", "")) } : {}), ...(dollars ? { usd: Number(dollars) } : {}), on_breach: breach,
      };
      const attachments = await Promise.all(files.map(async (each) => ({
        media_type: each.type || "application/octet-stream", name: each.name, data: await encoded(each),
      })));
      const body: CreateRun = { team: chosen, message, name: called, attachments, ...(tokens || dollars ? { limits } : {}) };
      const made = await api.start(body, key.current);
      location.hash = `#/run/${made.run_id}`;
    } catch (error) {
      setWrong(reason(error));
      setStarting(false);
    }
  };

  return (
    <main className="main"><div className="page"><div className="in">
      <h1 className="toolbar">New run</h1>
      {teams.error && <Trouble again={teams.again}>{teams.error}</Trouble>}
      {!teams.value && !teams.error && <Loading />}
      {teams.value?.teams.length === 0 && (
        <Empty title="No team is served" todo={<code className="faint">antiphon serve examples/research</code>}>Serve one to start runs of it.</Empty>)}
      {teams.value && teams.value.teams.length > 0 && (
        <div className="two">
          <form className="form" onSubmit={(event) => void start(event)} onKeyDown={(event) => {
            if ((event.metaKey || event.ctrlKey) && event.key === "Enter") void start(event);
          }}>
            <fieldset><legend className="label">Team</legend><div className="opts">
              {teams.value.teams.map((each) => (
                <label key={each.name} className="opt"><input type="radio" name="team" checked={each.name === chosen} onChange={() => setName(each.name)} />
                  <b className="strong">{visible(each.name)}</b><span className="dim sm">{each.agents.length} agents{each.findings.length ? `, ${each.findings.length} findings` : ""}</span></label>))}
            </div></fieldset>
            <label><span className="label">Message <span className="faint">to {visible(team?.entry ?? "")}</span></span>
              <textarea className="field" rows={4} required value={message} onChange={(event) => setMessage(event.target.value)} /></label>
            <label><span className="label">Files <span className="faint">50 MB each</span></span>
              <input className="field" type="file" multiple onChange={(event) => setFiles([...(event.target.files ?? [])])} /></label>
            <div className="three">
              <label><span className="label">Tokens, at most</span><input className="field" inputMode="numeric" pattern="[\d,]*" value={tokens} onChange={(event) => setTokens(event.target.value)} placeholder="2,000,000" /></label>
              <label><span className="label">Dollars, at most</span><input className="field" inputMode="decimal" pattern="\d*\.?\d*" value={dollars} onChange={(event) => setDollars(event.target.value)} placeholder="no limit" /></label>
              <label><span className="label">When it is used up</span><select className="field" value={breach} onChange={(event) => setBreach(event.target.value as "ask" | "stop")}>
                <option value="ask">ask me</option><option value="stop">stop</option></select></label>
            </div>
            <label><span className="label">Name <span className="faint">optional</span></span><input className="field" value={called} onChange={(event) => setCalled(event.target.value)} /></label>
            {wrong && <p className="kt k-error" role="alert">{wrong}</p>}
            <div className="row"><button className="btn ink" disabled={starting || !message.trim()}>{starting ? "Starting" : "Start"}<kbd>⌘↵</kbd></button>
              <span className="faint sm">It runs in the server; closing the page does not stop it.</span></div>
          </form>
          <aside className="form">{team && <TeamSheet team={team} title="What will run" />}
            <div><p className="label">The same in a terminal</p><div className="well">antiphon run {visible(chosen)} "{line(message || "…", 60)}"{tokens ? ` --limit-tokens ${tokens.replaceAll(",", "")}` : ""}</div></div></aside>
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
