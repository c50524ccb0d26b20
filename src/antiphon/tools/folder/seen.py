"""What an agent has seen of a file: versions and lines, out of what its own calls gave.

That stands in the run's journal, so it is the same after a restart, and a model has to hand on nothing: an
agent has read what its conversation holds. Results of these tools begin with a line that names the version.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

import msgspec
from msgspec import Struct

from antiphon.tools.folder.text.passages import lines_of
from antiphon.values.message import FileChange
from antiphon.values.tool import EarlierCall

TELLING = frozenset({"read_lines", "edit_file", "write_file", "move_file", "delete_file"})
"""Tools whose results say which version of a file they are about."""
LINE = 500
"""Characters of a line that are shown."""
SHOWN = 80
"""Lines of a difference that are shown."""

_HEAD = re.compile(
    r", (?:lines \d+-\d+ of \d+|edited|written|moved|changed since you saw it), "
    r"version ([0-9a-f]{16})(?:, was ([0-9a-f]{16}))?:"
)
"""What follows the path in the first line of a result."""
_ERROR = re.compile(r"Error: (?:\[\w+\] )?")
_LINE = re.compile(r"(\d+): (.*)")


class PlannedChange(Struct, frozen=True, omit_defaults=True):
    """What a call is about to change: versions before and after, empty for no file. Recorded before it does.

    lines: first and last of those that are new. refused: why it changes nothing. changes: the files before
    and after, as the journal keeps them.
    """

    path: str = ""
    before: str = ""
    after: str = ""
    lines: tuple[tuple[int, int], ...] = ()
    fitted: bool = False
    refused: str = ""
    changes: tuple[FileChange, ...] = ()


class Seen(Struct, frozen=True):
    """What an agent knows of a file. versions: any of them may be the one it takes the file to be."""

    versions: frozenset[str] = frozenset()
    lines: dict[int, str] = {}
    """Of these versions, by number, as far as they were shown."""


class _ToldVersion(Struct, frozen=True):
    reply: str
    version: str
    was: str
    lines: dict[int, str]


def numbered(lines: Sequence[str], first: int) -> list[str]:
    """Lines as tools show them, from number `first` on."""
    return [f"{at}: {cut(line)}" for at, line in enumerate(lines, first)]


def cut(line: str) -> str:
    """A line as it is shown."""
    return line if len(line) <= LINE else f"{line[:LINE]} … ({len(line)} characters)"


def seen(calls: Iterable[EarlierCall], path: str) -> Seen:
    """What the calls tell of a file.

    Of a file that one reply changes several times nobody says in which order that was; so what counts is each
    version that none of them has replaced, and what calls that still run may have made of it.
    """
    told: list[_ToldVersion] = []
    about: set[str] = set()
    for each in calls:
        if each.tool not in TELLING:
            continue
        if each.running:
            plans = [plan for step in each.steps if (plan := _plan(step)) is not None]
            about.update(plan.after for plan in plans if plan.path == path and plan.after)
        elif (found := _told(each, path)) is not None:
            told.append(found)
    last = [each for each in told if each.reply == told[-1].reply]
    replaced = {each.was for each in last}
    versions = {each.version for each in last} - replaced or {each.version for each in last}
    lines: dict[int, str] = {}
    for one in told:
        if one.version in versions:
            lines.update(one.lines)
    return Seen(frozenset(versions | about), lines)


def begun_from(calls: Iterable[EarlierCall], path: str) -> set[str]:
    """The versions of a file that calls have found, and made others of."""
    found: set[str] = set()
    for each in calls:
        if each.tool not in TELLING:
            continue
        plans = [plan for step in each.steps if (plan := _plan(step)) is not None]
        found.update(plan.before for plan in plans if plan.path == path)
        told = None if each.running else _told(each, path)
        found.update({told.was} if told is not None else ())
    return found - {""}


def _told(call: EarlierCall, path: str) -> _ToldVersion | None:
    first, _, rest = call.content.partition("\n")
    if first.startswith("[the arguments were not valid JSON"):
        first, _, rest = rest.partition("\n")
    error = _ERROR.match(first) if call.is_error else None
    first = first[error.end() :] if error is not None else first
    match = _HEAD.fullmatch(first, len(path)) if first.startswith(path) else None
    if match is None:
        return None
    shown = (_LINE.fullmatch(line) for line in rest.split("\n"))
    lines = {int(line[1]): line[2] for line in shown if line is not None}
    return _ToldVersion(call.effect_id.rpartition(".")[0], match[1], match[2] or "", lines)


def _plan(step: str) -> PlannedChange | None:
    try:
        return msgspec.json.decode(step, type=PlannedChange)
    except msgspec.MsgspecError:
        return None


def changed_since(path: str, known: Seen, version: str, text: str) -> str:
    """The refusal of a change to a file that is not as the agent has seen it: how it differs from that."""
    head = f"{path}, changed since you saw it, version {version}:"
    if not known.lines:
        return f"{head}\nnothing was changed by you; read it again"
    now = [cut(each) for each in lines_of(text)]
    difference = [line for run in _runs(known.lines) for line in _difference(run, now)]
    if not difference:
        return (
            f"{head}\nnothing was changed by you. The lines that you saw are as they were, others are not; "
            "read those, or call again if they do not matter"
        )
    more = [f"… {len(difference) - SHOWN} more lines"] if len(difference) > SHOWN else []
    return "\n".join(
        [
            f"{head}\nnothing was changed by you. - is what you saw, + is the file now; "
            "call again with what stands there now",
            *difference[:SHOWN],
            *more,
        ]
    )


def _runs(lines: dict[int, str]) -> list[list[str]]:
    """Lines that stand one behind the other."""
    runs: list[list[str]] = []
    for at in sorted(lines):
        if at - 1 not in lines:
            runs.append([])
        runs[-1].append(lines[at])
    return runs


def _difference(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """A difference in lines; what only stands before or behind all that was seen is none."""
    matcher = difflib.SequenceMatcher(None, before, now, autojunk=False)
    groups = [each for each in matcher.get_opcodes() if each[0] != "equal"]
    groups = [each for each in groups if not (each[1] == each[2] and each[1] in (0, len(before)))]
    found: list[str] = []
    for _, a, b, c, d in groups:
        context = max(a - 2, 0)
        found.append(f"@@ line {c + 1} @@")
        found += [f"  {line}" for line in before[context:a]]
        found += [f"- {line}" for line in before[a:b]]
        found += [f"+ {line}" for line in now[c:d]]
    return found
