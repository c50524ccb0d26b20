"""`antiphon ui`: a journal or an exported run in a browser; nothing can be changed there."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

import click

from antiphon.cli import exit_codes
from antiphon.cli.display import output
from antiphon.cli.duration import seconds_of
from antiphon.cli.serving.browser import NOT_BUILT, open_browser, tell_address
from antiphon.cli.serving.serve import leave_at_signals, need_server
from antiphon.cli.source import file_option
from antiphon.cli.store import RunSource, command, find, load_export, opened, short_id
from antiphon.errors import ConfigError, JournalError, UnknownName, UserError
from antiphon.host import Host
from antiphon.journal import Journal, MemoryJournal
from antiphon.kernel.run.open import system_clock
from antiphon.view import export_file
from antiphon.view.page import is_built

_RUN = "RUN-ID"
GOODBYE_SECONDS = 0.0
"""Nothing is driven here that would need time to end."""


@click.command()
@click.argument("run", metavar="[RUN|FILE]", required=False)
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=0, help="Listen there. [default: any free one]"
)
@click.option("--no-open", is_flag=True, help="Only print the address.")
@click.option(
    "--idle", metavar="TIME", default="5m", show_default=True,
    help="End so long after the last page was closed; 0s: only with Ctrl-C.",
)  # fmt: skip
@file_option
def ui(run: str | None, port: int, no_open: bool, idle: str, journal: str | None) -> int:
    """Look at RUN, at all runs of the journal, or at an exported FILE in a browser.

    What another process drives is shown as it goes on. Nothing can be changed in the page: it says with which
    command to go on. The address holds a token, and only this machine can reach it.
    """
    need_server("ui")
    if not is_built():
        raise ConfigError(f"There is nothing to look with: {NOT_BUILT}")
    seconds = seconds_of("--idle", idle)
    return asyncio.run(_look(run, journal, port, seconds, opens=not no_open))


async def _look(run: str | None, option: str | None, port: int, idle: float, *, opens: bool) -> int:
    from antiphon.server.app import ServerSettings, make_app
    from antiphon.server.presence import Presence
    from antiphon.server.serve import listen, serve
    from antiphon.server.subjects import one_token

    async with _opened(run, option) as (journal, run_id, commands):
        token, stop, clock = secrets.token_urlsafe(32), asyncio.Event(), system_clock()
        with listen("127.0.0.1", port) as listening:
            async with Host(journal, {}, drives=False) as host:
                settings = ServerSettings((one_token(token, frozenset({"read"})),), commands=commands)
                app = make_app(host, settings)
                served, presence = app.state.served, Presence(app.asgi_handler, clock)
                app.asgi_handler = presence

                def ready(url: str) -> None:
                    what = f"run {short_id(run_id)}" if run_id else "all runs"
                    output.say(f"a read-only look at {what}")
                    path = path_of(run_id)
                    tell_address(url, token, path)
                    output.say("Ctrl-C ends it" + (", and so does closing its pages" if idle else ""))
                    sys.stdout.flush()
                    if opens:
                        open_browser(served, url, token, path)

                leave_at_signals(stop, "")
                until = presence.until_left(idle) if idle else None
                await serve(app, listening, stop, GOODBYE_SECONDS, ready, until)
                if not stop.is_set():
                    output.tell("its pages are closed")
    return exit_codes.COMPLETED


def path_of(run_id: str) -> str:
    """Where the page shows a run; of a journal that others wrote, an id may hold anything."""
    return f"/run/{quote(run_id, safe='')}" if run_id else ""


@asynccontextmanager
async def _opened(
    text: str | None, option: str | None
) -> AsyncIterator[tuple[Journal, str, Mapping[str, str]]]:
    """The journal that is looked at, the run that is shown first, and the commands that go on.

    An exported file is a journal of one run. Raises NotFound, JournalError.
    """
    if text is not None and _is_file(text):
        try:
            stored = export_file.checked(load_export(text))
        except JournalError as error:
            raise JournalError(f"{text} is damaged and is not shown: {error}") from error
        memory = MemoryJournal()
        await memory.restore(stored)
        yield memory, stored.run_id, {"import": command("runs", "import", text, source=RunSource(option))}
        return
    async with opened(option) as journal:
        found = await _run_of(journal, text) if text is not None else ""
        yield journal, found, _commands(option)


async def _run_of(journal: Journal, text: str) -> str:
    """The id of the run that was named. An id in full needs no look at the others."""
    try:
        return (await journal.info(text)).run_id
    except (UnknownName, UserError):
        return (await find(journal, text)).run_id


def _is_file(text: str) -> bool:
    return os.sep in text or text.endswith(".json") or ("." in text and Path(text).is_file())


def _commands(option: str | None) -> dict[str, str]:
    words = {
        "answer": ("answer", _RUN), "cancel": ("runs", "cancel", _RUN),
        "resume": ("runs", "resume", _RUN, "TARGET"), "ask": ("chat", "TARGET", "--resume", _RUN),
        "start": ("run", "TARGET", "MESSAGE"),
    }  # fmt: skip
    return {
        name: command(*each, source=RunSource(option)).replace(_RUN, "{run}") for name, each in words.items()
    }
