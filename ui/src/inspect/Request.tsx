import { useEffect, useMemo, useState } from "react";
import { Copy } from "../parts/Copy";
import { Glyph } from "../parts/Glyph";
import { Whole } from "../parts/Text";
import { useActions } from "../server/actions";
import { reason } from "../server/problem";
import type { StoredRequest } from "../server/wire";
import type { Effect } from "../state/run";
import type { Store, View } from "../state/store";
import { briefly, count, line, plural, visible } from "../state/words";
import { Section, type Prefix } from "./Inspector";
import { asked, sizeOf, stored, type Asked, type Sent } from "./request";
import { resultOf } from "./whole";

/** What a model was sent: how much of what it is, and what is new comes first. */
export function Request({ effect, store, view, prefix }: { effect: Effect; store: Store; view: View; prefix: Prefix | undefined }) {
  const actions = useActions();
  const [exact, setExact] = useState<StoredRequest>();
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    if (!actions) return;
    let left = false;
    // Whoever steps through the calls looks at most of them in passing.
    const timer = window.setTimeout(() => {
      actions.request(effect.id).then((found) => { if (!left) setExact(found); }, (error: unknown) => { if (!left) setWrong(reason(error)); });
    }, 120);
    return () => { left = true; window.clearTimeout(timer); };
  }, [actions, effect.id]);
  const request = useMemo(() => (exact ? stored(exact) : asked(view.run, effect, prefix)), [exact, view.run, effect, prefix]);
  const known = exact !== undefined || prefix !== undefined;
  return (
    <>
      <Section title="What it was sent" more={told(effect)}>
        <Composition effect={effect} request={request} />
        {wrong && <p className="kt k-error sm">Not to the letter: {line(wrong, 300)}</p>}
        {request.verified !== null && (
          <p className={request.verified ? "faint sm" : "kt k-error sm"}>
            {request.verified ? "To the letter: its digest is the one that was recorded."
              : "NOT to the letter: its digest is not the one that was recorded. The run is of an older format, or was changed."}</p>)}
      </Section>
      <Section title={<>New since {request.previous
        ? <button className="link" onClick={() => store.select(request.previous)}>{visible(request.previous)}</button> : "the start"}</>}>
        {request.fresh.length === 0 && <p className="faint">Nothing: it is asked the same again.</p>}
        {request.fresh.map((each, index) => <Message key={index} sent={each} view={view} fresh />)}
      </Section>
      {request.tail && <Section title="Told for this call only"><Whole text={{ text: request.tail }} first={800} /></Section>}
      {request.removed.length > 0 && (
        <Section title="No longer sent" more={`${plural(request.removed.length, "message")} that compaction removed`}>
          <Folded what={plural(request.removed.length, "message")} list={request.removed} view={view} /></Section>)}
      {request.known.length > 0 && (
        <div className="sec"><Folded what={`${plural(request.known.length, "message")} as before`} list={request.known} view={view} /></div>)}
      {known && <div className="sec">
        <details><summary>System prompt</summary><Whole text={{ text: request.system }} /></details>
        {request.tools.length > 0 && <details><summary>{plural(request.tools.length, "tool")}</summary>
          {request.tools.map((each) => <details key={each.name}><summary><code>{line(each.name, 60)}</code></summary>
            <Whole text={{ text: JSON.stringify(each, null, 2) }} /></details>)}</details>}
        {Object.keys(request.settings).length > 0 && <details><summary>Settings</summary>
          <Whole text={{ text: JSON.stringify(request.settings, null, 2) }} /></details>}
      </div>}
    </>
  );
}

function told(effect: Effect): string {
  const { input_tokens: input = 0, cache_read_tokens: cached = 0 } = effect.usage ?? {};
  return input ? `${count(cached)} of ${count(input)} from cache` : "";
}

function Composition({ effect, request }: { effect: Effect; request: Asked }) {
  const length = (list: Sent[]): number => list.reduce((sum, each) => sum + sizeOf(each), 0);
  const tools = request.tools.length ? JSON.stringify(request.tools).length : 0;
  const sizes = { system: request.system.length, tools, known: length(request.known), fresh: length(request.fresh), tail: request.tail.length };
  const total = Math.max(1, Object.values(sizes).reduce((sum, each) => sum + each));
  const { input_tokens: input = 0, cache_read_tokens: cached = 0 } = effect.usage ?? {};
  const share = (value: number): string => (input ? `≈ ${count((value / total) * input)}` : `${count(value)} chars`);
  const parts: [string, number, string][] = [
    ["System prompt", sizes.system, "c"], [plural(request.tools.length, "tool"), sizes.tools, "c"],
    [`${plural(request.known.length, "message")} as before`, sizes.known, cached ? "c" : "m"],
    [plural(request.fresh.length, "new message"), sizes.fresh, "n"], ["For this call only", sizes.tail, "t"],
  ];
  const there = parts.filter(([, value]) => value > 0);
  return (
    <>
      <div className="stack" aria-hidden="true">{there.map(([name, value, kind]) => <i key={name} className={kind} style={{ flexGrow: value }} />)}</div>
      <div className="parts">
        {there.map(([name, value, kind]) => (
          <div className="part" key={name}><span className={`sw ${kind}`} /><span>{name}</span><span className="faint num">{share(value)}</span></div>
        ))}
      </div>
    </>
  );
}

function Folded({ what, list, view }: { what: string; list: Sent[]; view: View }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <button className="link sm" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "Hide" : "Show"} {what}</button>
      {open && list.map((each, index) => <Message key={index} sent={each} view={view} />)}
    </>
  );
}

const ROLES = { user: "message", assistant: "assistant", tool: "tool", told: "told by the runtime", system: "system" };

function Message({ sent, view, fresh = false }: { sent: Sent; view: View; fresh?: boolean }) {
  return (
    <div className={`msg ${fresh ? "new" : ""}`}>
      <header><span className="role">{ROLES[sent.role]}</span><span className="faint xs cut">
        {sent.name ? `${line(sent.name, 60)} · ` : ""}{count(sizeOf(sent))} characters</span></header>
      {sent.content.text && <Whole text={sent.content} className="said sm" first={420} />}
      {sent.calls.map((each, index) => (
        <div key={index} className="call"><Glyph shape="tool" /><span className="nm">{line(each.name, 60)}</span>
          <span className="args cut">{briefly(each.arguments.text ?? "")}</span></div>
      ))}
      {sent.files.map((each, index) => <p key={index} className="faint sm cut">with the file {line(each, 120)}</p>)}
      {sent.ref && <Handle of={sent.ref} view={view} />}
    </div>
  );
}

/** A result that the model was shown a part of, or nothing any more: the whole of it when somebody wants it. */
function Handle({ of, view }: { of: string; view: View }) {
  const actions = useActions();
  const [text, setText] = useState<string>();
  const [wrong, setWrong] = useState("");
  const effect = view.whole.effect(of);
  if (!actions || !effect) return <p className="faint sm">The whole result is kept under the handle <code>{line(of, 40)}</code>.</p>;
  const open = (): void => {
    resultOf(actions, effect).then(setText, (error: unknown) => setWrong(reason(error)));
  };
  return (
    <>
      {text === undefined
        ? <button className="link sm" onClick={open}>Show the whole result, <code>{line(of, 40)}</code></button>
        : <><div className="row"><span className="faint sm grow">The whole result, of which the model was shown less</span>
            <Copy what="Copy the whole result" text={() => text} /></div>
          <Whole text={{ text }} first={1_000} /></>}
      {wrong && <p className="kt k-error sm" role="alert">{line(wrong, 300)}</p>}
    </>
  );
}
