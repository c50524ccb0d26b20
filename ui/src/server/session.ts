// What may be done here: a read-only look shows the same, and says with which command to go on.
import { createContext, useContext } from "react";
import type { SessionView } from "./wire";

export interface Session {
  /** Something can be started, answered and stopped from this page. */
  writes: boolean;
  /** It is known that nothing can. */
  readOnly: boolean;
  /** It looks at a journal that no server drives. */
  looks: boolean;
  /** Command lines that go on, by what they do; `{run}` stands for a run's id. */
  commands: Record<string, string>;
}

export const UNKNOWN: Session = { writes: false, readOnly: false, looks: false, commands: {} };

export function sessionOf(told: SessionView | undefined): Session {
  if (!told) return UNKNOWN;
  const writes = told.drives && told.scopes.includes("write");
  return { writes, readOnly: !writes, looks: !told.drives, commands: told.commands };
}

export const SessionContext = createContext<Session>(UNKNOWN);
export const useSession = (): Session => useContext(SessionContext);

/** The command line that does something with a run; empty when none is known. */
export const commandOf = (session: Session, what: string, run = ""): string =>
  (session.commands[what] ?? "").replace("{run}", run.slice(0, 12));
