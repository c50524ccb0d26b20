// What a person can do with a run, where the page is connected to a server; nothing in an exported file.
import { createContext, useContext } from "react";
import type { Schema } from "../answer/Arguments";
import type { Effect } from "../state/run";
import type { Deltas } from "../state/deltas";
import type { AnswerBody } from "./wire";

export interface Actions {
  /** Null where the page only looks. */
  answer: ((body: AnswerBody) => Promise<void>) | null;
  /** The schema of a tool's parameters, as the model that calls it was told. */
  schema(effect: Effect): Schema | undefined;
  deltas: Deltas;
}

export const ActionsContext = createContext<Actions | null>(null);
export const useActions = (): Actions | null => useContext(ActionsContext);

export const useSchema = (effect: Effect): Schema | undefined => useActions()?.schema(effect);
