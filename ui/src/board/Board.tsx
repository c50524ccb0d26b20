import { useEffect, useMemo, useState } from "react";
import { Glyph, Icon } from "../parts/Glyph";
import { useActions, type Actions } from "../server/actions";
import { doing } from "../state/doing";
import type { Activation, Run } from "../state/run";
import type { Store, View } from "../state/store";
import { lasted, line } from "../state/words";
import { ModuleForm, StatusOf } from "./Edit";
import { KEPT, modulesIn, modulesOf, TITLES, type Module } from "./modules";

/** The team's work modules by status, as of the record that is looked at; live they can be changed. */
export function Board({ store, view }: { store: Store; view: View }) {
  const actions = useActions();
  const { modules, missing } = useModules(view, actions);
  const [making, make] = useState(false);
  const manage = view.live && !view.whole.closed ? actions?.manage : undefined;
  const statuses = [...new Set([...Object.keys(TITLES), ...modules.map((each) => each.status)])]
    .filter((status) => TITLES[status] || modules.some((each) => each.status === status));
  return (
    <>
      {actions && <div className="row board-bar">
        <span className="faint sm grow">{manage ? "What you change is a call of yours in the run; agents see it in their next turn." : view.live
          ? "The board of this run cannot be changed." : "As it was then; it can be changed when you are back at now."}</span>
        {manage && <button className="btn" onClick={() => make(true)} disabled={making}><Icon name="plus" />Module</button>}</div>}
      <div className="body board" tabIndex={0} role="group" aria-label="Board">
        {missing && <p className="faint">The plan of this record is too large for a file; look at the run on a server.</p>}
        {statuses.map((status) => {
          const found = modules.filter((each) => each.status === status);
          const first = status === "pending" && making && manage;
          return (
            <section key={status} className={found.length || first ? "col" : "col none"} aria-label={TITLES[status] ?? line(status, 40)}>
              <h3>{TITLES[status] ?? line(status, 40)} <span className="faint">{found.length || ""}</span></h3>
              {first && <ModuleForm manage={manage} known={modules.length} done={() => make(false)} />}
              {found.map((each) => <Card key={each.id} module={each} manage={manage} worker={workerOf(view.run, each)} store={store} view={view} />)}
            </section>
          );
        })}
      </div>
    </>
  );
}

/** The modules as of the record that is looked at; fetched where they are too large for a frame. */
function useModules(view: View, actions: Actions | null): { modules: Module[]; missing: boolean } {
  const user = view.run.activation(0);
  const seq = user?.leftOut[KEPT] ?? 0;
  const [fetched, setFetched] = useState<{ seq: number; kept: unknown }>();
  useEffect(() => {
    if (!seq || !actions || fetched?.seq === seq) return;
    let left = false;
    actions.whole(seq).then((frame) => {
      for (const each of frame.changes) if (!left && each.type === "data_changed" && each.activation === 0 && each.set?.[KEPT]) setFetched({ seq, kept: each.set[KEPT] });
    }, () => undefined);
    return () => { left = true; };
  }, [seq, actions]);
  return useMemo(() => {
    if (!seq) return { modules: modulesOf(view.run), missing: false };
    return fetched ? { modules: modulesIn(fetched.kept), missing: false } : { modules: modulesOf(view.run), missing: actions === null };
  }, [user, seq, fetched, actions]);
}

/** Who was given a module last. */
function workerOf(run: Run, module: Module): Activation | undefined {
  let found: Activation | undefined;
  for (const each of run.activations.values()) if (each.task === module.id) found = each;
  return found;
}

function Card({ module, manage, worker, store, view }: {
  module: Module; manage: Actions["manage"]; worker: Activation | undefined; store: Store; view: View;
}) {
  const [editing, edit] = useState(false);
  const state = worker && doing(view.run, worker, view.now, view.parked);
  const call = worker && view.run.effect(worker.call);
  if (editing && manage) return <ModuleForm manage={manage} module={module} done={() => edit(false)} />;
  return (
    <article className="card" aria-label={`${line(module.id, 24)} ${line(module.name, 80)}`}>
      <p className="row"><code className="faint">{line(module.id, 24)}</code><span className="grow" />
        {worker && call && (
          <button className="link sm dim" onClick={() => store.select(call.id)}>
            {line(worker.label, 30)} · {call.end ? lasted(call.ended - call.began) : "at work"}</button>)}</p>
      <b className="strong">{line(module.name, 120)}</b>
      {module.description && <p className="dim sm">{line(module.description, 300)}</p>}
      {module.notes && <p className="dim sm">Notes: {line(module.notes, 200)}</p>}
      {call?.content.text && <p className="sm result"><Glyph shape={state?.state === "failed" ? "error" : "done"} /> {line(call.content.text, 400)}</p>}
      {manage && <StatusOf module={module} manage={manage} edit={() => edit(true)} />}
    </article>
  );
}
