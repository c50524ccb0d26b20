import { useEffect, useRef, useState, type FormEvent } from "react";
import type { Actions } from "../server/actions";
import { reason } from "../server/problem";
import type { WorkModuleChange } from "../server/wire";
import { visible } from "../state/words";
import { SETTABLE, TITLES, type Module } from "./modules";

type Manage = NonNullable<Actions["manage"]>;

/** A change on its way: nothing is shown as done before its record is there. `as`: how it stands, which the record changes. */
function useSending(manage: Manage, as: string, done?: () => void): { sent: boolean; said: string; wrong: boolean; send(change: WorkModuleChange): void } {
  const [sent, setSent] = useState("");
  const [said, say] = useState("");
  const [wrong, setWrong] = useState(false);
  const waits = useRef(false);
  useEffect(() => {
    if (!waits.current || sent === as) return;
    waits.current = false;
    setSent("");
    say("");
    done?.();
  }, [as, sent]);
  const send = (change: WorkModuleChange): void => {
    waits.current = true;
    setSent(as);
    setWrong(false);
    say("Sent");
    manage(change).then((taken) => { if (!taken) say("Sent; it is taken in when somebody drives the run"); }, (error: unknown) => {
      waits.current = false;
      setSent("");
      setWrong(true);
      say(reason(error));
    });
  };
  return { sent: sent !== "", said, wrong, send };
}

const Said = ({ said, wrong }: { said: string; wrong: boolean }) =>
  said ? <p className={wrong ? "kt k-error sm" : "faint sm"} role={wrong ? "alert" : "status"}>{said}</p> : null;

/** The status of a module, to be changed in place; and the way to its other fields. */
export function StatusOf({ module, manage, edit }: { module: Module; manage: Manage; edit(): void }) {
  const { sent, said, wrong, send } = useSending(manage, JSON.stringify(module));
  const set = (status: string): void => send({ action: "status_change", module_id: module.id, new_status: status });
  const busy = module.status === "ongoing";
  return (
    <>
      <div className="row edits">
        <select className="field" aria-label={`Status of ${visible(module.id)}`} value={module.status} disabled={sent || busy} onChange={(event) => set(event.target.value)}>
          {!SETTABLE.includes(module.status) && <option value={module.status}>{TITLES[module.status] ?? visible(module.status)}</option>}
          {SETTABLE.map((each) => <option key={each} value={each}>{TITLES[each]}</option>)}
        </select>
        <button className="btn plain" disabled={sent} onClick={edit} aria-label={`Edit ${visible(module.id)}`}>Edit</button>
        {module.status !== "deprecated" && <button className="btn plain" disabled={sent || busy} onClick={() => set("deprecated")} aria-label={`Drop ${visible(module.id)}`}>Drop</button>}
      </div>
      {busy && <p className="faint sm">It is being worked on: its status changes with the end of that.</p>}
      <Said said={said} wrong={wrong} />
    </>
  );
}

/** A new module, or what one is called and says. */
export function ModuleForm({ manage, module, known = 0, done }: { manage: Manage; module?: Module; known?: number; done(): void }) {
  const [name, setName] = useState(module?.name ?? "");
  const [about, setAbout] = useState(module?.description ?? "");
  const { sent, said, wrong, send } = useSending(manage, module ? JSON.stringify(module) : String(known), done);
  const changed = name.trim() !== (module?.name ?? "") || about !== (module?.description ?? "");
  const submit = (event: { preventDefault(): void } | FormEvent): void => {
    event.preventDefault();
    if (!name.trim() || !changed || sent) return;
    send(module
      ? { action: "update", module_id: module.id, name: name.trim(), description: about }
      : { action: "create", name: name.trim(), description: about });
  };
  return (
    <form className="card" aria-label={module ? `Edit ${visible(module.id)}` : "New module"} onSubmit={submit} onKeyDown={(event) => {
      if (event.key === "Escape") { event.stopPropagation(); done(); }
      if ((event.metaKey || event.ctrlKey) && event.key === "Enter") submit(event);
    }}>
      <label><span className="label">Name</span><input className="field" autoFocus required value={name} onChange={(event) => setName(event.target.value)} /></label>
      <label><span className="label">What is to be done</span><textarea className="field" rows={4} value={about} onChange={(event) => setAbout(event.target.value)} /></label>
      <Said said={said} wrong={wrong} />
      <div className="row"><button className="btn ink" disabled={sent || !changed || !name.trim()}>{sent ? "Sent" : module ? "Save" : "Add"}</button>
        <button className="btn plain" type="button" onClick={done}>Leave it</button></div>
    </form>
  );
}
