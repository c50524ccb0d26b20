// Work modules, as a team of profiles keeps them in the data of its run.
import type { Run } from "../state/run";

export interface Module {
  id: string;
  name: string;
  description: string;
  notes: string;
  status: string;
}

/** What they are kept as. */
export const KEPT = "work_modules";
export const TITLES: Record<string, string> = {
  pending: "Pending", ongoing: "Ongoing", pending_review: "To review", completed: "Completed", deprecated: "Dropped",
};
/** What a person may set; that one is worked on comes about. */
export const SETTABLE = ["pending", "pending_review", "completed", "deprecated"];

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** Whether a run keeps modules at all, if there are none yet. */
export const keepsModules = (run: Run): boolean => {
  const user = run.activation(0);
  return user?.data[KEPT] !== undefined || user?.leftOut[KEPT] !== undefined;
};

/** The modules of a run; none where its team keeps none. */
export const modulesOf = (run: Run): Module[] => modulesIn(run.activation(0)?.data[KEPT]);

export function modulesIn(kept: unknown): Module[] {
  if (typeof kept !== "object" || kept === null) return [];
  return Object.entries(kept as Record<string, unknown>).map(([id, value]) => {
    const each = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
    const status = text(each.status) || "pending";
    return {
      id, name: text(each.name) || id, description: text(each.description), notes: text(each.notes_from_principal),
      status: status === "in_progress" ? "ongoing" : status,
    };
  });
}
