import { failed, kindOf, stateOf } from "./state/doing";
import type { View } from "./state/store";
import { lasted, line } from "./state/words";

/** Says to who listens what was chosen, what is asked and how it ended; never what streams by. */
export function Announcer({ view }: { view: View }) {
  const effect = view.run.effect(view.effect);
  const who = effect ? view.run.activation(effect.activation)?.label : "";
  const state = stateOf(view.run, view.now);
  const said = effect
    ? `${line(who ?? "", 40)}, turn ${effect.turn}, ${kindOf(effect)} ${line(effect.name, 40)}, `
      + (effect.end ? `${failed(effect) ? "failed" : effect.outcome || "ended"} after ${lasted(effect.ended - effect.began)}` : "open")
    : "";
  return <div className="sr" role="status" aria-live="polite">{state.word}. {said}</div>;
}
