import { useEffect, useState, type ReactNode } from "react";
import { Announcer } from "./Announcer";
import { TeamPane } from "./graph/Pane";
import { Head } from "./Head";
import { Inspector, type Prefixes } from "./inspect/Inspector";
import { useKeys } from "./keys";
import { Lanes } from "./lanes/Lanes";
import { Keys } from "./parts/Keys";
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
  useKeys(store, () => setHelp((old) => !old));
  useEffect(() => {
    const timer = window.setInterval(() => store.tick(), 1000);
    return () => window.clearInterval(timer);
  }, [store]);
  return (
    <main className="main">
      <Head store={store} view={view} name={name} actions={actions} help={() => setHelp(true)} />
      {notice}
      <div className="tabs">
        <div className="seg" role="tablist" aria-label="Pane">
          {PANES.map(([pane, title]) => (
            <button key={pane} role="tab" aria-selected={view.pane === pane} onClick={() => store.open(pane)}>{title}</button>
          ))}
        </div>
      </div>
      <div className="run" data-pane={view.pane}>
        <TeamPane store={store} view={view} />
        <Transcript store={store} view={view} />
        <Inspector store={store} view={view} prefixes={prefixes} />
        <Lanes store={store} view={view} />
      </div>
      {compose}
      <Announcer view={view} />
      {help && <Keys close={() => setHelp(false)} />}
    </main>
  );
}
