// The same as a command: what a form would start, for a terminal.
import { hereDocument, quoted } from "../parts/shell";
import type { CreateRun } from "../server/wire";

/** How the run that a form describes is started from a terminal. Whoever types it has the token in ANTIPHON_SERVER_TOKEN. */
export function commandOf(body: CreateRun, server: string): string {
  const { team, message, project, limits, entry, name, data, model, policy, files, attachments } = body;
  const { tokens, on_breach, ...rest } = limits ?? {};
  const plain = !entry && !name && data === undefined && !model && !policy && !files?.length && !attachments?.length
    && Object.keys(rest).length === 0 && (on_breach ?? "stop") === "stop";
  if (plain) {
    return [
      "antiphon run", quoted(team), quoted(message || "…"), "--server", quoted(server), ...(project ? ["--project", quoted(project)] : []),
      ...(typeof tokens === "number" ? ["--limit-tokens", String(tokens)] : []),
    ].join(" ");
  }
  // What no option says, the body of the request does.
  return `curl ${quoted(`${server}/runs`)} -H "Authorization: Bearer $ANTIPHON_SERVER_TOKEN" \\\n`
    + `  -H 'Content-Type: application/json' ${hereDocument(JSON.stringify(body))}`;
}
