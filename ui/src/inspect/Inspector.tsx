import { Icon, Glyph } from "../parts/Glyph";
import { Whole } from "../parts/Text";
import { asksPerson, failed, kindOf } from "../state/doing";
import type { Effect } from "../state/run";
import type { Store, View } from "../state/store";
import { lasted, line, visible } from "../state/words";
import { Fields } from "../talk/Ask";
import { openingOf } from "../talk/items";
import type { Schema } from "../answer/Arguments";
import { ModelCall } from "./ModelCall";

export type Prefixes = (digest: string) => Prefix | undefined;
export interface Prefix {
  system?: string;
  tools?: { name: string; description?: string; parameters?: Schema }[];
}

const TITLES: Record<string, string> = {
  model: "Model call", tool: "Tool call", call: "Agent call", step: "Step", wait: "Wait", action: "Action",
};

/** Everything about the effect that is looked at: what was sent, what came back, and why. */
export function Inspector({ store, view, prefixes }: { store: Store; view: View; prefixes: Prefixes }) {
  const effect = view.run.effect(view.effect) ?? view.whole.effect(view.effect);
  const later = effect && !view.run.effect(view.effect);
  return (
    <section className="pane p-look" aria-label="Inspector" id="pane-look">
      <div className="bar-top">
        <h2 className="cut">{effect ? title(effect) : "Inspector"}</h2>
        {effect && <code className="faint sm">{effect.id}</code>}
        <span className="grow" />
        {effect && (
          <button className="btn plain sq" aria-label="Copy as JSON" title="Copy as JSON"
            onClick={() => void navigator.clipboard?.writeText(JSON.stringify(effect, null, 2))}><Icon name="copy" /></button>
        )}
      </div>
      <div className="body" tabIndex={0} role="group" aria-label="What is looked at">
        {!effect && <div className="empty"><p className="dim">Choose a bar, a line or a node: all there is to know of it stands here.</p></div>}
        {effect && later && <div className="empty"><p className="dim">It has not begun at this record.</p></div>}
        {effect && !later && (effect.kind === "model" && effect.purpose !== "retry"
          ? <ModelCall key={effect.id} effect={effect} store={store} view={view} prefixes={prefixes} />
          : <OtherEffect key={effect.id} effect={effect} store={store} view={view} />)}
      </div>
    </section>
  );
}

function title(effect: Effect): string {
  if (asksPerson(effect)) return { approval: "Approval", question: "Question", limit: "Limit" }[effect.purpose] ?? "Question";
  if (effect.purpose === "retry") return "Retry";
  return TITLES[effect.kind] ?? effect.kind;
}

function OtherEffect({ effect, store, view }: { effect: Effect; store: Store; view: View }) {
  const { run } = view;
  const who = run.activation(effect.activation);
  const bad = failed(effect);
  const said = effect.kind === "call" ? openingOf(run, effect)?.content : undefined;
  const approval = run.effect(`${effect.id}?`);
  const result = effect.end ? (effect.content.text ? effect.content : { text: effect.reason }) : {};
  return (
    <div className="insp">
      <p className="cut"><b className="strong">{line(effect.name || effect.purpose, 80)}</b>{" "}
        <span className="faint">{visible(who?.label ?? "")} turn {effect.turn}</span></p>
      <dl className="facts">
        <div><dt>{effect.end ? "Took" : "Since"}</dt><dd>{lasted((effect.end ? effect.ended : view.now) - effect.began)}</dd></div>
        <div><dt>End</dt><dd className={bad ? "kt k-error" : ""}>{effect.end ? line(effect.outcome || "ended", 20) : "open"}</dd></div>
        {effect.due > 0 && <div><dt>Due</dt><dd>+{lasted(effect.due - run.began)}</dd></div>}
      </dl>
      {effect.text.text && <Section title="What is asked"><Whole text={effect.text} className="said" /></Section>}
      {said && <Section title="Message"><Whole text={said} className="said" /></Section>}
      {effect.arguments.text && (
        <Section title="Arguments"><Fields json={effect.arguments.text} /></Section>
      )}
      {result.text && <Section title={bad ? "What went wrong" : "Result"}>
        <Whole text={result} className={`well ${bad ? "kt k-error" : ""}`} /></Section>}
      {(effect.decision || approval) && (
        <Section title="Permission">
          <ul className="why">
            {effect.decision && <li><Glyph shape={effect.decision.by ? "human" : "rest"} /><span>
              {effect.decision.allowed ? "allowed" : "denied"}{effect.decision.by ? <> by <b className="strong">{line(effect.decision.by, 40)}</b></> : effect.decision.rule ? <> by the rule <code>{line(effect.decision.rule, 160)}</code></> : " by a rule"}
              {effect.decision.reason ? `: ${line(effect.decision.reason)}` : ""}
              {effect.decision.remembered ? " · remembered" : ""}</span></li>}
            {approval && <li><Glyph shape="human" /><span>
              <button className="link" onClick={() => store.select(approval.id)}>{approval.id}</button> asked
              {approval.end ? `, answered after ${lasted(approval.ended - approval.began)}` : ", still open"}</span></li>}
          </ul>
        </Section>
      )}
      {effect.by && <Section title="Answered by"><p>{line(effect.by)}</p></Section>}
      {effect.failure && <Section title="Why it is tried again">
        <p className="kt k-error">{line(`${effect.failure.kind}: ${effect.failure.text}`)}</p></Section>}
      {effect.callee >= 0 && <Callee number={effect.callee} store={store} view={view} />}
    </div>
  );
}

function Callee({ number, store, view }: { number: number; store: Store; view: View }) {
  const callee = view.run.activation(number);
  if (!callee) return null;
  const effects = callee.turns.flatMap((each) => each.effects).map((id) => view.run.effect(id)!);
  return (
    <Section title={visible(callee.label)} more={`${callee.turns.length} turns`}>
      {effects.filter((each) => kindOf(each) !== "wait").slice(0, 200).map((each) => (
        <button key={each.id} className="call" onClick={() => store.select(each.id)}>
          <Glyph shape={failed(each) ? "error" : kindOf(each)} /><span className="nm">{line(each.name, 60)}</span>
          <span className="out faint sm">{lasted((each.end ? each.ended : view.now) - each.began)}</span>
        </button>
      ))}
    </Section>
  );
}

export function Section({ title, more, children }: { title: React.ReactNode; more?: string; children: React.ReactNode }) {
  return (
    <div className="sec">
      <h3>{title} {more && <span className="faint">{more}</span>}</h3>
      {children}
    </div>
  );
}
