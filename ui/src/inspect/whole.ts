// The whole of texts that frames have the beginning of: fetched when somebody looks.
import { useEffect, useState } from "react";
import { useActions, type Actions } from "../server/actions";
import type { CutText, Effect } from "../state/run";

const isCut = (text: CutText | undefined): boolean => (text?.length ?? 0) > (text?.text?.length ?? 0);

/** What is said of an effect by the records of its start and end, whole. */
async function fetched(actions: Actions, effect: Effect): Promise<{ effect: Effect; opening: CutText | undefined }> {
  const places = [...new Set([effect.start, effect.end])].filter((each) => each > 0);
  const frames = await Promise.all(places.map((each) => actions.whole(each)));
  let found = effect;
  let opening: CutText | undefined;
  for (const change of frames.flatMap((each) => each.changes)) {
    if (change.type === "effect_started" && change.id === effect.id) {
      found = { ...found, text: change.text ?? found.text, arguments: change.arguments ?? found.arguments };
      opening = change.callee?.opening.content;
    }
    if (change.type === "effect_ended" && change.id === effect.id) {
      found = {
        ...found, content: change.content ?? found.content, reply: change.reply ?? found.reply,
        arguments: change.arguments?.text ? change.arguments : found.arguments,
      };
    }
  }
  return { effect: found, opening };
}

/** An effect with its texts whole, as soon as they are there; `said` is what a call opens with. */
export function useWhole(effect: Effect, said?: CutText): { effect: Effect; said: CutText | undefined } {
  const actions = useActions();
  const [found, setFound] = useState<{ key: string; effect: Effect; opening: CutText | undefined }>();
  const reply = effect.reply;
  const cut = [
    said, effect.text, effect.arguments, effect.content, reply?.content, reply?.reasoning, ...(reply?.calls ?? []).map((each) => each.arguments),
  ].some(isCut);
  const key = `${effect.id} ${effect.end}`;
  useEffect(() => {
    if (!actions || !cut || found?.key === key) return;
    let left = false;
    // What cannot be had now stays cut, and says how long it is.
    fetched(actions, effect).then((more) => { if (!left) setFound({ key, ...more }); }, () => undefined);
    return () => { left = true; };
  }, [actions, cut, key]);
  return found?.key === key ? { effect: found.effect, said: found.opening ?? said } : { effect, said };
}

/** All of a tool's result, which a model was shown a part of. */
export async function resultOf(actions: Actions, effect: Effect): Promise<string> {
  return (await fetched(actions, effect)).effect.content.text ?? "";
}
