import { Glyph } from "../parts/Glyph";
import { doing } from "../state/doing";
import type { Activation, Run } from "../state/run";
import type { Store, View } from "../state/store";
import { lasted, line } from "../state/words";
import { modulesOf, type Module } from "./modules";

const TITLES: Record<string, string> = {
  pending: "Pending", ongoing: "Ongoing", pending_review: "To review", completed: "Completed", deprecated: "Dropped",
};

/** The team's work modules by status, as of the record that is looked at. */
export function Board({ store, view }: { store: Store; view: View }) {
  const modules = modulesOf(view.run);
  const statuses = [...new Set([...Object.keys(TITLES), ...modules.map((each) => each.status)])]
    .filter((status) => TITLES[status] || modules.some((each) => each.status === status));
  return (
    <div className="body board" tabIndex={0} role="group" aria-label="Board">
      {statuses.map((status) => {
        const found = modules.filter((each) => each.status === status);
        return (
          <section key={status} className={found.length ? "col" : "col none"} aria-label={TITLES[status] ?? line(status, 40)}>
            <h3>{TITLES[status] ?? line(status, 40)} <span className="faint">{found.length || ""}</span></h3>
            {found.map((each) => <Card key={each.id} module={each} worker={workerOf(view.run, each)} store={store} view={view} />)}
          </section>
        );
      })}
    </div>
  );
}

/** Who was given a module last. */
function workerOf(run: Run, module: Module): Activation | undefined {
  let found: Activation | undefined;
  for (const each of run.activations.values()) if (each.task === module.id) found = each;
  return found;
}

function Card({ module, worker, store, view }: { module: Module; worker: Activation | undefined; store: Store; view: View }) {
  const state = worker && doing(view.run, worker, view.now);
  const call = worker && view.run.effect(worker.call);
  return (
    <article className="card">
      <p className="row"><code className="faint">{line(module.id, 24)}</code><span className="grow" />
        {worker && call && (
          <button className="link sm dim" onClick={() => store.select(call.id)}>
            {line(worker.label, 30)} · {call.end ? lasted(call.ended - call.began) : "at work"}</button>)}</p>
      <b className="strong">{line(module.name, 120)}</b>
      {module.description && <p className="dim sm">{line(module.description, 300)}</p>}
      {call?.content.text && <p className="sm result"><Glyph shape={state?.state === "failed" ? "error" : "done"} /> {line(call.content.text, 400)}</p>}
    </article>
  );
}
