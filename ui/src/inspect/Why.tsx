import { Glyph } from "../parts/Glyph";
import { asking, asksPerson, failed, kindOf, nameOf, nested, within } from "../state/doing";
import type { Effect, Run, Turn } from "../state/run";
import type { Store } from "../state/store";
import type { Decision } from "../state/wire";
import { lasted, line } from "../state/words";

/** A rule as it is recorded, `id (file:line)`, with its place apart. */
export function Rule({ rule }: { rule: string }) {
  if (rule === "labels") return <>what it was shown</>;
  const [, id = rule, place = ""] = /^(.*) \(([^()]*:\d+)\)$/s.exec(rule) ?? [];
  return <><code>{line(id, 120)}</code>{place && <span className="faint"> {line(place, 160)}</span>}</>;
}

const HOOKS: Record<string, string> = {
  plan_turn: "planned this turn: no model was needed to say what is done", prepare_input: "said what the model is shown of new messages",
  end_turn: "said what follows this turn",
};

/** The hooks that had a say in a turn, and which of their own rules they followed. */
export function Hooks({ turn }: { turn: Turn }) {
  const told: [string, string[]][] = [[turn.begunBy, turn.rules.slice(0, turn.first)], [turn.endedBy, turn.rules.slice(turn.first)]];
  return told.filter(([hook, rules]) => hook || rules.length).map(([hook, rules], index) => (
    <li key={index}><Glyph shape="rest" /><span>
      {hook ? <><code>{line(hook, 40)}</code> {HOOKS[hook] ?? "had a say"}</> : "Rules"}{rules.length > 0 && ", by "}
      {rules.map((each, place) => <span key={place}>{place > 0 && ", "}<Rule rule={each} /></span>)}</span></li>
  ));
}

/** Who or what let a call run, or did not. */
export function Decided({ decision }: { decision: Decision }) {
  const { allowed, by, rule, reason, remembered } = decision;
  return (
    <li><Glyph shape={by ? "human" : "rest"} /><span>
      {allowed ? "allowed" : "denied"}
      {by ? <> by <b className="strong">{line(by, 40)}</b></> : rule ? <> by <Rule rule={rule} /></> : " by the policy: it lets this tool run"}
      {by && rule && <> (<Rule rule={rule} />)</>}{reason && `: ${line(reason)}`}{remembered && " · remembered for later calls"}</span></li>
  );
}

/** What a turn came to after a model's reply: what ran, who allowed it, and by which rule it went on. */
export function followed(run: Run, effect: Effect, store: Store): React.ReactNode {
  const turn = run.turn(effect.activation, effect.turn);
  const after = nested((turn?.effects ?? []).map((id) => run.effect(id)!).filter((each) => (each.start || each.end) > effect.start && each.purpose !== "deadline"));
  if (!turn || (!after.length && !turn.reminder && !turn.endedBy && !turn.begunBy)) return null;
  return (
    <>
      {after.map((each) => (
        <button key={each.id} className={`call ${within(each.id) ? "inside" : ""}`} onClick={() => store.select(each.id)}>
          <Glyph shape={failed(each) ? "error" : kindOf(each)} />
          <span className="nm">{asksPerson(each) ? asking(each) : nameOf(each)}</span>
          <span className="out faint sm cut">
            {each.decision ? `${each.decision.allowed ? "allowed" : "denied"}${each.decision.by ? ` by ${line(each.decision.by, 24)}` : each.decision.rule ? ` by ${line(each.decision.rule, 60)}` : ""} · ` : ""}
            {each.rule ? `${line(each.rule, 60)} asks · ` : ""}
            {each.end ? lasted(each.ended - each.began) : "open"}
          </span>
        </button>
      ))}
      <ul className="why"><Hooks turn={turn} />
        {turn.reminder && <li><Glyph shape="rest" /><span>reminded: {line(turn.reminder)}</span></li>}</ul>
    </>
  );
}
