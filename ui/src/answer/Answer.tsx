import { useEffect, useMemo, useRef, useState, type FormEvent } from "react";
import { Diff } from "../parts/Diff";
import { Glyph } from "../parts/Glyph";
import { reason, Refused } from "../server/problem";
import type { AnswerBody } from "../server/wire";
import { Always } from "./Always";
import { Arguments, parsed, written, type Schema } from "./Arguments";
import { Fields } from "../talk/Ask";
import { visible } from "../state/words";

type Way = "asked" | "edit" | "diff";

/** How a question is answered: words or one of its options; an approval with yes, no, an edit or for good; an outside call with its result. */
export function Answer({ kind, question, asked, options, schema: given, outside = false, tool = "", agent = "", exposed = false, project = "", late = "", leave, send, drafted }: {
  kind: string; question: string; asked: string; options: string[]; schema?: Schema | undefined;
  /** It is the call of a tool that whoever answers does: the answer is its result, and it may have failed. */
  outside?: boolean;
  /** Of an approval: the tool, and the agent that would call it. */
  tool?: string | undefined;
  agent?: string | undefined;
  /** What that was shown makes it ask each time. */
  exposed?: boolean | undefined;
  /** What its run is a part of, where a permission can be remembered too; empty for nothing. */
  project?: string | undefined;
  /** Who has answered what meanwhile; what was drafted here stays until it is left. */
  late?: string | undefined;
  leave?: (() => void) | undefined;
  send(body: AnswerBody): Promise<void>;
  /** There is something that would be lost, or no more. */
  drafted?: ((draft: boolean) => void) | undefined;
}) {
  const [way, setWay] = useState<Way>("asked");
  // A question whose answer has a schema is a form too, empty at first; of one that is no object it has a single field.
  const single = kind === "question" && given !== undefined && !given.properties;
  const schema: Schema | undefined = single ? { properties: { answer: given } } : given;
  const form = kind === "question" && schema?.properties ? Object.keys(schema.properties) : [];
  const [edited, setEdited] = useState<Record<string, string>>(() =>
    form.length ? Object.fromEntries(form.map((each) => [each, ""])) : written(asked));
  const [words, setWords] = useState("");
  const [denying, setDenying] = useState(false);
  const [sent, setSent] = useState(false);
  const [over, setOver] = useState("");
  const box = useRef<HTMLFormElement>(null);
  const [wrong, setWrong] = useState("");
  const [always, setAlways] = useState(false);
  const approval = kind === "approval";
  const { json, faults } = useMemo(() => parsed(edited, asked, schema), [edited, asked, schema]);
  const as = useMemo(() => compact(asked), [asked]);
  const changed = approval && way !== "asked" && json !== "" && json !== as;

  const first = useRef(edited);
  const draft = words !== "" || edited !== first.current;
  useEffect(() => drafted?.(draft || sent), [draft, sent]);
  const told = late || over;
  const post = (content: string, more: Partial<AnswerBody> = {}): void => {
    setWrong("");
    setSent(true);
    // The record of the answer takes it off the list; a refusal leaves it open, with the draft.
    send({ question, content, ...more }).then(() => drafted?.(false), (error: unknown) => {
      setSent(false);
      if (error instanceof Refused && (error.code === "answered" || error.code === "too_late")) setOver(reason(error));
      else setWrong(reason(error));
    });
  };
  const allow = (content: "yes" | "always", more: Partial<AnswerBody> = {}): void => {
    if (sent || told) return;
    if (way !== "asked" && Object.keys(faults).length) return setWrong("An argument is wrong; the call still waits.");
    post(content, { ...(changed ? { arguments: json } : {}), ...more });
  };
  const deny = (): void => { if (!sent && !told) denying ? post("no", { reason: words }) : setDenying(true); };
  const fail = (): void => {
    if (sent || told) return;
    if (!denying) return setDenying(true);
    words.trim() ? post("", { reason: words }) : setWrong("Say why: the agent reads it.");
  };
  const edit = (): void => {
    setWay("edit");
    window.setTimeout(() => box.current?.querySelector<HTMLElement>(".form input, .form textarea, .form select")?.focus(), 0);
  };
  const submit = (event: { preventDefault(): void } | FormEvent): void => {
    event.preventDefault();
    if (sent || told) return;
    if (denying) outside ? fail() : deny();
    else if (approval || kind === "limit") allow("yes");
    else if (form.length) json ? post(single ? JSON.stringify((JSON.parse(json) as { answer: unknown }).answer) : json) : setWrong("A field is wrong; the question is still open.");
    else if (words.trim()) post(words);
  };
  useEffect(() => setWrong(""), [edited, words]);

  return (
    <form ref={box} className="reply" onSubmit={submit} tabIndex={-1} onKeyDown={(event) => {
      if ((event.metaKey || event.ctrlKey) && event.key === "Enter") return submit(event);
      if (event.metaKey || event.ctrlKey || event.altKey || (event.target as HTMLElement).closest("input, textarea, select")) return;
      const acts: Record<string, () => void> = approval || kind === "limit"
        ? { a: () => allow("yes"), d: deny, ...(approval && asked ? { e: edit } : {}), ...(approval ? { A: () => setAlways(true) } : {}) }
        : outside ? { d: fail } : Object.fromEntries(options.slice(0, 9).map((each, index) => [String(index + 1), () => { if (!sent && !told) post(each); }]));
      const act = acts[event.key];
      if (act) { event.preventDefault(); event.stopPropagation(); act(); }
    }}>
      {told && (
        <div className="notice k-human" role="alert"><Glyph shape="human" />
          <span className="grow"><b className="strong">Answered already.</b> {told}{draft && " Your draft stays here until you leave it."}</span>
          {leave && <button className="btn" type="button" onClick={leave}>Leave it</button>}</div>)}
      {approval && asked && (
        <>
          <div className="seg sm" role="tablist" aria-label="Arguments">
            {(["asked", "edit", "diff"] as const).map((each) => (
              <button key={each} type="button" role="tab" aria-selected={way === each} onClick={() => setWay(each)}>
                {{ asked: "Asked", edit: "Edit", diff: "Difference" }[each]}{each === "edit" && <kbd>E</kbd>}</button>))}
          </div>
          {way === "asked" && <Fields json={asked} />}
          {way === "edit" && <Arguments values={edited} asked={asked} schema={schema} faults={faults} set={setEdited} />}
          {way === "diff" && <Diff before={lines(asked)} after={lines(json || asked)} />}
        </>
      )}
      {form.length > 0 && !denying && <Arguments values={edited} asked="" schema={schema} faults={wrong ? faults : {}} left="It is still open" set={setEdited} />}
      {(denying || (kind === "question" && options.length === 0 && form.length === 0)) && (
        <label><span className="label">{denying ? "Why not? The agent reads it." : outside ? "Its result" : "Your answer"}</span>
          <textarea className="field" rows={3} autoFocus={denying} value={words} onChange={(event) => setWords(event.target.value)} /></label>)}
      {wrong && <p className="kt k-error sm" role="alert">{wrong}</p>}
      {approval && always && !denying && (
        <Always tool={tool} agent={agent} asked={changed ? json : asked} project={project} exposed={exposed} busy={sent || told !== ""}
          send={(more) => allow("always", more)} leave={() => setAlways(false)} />)}
      {!(approval && always && !denying) && <div className="acts">
        {approval || kind === "limit"
          ? <>
              <button className="btn ink" type="button" disabled={sent || told !== ""} onClick={() => allow("yes")}>{sent ? "Sent" : changed ? "Allow as edited" : "Allow"}<kbd>A</kbd></button>
              <button className="btn" type="button" disabled={sent || told !== ""} onClick={deny}>{denying ? "Deny with this reason" : "Deny"}<kbd>{denying ? "⌘↵" : "D"}</kbd></button>
              {approval && <button className="btn plain" type="button" disabled={sent || told !== ""} onClick={() => setAlways(true)}>Always<kbd>⇧A</kbd></button>}
            </>
          : options.length
            ? options.map((each, index) => <button key={each} className="btn" type="button" disabled={sent || told !== ""} onClick={() => post(each)}>
              {visible(each)}{index < 9 && <kbd aria-hidden="true">{index + 1}</kbd>}</button>)
            : <>
                {!denying && <button className="btn ink" disabled={sent || told !== "" || (!words.trim() && form.length === 0)}>{sent ? "Sent" : outside ? "Give its result" : "Answer"}<kbd>⌘↵</kbd></button>}
                {outside && <button className="btn" type="button" disabled={sent || told !== ""} onClick={fail}>{denying ? (sent ? "Sent" : "Say that it failed") : "It failed"}<kbd>{denying ? "⌘↵" : "D"}</kbd></button>}
                {outside && denying && <button className="btn plain" type="button" disabled={sent || told !== ""} onClick={() => setDenying(false)}>Back to the result</button>}
              </>}
      </div>}
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
