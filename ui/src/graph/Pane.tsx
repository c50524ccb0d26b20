import { lazy, Suspense } from "react";
import type { Store, View } from "../state/store";
import { plural } from "../state/words";
import { Spent } from "./Spent";
import { Toolsets } from "./Toolsets";

const Team = lazy(() => import("./Team"));

export function TeamPane({ store, view }: { store: Store; view: View }) {
  return (
    <section className="pane p-graph" aria-label="Team" id="pane-graph">
      <div className="bar-top">
        <h2>Team</h2><span className="faint sm">{plural(view.run.activations.size - 1, "activation")}</span>
      </div>
      <div className="body"><Suspense fallback={null}><Team store={store} view={view} /></Suspense></div>
      <Toolsets view={view} />
      <Spent view={view} />
    </section>
  );
}
