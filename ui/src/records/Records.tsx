import { useMemo } from "react";
import { Virtual, type Row } from "../parts/Virtual";
import type { Store, View } from "../state/store";
import type { ChangeFrame, Frame } from "../state/wire";
import { lasted, line, plural } from "../state/words";

interface Record extends Row {
  frame: Frame;
}

/** Every record of the run, one a line; the one that is looked at is marked. */
export function Records({ store, view }: { store: Store; view: View }) {
  const { frames } = view.history;
  const items = useMemo<Record[]>(
    () => frames.map((frame) => ({ key: String(frame.seq), guess: 26, frame })),
    [frames, frames.length],
  );
  const began = frames[0]?.at ?? 0;
  return (
    <Virtual items={items} label="Records" className="records" wanted={String(view.seq)} render={({ frame }) => {
      const effect = idOf(frame);
      return (
        <button className={`rec ${frame.seq > view.seq ? "later" : ""}`} aria-current={frame.seq === view.seq}
          onClick={() => { store.seek(frame.seq); if (effect) store.select(effect); }}>
          <span className="num faint">{frame.seq}</span>
          <span className="num faint">+{lasted(frame.at - began)}</span>
          <span className="cut">{frame.changes.map(told).join(" · ") || "nothing that is shown"}</span>
        </button>
      );
    }} />
  );
}

/** The effect that a record is about; empty for none. */
export function idOf(frame: Frame): string {
  for (const each of frame.changes) {
    if (each.type === "effect_started" || each.type === "effect_ended") return each.id;
  }
  return "";
}

/** What a change is, in words. */
export function told(change: ChangeFrame): string {
  const name = change.type.replaceAll("_", " ");
  switch (change.type) {
    case "effect_started":
      return `${change.purpose || change.kind} ${line(change.name ?? "", 40)} started ${change.id}`;
    case "effect_ended":
      return `${change.purpose || change.kind} ${line(change.name ?? "", 40)} ${change.outcome ?? "ended"} ${change.id}`;
    case "turn_started":
    case "turn_ended":
      return `${name} ${change.activation}/${change.turn}`;
    case "decided":
      return `${change.decision.allowed ? "allowed" : "denied"} ${change.id}`;
    case "message_arrived":
      return `${name} from ${line(change.message.sender, 40)}`;
    case "run_resumed":
      return change.origin ? `forked from ${line(change.origin, 40)} at its record ${change.seq ?? 0}` : name;
    case "toolset_changed":
      return `toolset ${line(change.name, 40)} ${change.reason ? `is down: ${line(change.reason, 120)}` : `offers ${plural((change.tools ?? []).length, "tool")}`}`;
    case "files_changed":
      return `${name}: ${line((change.files ?? []).map((each) => each.path).join(", "), 80)}${change.left_out ? ` and ${plural(change.left_out, "more")}` : ""}`;
    case "data_changed":
      return `${name}: ${line(Object.keys({ ...change.set, ...change.append, ...change.left_out }).join(", "), 80)}`;
    default:
      return name;
  }
}
