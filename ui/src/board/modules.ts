// Work modules, as a team of profiles keeps them in the data of its run.
import type { Run } from "../state/run";

export interface Module {
  id: string;
  name: string;
  description: string;
  status: string;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** The modules of a run; none where its team keeps none. */
export function modulesOf(run: Run): Module[] {
  const kept = run.activation(0)?.data.work_modules;
  if (typeof kept !== "object" || kept === null) return [];
  return Object.entries(kept as Record<string, unknown>).map(([id, value]) => {
    const each = (typeof value === "object" && value !== null ? value : {}) as Record<string, unknown>;
    return { id, name: text(each.name) || id, description: text(each.description), status: text(each.status) || "pending" };
  });
}
