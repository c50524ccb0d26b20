import { useState } from "react";
import { Glyph } from "../parts/Glyph";
import { Prose, Whole } from "../parts/Text";
import { asksPerson, failed, kindOf } from "../state/doing";
import type { Effect } from "../state/run";
import type { Store, View } from "../state/store";
import { briefly, count, lasted, line, plural, usd, visible } from "../state/words";
import { Section, type Prefix, type Prefixes } from "./Inspector";
import { asked, sizeOf, type Sent } from "./request";

/** One model call: what is new comes first, then what came back, then what followed. */
export function ModelCall({ effect, store, view, prefixes }: {
  effect: Effect; store: Store; view: View; prefixes: Prefixes;
}) {
  const { run } = view;
  const who = run.activation(effect.activation);
  const bad = failed(effect);
  const usage = effect.usage;
  const cost = effect.unpriced ? "unknown" : usd(effect.nanoUsd);
  const tokens = (value: number | undefined): string => (usage ? count(value ?? 0) : "unknown");
  return (
    <div className="insp">
      <p className="cut"><b className="strong">{visible(who?.label ?? "")}</b>{" "}
        <span className="faint">turn {effect.turn} · {line(effect.name, 60)}{effect.purpose ? ` · ${effect.purpose}` : ""}</span></p>
      {!effect.end
        ? <p className="dim">Thinking for {lasted(view.now - effect.began)}. {count(effect.held)} tokens held.</p>
        : <dl className="facts">
            <div><dt>Took</dt><dd>{lasted(effect.ended - effect.began)}</dd></div>
            {bad
              ? <div><dt>End</dt><dd className="kt k-error">{line(effect.outcome, 20)}</dd></div>
              : <><div><dt>In</dt><dd>{tokens(usage?.input_tokens)}</dd></div><div><dt>Out</dt><dd>{tokens(usage?.output_tokens)}</dd></div></>}
            <div><dt>Cost</dt><dd>{cost}</dd></div>
          </dl>}
      <Request effect={effect} store={store} view={view} prefix={prefixes(effect.prefix)} />
      {bad && <Section title="What came back">
        <p className="kt k-error">{line(effect.failure ? `${effect.failure.kind}: ${effect.failure.text}` : effect.reason, 600)}</p></Section>}
      {effect.reply && <Section title="What came back" more={effect.reply.model && effect.reply.model !== effect.name ? line(effect.reply.model, 40) : ""}>
        {effect.reply.reasoning?.text && <Whole text={effect.reply.reasoning} className="think whole" first={400} />}
        {effect.reply.content.text && <Prose text={effect.reply.content} />}
        {effect.reply.calls?.map((each, index) => (
          <div key={index} className="call"><Glyph shape="tool" /><span className="nm">{line(each.name, 60)}</span>
            <span className="args cut">{briefly(each.arguments.text ?? "")}</span></div>
        ))}
      </Section>}
      {effect.end > 0 && <Followed effect={effect} store={store} view={view} />}
    </div>
  );
}

