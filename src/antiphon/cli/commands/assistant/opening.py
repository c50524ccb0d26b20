"""Opening the assistant: as a conversation, or for one answer; new, or where it was left."""

from __future__ import annotations

import asyncio
import os
import sys
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from antiphon import Policy
from antiphon.cli import exit_codes
from antiphon.cli.commands.chat import KEYED, lead_chat, newest_chat
from antiphon.cli.commands.run import MAX_MESSAGE
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.display.watch import interactive
from antiphon.cli.session.request import DisplayOptions, Request, perform
from antiphon.cli.store import FILE, FOLDER, RunSource, find, url_of
from antiphon.cli.target import Target, load_target
from antiphon.config.dotenv import LayeredSettings, environment
from antiphon.journal import Journal, open_journal

if TYPE_CHECKING:
    from antiphon.assistant import Coder

TARGET = "antiphon.assistant:coder"
"""What is talked with."""
SHOWN = 200
"""Characters of a line that would be run."""


class AssistantOptions(Struct, frozen=True):
    """What stands on the command line. said: to be answered once; None: a conversation."""

    said: str | None = None
    as_json: bool = False
    newest: bool = False
    resume: str | None = None
    mode: str | None = None
    model: str | None = None
    folder: str = "."
    journal: str | None = None
    trust: bool = False
    quiet: bool = False


def open_assistant(options: AssistantOptions) -> int:
    """Open it; the exit code. Raises UsageError for options that exclude each other."""
    if options.resume and options.newest:
        raise click.UsageError("--resume and --continue exclude each other.")
    if options.as_json and options.said is None:
        raise click.UsageError("--json goes with -p, whose events are written.")
    env = environment()
    folder = os.path.realpath(options.folder)
    target = _loaded(options, folder)
    source = RunSource(options.journal or _journal(Path(folder), env))
    model = options.model or _keyed(env)
    manner = DisplayOptions(
        TARGET, source, folder, model, options.as_json, options.quiet or options.as_json, chat=True,
        project=project_of(folder),
    )  # fmt: skip
    if options.trust:
        return exit_codes.COMPLETED
    if options.said is None:
        belongs = _belongs_to(folder) if options.newest else None
        return asyncio.run(lead_chat(target, manner, None, options.resume, belongs))
    said = _coder(target).said(_message(options.said))
    return asyncio.run(_answered(target, manner, options, said))


async def _answered(target: Target, manner: DisplayOptions, options: AssistantOptions, said: str) -> int:
    """One request, of a conversation that stays open."""
    journal = open_journal(url_of(manner.source.journal, environment()))
    try:
        run_id = await _run_of(journal, manner, options)
        policy = None if run_id else Policy("guarded")
        request = Request(said, run_id, ends=False, policy=policy)
        return await perform(request, target, manner, journal)
    finally:
        await journal.close()


async def _run_of(journal: Journal, manner: DisplayOptions, options: AssistantOptions) -> str | None:
    if options.resume:
        return (await find(journal, options.resume)).run_id
    if options.newest:
        return (await newest_chat(journal, _belongs_to(manner.folder or ""))).run_id
    return None


class _belongs_to:
    """Whether a conversation is one of the assistant's in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def __call__(self, kept: DisplayOptions) -> bool:
        return kept.target == TARGET and kept.folder == self._folder


def _loaded(options: AssistantOptions, folder: str) -> Target:
    """The assistant of a folder, once its user has said whether what can run code there is trusted."""
    target = load_target(TARGET, folder)
    team = _coder(target)
    asked = options.trust or (options.said is None and interactive())
    if asked and team.conventions.untrusted and _trusted(team, sure=options.trust):
        target = load_target(TARGET, folder)
        team = _coder(target)
    if not options.quiet:
        target.tell_findings()
    mode = options.mode or ("auto" if options.said is not None else "ask")
    team.permission.mode = mode  # type: ignore[assignment]
    return target


def _coder(target: Target) -> Coder:
    found: Coder = target.source
    return found


def _trusted(team: Coder, *, sure: bool) -> bool:
    """Show what of a project can run code, and trust it when its user says so. sure: they have."""
    output.tell(
        f"What can run code in {terminal_escape.line(str(team.folder), SHOWN)}, and is not trusted yet:"
    )
    for each in team.conventions.untrusted:
        output.tell(f"  {each.kind} ({terminal_escape.line(each.path, SHOWN)})")
        for line in each.runs:
            output.tell(f"    {terminal_escape.line(line, SHOWN)}")
    if not sure:
        output.tell("Trust all of it as it is now? Without it, it is left out. [y/N] ", end="")
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            return False
    team.conventions.trust_all()
    return True


def _message(said: str) -> str:
    """What is asked: the text, or with `-` the standard input. Raises UsageError for none."""
    if said == "-":
        said = sys.stdin.read(MAX_MESSAGE + 1)
        if len(said) > MAX_MESSAGE:
            raise click.UsageError(
                f"The message on the standard input is longer than {MAX_MESSAGE:,} characters."
            )
    if not said.strip():
        raise click.UsageError(
            "There is no message: give one after -p, or with `-p -` on the standard input."
        )
    return said.rstrip("\n")


def project_of(folder: str) -> str:
    """The project of the assistant's runs in a folder: what is allowed for good holds in all of them."""
    return f"folder-{blake2b(os.fsencode(folder), digest_size=8).hexdigest()}"


def _journal(folder: Path, env: LayeredSettings) -> str | None:
    """Where its runs are kept: in the user's folder for state. None where that is the usual journal."""
    # Not at import: `antiphon --help` has no need of it.
    from antiphon.assistant.conventions.places import state_folder

    found = os.path.join(state_folder(folder, env), FILE)
    usual = os.path.realpath(os.path.join(env.get("ANTIPHON_HOME") or FOLDER, FILE))
    return None if found == usual else found


def _keyed(env: LayeredSettings) -> str | None:
    """A model for whoever has set a key and none; None: what the settings say."""
    if any(env.get(name, "").strip() for name in ("ANTIPHON_MODEL", "OPENAI_DEFAULT_MODEL")):
        return None
    return KEYED if any(env.get(name, "").strip() for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL")) else None
