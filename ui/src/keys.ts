// The keyboard: every step that a pointer can take.
import { useEffect } from "react";
import { copy } from "./parts/Copy";
import { asksPerson, failed } from "./state/doing";
import type { Store, Pane } from "./state/store";

const PANES: Pane[] = ["graph", "talk", "lanes", "look"];

/** curl: copies the model call that is looked at as a command, where that can be done. */
export function useKeys(store: Store, help: () => void, curl: () => void): void {
  useEffect(() => {
    const press = (event: KeyboardEvent): void => {
      const target = event.target as HTMLElement;
      if (target.closest("input, textarea, select, dialog")) return;
      if ((event.ctrlKey || event.metaKey) && event.key === "f") {
        event.preventDefault();
        store.open("talk");
        return store.find(true);
      }
      if (event.ctrlKey || event.metaKey) return;
      const done = act(store, event, help, curl);
      if (done) event.preventDefault();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [store, help, curl]);
}

function act(store: Store, event: KeyboardEvent, help: () => void, curl: () => void): boolean {
  const { key, altKey, shiftKey } = event;
  const view = store.snapshot();
  switch (key) {
    case "ArrowLeft":
    case "ArrowRight": {
      const by = key === "ArrowLeft" ? -1 : 1;
      if (altKey) turn(store, by);
      else store.step(shiftKey ? by * 10 : by);
      return true;
    }
    case "[":
    case "]":
      trouble(store, key === "[" ? -1 : 1);
      return true;
    case " ":
      if ((event.target as HTMLElement).closest("button, summary, a")) return false;
      store.play();
      return true;
    case "l":
    case "L":
    case "End":
      store.stop();
      store.seek(null);
      return true;
    case "Home":
      store.stop();
      store.seek(1);
      return true;
    case "j":
    case "k":
      neighbour(store, key === "j" ? 1 : -1);
      return true;
    case "w":
    case "s":
    case "a":
    case "d":
    case "f":
      window.dispatchEvent(new CustomEvent("lanes", { detail: key }));
      return true;
    case "1":
    case "2":
    case "3":
    case "4": {
      const pane = PANES[Number(key) - 1]!;
      store.open(pane);
      const box = document.querySelector(`#pane-${pane}`);
      (box?.querySelector<HTMLElement>('[tabindex="0"]') ?? box?.querySelector("button"))?.focus();
      return true;
    }
    case "c":
      void copy(store.link);
      return true;
    case "C":
      curl();
      return true;
    case "/":
      store.open("talk");
      store.find(true);
      return true;
    case "?":
      help();
      return true;
    case "Escape":
      if (view.tab === "all") return false;
      store.show("all");
      return true;
  }
  return false;
}

/** The previous or next turn of the agent that is looked at. */
function turn(store: Store, by: number): void {
  const { whole, effect: id, seq } = store.snapshot();
  const effect = whole.effect(id);
  const turns = (effect && whole.activation(effect.activation)?.turns) ?? [];
  const at = turns.findIndex((each) => each.number === effect?.turn);
  const next = turns[at + by];
  if (!next) return;
  const model = next.effects.find((each) => whole.effect(each)?.kind === "model") ?? next.effects[0];
  if (next.start > seq) store.seek(next.start);
  if (model) store.select(model);
}

/** The previous or next failure, question or retry. */
function trouble(store: Store, by: number): void {
  const { whole, seq } = store.snapshot();
  const places: [number, string][] = [];
  for (const each of whole.effects.values()) {
    if (asksPerson(each) || each.purpose === "retry") places.push([each.start, each.id]);
    else if (failed(each)) places.push([each.end, each.id]);
  }
  places.sort(([one], [other]) => one - other);
  const found = by > 0 ? places.find(([at]) => at > seq) : places.findLast(([at]) => at < seq);
  if (!found) return;
  store.seek(found[0]);
  store.select(found[1]);
}

/** The effect before or after the one that is looked at, in the order they began. */
function neighbour(store: Store, by: number): void {
  const { run, effect } = store.snapshot();
  const ids = [...run.effects.values()].filter((each) => each.kind !== "wait" || asksPerson(each)).map((each) => each.id);
  const next = ids[ids.indexOf(effect) + by];
  if (next) store.select(next);
}
