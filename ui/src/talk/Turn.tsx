import { memo, useLayoutEffect, useRef } from "react";
import { Glyph, type Shape } from "../parts/Glyph";
import { Prose, Whole } from "../parts/Text";
import { asksPerson, doing, failed, nameOf, within, type Kind } from "../state/doing";
import { useActions } from "../server/actions";
import type { Effect, Run } from "../state/run";
import type { Store, View } from "../state/store";
import { briefly, count, lasted, line, plural, usd, visible } from "../state/words";
import { useWhole } from "../inspect/whole";
import { Ask } from "./Ask";
import { ChangedLine } from "./Changed";
import { Brought, ofEnd, ofMessage } from "./Brought";
import { Labels } from "../parts/Labels";
import { alike, alone, openingOf, type Ended, type Said, type Taken } from "./items";
import { Progress } from "./Progress";

const indent = (depth: number) => ({ marginLeft: Math.min(depth, 8) * 14 });

/** What the user asked. */
export function Request({ item, view }: { item: Said; view: View }) {
  return (
    <div className="turn k-human">
      <div className="who">
        <span className="name">You</span>
        <span className="meta">+{lasted(item.began - view.run.began)}</span>
      </div>
      <Whole text={item.message.content} className="said" />
      {item.message.files && <Brought files={item.message.files} seq={item.seq} pick={ofMessage(item.message.id)} />}
    </div>
  );
}

/** What a request came to, all of it, with the files that tools gave to whoever asked. */
export function Outcome({ item, view, store }: { item: Ended; view: View; store: Store }) {
  const { effect } = useWhole(item.effect);
  const good = effect.outcome === "completed";
  return (
    <div className={`turn ${view.effect === effect.id ? "sel" : ""}`}>
      <div className="who">
        <button className="name" onClick={() => store.select(effect.id)}>Result</button>
        {!good && <span className="kt k-error xs">{line(effect.outcome, 20)}</span>}
        <span className="meta">+{lasted(effect.ended - view.run.began)}</span>
      </div>
      {effect.reason && <p className={good ? "faint" : "kt k-error"}>{line(effect.reason, 600)}</p>}
      {effect.content.text && <Prose text={effect.content} />}
      {effect.files.length > 0 && <Brought files={effect.files} seq={effect.end} pick={ofEnd(effect.id)} />}
    </div>
  );
}

interface Props {
  item: Taken;
  view: View;
  store: Store;
  opened: ReadonlySet<number>;
  toggle(number: number): void;
}

/** One turn of an agent: what it thought, said, did and asked. Of the many that are shown, few change with a record. */
export const TurnItem = memo(DrawnTurn, (old, now) => {
  const { item } = now;
  if (old.view.parked !== now.view.parked || !alike(old.item, item) || old.store !== now.store || old.toggle !== now.toggle) return false;
  if (item.turn.effects.some((id) => id === old.view.effect || id === now.view.effect)) return old.view.effect === now.view.effect && settled(now);
  if ([...item.calls, ...item.inside].some((each) => old.opened.has(each.callee) !== now.opened.has(each.callee))) return false;
  return settled(now);
});

/** Nothing in it goes on, so no time is told that passes, and what it called has ended too. */
const settled = ({ item, view }: Props): boolean =>
  item.turn.effects.every((id) => view.run.effects.get(id)!.end > 0);

