import { useEffect, useState, type FormEvent } from "react";
import { Diff } from "../parts/Diff";
import { reason } from "../server/problem";
import type { AnswerBody } from "../server/wire";
import { line } from "../state/words";
import { Arguments, parsed, written, type Schema } from "./Arguments";
import { Fields } from "../talk/Ask";

type Way = "asked" | "edit" | "diff";

/** How a question is answered: words or one of its options; an approval with yes, no, an edit or for good. */
export function Answer({ kind, question, asked, options, schema, keys, send }: {
  kind: string; question: string; asked: string; options: string[]; schema?: Schema | undefined;
  /** A, E and D answer while something of it has the focus. */
  keys: boolean;
  send(body: AnswerBody): Promise<void>;
}) {
  const [way, setWay] = useState<Way>("asked");
  // A question whose answer has a schema is a form too, empty at first.
  const form = kind === "question" && schema?.properties ? Object.keys(schema.properties) : [];
  const [edited, setEdited] = useState<Record<string, string>>(() =>
    form.length ? Object.fromEntries(form.map((each) => [each, ""])) : written(asked));
  const [words, setWords] = useState("");
  const [denying, setDenying] = useState(false);
  const [sent, setSent] = useState(false);
  const [wrong, setWrong] = useState("");
  const approval = kind === "approval";
  const { json, faults } = parsed(edited, asked, schema);
  const changed = approval && way !== "asked" && json !== "" && json !== compact(asked);

  const post = (content: string, more: Partial<AnswerBody> = {}): void => {
    setWrong("");
    setSent(true);
    // The record of the answer takes it off the list; a refusal leaves it open, with the draft.
    send({ question, content, ...more }).catch((error: unknown) => { setSent(false); setWrong(reason(error)); });
  };
  const allow = (content: "yes" | "always"): void => {
    if (way !== "asked" && Object.keys(faults).length) return setWrong("An argument is wrong; the call still waits.");
    post(content, changed ? { arguments: json } : {});
  };
  const deny = (): void => { denying ? post("no", { reason: words }) : setDenying(true); };
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    if (denying) deny();
    else if (approval || kind === "limit") allow("yes");
    else if (form.length) json ? post(json) : setWrong("A field is wrong; the question is still open.");
    else post(words);
  };
  useEffect(() => setWrong(""), [edited, words]);

  return (
    <form className="reply" onSubmit={submit} onKeyDown={(event) => {
      if ((event.metaKey || event.ctrlKey) && event.key === "Enter") submit(event);
      if (!keys || (event.target as HTMLElement).closest("input, textarea, select")) return;
      const act = { a: () => allow("yes"), e: () => setWay("edit"), d: deny }[event.key];
      if (act && (approval || kind === "limit")) { event.preventDefault(); event.stopPropagation(); act(); }
    }}>
      {approval && asked && (
        <>
          <div className="seg sm" role="tablist" aria-label="Arguments">
            {(["asked", "edit", "diff"] as const).map((each) => (
              <button key={each} type="button" role="tab" aria-selected={way === each} onClick={() => setWay(each)}>
                {{ asked: "Asked", edit: "Edit", diff: "Difference" }[each]}</button>))}
          </div>
          {way === "asked" && <Fields json={asked} />}
          {way === "edit" && <Arguments values={edited} asked={asked} schema={schema} faults={faults} set={setEdited} />}
          {way === "diff" && <Diff before={lines(asked)} after={lines(json || asked)} />}
        </>
      )}
      {form.length > 0 && <Arguments values={edited} asked="" schema={schema} faults={wrong ? faults : {}} set={setEdited} />}
      {(denying || kind === "question") && options.length === 0 && form.length === 0 && (
        <label><span className="label">{denying ? "Why not? The agent reads it." : "Your answer"}</span>
          <textarea className="field" rows={3} autoFocus={denying} value={words} onChange={(event) => setWords(event.target.value)} /></label>)}
      {wrong && <p className="kt k-error sm" role="alert">{wrong}</p>}
      <div className="acts">
        {approval || kind === "limit"
          ? <>
              <button className="btn ink" type="button" disabled={sent} onClick={() => allow("yes")}>{sent ? "Sent" : changed ? "Allow as edited" : "Allow"}{keys && <kbd>A</kbd>}</button>
              <button className="btn" type="button" disabled={sent} onClick={deny}>{denying ? "Deny with this reason" : "Deny"}{keys && <kbd>D</kbd>}</button>
              {approval && <button className="btn plain" type="button" disabled={sent} onClick={() => allow("always")}>Always in this run</button>}
            </>
          : options.length
            ? options.map((each) => <button key={each} className="btn" type="button" disabled={sent} onClick={() => post(each)}>{line(each, 120)}</button>)
            : <button className="btn ink" disabled={sent || (!words.trim() && form.length === 0)}>{sent ? "Sent" : "Answer"}<kbd>⌘↵</kbd></button>}
      </div>
    </form>
  );
}

function compact(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json));
  } catch {
    return json;
  }
}

/** Arguments as lines to be compared: a text of several lines as these. */
function lines(json: string): string[] {
  return Object.entries(written(json)).flatMap(([name, value]) => {
    const [first = "", ...rest] = value.split("\n");
    return rest.length ? [`${name}:`, first, ...rest] : [`${name}: ${first}`];
  });
}
