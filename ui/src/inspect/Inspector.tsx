import { Copy } from "../parts/Copy";
import { Glyph } from "../parts/Glyph";
import { Labels } from "../parts/Labels";
import { Whole } from "../parts/Text";
import { asking, asksPerson, failed, kindOf, nameOf, nested, within } from "../state/doing";
import type { Effect, Run } from "../state/run";
import type { Store, View } from "../state/store";
import { lasted, line, plural, visible } from "../state/words";
import { Exposed, Fields } from "../talk/Ask";
import { Brought, ofEnd } from "../talk/Brought";
import { ChangedFiles } from "../talk/Changed";
import { Progress } from "../talk/Progress";
import { openingOf } from "../talk/items";
import type { Schema } from "../answer/Arguments";
import { useActions, type Actions } from "../server/actions";
import { curl } from "./curl";
import { ModelCall } from "./ModelCall";
import { Decided, Hooks, Rule } from "./Why";
import { useWhole } from "./whole";

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
  const actions = useActions();
  return (
    <section className="pane p-look" aria-label="Inspector" id="pane-look">
      <div className="bar-top">
        <h2>{effect ? title(effect) : "Inspector"}</h2>
        {effect && <code className="faint sm cut" title={visible(effect.id)}>{visible(effect.id)}</code>}
        <span className="grow" />
        {effect && isModel(effect) && actions && <Copy what="Copy as curl" text={() => curlOf(actions, effect.id)}>curl</Copy>}
        {effect && <Copy what="Copy as JSON" text={async () =>
          JSON.stringify(actions && isModel(effect) ? { ...(await actions.request(effect.id)), reply: effect.reply } : effect, null, 2)}>JSON</Copy>}
      </div>
      <div className="body" tabIndex={0} role="group" aria-label="What is looked at">
        {!effect && <div className="empty"><p className="dim">Choose a bar, a line or a node: all there is to know of it stands here.</p></div>}
        {effect && later && <div className="empty"><p className="dim">It has not begun at this record.</p></div>}
        {effect && !later && (isModel(effect)
          ? <ModelCall key={effect.id} effect={effect} store={store} view={view} prefixes={prefixes} />
          : <OtherEffect key={effect.id} effect={effect} store={store} view={view} />)}
      </div>
    </section>
  );
}

export const isModel = (effect: Effect): boolean => effect.kind === "model" && effect.purpose !== "retry";

/** The command that asks a model the same again. */
export const curlOf = async (actions: Actions, id: string): Promise<string> => curl(await actions.chat(id));

function title(effect: Effect): string {
  if (effect.outside) return "Outside call";
  if (asksPerson(effect)) return { approval: "Approval", question: "Question", limit: "Limit" }[effect.purpose] ?? "Question";
  if (effect.purpose === "retry") return "Retry";
  return TITLES[effect.kind] ?? effect.kind;
}