function DrawnTurn({ item, view, store, opened, toggle }: Props) {
  const { run, now, effect: selected } = view;
  const { activation, turn } = item;
  const ids = turn.effects;
  const open = ids.some((id) => !run.effects.get(id)!.end);
  const kind: Kind = open ? doing(run, activation, now, view.parked).kind : "wait";
  let tokens = 0;
  let cost = 0;
  for (const each of item.models) {
    tokens += (each.usage?.input_tokens ?? 0) + (each.usage?.output_tokens ?? 0);
    cost += each.nanoUsd;
  }
  const meta = [
    tokens ? `${count(tokens)} tok` : "", cost ? usd(cost) : "", `+${lasted(turn.began - run.began)}`,
  ].filter(Boolean).join(" · ");
  return (
    <div className={`turn ${open ? `k-${kind}` : ""} ${ids.includes(selected) ? "sel" : ""}`} style={indent(item.depth)}>
      <div className="who">
        <span className="name cut">{visible(activation.label)}</span>
        <span className="faint xs">turn {turn.number}{activation.task ? ` · ${line(activation.task, 24)}` : ""}</span>
        <span className="meta">{meta}</span>
      </div>
      {turn.messages.filter((each) => each.id !== activation.opening?.id && each.kind !== "return").map((each) => (
        <p key={each.id} className="call"><Glyph shape="agent" /><span className="faint cut">
          {line(each.sender, 30)}: {line(each.content.text ?? "")}</span></p>
      ))}
      {turn.suffix.text && <Told who="told for this turn" text={turn.suffix.text} />}
      {item.models.map((each) => <ModelLine key={each.id} effect={each} store={store} view={view} />)}
      {item.tools.map((each) => <ToolLines key={each.id} tool={each} {...{ item, view, store, opened, toggle }} />)}
      {item.asks.map((each) => <Ask key={each.id} effect={each} store={store} view={view} />)}
      {item.calls.length === 1 && <CallLine effect={item.calls[0]!} store={store} view={view} />}
      {item.calls.length > 1 && (
        <div className="group">
          {item.calls.map((each) => (
            <Member key={each.id} call={each} run={run} now={now} parked={view.parked} open={opened.has(each.callee)} toggle={toggle} />
          ))}
        </div>
      )}
      {turn.reminder && <Told who="reminded" text={turn.reminder} />}
      {turn.rules.length > 0 && <Told who={turn.rules.length === 1 ? "rule" : "rules"} text={turn.rules.join(", ")} />}
    </div>
  );
}

/** A tool, and below it what it began in its middle, in the order that it did. */
function ToolLines({ tool, item, view, store, opened, toggle }: Props & { tool: Effect }) {
  const inside = item.inside.filter((each) => within(each.id) === tool.id);
  return (
    <>
      <CallLine effect={tool} store={store} view={view} />
      {!tool.end && view.live && <Progress id={tool.id} />}
      {inside.length > 0 && (
        <div className="inside" role="group" aria-label={`Inside of ${line(tool.name, 60)}`}>
          {inside.map((each) => asksPerson(each)
            ? <Ask key={each.id} effect={each} store={store} view={view} />
            : each.kind !== "call" || alone(item, each)
              ? <CallLine key={each.id} effect={each} store={store} view={view} />
              : <Member key={each.id} call={each} run={view.run} now={view.now} parked={view.parked} open={opened.has(each.callee)} toggle={toggle} />)}
        </div>
      )}
      {tool.changed && <ChangedLine effect={tool} choose={() => store.select(tool.id)} />}
      {tool.files.length > 0 && <Brought files={tool.files} seq={tool.end} pick={ofEnd(tool.id)} />}
    </>
  );
}

const Told = ({ who, text }: { who: string; text: string }) => (
  <p className="call"><Glyph shape="rest" /><span className="faint cut">{who}: {line(text)}</span></p>
);

function ModelLine({ effect, store, view }: { effect: Effect; store: Store; view: View }) {
  if (effect.purpose === "retry") {
    return effect.end ? null : (
      <p className="call"><Glyph shape="wait" /><span className="faint">tries again in {lasted(effect.due - view.now)}</span></p>
    );
  }
  if (failed(effect)) {
    const why = effect.failure ? `${effect.failure.kind}: ${effect.failure.text}` : effect.reason || effect.outcome;
    return (
      <button className="call" aria-current={view.effect === effect.id} onClick={() => store.select(effect.id)}>
        <Glyph shape="error" /><span className="kt k-error cut">{line(why)}</span>
      </button>
    );
  }
  const reply = effect.reply;
  if (!effect.end) {
    return view.parked ? <p className="faint sm">It had not answered when its process was left; it is asked again.</p> : <OpenReply effect={effect} live={view.live} />;
  }
  return (
    <>
      {reply?.reasoning?.text && <p className="think">{visible(reply.reasoning.text.slice(0, 600))}</p>}
      {reply?.content.text && <div className="short"><Prose text={reply.content} /></div>}
    </>
  );
}

