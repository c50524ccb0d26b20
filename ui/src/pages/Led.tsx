import { useEffect, useState } from "react";
import { Glyph } from "../parts/Glyph";
import { Labels } from "../parts/Labels";
import { Whole } from "../parts/Text";
import type { Api } from "../server/api";
import { reason } from "../server/problem";
import type { ActivationView, EffectView, RunView } from "../server/wire";
import { briefly, line } from "../state/words";
import { Loading, Trouble } from "./states";

const LAST = 8;
const SHAPES: Record<string, "model" | "tool" | "agent" | "human"> = { model: "model", call: "agent", wait: "human" };

export interface Story {
  /** What the one who asks was asked to do. */
  asked: string;
  who: string;
  /** What it said with the reply that the question is of. */
  said: string;
  /** What it did before, the last of it, and what brought a label. */
  before: EffectView[];
}

/** What came before a question, in the run of its agent; undefined where it is not there. */
export function storyOf(activations: ActivationView[], id: string): Story | undefined {
  const tool = id.split(/[?:]/)[0];
  for (const activation of activations) {
    const all = activation.turns.flatMap((each) => each.effects);
    const at = all.findIndex((each) => each.id === id);
    if (at < 0) continue;
    const before = all.slice(0, at).filter((each) => each.id !== tool && each.kind !== "action" && each.purpose !== "deadline" && each.purpose !== "retry");
    const last = before.findLastIndex((each) => each.kind === "model" && !each.purpose);
    const told = before.filter((each, index) => index !== last && (each.kind !== "model" || each.content));
    return {
      asked: activation.asked, who: activation.agent, said: before[last]?.content ?? "",
      // What carries a label may be why it is asked, however long ago it came.
      before: told.filter((each, index) => index >= told.length - LAST || each.labels.length > 0),
    };
  }
  return undefined;
}

/** What led to a question: read when somebody wants to know. */
export function Led({ api, run, question }: { api: Api; run: string; question: string }) {
  const [open, setOpen] = useState(false);
  const [found, setFound] = useState<RunView>();
  const [wrong, setWrong] = useState("");
  useEffect(() => {
    if (!open) return;
    let left = false;
    api.tree(run).then((tree) => { if (!left) setFound(tree); }, (error: unknown) => { if (!left) setWrong(reason(error)); });
    return () => { left = true; };
  }, [api, run, question, open]);
  const story = found && storyOf(found.activations, question);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}><summary>What led here</summary>
      {wrong && <Trouble>{wrong}</Trouble>}
      {open && !found && !wrong && <Loading />}
      {found && !story && <p className="faint sm">It stands in the run.</p>}
      {story && (
        <div className="form led">
          {story.asked && <div><p className="faint sm">{line(story.who, 60)} was asked</p><Whole text={{ text: story.asked }} className="said" first={600} /></div>}
          {story.before.length > 0 && <ul>{story.before.map((each) => (
            <li key={each.id} className="call"><Glyph shape={SHAPES[each.kind] ?? "tool"} /><span className="nm">{line(each.kind === "model" ? "said" : each.name || each.purpose, 60)}</span>
              <span className="args cut">{each.kind === "model" ? "" : briefly(each.arguments)}</span><Labels of={each} /><span className="out cut">{line(each.content || each.outcome || "open")}</span></li>))}</ul>}
          {story.said && <div><p className="faint sm">and said</p><Whole text={{ text: story.said }} className="said" first={600} /></div>}
        </div>)}
    </details>
  );
}
