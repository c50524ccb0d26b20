import { Glyph } from "../parts/Glyph";
import { Prose, Whole } from "../parts/Text";
import { failed } from "../state/doing";
import type { Effect } from "../state/run";
import type { Store, View } from "../state/store";
import { briefly, count, lasted, line, usd, visible } from "../state/words";
import { isModel, Section, type Prefixes } from "./Inspector";
import { Request } from "./Request";
import { followed } from "./Why";
import { useWhole } from "./whole";

/** One model call: what is new comes first, then what came back, then what followed. */
export function ModelCall({ effect: cut, store, view, prefixes }: {
  effect: Effect; store: Store; view: View; prefixes: Prefixes;
}) {
  const { effect } = useWhole(cut);
  const { run } = view;
  const who = run.activation(effect.activation);
  const bad = failed(effect);
  const usage = effect.usage;
  // Without a bill it counts at the most that it may have cost.
  const cost = effect.unpriced ? "unknown" : `${!usage && effect.nanoUsd ? "≤ " : ""}${usd(effect.nanoUsd)}`;
  const tokens = (value: number | undefined): string => (usage ? count(value ?? 0) : "unknown");
  const after = effect.end > 0 && followed(run, effect, store);
  return (
    <div className="insp">
      <p className="cut"><b className="strong">{visible(who?.label ?? "")}</b>{" "}
        <span className="faint">turn {effect.turn} · {line(effect.name, 60)}{effect.purpose ? ` · ${effect.purpose}` : ""}</span></p>
      {!effect.end
        ? <p className="dim">{view.parked ? "It had not answered when its process was left; it is asked again." : `Thinking for ${lasted(view.now - effect.began)}.`}{" "}
            {count(effect.held)} tokens held.</p>
        : <dl className="facts">
            <div><dt>Took</dt><dd>{lasted(effect.ended - effect.began)}</dd></div>
            {bad
              ? <div><dt>End</dt><dd className="kt k-error">{line(effect.outcome, 20)}</dd></div>
              : <><div><dt>In</dt><dd>{tokens(usage?.input_tokens)}</dd></div><div><dt>Out</dt><dd>{tokens(usage?.output_tokens)}</dd></div></>}
            <div><dt>Cost</dt><dd>{cost}</dd></div>
          </dl>}
      <Request effect={cut} store={store} view={view} prefix={prefixes(effect.prefix)} />
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
      {after && <Section title="What followed, and why">{after}</Section>}
      {effect.end > 0 && effect.held > 0 && <Section title="Tokens">
        <dl className="kv sm">
          <div><dt>Held before</dt><dd>{count(effect.held)}</dd></div>
          <div><dt>Billed</dt><dd>{usage
            ? `${count((usage.input_tokens ?? 0) - (usage.cache_read_tokens ?? 0))} fresh + ${count(usage.cache_read_tokens ?? 0)} cached + ${count(usage.output_tokens ?? 0)} out`
            : "unknown: the provider did not say it"}</dd></div>
          {usage && <div><dt>Given back</dt><dd>{count(Math.max(0, effect.held - (usage.input_tokens ?? 0) - (usage.output_tokens ?? 0)))}</dd></div>}
        </dl></Section>}
      <Calls effect={cut} store={store} view={view} />
    </div>
  );
}

const MOST = 200;

/** All calls of that agent, the one that is looked at among them. */
function Calls({ effect, store, view: { run } }: { effect: Effect; store: Store; view: View }) {
  const who = run.activation(effect.activation);
  const all = (who?.turns ?? []).flatMap((each) => each.effects).map((id) => run.effects.get(id)!).filter(isModel);
  if (all.length < 2) return null;
  const at = all.findIndex((each) => each.id === effect.id);
  const from = Math.max(0, Math.min(at - MOST / 2, all.length - MOST));
  return (
    <Section title={`All model calls of ${visible(who?.label ?? "")}`} more={count(all.length)}>
      {all.slice(from, from + MOST).map((each) => (
        <button key={each.id} className="call" aria-current={each.id === effect.id} onClick={() => store.select(each.id)}>
          <Glyph shape={failed(each) ? "error" : "model"} /><span className="nm">turn {each.turn}</span>
          <span className="args cut">{each.purpose || line(each.reply?.content.text ?? "") || (each.reply?.calls ?? []).map((one) => line(one.name, 40)).join(", ")}</span>
          <span className="out faint sm cut">{each.usage ? `${count((each.usage.input_tokens ?? 0) + (each.usage.output_tokens ?? 0))} tok · ` : ""}
            {each.end ? lasted(each.ended - each.began) : "open"}</span>
        </button>))}
    </Section>
  );
}