/** A reply that comes; its text is written from outside, piece by piece. */
function OpenReply({ effect, live }: { effect: Effect; live: boolean }) {
  const deltas = useActions()?.deltas;
  const box = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    if (!deltas || !live) return;
    deltas.bind(effect.id, box.current);
    return () => deltas.bind(effect.id, null);
  }, [deltas, effect.id, live]);
  return (
    <div className="open-text" ref={box}>
      <p className="think" data-text="reasoning" />
      <div className="said" data-text="text" />
      <p className="args faint sm cut" data-text="other" />
      <span className="faint sm">{effect.purpose ? `${effect.purpose}: ` : ""}thinking<span className="caret live" /></span>
    </div>
  );
}

/** One call in one line: shape, name, arguments, result. */
export function CallLine({ effect, store, view }: { effect: Effect; store: Store; view: View }) {
  const bad = failed(effect);
  const kind = bad ? "error" : effect.kind === "call" ? "agent" : "tool";
  const said = effect.kind === "call" ? (openingOf(view.run, effect)?.content.text ?? "") : "";
  const answer = effect.end ? effect.reason && bad ? effect.reason : (effect.content.text ?? "") : "";
  return (
    <button className="call" aria-current={view.effect === effect.id} onClick={() => store.select(effect.id)}>
      <Glyph shape={kind} />
      <span className={`nm ${bad ? "kt k-error" : ""}`}>{nameOf(effect)}</span>
      <span className="args cut">{said ? line(said) : briefly(effect.arguments.text ?? "")}</span>
      <Labels of={effect} />
      <span className={`out cut ${bad ? "kt k-error" : ""}`}>
        {effect.end
          ? line(answer || effect.outcome)
          : <span className="faint" data-open={effect.id}>{lasted(view.now - effect.began)}</span>}
        {effect.decision?.by ? <span className="kt k-human"> · {effect.decision.allowed ? "allowed" : "denied"} by {line(effect.decision.by, 24)}</span> : null}
      </span>
    </button>
  );
}

/** One of several calls at once. */
function Member({ call, run, now, parked, open, toggle }: {
  call: Effect; run: Run; now: number; parked: boolean; open: boolean; toggle(number: number): void;
}) {
  const callee = run.activation(call.callee);
  if (!callee) return null;
  const state = doing(run, callee, now, parked);
  let fails = 0;
  let retries = 0;
  let lastTool: Effect | undefined;
  for (const turn of callee.turns) {
    for (const id of turn.effects) {
      const each = run.effects.get(id)!;
      if (each.kind === "tool") lastTool = each;
      if (failed(each)) each.kind === "model" ? retries++ : fails++;
    }
  }
  const took = lasted((call.end ? call.ended : now) - call.began);
  const shape = state.state === "done" ? "done" : state.state === "failed" ? "error" : state.state === "waits" ? "rest" : state.kind;
  const shownTool = call.end ? undefined : lastTool;
  return (
    <MemberLine number={call.callee} toggle={toggle} open={open} shape={shape} label={callee.label} opening={openingOf(run, call)?.content.text ?? ""}
      fails={fails} retries={retries} turns={callee.turns.length} took={took} tool={shownTool?.name ?? ""} args={shownTool?.arguments.text ?? ""}
      result={call.end ? call.content.text || call.reason || call.outcome : shownTool ? "" : state.text} />
  );
}

/** Plain values only, so that of fifty lines those are drawn anew that say something else. */
const MemberLine = memo(({ number, toggle, open, shape, label, opening, fails, retries, turns, took, tool, args, result }: {
  number: number; toggle(number: number): void; open: boolean; shape: Shape; label: string; opening: string;
  fails: number; retries: number; turns: number; took: string; tool: string; args: string; result: string;
}) => (
  <button className="member" aria-expanded={open} onClick={() => toggle(number)}>
    <Glyph shape={shape} />
    <span className="strong cut">{visible(label)}</span>
    <span className="cut dim">{line(opening, 120)}</span>
    <span className="faint sm">
      {fails ? <span className="kt k-error">{fails} failed · </span> : null}
      {retries ? `${plural(retries, "retry", "retries")} · ` : ""}
      {plural(turns, "turn")} · {took}
    </span>
    <span className="res cut">{tool ? <>{line(tool, 40)} <code>{briefly(args, 120)}</code></> : line(result)}</span>
  </button>
));
