// Where a team is written: its files with line numbers, and beside its line what is wrong in it.
import { Fragment, useState } from "react";
import { Glyph } from "../parts/Glyph";
import type { Api } from "../server/api";
import type { SourceFinding, SourceText, TeamView } from "../server/wire";
import { count, plural, visible } from "../state/words";
import { useLoaded } from "./load";
import { margins, rows } from "./source";
import { Loading, Trouble } from "./states";

interface Props {
  api: Api;
  name: string;
  team: TeamView;
  /** Whose it is; empty for one of the server. */
  project: string;
}

export function Source(props: Props) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}><summary>Where it is written</summary>
      {open && <Files {...props} />}</details>
  );
}

function Files({ api, name, team, project }: Props) {
  const { value, error, again } = useLoaded(() => api.source(name, project), 30, `${name} ${project}`);
  if (!value) return error ? <Trouble again={again}>{error}</Trouble> : <Loading />;
  return (
    <div className="form">
      {value.place && <p className="dim sm">Served from <code>{visible(value.place)}</code></p>}
      {value.files.length === 0 && <p className="dim sm">
        {value.place ? "It is made in code" : "It was given to the server by a program, which did not say where it is written"}:{" "}
        {plural(team.agents.length, "agent")}, {team.agents.map((each) => visible(each.name)).join(", ")}.</p>}
      {value.files.map((each, index) => <File key={`${index} ${each.name}`} file={each} first={value.files.length === 1} />)}
      {value.left_out > 0 && <p className="faint sm">{plural(value.left_out, "file")} more of this team {value.left_out === 1 ? "is" : "are"} not shown: read
        {value.left_out === 1 ? " it" : " them"} in the folder.</p>}
      {error && <Trouble again={again}>{error}</Trouble>}
    </div>
  );
}

const STATES: Record<string, string> = {
  changed: "has changed since the server loaded it, which goes by what it was; restart it to take this in",
  missing: "is gone, or no plain file any more; the server goes by what it was",
};

function File({ file, first }: { file: SourceText; first: boolean }) {
  const [open, setOpen] = useState(first || file.findings.some((each) => each.severity === "error"));
  return (
    <details className="source" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary><code>{visible(file.name)}</code>{" "}
        <span className="faint">{file.state === "missing" ? "" : plural(file.size, "byte")}</span>{" "}
        {file.findings.length > 0 && <span className="kt k-human">{plural(file.findings.length, "finding")}</span>}</summary>
      {STATES[file.state] && <p className="kt k-human sm" role="note">This file {STATES[file.state]}.</p>}
      {open && <Lines file={file} />}
    </details>
  );
}

const FIRST = 400;

function Lines({ file }: { file: SourceText }) {
  const [most, setMost] = useState(FIRST);
  const [all, beside] = [rows(file.text), margins(file.findings)];
  const last = file.findings.reduce((far, each) => Math.max(far, each.line), 0);
  const shown = all.slice(0, Math.max(most, last + 5));
  const past = file.findings.filter((each) => each.line > shown.length);
  return (
    <div className="lines" tabIndex={0} role="group" aria-label={`Lines of ${visible(file.name)}`}>
      <Margin findings={beside.get(0) ?? []} />
      {shown.map((text, index) => (
        <Fragment key={index}>
          <div className="ln" data-wrong={beside.has(index + 1) || undefined}><span className="n" aria-hidden="true">{index + 1}</span><Line text={text} /></div>
          <Margin findings={beside.get(index + 1) ?? []} />
        </Fragment>
      ))}
      {past.length > 0 && <Margin findings={past} />}
      {shown.length < all.length && <button className="link" onClick={() => setMost(most + 2_000)}>show more of {count(all.length)} lines</button>}
      {shown.length === all.length && file.cut && <p className="faint sm">The beginning of {plural(file.size, "byte")}: read the rest in the file.</p>}
    </div>
  );
}

const WIDE = 2_000;

function Line({ text }: { text: string }) {
  const [most, setMost] = useState(WIDE);
  return (
    <span>{visible(text.slice(0, most)) || " "}
      {text.length > most && <button className="link" onClick={() => setMost(most + 20_000)}>… show more of {count(text.length)} characters</button>}</span>
  );
}

function Margin({ findings }: { findings: SourceFinding[] }) {
  return findings.map((each, index) => (
    <p key={index} className="found" role="note"><Glyph shape={each.severity === "error" ? "error" : "human"} />
      <span><b className="strong">{each.severity === "error" ? "Error" : "Warning"}{each.line > 0 && ` in line ${each.line}`}.</b>{" "}
        {visible(each.text)}</span></p>
  ));
}
