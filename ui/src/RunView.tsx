import { useCallback, useEffect, useState, type ReactNode } from "react";
import { Announcer } from "./Announcer";
import { TeamPane } from "./graph/Pane";
import { Head } from "./Head";
import { useOffers, type Offer } from "./find/offers";
import { curlOf, Inspector, isModel, type Prefixes } from "./inspect/Inspector";
import { useKeys } from "./keys";
import { Lanes } from "./lanes/Lanes";
import { copy } from "./parts/Copy";
import { Keys } from "./parts/Keys";
import { useActions } from "./server/actions";
import { reason } from "./server/problem";
import { plural } from "./state/words";
import { useView, type Pane, type Store } from "./state/store";
import { Transcript } from "./talk/Transcript";

const PANES: [Pane, string][] = [["talk", "Transcript"], ["lanes", "Lanes"], ["graph", "Graph"], ["look", "Inspect"]];

/** One run: who is at work, what was said, when, and everything about what is looked at. */
export function RunView({ store, name, prefixes, actions, notice, compose }: {
  store: Store;
  name: string;
  prefixes: Prefixes;
  /** What can be done with the run, where something can. */
  actions?: ReactNode;
  notice?: ReactNode;
  compose?: ReactNode;
}) {
  const view = useView(store);
  const [help, setHelp] = useState(false);
  const acts = useActions();
  const [said, say] = useState("");
  const curl = useCallback((): void => {
    const { whole, effect: id } = store.snapshot();
    const effect = whole.effect(id);
    if (!acts || !effect || !isModel(effect)) return say("Only a model call of a server's run is copied as curl");
    curlOf(acts, id).then(copy).then((done) => say(done ? "Copied as curl" : "Not copied"), (error: unknown) => say(reason(error)));
  }, [store, acts]);
  useKeys(store, useCallback(() => setHelp((old) => !old), []), curl);
  useOffers(() => [
    ...[...store.snapshot().whole.activations.values()].filter((each) => each.number > 0).map((each): Offer => ({
      key: `agent ${each.number}`, kind: "agent", title: each.label, hint: `${plural(each.turns.length, "turn")} ${each.outcome || "at work"}`,
      act: () => {
        const model = each.turns.flatMap((turn) => turn.effects).findLast((id) => store.snapshot().whole.effect(id)?.kind === "model");
        store.select(model ?? each.call);
      },
    })),
    { key: "live", kind: "do", title: "To the end, or live", keys: "L", act: () => store.seek(null) },
    { key: "play", kind: "do", title: "Play, or pause", keys: "Space", act: () => store.play() },
    { key: "find", kind: "do", title: "Find words in this run", keys: "/", act: () => { store.open("talk"); store.find(true); } },
    { key: "link", kind: "do", title: "Copy a link to what is looked at", keys: "C", act: () => void copy(store.link) },
    ...(acts ? [{ key: "curl", kind: "do" as const, title: "Copy the model call that is looked at as curl", keys: "⇧C", act: curl }] : []),
    { key: "keys", kind: "do", title: "All keys", keys: "?", act: () => setHelp(true) },
  ]);
  useEffect(() => {
    if (!said) return;
    const timer = window.setTimeout(() => say(""), 3000);
    return () => window.clearTimeout(timer);
  }, [said]);
  useEffect(() => {
    const timer = window.setInterval(() => store.tick(), 1000);
    return () => window.clearInterval(timer);
  }, [store]);
  return (
    <main className="main">
      <Head store={store} view={view} name={name} actions={actions} linked={acts !== null} help={() => setHelp(true)} />
      {notice}
      <div className="tabs">
        <div className="seg" role="tablist" aria-label="Pane">
          {PANES.map(([pane, title]) => (
            <button key={pane} role="tab" aria-selected={view.pane === pane} onClick={() => store.open(pane)}>{title}</button>
          ))}
        </div>
      </div>
      <div className="run" data-pane={view.pane} data-lost={view.lost}>
        <TeamPane store={store} view={view} />
        <Transcript store={store} view={view} />
        <Inspector store={store} view={view} prefixes={prefixes} />
        <Lanes store={store} view={view} />
      </div>
      {compose}
      <Announcer view={view} />
      <div className={said ? "toast" : "sr"} role="status">{said}</div>
      {help && <Keys close={() => setHelp(false)} />}
    </main>
  );
}
