"""`antiphon knowledge`: the sources that teams search, beside their own folder: added, searched, followed."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterable
from typing import Any

import click

from antiphon.cli import exit_codes
from antiphon.cli.commands.knowledge.elsewhere import SourceSaid, said_of, say_elsewhere
from antiphon.cli.commands.knowledge.shown import (
    WIDTH,
    columns,
    embed_all,
    plain_found,
    plain_spec,
    progress_bar,
    say_stats,
    tell_changes,
)
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.store import json_option, knowledge_store
from antiphon.config.dotenv import environment
from antiphon.errors import ConfigError, UnknownName, UserError
from antiphon.tools.folder.readers.apart import is_installed
from antiphon.tools.knowledge import (
    FolderMonitor,
    Found,
    KnowledgeKey,
    KnowledgeLibrary,
    KnowledgeStore,
    McpSearch,
    SourceSpec,
)
from antiphon.tools.knowledge.federation import DEADLINE
from antiphon.tools.knowledge.source import HeldSource
from antiphon.tools.web.search import PROVIDERS

_HOW = "`antiphon knowledge add NAME FOLDER` adds one"

project_option = click.option(
    "--project", default="", help="Of that project's sources; others do not see them."
)
owner_option = click.option("--owner", default="", help="Of that owner's sources.")


@click.group()
def knowledge() -> None:
    """Sources of knowledge that teams search, see docs/knowledge.md.

    They are kept in ANTIPHON_HOME, else in .antiphon of the folder we are in, and found by every team that is
    run there and has the tools `knowledge`.
    """


@knowledge.command("add", short_help="Add a folder, an MCP server or a search of the web as a source.")
@click.argument("name")
@click.argument("folder", required=False, type=click.Path(exists=True, file_okay=False))
@click.option("--mcp", "mcp_server", metavar="SERVER", help="An MCP server, as `antiphon mcp ls` lists it.")
@click.option("--search", "searching", metavar="TOOL", help="Its tool that searches. [default: search]")
@click.option("--fetch", "fetching", metavar="TOOL", help="Its tool that reads a document. [default: fetch]")
@click.option("--web", metavar="WHO", help=f"Who searches the web: {', '.join(PROVIDERS)}.")
@click.option("--unchecked", is_flag=True, help="Add a server although it can not be reached now.")
@click.option("--description", default="", help="What is in it, for whoever chooses among sources.")
@click.option(
    "--words-only", is_flag=True, help="Make no vectors now; `antiphon serve` makes them as it runs."
)
@project_option
@owner_option
@json_option
def add(
    name: str, folder: str | None, mcp_server: str | None, searching: str | None, fetching: str | None,
    web: str | None, unchecked: bool, description: str, words_only: bool, project: str, owner: str,
    as_json: bool,
) -> int:  # fmt: skip
    """Add FOLDER as the source NAME, and read its documents: text, Markdown, HTML, code, and with the extras
    `knowledge` and `office` PDF and office files. Then a vector is made of each passage, some 15 a second. It
    can be interrupted: what is read is found by words at once, and what is missing is made up for later.

    In place of a folder --mcp SERVER asks a server, which is connected to first, and --web WHO whoever
    searches the web, whose key stands in the settings.
    """
    _check_kind(folder, mcp_server, web, named=searching is not None or fetching is not None)
    key, store = KnowledgeKey(project, owner), _store()
    if folder is None:
        mcp = (
            None if mcp_server is None else McpSearch(mcp_server, searching or "search", fetching or "fetch")
        )
        spec = SourceSpec(name, description=description, mcp=mcp, web=web or "")
        return _added_elsewhere(store, key, spec, unchecked, as_json)
    spec = store.add(key, name, folder, description)
    source = store.open_folder(key, spec)
    try:
        start = time.monotonic()
        with progress_bar(name) as progress:
            source.index.refresh(progress=progress)
        if not words_only:
            embed_all(source)
        told = say_stats([(key, spec, source)], as_json, time.monotonic() - start)
        if as_json:
            output.say(terminal_escape.json_text(told))
    finally:
        source.close()
    return exit_codes.COMPLETED


def _check_kind(folder: str | None, server: str | None, web: str | None, *, named: bool) -> None:
    """Raise UsageError unless one kind of source is given, and what belongs to another is not."""
    if sum(each is not None for each in (folder, server, web)) != 1:
        raise click.UsageError("A source is a FOLDER, --mcp SERVER or --web WHO: give one of them.")
    if named and server is None:
        raise click.UsageError("--search and --fetch name tools of a server; give --mcp SERVER with them.")


def _added_elsewhere(
    store: KnowledgeStore, key: KnowledgeKey, spec: SourceSpec, unchecked: bool, as_json: bool
) -> int:
    """Add a source that is no folder, once it has said what is in it."""
    source = store.open(key, spec)
    said = asyncio.run(said_of([source]))[spec.name]
    if said.fault and not unchecked:
        exit_codes.complain(
            terminal_escape.line(f"{spec.place}: {said.fault}. Nothing was added; --unchecked adds it", WIDTH)
        )
        return exit_codes.FAILED
    store.keep(key, spec)
    told = say_elsewhere(key, spec, said, as_json)
    if as_json:
        output.say(terminal_escape.json_text([told]))
    return exit_codes.COMPLETED


@knowledge.command("ls", short_help="List the sources.")
@json_option
def ls(as_json: bool) -> int:
    """List every source that was added, with its project and owner."""
    store, code = _store(), exit_codes.COMPLETED
    found: list[tuple[KnowledgeKey, SourceSpec]] = []
    for key in store.known_keys():
        for name in store.names(key):
            try:
                found.append((key, store.spec(key, name)))
            except ConfigError as error:
                output.tell(str(error))
                code = exit_codes.CONFIG
    if as_json:
        output.say(terminal_escape.json_text([plain_spec(key, spec) for key, spec in found]))
    for key, spec in found if not as_json else ():
        whose = [f"{what} {of}" for what, of in (("project", key.project), ("owner", key.owner)) if of]
        output.say(columns(spec.name, spec.place, *whose, spec.description))
    if not found and not as_json:
        output.say(f"There are no sources; {_HOW}")
    return code


@knowledge.command("search", short_help="Search the sources, as agents do.")
@click.argument("query")
@click.option("--source", "names", multiple=True, help="Only that one; may be repeated.")
@click.option("-n", "count", type=click.IntRange(1, 100), default=5, show_default=True, help="Passages.")
@click.option(
    "--seconds", type=click.FloatRange(min=0), default=DEADLINE, show_default=True, help="How long it waits."
)
@project_option
@owner_option
@json_option
def search(
    query: str, names: tuple[str, ...], count: int, seconds: float, project: str, owner: str, as_json: bool
) -> int:
    """Search the sources and print passages with their citations, best first. What was not searched is told
    on the error output; the exit code is then 6. A server that has to be started first may take longer than
    it is waited for: --seconds 30.
    """
    key, store = KnowledgeKey(project, owner), _store()
    _check(store, key, names)
    library = KnowledgeLibrary(store, seconds=seconds)
    try:
        found = asyncio.run(_searched(library, key, query, count, names))
    finally:
        library.close()
    if as_json:
        output.say(terminal_escape.json_text(plain_found(found)))
    for each in found.passages if not as_json else ():
        output.say(columns(each.citation, each.passage.heading))
        output.say("\n".join(f"    {line}" for line in each.passage.text.splitlines()) + "\n")
    if not found.passages and not as_json:
        output.say("Nothing was found")
    for note in (*found.missing, *found.partial, *found.how):
        output.tell(terminal_escape.line(f"{note.source}: {note.text}", WIDTH))
    return exit_codes.LIMIT if found.missing or found.partial else exit_codes.COMPLETED


async def _searched(
    library: KnowledgeLibrary, key: KnowledgeKey, query: str, count: int, names: tuple[str, ...]
) -> Found:
    try:
        return await library.federation(key).search(query, count, names)
    finally:
        await library.left()


@knowledge.command("watch", short_help="Follow the files, and tell what changes.")
@project_option
@owner_option
def watch(project: str, owner: str) -> int:
    """Bring the sources up to date, then follow their files and print what changes, until Ctrl-C.

    `antiphon serve` does this for its teams by itself.
    """
    if not is_installed("watchfiles"):
        raise ConfigError("`antiphon knowledge watch` needs watchfiles: pip install 'antiphon[knowledge]'")
    key, store = KnowledgeKey(project, owner), _store()
    _check(store, key)
    library = KnowledgeLibrary(store)
    library.federation(key)
    try:
        for each in library.folders():
            with progress_bar(each.name) as progress:
                tell_changes(each, each.index.refresh(progress=progress))
        with FolderMonitor(library, told=tell_changes):
            output.tell("following; Ctrl-C ends it")
            threading.Event().wait()
    except KeyboardInterrupt:
        return exit_codes.COMPLETED
    finally:
        library.close()
    return exit_codes.COMPLETED


@knowledge.command("stats", short_help="Say what sources hold, and what could not be read.")
@click.argument("name", required=False)
@project_option
@owner_option
@json_option
def stats(name: str | None, project: str, owner: str, as_json: bool) -> int:
    """Say what a source holds, or each of them; what could not be read, and why; what was left out.

    Files are not looked at; servers are asked, and the exit code is 6 when one does not answer.
    """
    key, store = KnowledgeKey(project, owner), _store()
    specs = [store.spec(key, each) for each in ([name] if name is not None else store.names(key))]
    folders = [(key, spec, store.open_folder(key, spec)) for spec in specs if spec.folder]
    told: list[dict[str, Any]] = []
    try:
        told += say_stats(folders, as_json)
    finally:
        for _, _, source in folders:
            source.close()
    others, code = [spec for spec in specs if not spec.folder], exit_codes.COMPLETED
    opened: dict[str, HeldSource | str] = {spec.name: _opened(store, key, spec) for spec in others}
    asked = asyncio.run(said_of([each for each in opened.values() if not isinstance(each, str)]))
    for spec in others:
        found = opened[spec.name]
        said = SourceSaid(fault=found) if isinstance(found, str) else asked[spec.name]
        told.append(say_elsewhere(key, spec, said, as_json))
        code = exit_codes.LIMIT if said.fault else code
    if as_json:
        output.say(terminal_escape.json_text(told))
    return code


def _opened(store: KnowledgeStore, key: KnowledgeKey, spec: SourceSpec) -> HeldSource | str:
    """A source, or why it cannot be opened."""
    try:
        return store.open(key, spec)
    except UserError as error:
        return str(error)


@knowledge.command("rm", short_help="Forget a source and its index.")
@click.argument("name")
@project_option
@owner_option
@click.option("--yes", "-y", is_flag=True, help="Do it; without it nothing is removed.")
@json_option
def rm(name: str, project: str, owner: str, yes: bool, as_json: bool) -> int:
    """Forget the source NAME with its index. Its folder and what is in it stay as they are."""
    key, store = KnowledgeKey(project, owner), _store()
    try:
        spec = store.spec(key, name)
    except ConfigError as error:
        # One that is damaged is forgotten as well: what to do about it is just this.
        exit_codes.remark(terminal_escape.line(str(error), WIDTH))
        spec = SourceSpec(name)
    if yes:
        store.remove(key, name)
    if as_json:
        output.say(terminal_escape.json_text({**plain_spec(key, spec), "removed": yes}))
        return exit_codes.COMPLETED
    kept = "; its files are as they were" if spec.folder else ""
    done = f"is forgotten{kept}" if yes else "would be forgotten; nothing is without --yes"
    place = spec.place if not spec.fault else "damaged"
    output.say(terminal_escape.line(f"{name} ({place}) {done}", WIDTH))
    return exit_codes.COMPLETED


def _store() -> KnowledgeStore:
    return knowledge_store(environment())


def _check(store: KnowledgeStore, key: KnowledgeKey, names: Iterable[str] = ()) -> None:
    """Raise NotFound where there are no sources, UnknownName for one that is not there."""
    known = store.names(key)
    if not known:
        raise exit_codes.NotFound(f"There are no sources here; {_HOW}")
    for name in names:
        if name not in known:
            raise UnknownName("source", name, known)
