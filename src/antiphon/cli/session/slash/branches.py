"""Commands that lead to other runs, and back: forks of this one, names, files."""

from __future__ import annotations

import time
from pathlib import Path

from antiphon.cli.display import terminal_escape
from antiphon.cli.screen.choices import OfferedLine
from antiphon.cli.session.slash.files import restored
from antiphon.cli.session.talk import Opening, Talk
from antiphon.cli.store import ListedRun, short_id
from antiphon.errors import AntiphonError, JournalError
from antiphon.journal.listing import RunFilter, RunInfo
from antiphon.view import export_file, page

LISTED = 40
"""Runs, and messages, that are offered."""
LOOKED_AT = 500
"""Runs among which those are looked for that begin as this one does."""


async def rewind(talk: Talk, rest: str) -> None:
    """`/rewind [N]`."""
    asked = [each.node for each in talk.tree.requests if each.node.asked]
    if not asked:
        talk.screen.note("Nothing was said yet")
    elif not rest:
        lines = [
            (f"{number}  {terminal_escape.line(each.asked, 200)}", f"/rewind {number}")
            for number, each in enumerate(asked, 1)
        ]
        _offer(talk, "Back to before the message:", lines[-LISTED:])
    elif not rest.isdecimal() or not 0 < int(rest) <= len(asked):
        talk.screen.note(f"/rewind takes the number of a message, 1 to {len(asked):,}; alone it lists them")
    else:
        node = asked[int(rest) - 1]
        forked = await _fork(talk, talk.begun[node.call] - 1, f"before message {rest}")
        if forked:
            await _files_back(talk, node.call)
        if forked and talk.person.inline is not None:
            talk.person.inline.write(node.asked)


async def _files_back(talk: Talk, call: str) -> None:
    """Make the files what they were, too."""
    done = await restored(talk, call)
    if done is not None and done.files:
        count, left = len(done.files) - len(done.left), len(done.left)
        kept = f", {left:,} left as they are" if left else ""
        back = f"; `antiphon runs redo {short_id(done.undoes)}` takes that back" if count else ""
        said = "1 file is as it was then" if count == 1 else f"{count:,} files are as they were then"
        talk.screen.note(f"{said}{kept}{back}")


async def fork(talk: Talk, rest: str) -> None:
    """`/fork`."""
    if not talk.tree.requests:
        talk.screen.note("Nothing was said yet")
    else:
        await _fork(talk, None, "here")


async def _fork(talk: Talk, at: int | None, where: str) -> bool:
    """Go on in a run that begins as this one does; whether that can be."""
    run_id = talk.run.run_id
    try:
        made = await talk.runs.fork(run_id, at)
    except AntiphonError as error:
        talk.screen.note(str(error), "red")
        return False
    if made.at_work and at is None:
        busy = terminal_escape.line(", ".join(made.at_work), 200)
        talk.screen.note(f"(what is at work is not taken over: {busy})")
    talk.screen.note(
        f"From {where} on this is run {short_id(made.run_id)};"
        f" /resume {short_id(run_id)} goes back to the other"
    )
    talk.next, talk.leaving = Opening(made.run_id, talk.model), True
    return True


async def tree(talk: Talk, rest: str) -> None:
    """`/tree`."""
    run_id = talk.run.run_id
    if not run_id:
        talk.screen.note("Nothing was said yet")
        return
    here = await talk.runs.find(run_id)
    first = here.origin or here.run_id
    listed = await talk.runs.page(RunFilter(), None, 0, LOOKED_AT)
    found = [each for each in listed if first in (each.entry.run_id, each.entry.origin)]
    known = {each.entry.run_id for each in found}
    below: dict[str, list[_Branch]] = {}
    for each in found:
        origin, seq = await _branched_off(talk, each.entry)
        # One whose origin was deleted, or is not looked at, stands for itself.
        below.setdefault(origin if origin in known else "", []).append((seq, each.entry.created_at, each))
    lines: list[tuple[str, str]] = []
    ahead = [(0, each) for each in sorted(below.get("", []), key=_when, reverse=True)]
    while ahead:
        depth, (seq, _, each) = ahead.pop()
        came = f"  from record {seq:,}" if seq else ""
        mark = "  (this one)" if each.entry.run_id == run_id else ""
        asked = talk.tree.requests[-1:] if mark else []
        told = _told(each, asked[0].node.asked if asked else "")
        lines.append((f"{'  ' * depth}{told}{came}{mark}", f"/resume {each.entry.run_id}"))
        forks = below.pop(each.entry.run_id, [])
        ahead += [(depth + 1, each) for each in sorted(forks, key=_when, reverse=True)]
    _offer(talk, "Runs that begin as this one does:", lines[:LISTED])