function OtherEffect({ effect: cut, store, view }: { effect: Effect; store: Store; view: View }) {
  const { run } = view;
  const { effect, said } = useWhole(cut, cut.kind === "call" ? openingOf(view.run, cut)?.content : undefined);
  const bad = failed(effect);
  const who = run.activation(effect.activation);
  const turn = run.turn(effect.activation, effect.turn);
  const approval = run.effect(`${effect.id}?`);
  const asks = effect.rule || approval?.rule;
  const asked = effect.purpose === "approval" ? effect : approval;
  const [tool, inside] = [within(effect.id), insideOf(run, effect)];
  const result = effect.end ? (effect.content.text ? effect.content : { text: effect.reason }) : {};
  return (
    <div className="insp">
      <p className="cut"><b className="strong">{effect.purpose === "question" && !effect.outside ? "You" : nameOf(effect)}</b>{" "}
        <span className="faint">{visible(who?.label ?? "")} turn {effect.turn}</span></p>
      {tool && <p className="cut">Begun by <button className="link" onClick={() => store.select(tool)}>{line(run.effect(tool)?.name ?? "", 60)} {visible(tool)}</button>,
        in its middle</p>}
      <dl className="facts">
        <div><dt>{effect.end ? "Took" : "Since"}</dt><dd>{lasted((effect.end ? effect.ended : view.now) - effect.began)}</dd></div>
        <div><dt>End</dt><dd className={bad ? "kt k-error" : ""}>{effect.end ? line(effect.outcome || "ended", 20) : "open"}</dd></div>
        {effect.labels.length > 0 && <div><dt>Carries</dt><dd className="row"><Labels of={effect} /></dd></div>}
        {effect.due > 0 && <div><dt>Due</dt><dd>+{lasted(effect.due - run.began)}</dd></div>}
      </dl>
      {effect.text.text && <Section title="What is asked"><Whole text={effect.text} className="said" /></Section>}
      {said && <Section title="Message"><Whole text={said} className="said" /></Section>}
      {effect.arguments.text && (effect.purpose !== "question" || effect.outside) && (
        <Section title="Arguments"><Fields json={effect.arguments.text} /></Section>
      )}
      {result.text && <Section title={bad ? "What went wrong" : "Result"}>
        <Whole text={result} className={`well ${bad ? "kt k-error" : ""}`} /></Section>}
      {effect.outcome === "unknown" && <Section title="It may or may not have happened">
        <p>Its process died while it ran, and nobody can say what it had done by then. {visible(who?.label ?? "")} was told so, and nothing is repeated by itself.
          Look at what it acts on, with the arguments above, before you let it try again.</p></Section>}
      {!effect.end && view.live && <Progress id={effect.id} whole />}
      {effect.changed && <Section title="Changed files" more={plural(effect.changed.files.length + effect.changed.leftOut, "file")}>
        <ChangedFiles effect={effect} /></Section>}
      {effect.files.length > 0 && <Section title="Files"><Brought files={effect.files} seq={effect.end} pick={ofEnd(effect.id)} large /></Section>}
      {(effect.decision || approval || asks) && (
        <Section title="Permission">
          <ul className="why">
            {asks && <li><Glyph shape="rest" /><span><Rule rule={asks} /> wants a person asked</span></li>}
            {effect.decision && <Decided decision={effect.decision} />}
            {approval && <li><Glyph shape="human" /><span>
              <button className="link" onClick={() => store.select(approval.id)}>{approval.id}</button> asked
              {approval.end ? `, answered after ${lasted(approval.ended - approval.began)}` : ", still open"}</span></li>}
          </ul>
          {asked && <Exposed effect={asked} store={store} view={view} />}
        </Section>
      )}
      {inside.length > 0 && <Section title="What it began in its middle" more={plural(inside.length, "effect")}>
        <Effects list={inside} store={store} view={view} /></Section>}
      {effect.by && <Section title="Answered by"><p>{line(effect.by)}</p></Section>}
      {effect.failure && <Section title="Why it is tried again">
        <p className="kt k-error">{line(`${effect.failure.kind}: ${effect.failure.text}`)}</p></Section>}
      {turn && (turn.begunBy || turn.endedBy) && <Section title="Its turn"><ul className="why"><Hooks turn={turn} /></ul></Section>}
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
      <Effects list={nested(effects.filter((each) => kindOf(each) !== "wait").slice(0, 200))} store={store} view={view} indented />
    </Section>
  );
}

/** indented: what a tool began stands a step further in, under it. */
function Effects({ list, store, view, indented = false }: { list: Effect[]; store: Store; view: View; indented?: boolean }) {
  return list.map((each) => (
    <button key={each.id} className={`call ${indented && within(each.id) ? "inside" : ""}`} onClick={() => store.select(each.id)}>
      <Glyph shape={failed(each) ? "error" : kindOf(each)} /><span className="nm">{asksPerson(each) ? asking(each) : nameOf(each)}</span>
      <span className="out faint sm">{lasted((each.end ? each.ended : view.now) - each.began)}</span>
    </button>
  ));
}

/** What a tool began in its middle, in the order that it did. */
function insideOf(run: Run, tool: Effect): Effect[] {
  const ids = run.turn(tool.activation, tool.turn)?.effects ?? [];
  return ids.filter((id) => within(id) === tool.id).map((id) => run.effects.get(id)!);
}

export function Section({ title, more, children }: { title: React.ReactNode; more?: string; children: React.ReactNode }) {
  return (
    <div className="sec">
      <h3>{title} {more && <span className="faint">{more}</span>}</h3>
      {children}
    </div>
  );
}