function Request({ effect, store, view, prefix }: {
  effect: Effect; store: Store; view: View; prefix: Prefix | undefined;
}) {
  const [all, setAll] = useState(false);
  const request = asked(view.run, effect);
  const length = (list: Sent[]): number => list.reduce((sum, each) => sum + sizeOf(each), 0);
  const tools = prefix?.tools ?? [];
  const characters = {
    system: prefix?.system?.length ?? 0, tools: JSON.stringify(tools).length * (tools.length ? 1 : 0),
    known: length(request.known), fresh: length(request.fresh),
  };
  const total = Math.max(1, characters.system + characters.tools + characters.known + characters.fresh);
  const input = effect.usage?.input_tokens ?? 0;
  const cached = effect.usage?.cache_read_tokens ?? 0;
  const share = (value: number): string => (input ? `≈ ${count((value / total) * input)}` : `${count(value)} chars`);
  const parts: [string, number, string][] = [
    ["System prompt", characters.system, "c"], [plural(tools.length, "tool"), characters.tools, "c"],
    [`${plural(request.known.length, "message")} as before`, characters.known, cached ? "c" : "m"],
    [plural(request.fresh.length, "new message"), characters.fresh, "n"],
  ];
  const there = parts.filter(([, value]) => value > 0);
  return (
    <>
      <Section title="What it was sent" more={input ? `${count(cached)} of ${count(input)} from cache` : ""}>
        <div className="stack" aria-hidden="true">{there.map(([name, value, kind]) => <i key={name} className={kind} style={{ flexGrow: value }} />)}</div>
        <div className="parts">
          {there.map(([name, value, kind]) => (
            <div className="part" key={name}><span className={`sw ${kind}`} /><span>{name}</span><span className="faint num">{share(value)}</span></div>
          ))}
        </div>
        {prefix && <details><summary>System prompt and tools, as sent</summary>
          <Whole text={{ text: prefix.system ?? "" }} />
          {tools.map((each) => <details key={each.name}><summary><code>{line(each.name, 60)}</code></summary>
            <Whole text={{ text: JSON.stringify(each, null, 2) }} /></details>)}
        </details>}
      </Section>
      <Section title={<>New since {request.previous
        ? <button className="link" onClick={() => store.select(request.previous)}>{request.previous}</button> : "the start"}</>}>
        {request.fresh.length === 0 && <p className="faint">Nothing: it is asked the same again.</p>}
        {request.fresh.map((each, index) => <Message key={index} sent={each} fresh />)}
      </Section>
      {request.known.length > 0 && (
        <div className="sec">
          <button className="link sm" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? "Hide" : "Show"} {plural(request.known.length, "message")} as before
          </button>
          {all && request.known.map((each, index) => <Message key={index} sent={each} />)}
        </div>
      )}
    </>
  );
}

const ROLES = { user: "message", assistant: "assistant", tool: "tool", told: "told by the runtime" };

const Message = ({ sent, fresh = false }: { sent: Sent; fresh?: boolean }) => (
  <div className={`msg ${fresh ? "new" : ""}`}>
    <header><span className="role">{ROLES[sent.role]}</span><span className="faint xs cut">
      {sent.name ? `${line(sent.name, 60)} · ` : ""}{count(sizeOf(sent))} characters</span></header>
    {sent.content.text && <Whole text={sent.content} className="said sm" first={420} />}
    {sent.calls.map((each, index) => (
      <div key={index} className="call"><Glyph shape="tool" /><span className="nm">{line(each.name, 60)}</span>
        <span className="args cut">{briefly(each.arguments.text ?? "")}</span></div>
    ))}
  </div>
);

/** What the turn came to after this reply. */
function Followed({ effect, store, view }: { effect: Effect; store: Store; view: View }) {
  const turn = view.run.turn(effect.activation, effect.turn);
  const after = (turn?.effects ?? []).map((id) => view.run.effect(id)!).filter((each) => (each.start || each.end) > effect.start && each.purpose !== "deadline");
  if (!after.length && !turn?.reminder) return null;
  return (
    <Section title="What followed">
      {after.map((each) => (
        <button key={each.id} className="call" onClick={() => store.select(each.id)}>
          <Glyph shape={failed(each) ? "error" : kindOf(each)} />
          <span className="nm">{asksPerson(each) ? `${each.purpose} of ${line(each.name, 40)}` : line(each.name || each.purpose, 60)}</span>
          <span className="out faint sm cut">
            {each.decision ? `${each.decision.allowed ? "allowed" : "denied"}${each.decision.by ? ` by ${line(each.decision.by, 24)}` : ""} · ` : ""}
            {each.end ? lasted(each.ended - each.began) : "open"}
          </span>
        </button>
      ))}
      {turn?.reminder && <p className="call"><Glyph shape="rest" /><span className="faint cut">reminded: {line(turn.reminder)}</span></p>}
    </Section>
  );
}
