import { useEffect, useRef } from "react";

const ALL: [string, string][] = [
  ["← →", "a record back, forward; with ⇧ ten, with ⌥ a turn of this agent"],
  ["[ ]", "previous, next failure, question or retry"],
  ["J K", "next, previous effect"],
  ["Space", "play, pause"],
  ["Home, L", "to the start, to the end or live"],
  ["W S, A D, F", "zoom, pan, fit the lanes"],
  ["1 2 3 4", "to team, transcript, lanes, inspector"],
  ["/, ⌘F", "find in this run; ↵ to the next place"],
  ["A, E, D", "allow, edit, deny the question that has the focus"],
  ["C, ⇧C", "copy a link to what is looked at; the model call as curl"],
  ["⌘K", "find or do: runs, agents, commands"],
  ["G, N", "then R I T P: to runs, inbox, teams, projects; N: new run"],
  ["Esc", "back to the whole transcript"],
  ["?", "this list"],
];

/** All keys there are. */
export function Keys({ close }: { close(): void }) {
  const box = useRef<HTMLDialogElement>(null);
  useEffect(() => box.current?.showModal(), []);
  return (
    <dialog ref={box} className="keys" aria-label="Keys" onClose={close} onClick={(event) => { if (event.target === box.current) close(); }}>
      <h2>Keys</h2>
      <dl>{ALL.map(([key, what]) => <div key={key}><dt><kbd>{key}</kbd></dt><dd>{what}</dd></div>)}</dl>
      <button className="btn" onClick={close}>Close</button>
    </dialog>
  );
}