_Branch = tuple[int, float, ListedRun]
"""The record after which a run branched off, when it was made, and the run."""


def _when(branch: _Branch) -> tuple[int, float]:
    return branch[:2]


async def _branched_off(talk: Talk, entry: RunInfo) -> tuple[str, int]:
    """The run that another one begins as, and up to which record; the empty text for none."""
    if not entry.origin:
        return "", 0
    try:
        async with talk.runs.connect(entry.run_id) as run:
            found = (await run.tree()).fork
    except JournalError:
        return "", 0
    return (found.origin, found.seq) if found is not None else ("", 0)


async def resume(talk: Talk, rest: str) -> None:
    """`/resume [RUN]`."""
    if rest:
        talk.next, talk.leaving = Opening(rest, talk.model), True
        return
    run_id = talk.run.run_id
    found = reversed(await talk.runs.page(RunFilter(), None, 0, LISTED + 1))
    others = [each for each in found if each.entry.run_id != run_id and _may_go_on(each)]
    if run_id:
        talk.screen.note(f"This is run {short_id(run_id)}; `antiphon runs ls` lists all")
    if others:
        _offer(talk, "Go on with:", [(_told(each), f"/resume {each.entry.run_id}") for each in others])


def _may_go_on(run: ListedRun) -> bool:
    return run.known is not None and run.known.state != "closed"


def _told(run: ListedRun, asked: str = "") -> str:
    """asked: what was asked last, where the list may not have it yet."""
    title = run.entry.name or asked or (run.known.title if run.known is not None else "")
    told = terminal_escape.line(title, 100) or "(nothing asked)"
    return f"{short_id(run.entry.run_id)}  {told}"


def _offer(talk: Talk, title: str, lines: list[tuple[str, str]]) -> None:
    """Have one of these picked; where only lines are read, list them with what is to be said."""
    if talk.person.inline is not None:
        talk.person.inline.choose(title, [OfferedLine(*each) for each in lines])
        return
    talk.screen.note(f"  {title}", "")
    for text, line in lines:
        talk.screen.note(f"  {terminal_escape.line(line, 40)}  {text}", "")


async def name(talk: Talk, rest: str) -> None:
    """`/name [NAME]`."""
    if not talk.run.run_id:
        talk.screen.note("Nothing was said yet")
        return
    entry = await talk.runs.find(talk.run.run_id)
    if rest:
        try:
            await talk.runs.rename(entry.run_id, rest)
        except AntiphonError as error:
            talk.screen.note(str(error), "red")
            return
    called = terminal_escape.line(rest or entry.name, 200)
    talk.screen.note(
        f"This is run {short_id(entry.run_id)}, {f'called {called}' if called else 'without a name'}"
    )


async def export(talk: Talk, rest: str) -> None:
    """`/export [FILE]`."""
    if not talk.tree.requests:
        talk.screen.note("Nothing was said yet")
        return
    path = _new_file(rest or f"run-{short_id(talk.run.run_id)}.json")
    told = terminal_escape.line(str(path), 200)
    if path.exists():
        talk.screen.note(f"{told} exists; name another file")
        return
    try:
        export_file.write(path, await _exported(talk, html=path.suffix in (".html", ".htm")))
    except (AntiphonError, OSError) as error:
        talk.screen.note(f"Not exported: {terminal_escape.line(str(error), 300)}", "red")
        return
    talk.screen.note(f"This run is in {told}")


def _new_file(name: str) -> Path:
    return Path(name).expanduser()


async def _exported(talk: Talk, *, html: bool) -> bytes:
    entry = await talk.runs.find(talk.run.run_id)
    if not html:
        found, _ = await talk.runs.export(entry)
        return (terminal_escape.json_text(found) + "\n").encode()
    async with talk.runs.connect(entry.run_id) as run:
        records = await run.records()
        prefixes = {each: await run.blob(each) for each in sorted(page.prefixes_of(records))}
    return page.page(records, prefixes, name=entry.name, made_at=time.time())


async def clear(talk: Talk, rest: str) -> None:
    """`/clear`."""
    talk.next, talk.leaving = Opening(None, talk.model), True
