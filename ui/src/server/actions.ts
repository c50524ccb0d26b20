// What a person can do with a run, where the page is connected to a server; nothing in an exported file.
import { createContext, useContext } from "react";
import type { Schema } from "../answer/Arguments";
import type { Effect } from "../state/run";
import type { Deltas } from "../state/deltas";
import type { Frame } from "../state/wire";
import type { AnswerBody, StoredRequest, WorkModuleChange } from "./wire";

export interface Actions {
  /** Null where the page only looks. */
  answer: ((body: AnswerBody) => Promise<void>) | null;
  /** What a model was asked in a call, to the letter. */
  request(id: string): Promise<StoredRequest>;
  /** The same as the JSON that an OpenAI-compatible endpoint takes. */
  chat(id: string): Promise<string>;
  /** What a record changed, with its texts whole. */
  whole(seq: number): Promise<Frame>;
  /** The same with what its files hold, and its texts cut. */
  files(seq: number): Promise<Frame>;
  /** The schema of a tool's parameters, as the model that calls it was told. */
  schema(effect: Effect): Schema | undefined;
  /** Change the plan of a team of profiles; whether it was taken in. */
  manage?: ((change: WorkModuleChange) => Promise<boolean>) | undefined;
  /** What the run is a part of; empty for nothing. */
  project: string;
  deltas: Deltas;
}

export const ActionsContext = createContext<Actions | null>(null);
export const useActions = (): Actions | null => useContext(ActionsContext);

export const useSchema = (effect: Effect): Schema | undefined => useActions()?.schema(effect);
