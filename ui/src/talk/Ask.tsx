import { useCallback, useState } from "react";
import { Glyph } from "../parts/Glyph";
import { Whole } from "../parts/Text";
import { Answer } from "../answer/Answer";
import type { Schema } from "../answer/Arguments";
import { useParsed } from "../parts/parsed";
import { useActions, useSchema } from "../server/actions";
import { commandOf, useSession } from "../server/session";
import { asking } from "../state/doing";
import type { Effect, Run } from "../state/run";
import type { Store, View } from "../state/store";
import { shownTo, type Source } from "../state/labels";
import { lasted, line, visible } from "../state/words";

/** What a person is asked, or was: open it is a card, answered a line. */
export function Ask({ effect, store, view }: { effect: Effect; store: Store; view: View }) {
  const actions = useActions();
  const session = useSession();
  const schema = useSchema(effect);
  const who = view.run.activation(effect.activation)?.label ?? "";
  const what = asking(effect);
  const { outside } = effect;
  const [draft, setDraft] = useState(false);
  const [left, leave] = useState(false);
  const drafted = useCallback((now: boolean) => setDraft(now), []);
  const said = effect.decision
    ? effect.decision.allowed ? "allowed" : "denied"
    : effect.content.text ? `“${line(effect.content.text, 160)}”` : line(effect.reason, 160) || effect.outcome;
  // An answer of somebody else's does not take away what was written here.
  const late = effect.end > 0 && draft && !left && view.live;
  const joined = effect.purpose === "limit" ? [...view.run.effects.values()].filter((each) => each.joins === effect.id && !each.end) : [];
  if (effect.end && !late) {
    return (
      <button className="call" aria-current={view.effect === effect.id} onClick={() => store.select(effect.id)}>
        <Glyph shape="human" />
        <span className="nm">{what}</span>
        <span className="out cut">{said}{effect.by ? ` by ${line(effect.by, 24)}` : ""} · {lasted(effect.ended - effect.began)}</span>
      </button>
    );
  }
  return (
    <section className="ask k-human" aria-label={`${visible(who)} ${what}`}>
      <header>
        <Glyph shape="human" />
        <button className="plain strong cut" onClick={() => store.select(effect.id)}>
          {[who, ...joined.map((each) => view.run.activation(each.activation)?.label ?? "")].map(visible).join(", ")}{" "}
          {joined.length ? "ask for a higher limit" : what}
        </button>
        <span className="grow" />
        <span className="sm kt">{lasted((effect.end ? effect.ended : view.now) - effect.began)}</span>
      </header>
      <div className="in">
        {effect.text.text && <Whole text={effect.text} className="said" first={600} />}
        <Exposed effect={effect} store={store} view={view} />
        {outside && <OutsideCall effect={effect} />}
        {actions?.answer && view.live
          ? <Answer kind={effect.purpose} question={effect.id} asked={effect.arguments.text ?? ""} options={effect.options} outside={outside !== null} project={actions.project}
              tool={effect.name} agent={view.run.activation(effect.activation)?.agent} exposed={exposure(view.run, effect).length > 0}
              late={late ? `${effect.by ? line(effect.by, 40) : "Somebody"}: ${said}.` : ""} leave={() => leave(true)} drafted={drafted}
              schema={effect.purpose === "question" ? ((effect.schema as Schema | null) ?? undefined) : schema}
              send={actions.answer} />
          : <>
              {effect.purpose === "approval" && <Fields json={effect.arguments.text ?? ""} />}
              <p className="faint sm">
                Answer it in a terminal: <code>{commandOf(session, "answer", view.run.id) || `antiphon answer ${view.run.id.slice(0, 12)}`}</code>
              </p>
            </>}
      </div>
    </section>
  );
}

/** As a rule names itself: what the agent was shown wants a person asked. */
const BY_LABELS = "labels";
/** Shown all of these, an agent asks before whatever acts. */
const EXPOSED = ["private", "untrusted"];
const SAYS: Record<string, string> = { untrusted: "untrusted, which a stranger may have written", private: "private, which must not get out" };

/** What the agent of an approval had been shown, where that makes it ask; nothing where it does not. */
function exposure(run: Run, effect: Effect): Source[] {
  const asker = run.activation(effect.activation);
  const sources = asker && effect.purpose === "approval" ? shownTo(run, asker, effect.start) : [];
  return effect.rule === BY_LABELS || EXPOSED.every((label) => sources.some((each) => each.label === label)) ? sources : [];
}

/** What an agent was shown before it asked, where its labels are why it asks, or would be if nothing else were. */
export function Exposed({ effect, store, view }: { effect: Effect; store: Store; view: View }) {
  const sources = exposure(view.run, effect);
  if (!sources.length) return null;
  return (
    <ul className="why sm" aria-label="What it was shown">
      {sources.map((each) => (
        <li key={each.label}><Glyph shape="rest" /><span>It was shown something {SAYS[each.label] ?? `labelled ${line(each.label, 40)}`}:{" "}
          {each.effect
            ? <button type="button" className="link" onClick={() => store.select(each.effect)}>{line(each.by, 60)} <code>{visible(each.effect)}</code></button>
            : <>what {line(each.by, 40)} said</>}</span></li>))}
    </ul>
  );
}

/** The call that whoever answers does: with what, and what its result is to whom. */
function OutsideCall({ effect }: { effect: Effect }) {
  return (
    <>
      <Fields json={effect.arguments.text ?? ""} />
      {effect.outside?.finishes && <p className="faint sm">Its result is the result of the agent, and ends its task.</p>}
    </>
  );
}

/** Arguments as names and values; a long value by its size. */
export function Fields({ json }: { json: string }) {
  const value = useParsed(json);
  if (value === undefined) return null;
  if (typeof value !== "object" || value === null || Array.isArray(value)) return json ? <Whole text={{ text: json }} /> : null;
  return (
    <dl className="kv sm">
      {Object.entries(value).map(([name, each]) => {
        const text = typeof each === "string" ? each : JSON.stringify(each);
        return (
          <div key={name}>
            <dt className="cut">{line(name, 40)}</dt>
            <dd>{text.length > 160 || text.includes("\n")
              ? <Whole text={{ text }} first={400} />
              : <code>{visible(text)}</code>}</dd>
          </div>
        );
      })}
    </dl>
  );
}
