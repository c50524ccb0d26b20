import { useCallback, useEffect, useMemo, useState } from "react";
import { Board } from "../board/Board";
import { keepsModules } from "../board/modules";
import { Virtual } from "../parts/Virtual";
import { Icon } from "../parts/Glyph";
import { Records } from "../records/Records";
import type { Store, Tab, View } from "../state/store";
import { line } from "../state/words";
import { Find } from "./Find";
import { itemsOf, nearest } from "./items";
import { Outcome, Request, TurnItem } from "./Turn";

const CROWD = 20;

/** What was said and done, as a story: of everybody, or of the agent that is looked at; or record by record. */
export function Transcript({ store, view }: { store: Store; view: View }) {
  const { run, tab } = view;
  const effect = run.effect(view.effect) ?? view.whole.effect(view.effect);
  const agent = effect ? run.activation(effect.activation) : undefined;
  const [opened, setOpened] = useState<ReadonlySet<number>>(new Set());
  const [chosen, setChosen] = useState("");

  // What is looked at is opened, however deep it stands; in a crowd only what somebody chose.
  const opens = view.chosen || view.whole.activations.size <= CROWD;
  useEffect(() => {
    if (!effect || effect.id === chosen) return;
    setChosen(effect.id);
    if (!opens) return;
    const more = new Set(opened);
    for (let at = view.whole.activation(effect.activation); at && at.number > 0; at = view.whole.activation(at.caller)) {
      more.add(at.number);
    }
    if (more.size !== opened.size) setOpened(more);
  }, [effect, chosen, opens, opened, view.whole]);

  const items = useMemo(
    () => (tab === "records" || tab === "board" ? [] : itemsOf(run, opened, tab === "agent" ? (effect?.activation ?? null) : null)),
    [run, run.seq, opened, tab, effect?.activation],
  );
  const toggle = useCallback((number: number): void => setOpened((old) => {
    const next = new Set(old);
    if (!next.delete(number)) next.add(number);
    return next;
  }), []);
  const tabs: [Tab, string][] = [["all", "All"], ["agent", line(agent?.label ?? "Agent", 60)], ["records", "Records"]];
  if (keepsModules(view.whole)) tabs.splice(2, 0, ["board", "Board"]);
  // Whoever follows a run sees its end, unless something was chosen.
  const follows = view.live && view.connected;
  const last = items.at(-1);
  // Who opens a run that has ended, and has chosen nothing, sees what it came to.
  const result = !view.chosen && !follows && last?.kind === "outcome" ? last.key : undefined;
  const wanted = result ?? (chosen && effect && effect.start <= view.seq && (view.chosen || !follows) ? nearest(view.run, effect, items) : undefined);
  return (
    <section className="pane p-talk" aria-label="Transcript" id="pane-talk">
      <div className="bar-top">
        <h2 className="grow">Transcript</h2>
        <button className="btn plain sq" aria-label="Find" aria-pressed={view.finding} onClick={() => store.find(!view.finding)}>
          <Icon name="search" /></button>
        <div className="seg sm" role="tablist" aria-label="What is shown">
          {tabs.map(([name, title]) => (
            <button key={name} role="tab" aria-selected={tab === name} onClick={() => store.show(name)}>
              <span className="cut">{title}</span>
            </button>
          ))}
        </div>
      </div>
      {view.finding && <Find store={store} view={view} close={() => store.find(false)} />}
      {tab === "records"
        ? <Records store={store} view={view} />
        : tab === "board"
        ? <Board store={store} view={view} />
        : items.length === 0
          ? <div className="empty"><p className="dim">Nothing was said yet at this record.</p></div>
          : <Virtual items={items} label="Transcript" className="talk" wanted={wanted} follow={follows}
              render={(item) => item.kind === "request"
                ? <Request item={item} view={view} />
                : item.kind === "outcome"
                ? <Outcome item={item} view={view} store={store} />
                : <TurnItem item={item} view={view} store={store} opened={opened} toggle={toggle} />} />}
    </section>
  );
}
