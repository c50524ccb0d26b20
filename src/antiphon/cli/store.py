"""Which journal or server a command works on, and which run of it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote, urlsplit

import click
from msgspec import Struct

from antiphon.cli import exit_codes
from antiphon.cli.display import terminal_escape
from antiphon.config.dotenv import environment
from antiphon.host.summaries import state_word
from antiphon.journal import Journal, open_journal
from antiphon.journal.files.seal import VARIABLE, journal_key
from antiphon.journal.listing import RunInfo
from antiphon.journal.port import StoredRun
from antiphon.kernel.facts.summary import RunSummary
from antiphon.view import export_file

if TYPE_CHECKING:
    from antiphon.tools.knowledge import KnowledgeStore

FOLDER = ".antiphon"
FILE = "antiphon.db"
SHORT = 12
"""Characters of a run's id that are shown; they name it among very many."""


class RunSource(Struct, frozen=True):
    """Where the runs are that a command works on: a journal here, or a server."""

    journal: str | None = None
    """As `--journal` says it; None: the usual one."""
    server: str | None = None
    """As `--server` says it; empty for that of the setting. None: a journal."""
    token_file: str | None = None
    plain_http: bool = False

    @property
    def is_server(self) -> bool:
        """Whether it is a server."""
        return self.server is not None

    @property
    def words(self) -> list[str]:
        """The options that a command to be pasted repeats; none for what is usual here."""
        words = ["--journal", self.journal] if self.journal is not None else []
        words += ["--server", self.server] if self.server else []
        words += ["--token-file", self.token_file] if self.token_file is not None else []
        return words + (["--plain-http"] if self.plain_http else [])


class ListedRun(Struct, frozen=True):
    """A run of the list. known: what is known of it; None for one that is damaged. state: in a word."""

    entry: RunInfo
    known: RunSummary | None
    state: str


def short_id(run_id: str) -> str:
    """A run's id as it is shown: its beginning, on one line whatever it holds."""
    return _one_line(run_id[:SHORT])


def _one_line(text: str) -> str:
    return text if text.isprintable() else terminal_escape.line(text)


json_option = click.option("--json", "as_json", is_flag=True, help="Write JSON.")


def url_of(option: str | None, env: Mapping[str, str]) -> str:
    """The journal's URL: as `--journal` says, else in ANTIPHON_HOME, else in the folder we are in.

    Raises UsageError for a key that stands where it protects nothing.
    """
    if env.get(VARIABLE) and not journal_key():
        raise click.UsageError(
            f"{VARIABLE} stands in .env, beside what it is to protect; set it in the environment instead."
        )
    if option is None:
        option = os.path.join(env.get("ANTIPHON_HOME") or FOLDER, FILE)
    if option == "memory" or "://" in option:
        return option
    return "sqlite:///" + quote(option)


def knowledge_store(env: Mapping[str, str]) -> KnowledgeStore:
    """The sources of knowledge that were added: in ANTIPHON_HOME, else in the folder we are in. A server that
    is one is looked for among those of this folder, and the user's own."""
    from antiphon.tools.knowledge import KnowledgeStore
    from antiphon.tools.mcp import configured_servers
    from antiphon.tools.sources import opened_elsewhere

    place = os.path.join(env.get("ANTIPHON_HOME") or FOLDER, "knowledge")
    return KnowledgeStore(place, elsewhere=opened_elsewhere(partial(configured_servers, ".", env), env))


@asynccontextmanager
async def opened(option: str | None) -> AsyncIterator[Journal]:
    """The journal that exists already, closed at the end. Raises NotFound when there is none."""
    url = url_of(option, environment())
    path = unquote(urlsplit(url).path[1:])
    if url.startswith("sqlite:") and path and not os.path.exists(path):  # noqa: ASYNC240 - one look
        raise exit_codes.NotFound(
            f"There is no journal at {path}. `antiphon run` makes one;"
            " --journal PATH or ANTIPHON_HOME names another"
        )
    journal = open_journal(url)
    try:
        yield journal
    finally:
        await journal.close()


async def find(journal: Journal, prefix: str) -> RunInfo:
    """The run whose id starts with `prefix`, or of that name. Raises NotFound when none or several are."""
    return choose(await journal.runs(), prefix)


def choose(runs: Sequence[RunInfo], prefix: str, newest: Sequence[RunInfo] | None = None) -> RunInfo:
    """See `find`. An id in full is always that run, then a name in full. newest: of all runs, where `runs`
    are not all."""
    exact = [entry for entry in runs if entry.run_id == prefix]
    exact = exact or [entry for entry in runs if prefix and entry.name == prefix]
    found = exact or [entry for entry in runs if prefix and entry.run_id.startswith(prefix)]
    if len(found) == 1:
        return found[0]
    if not found:
        told = ", ".join(short_id(entry.run_id) for entry in (newest or runs)[:5]) or "(none)"
        raise exit_codes.NotFound(
            f"No run starts with {prefix!r}. The newest: {told}. `antiphon runs ls` lists all"
        )
    length = max(SHORT, len(prefix) + 4)
    listed = ", ".join(terminal_escape.line(entry.run_id[:length]) for entry in found[:8])
    said = "are called" if exact else "start with"
    raise exit_codes.NotFound(
        f"{len(found)} runs {said} {prefix!r}: {listed}. Give more characters of the id"
    )


def load_export(path: str) -> StoredRun:
    """What an exported file says, not yet checked. Raises NotFound, JournalError when it is no export."""
    try:
        return export_file.load(path)
    except OSError as error:
        raise exit_codes.NotFound(f"{path} cannot be read: {error.strerror}") from error


def state_of(entry: RunInfo, known: RunSummary) -> str:
    """A run's state in one word, as it is shown."""
    return terminal_escape.line(state_word(entry, known), 20)


def program() -> str:
    """How a person calls this program from here."""
    if shutil.which("antiphon"):
        return "antiphon"
    beside = Path(sys.executable).with_name("antiphon")
    if beside.exists():
        return shlex.quote(os.path.relpath(beside) if beside.is_relative_to(Path.cwd()) else str(beside))
    return f"{shlex.quote(sys.executable)} -m antiphon.cli"


def command(*words: str, source: RunSource) -> str:
    """A command to be pasted, one line whatever it holds; with the journal or server unless it is the usual
    one."""
    return f"{program()} {_one_line(shlex.join([*words, *source.words]))}"
