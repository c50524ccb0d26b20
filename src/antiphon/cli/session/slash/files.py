"""Commands that make files again what they were before something was said, and take that back."""

from __future__ import annotations

from collections.abc import Iterable

from antiphon import Run
from antiphon.cli.display import terminal_escape
from antiphon.cli.session.talk import BUSY, Talk
from antiphon.cli.source import JournalRuns
from antiphon.cli.store import short_id
from antiphon.errors import AntiphonError
from antiphon.host.undo import UndoneRun
from antiphon.host.undo import redo as redo_run
from antiphon.host.undo import undo as undo_run
from antiphon.tools.folder.restoring import DONE, RestoredFile

SHOWN = 20
"""Files that are named one by one."""


async def undo(talk: Talk, rest: str) -> None:
    """`/undo [N]`."""
    asked = [each.node for each in talk.tree.requests if each.node.asked]
    if talk.call:
        talk.screen.note(BUSY)
    elif not asked:
        talk.screen.note("Nothing was said yet")
    elif rest and (not rest.isdecimal() or not 0 < int(rest) <= len(asked)):
        talk.screen.note(f"/undo takes the number of a message, 1 to {len(asked):,}; alone it is the last")
    else:
        number = int(rest or len(asked))
        done = await restored(talk, asked[number - 1].call)
        if done is not None:
            _tell(talk, done, f"before message {number}")


async def redo(talk: Talk, rest: str) -> None:
    """`/redo`."""
    if talk.call:
        talk.screen.note(BUSY)
        return
    done = await _asked(talk, None)
    if done is not None:
        _tell(talk, done, "before the undo")


async def restored(talk: Talk, call: str) -> UndoneRun | None:
    """Make the files what they were when a request began; None where that cannot be, which is said."""
    return await _asked(talk, call.partition(".")[0])


async def _asked(talk: Talk, to: str | None) -> UndoneRun | None:
    """An undo up to a turn, or with None a redo."""
    if not isinstance(talk.runs, JournalRuns):
        talk.screen.note("Files are undone where the journal lies; this run is a server's")
        return None
    if isinstance(talk.run, Run):
        await talk.run.until_durable()
    run_id, journal = talk.run.run_id, talk.runs.journal
    try:
        return await (redo_run(journal, run_id) if to is None else undo_run(journal, run_id, to))
    except AntiphonError as error:
        talk.screen.note(terminal_escape.line(str(error), 400), "red")
        return None


def _tell(talk: Talk, done: UndoneRun, when: str) -> None:
    """Say what became of the files, to the person and with the next message to the agent."""
    changed = [each for each in done.files if each.done in DONE]
    for each in changed[:SHOWN]:
        talk.screen.note(f"  {DONE[each.done]} {terminal_escape.line(each.path, 200)}", "")
    if len(changed) > SHOWN:
        talk.screen.note(f"  and {len(changed) - SHOWN:,} more files", "")
    for each in done.left[:SHOWN]:
        told = terminal_escape.line(f"{each.path}: {each.reason}", 300)
        talk.screen.note(f"  left as it is: {told}", "yellow")
    if done.left:
        talk.screen.note(f"  `antiphon runs undo {short_id(done.undoes)} --dry-run` shows the differences")
    if changed:
        talk.own.tell(f"I made these files again what they were {when}: {_named(changed)}. Read them anew.")
    elif not done.left:
        talk.screen.note("No file was changed since")


def _named(files: Iterable[RestoredFile]) -> str:
    return ", ".join(each.path for each in files)[:2_000]
