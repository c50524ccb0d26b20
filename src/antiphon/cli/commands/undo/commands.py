"""`runs undo` and `runs redo`: the files that a run changed are made again what they were."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import click

from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.source import file_option
from antiphon.cli.store import find, json_option, opened, short_id
from antiphon.host.undo import UndoneRun
from antiphon.host.undo import redo as redo_run
from antiphon.host.undo import undo as undo_run
from antiphon.journal import Journal
from antiphon.journal.listing import RunInfo
from antiphon.tools.folder.restoring import DONE, MAX_TOLD, RestoredFile

folder_option = click.option(
    "--folder", metavar="DIR", help="Where the files lie. [default: where the run's tools worked]"
)
dry_option = click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")


@click.command("undo", short_help="Make files again what they were before a run.")
@click.argument("run_id", metavar="RUN")
@file_option
@json_option
@click.option(
    "--to", metavar="TURN", default="", help="Before this turn: 1/3, or 0/2 for the second request."
)
@folder_option
@dry_option
def undo(
    run_id: str, journal: str | None, as_json: bool, to: str, folder: str | None, dry_run: bool
) -> int:  # fmt: skip
    """Make the files that RUN changed again what they were before it, or before its turn TURN.

    A file is touched only if it is as the run left it; any other is left as it is, and shown with its
    difference: then the exit code is 1. Git's own files are never touched. The run must rest. An undo is a
    run of its own, which `runs show` shows; `runs redo RUN` takes it back.
    """

    async def asked(store: Journal, entry: RunInfo) -> UndoneRun:
        return await undo_run(store, entry.run_id, to, folder=folder, dry_run=dry_run)

    return asyncio.run(_carried_out(run_id, journal, asked, "undo", as_json=as_json))


@click.command("redo", short_help="Take an undo back.")
@click.argument("run_id", metavar="RUN")
@file_option
@json_option
@folder_option
@dry_option
def redo(run_id: str, journal: str | None, as_json: bool, folder: str | None, dry_run: bool) -> int:
    """Take back the last undo of RUN that was not redone yet.

    Files that are not as the undo left them are left as they are, and shown: then the exit code is 1.
    """

    async def asked(store: Journal, entry: RunInfo) -> UndoneRun:
        return await redo_run(store, entry.run_id, folder=folder, dry_run=dry_run)

    return asyncio.run(_carried_out(run_id, journal, asked, "redo", as_json=as_json))


async def _carried_out(
    prefix: str, journal: str | None, asked: Callable[[Journal, RunInfo], Awaitable[UndoneRun]], name: str,
    *, as_json: bool,
) -> int:  # fmt: skip
    async with opened(journal) as store:
        done = await asked(store, await find(store, prefix))
    if as_json:
        output.say(terminal_escape.json_text(done))
    else:
        _show(done, name)
    return exit_codes.FAILED if done.left else exit_codes.COMPLETED


def _show(done: UndoneRun, name: str) -> None:
    for each in done.files:
        if each.done in DONE:
            output.say(terminal_escape.line(f"{DONE[each.done]} {each.path}", 400))
    for each in done.left:
        _show_left(each)
    for told in done.doubtful:
        exit_codes.remark(f"what it changed is not on record: {told}")
    short = short_id(done.undoes)
    if not done.files:
        output.say(f"run {short}: nothing to {name}")
        return
    count = len(done.files) - len(done.left)
    said = f"run {short}: {count:,} {'file' if count == 1 else 'files'} restored, {len(done.left):,} left"
    by = f"; run {short_id(done.run_id)} has done it" if done.run_id else "; nothing was done (--dry-run)"
    output.tell(said + by)


def _show_left(each: RestoredFile) -> None:
    output.say(terminal_escape.line(f"left {each.path}: {each.reason}", 400))
    lines = each.diff.splitlines()
    for line in lines[:MAX_TOLD]:
        # Its blanks stay, for they may be what differs.
        output.say(f"    {terminal_escape.clean(line)[:400]}")
    if len(lines) > MAX_TOLD:
        output.say(f"    … {len(lines) - MAX_TOLD} more lines")
