// Antiphon itself, in processes of their own: a team, servers of it, runs in other terminals.
import { spawn, type ChildProcess } from "node:child_process";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";

const ROOT = join(import.meta.dirname, "..", "..");
const PYTHON = process.env.PYTHON ?? join(ROOT, ".venv", "bin", "python");
export const TOKEN = "a token that outlives restarts";
export const canStart = existsSync(PYTHON);

/** One agent begins a reply and waits in the middle of it for a file; one has a tool that asks. */
const TEAM = `
import asyncio, os
from antiphon import Agent, tool
from antiphon.models.script import Script, call
from antiphon.values.model import Delta, Reply, Usage


class Writes:
    name = "writes"

    async def complete(self, request, emit):
        emit(Delta("text", "Half an "))
        while not os.path.exists("open"):
            await asyncio.sleep(0.02)
        emit(Delta("text", "answer."))
        return Reply("Half an answer.", usage=Usage(3, 2))


@tool(requires_approval=True)
def pay(who: str, euros: int) -> str:
    """Pay somebody."""
    return f"paid {euros} to {who}"


clerk = Agent("clerk", model=Writes())
payer = Agent("payer", model=Script([call("pay", who="ann", euros=3), "All paid."], by="turn"), tools=[pay])
`;
/** The research team of the examples, its partner at hand at once. */
const PLANNERS = `
from antiphon.models.script import Script
from antiphon.styles.profiles import ProfileTeam

says = dict.fromkeys(("Partner", "Principal", "Reader"), Script(["Hello."], by="turn"))
team = ProfileTeam(${JSON.stringify(join(ROOT, "examples", "research"))}, models=says)
`;
/** A terminal, so that what asks a person waits for one. */
const TERMINAL = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";

export class Place {
  readonly folder = mkdtempSync(join(tmpdir(), "antiphon-page-"));
  private processes: ChildProcess[] = [];

  constructor() {
    writeFileSync(join(this.folder, "team.py"), TEAM);
    writeFileSync(join(this.folder, "planners.py"), PLANNERS);
  }

  /** Let the reply that waits go on. */
  goOn(): void {
    writeFileSync(join(this.folder, "open"), "");
  }

  start(words: string[], terminal = false): ChildProcess {
    const command = [PYTHON, "-m", "antiphon.cli", ...words];
    const [first, ...rest] = terminal ? [PYTHON, "-c", TERMINAL, ...command] : command;
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(ANTIPHON|OPENAI)_/.test(name)));
    const found = spawn(first!, rest, {
      cwd: this.folder, stdio: ["pipe", "pipe", "pipe"],
      env: { ...env, PYTHONPATH: join(ROOT, "src"), PYTHONUNBUFFERED: "1", TERM: "xterm", ANTIPHON_SERVER_TOKEN: TOKEN },
    });
    this.processes.push(found);
    return found;
  }

  /** A server of both agents, or of other targets, at its address. */
  async serve(port = "0", targets = ["team.py:clerk", "team.py:payer"]): Promise<{ server: ChildProcess; root: string }> {
    const server = this.start(["serve", ...targets, "--port", port]);
    const said = await until(server, /at (http:\S+)/);
    return { server, root: said[1]! };
  }

  close(): void {
    for (const each of this.processes) each.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** Wait until a process says something. */
export function until(from: ChildProcess, what: RegExp): Promise<RegExpExecArray> {
  return new Promise((done, fail) => {
    let all = "";
    const read = (data: Buffer): void => {
      all += String(data);
      const found = what.exec(all);
      if (found) done(found);
    };
    from.stdout!.on("data", read);
    from.stderr!.on("data", read);
    from.on("exit", () => fail(new Error(`it ended before it said ${what}: ${all}`)));
  });
}

/** POST to the server, as another client would. */
export async function post(root: string, path: string, body: object): Promise<Record<string, string>> {
  const headers = { "Content-Type": "application/json", Authorization: `Bearer ${TOKEN}` };
  const response = await fetch(root + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!response.ok) throw new Error(await response.text());
  return (await response.json()) as Record<string, string>;
}

/** A tab of the page. hash: where, before its token. */
export async function tab(browser: Browser, address: string): Promise<Page> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce" });
  await page.goto(address);
  return page;
}
