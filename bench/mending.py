"""A scripted model that mends what tests show, by the way of an agent: it runs them, searches, reads, edits,
and runs them again.

It knows what is to become of which lines, as a good model would find out; where they stand it takes from what
the tools show, and without that it gives up and says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from antiphon import ToolCall
from antiphon.models.script import Line, call
from antiphon.tools.folder.text.matching import Edit
from antiphon.values.model import ModelRequest
from bench.hunks import Changed, edits_of

MENDED = "mended"
"""What it says in the end, when the tests pass."""
SEARCHED = 200
"""Characters of a line that are searched for."""
LOOKED = 5
"""Places of one file at which it looks for what it has searched."""
AT_ONCE = 200
"""Lines that one reading gives."""
PLACES = 200
"""Places that it changes at most: more calls no reply has."""
_HIT = re.compile(r"^(.+?):(\d+): ", re.MULTILINE)
_LINE = re.compile(r"^(\d+): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Remedy:
    """What is to become of files: those that change, those that are new, those that go."""

    changed: Sequence[Changed]
    fresh: Mapping[str, str] = field(default_factory=dict)
    gone: Sequence[str] = ()


class Mender:
    """The replies of the model, in order. check: the command that runs the tests. remedy: what mends them,
    from what the tests told."""

    def __init__(self, check: str, remedy: Callable[[str], Remedy]) -> None:
        self._check, self._remedy = check, remedy
        self._wanted = Remedy(())
        self._edits: list[tuple[str, Edit]] = []
        self._hits: list[list[int]] = []
        self._again = False
        self._steps: list[Callable[[ModelRequest], Line]] = []
        self._steps += [self.test, self.search, self.read, self.mend, self.test, self.tell]

    def reply(self, request: ModelRequest) -> Line:
        """What it says next, for a `Script`."""
        return self._steps.pop(0)(request)

    def test(self, request: ModelRequest) -> Line:
        """Run the tests."""
        return call("shell", command=self._check, seconds=600)

    def search(self, request: ModelRequest) -> Line:
        """Look for a line of each place that is to change."""
        (told,) = _results(request)
        if _passed(told):
            return "nothing is broken"
        self._wanted = self._remedy(told)
        self._edits = [(each.path, edit) for each in self._wanted.changed for edit in edits_of(each)]
        if len(self._edits) > PLACES:
            return f"{len(self._edits)} places"
        searches = [call("grep_files", pattern=_telling(edit), most=200) for _, edit in self._edits]
        return searches or call("list_files")

    def read(self, request: ModelRequest) -> Line:
        """Read what was found; what stands in very many files is looked for again, in those of that name."""
        missed = [at for at, hits in enumerate(self._hits) if not hits] or range(len(self._edits))
        if not self._hits:
            self._hits = [[] for _ in self._edits]
        for at, told in zip(missed, _results(request), strict=False):
            path, _ = self._edits[at]
            self._hits[at] = [int(number) for name, number in _HIT.findall(told) if name == path][:LOOKED]
        still = [self._edits[at] for at in missed if not self._hits[at]]
        if still and not self._again:
            self._again = True
            self._steps.insert(0, self.read)
            names = [(PurePosixPath(path).name, edit) for path, edit in still]
            return [call("grep_files", pattern=_telling(edit), files=name) for name, edit in names]
        if still:
            return f"no search led to {still[0][0]}: {_telling(still[0][1])}"
        return list(self._reads())[:PLACES] or call("list_files")

    def _reads(self) -> Iterator[ToolCall]:
        known = set()
        for (path, edit), hits in zip(self._edits, self._hits, strict=True):
            lines = [each.strip() for each in edit.old.split("\n")]
            before = next(at for at, each in enumerate(lines) if each.startswith(_telling(edit)))
            for begin in (max(hit - before, 1) for hit in hits):
                for first in range(begin, begin + len(lines), AT_ONCE):
                    last = min(first + AT_ONCE, begin + len(lines)) - 1
                    if (path, first, last) not in known:
                        known.add((path, first, last))
                        yield call("read_lines", path=path, first=first, last=last)

    def mend(self, request: ModelRequest) -> Line:
        """Edit what was read, write what is new, delete what goes."""
        shown: dict[str, dict[int, str]] = {}
        for told in _results(request):
            path = told.partition(", lines ")[0]
            shown.setdefault(path, {}).update((int(at), line) for at, line in _LINE.findall(told))
        by_file: dict[str, list[Edit]] = {}
        for path, edit in self._edits:
            if not _stands(edit.old.rstrip("\n").split("\n"), shown.get(path, {})):
                return f"what was read of {path} does not hold: {_telling(edit)}"
            by_file.setdefault(path, []).append(edit)
        calls = []
        for path, (first, *more) in by_file.items():
            further = [{"old": each.old, "new": each.new} for each in more]
            calls.append(call("edit_file", path=path, old=first.old, new=first.new, more=further))
        calls += [call("write_file", path=path, content=text) for path, text in self._wanted.fresh.items()]
        calls += [call("delete_file", path=path) for path in self._wanted.gone]
        return calls

    def tell(self, request: ModelRequest) -> Line:
        """Whether the tests pass."""
        (told,) = _results(request)
        return MENDED if _passed(told) else f"the tests fail still: {told[:2_000]}"


def _passed(told: str) -> bool:
    return told.startswith("exit code 0")


def _results(request: ModelRequest) -> list[str]:
    """What the calls of its last reply gave."""
    found = []
    for message in reversed(request.messages):
        if message.role != "tool":
            break
        found.append(message.content)
    return found[::-1]


def _telling(edit: Edit) -> str:
    """The line of a place that says most."""
    return max((each.strip() for each in edit.old.split("\n")), key=len)[:SEARCHED]


def _stands(wanted: Sequence[str], lines: Mapping[int, str]) -> bool:
    """Whether lines were shown one behind the other."""
    return any(
        all(lines.get(at + number) == line for number, line in enumerate(wanted))
        for at, line in lines.items()
        if line == wanted[0]
    )
