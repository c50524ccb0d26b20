"""A witness to every run: each row that a runtime appends is folded a second time and judged.

    with watching() as witness:
        ...                       # anything that runs agents
    witness.verdict()             # raises the first thing that was wrong

The second fold starts from the encoded bytes, so what lives only in the memory of the first (a
state changed outside `apply`, a value that JSON does not carry) shows as a difference; the
invariants of `antiphon.testing.invariants` are checked on the same events. The verdict replays every
run that was seen from its first row on (`antiphon.testing.replay`).
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from msgspec import Struct

from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import Done, Lease, Row
from antiphon.journal.sqlite import SqliteJournal
from antiphon.kernel.context.tool_search import SEARCH_TOOLS
from antiphon.kernel.facts import snapshot
from antiphon.kernel.facts.events import decode, encode
from antiphon.kernel.facts.state import RunState, forget_work
from antiphon.kernel.run.rows import fold_next, unpack
from antiphon.kernel.run.runtime import Runtime
from antiphon.testing.invariants import Audit, InvariantBroken
from antiphon.testing.replay import LONGEST, Recorded, ReplayDiffers, TooLong, differs

DENSE, SPARSE = 200, 50
"""Every row of the first DENSE is compared, then every SPARSE-th: the cost per row stays bounded."""
ALLOWANCE_S = 0.2
"""Seconds of one run's comparisons beyond those its second fold took: a huge state is compared less often."""


class FoldDiffers(AssertionError):
    """The live state and the fold of what was written are not the same; the text says where."""


class _Watched(Struct):
    """One run in one store. `live`: its runtime's state. audit, past: None where its past is unknown."""

    runtime: Runtime
    shadow: RunState
    seq: int
    digest: bytes
    audit: Audit | None
    blobs: dict[str, bytes]
    past: list[Recorded] | None
    rows: int = 0
    folding: float = 0.0
    comparing: float = 0.0


class Witness:
    """Watches the runtimes of this process. `rows` and `compared` count what it saw.

    replayed, differed, skipped: runs that the verdict replayed, those of them that went another way,
    and those that were too long for it.
    """

    def __init__(self) -> None:
        self.faults: list[AssertionError] = []
        self.rows = self.compared = self.replayed = self.differed = self.skipped = 0
        self._process = os.getpid()
        self._runs: dict[tuple[Any, str], _Watched] = {}

    def verdict(self, *, pure: bool = True, replay: bool = True) -> None:
        """Replay each run, which calls its agents' hooks again; raise the first fault, if there was any.

        pure: what follows rests on recorded facts alone. If not, a run that differs is expected. replay:
        False raises what was seen while the runs went on, and calls nothing.
        """
        if replay:
            self._replay(blame=pure)
        if replay and not pure and not self.differed:
            self.blame(
                ReplayDiffers("Every run followed as recorded; its hooks are pure, and may be said to be")
            )
        if self.faults:
            raise self.faults[0]

    def opened(self, runtime: Runtime, lease: Lease) -> None:
        """A runtime took a run over, with the state it folded."""
        key = _store(runtime.journal), lease.run_id
        known = self._runs.get(key)
        if known is not None and (known.seq, known.digest) == (lease.seq, lease.digest):
            known.runtime = runtime
            self._compare(known)
            return
        audit = Audit(lease.run_id, _acts(self._runs, key), digest=lease.digest) if not lease.seq else None
        past: list[Recorded] | None = [] if not lease.seq else None
        shadow = copy.deepcopy(runtime.state)
        self._runs[key] = _Watched(runtime, shadow, lease.seq, lease.digest, audit, {}, past)

    def appended(self, journal: object, lease: Lease, row: Row, blobs: Mapping[str, bytes]) -> None:
        """A runtime is appending a row."""
        watched = self._runs.get((_store(journal), lease.run_id))
        if watched is None or watched.runtime.journal is not journal or row.epoch != lease.epoch:
            return
        start = time.perf_counter()
        watched.blobs.update(blobs)
        body = unpack(row.body, row.refs, watched.blobs) if row.refs else row.body
        events = decode(body)
        if not row.given or encode(events) != body:
            raise FoldDiffers(f"Run {lease.run_id} at {row.seq}: {body!r} is read as {encode(events)!r}")
        if watched.past is not None and len(watched.past) <= LONGEST:
            watched.past.append(Recorded(row.seq, row.at, row.given, body, events, watched.runtime.team))
        fold_next(lease.run_id, watched.shadow, row, events)
        watched.seq, watched.digest = row.seq, row.digest
        self.rows += 1
        watched.rows += 1
        if watched.audit is not None:
            watched.audit.row(row, events)
        watched.folding += time.perf_counter() - start
        affordable = watched.comparing <= ALLOWANCE_S + watched.folding
        # A journal that writes later than it is told to shows a row when the live state is further on.
        current = watched.runtime.seq == row.seq
        if current and affordable and (watched.rows <= DENSE or not watched.rows % SPARSE):
            self._compare(watched)
            watched.comparing += time.perf_counter() - start
        else:
            forget_work(watched.shadow)

    def lost(self, journal: object, lease: Lease) -> None:
        """A row was refused: what this run's memory holds is no longer what is stored."""
        self._runs.pop((_store(journal), lease.run_id), None)

    def blame(self, fault: AssertionError) -> None:
        """Keep a fault for the verdict."""
        self.faults.append(fault)

    def _replay(self, blame: bool) -> None:
        for (_, run_id), watched in self._runs.items():
            rows, watched.past = watched.past, None
            if not rows:
                continue
            try:
                found = differs(run_id, rows)
            except TooLong:
                self.skipped += 1
                continue
            self.replayed += 1
            if found:
                self.differed += 1
            if found and blame:
                self.blame(ReplayDiffers(found))

    def _compare(self, watched: _Watched) -> None:
        self.compared += 1
        shadow, runtime = watched.shadow, watched.runtime
        forget_work(shadow)
        kept = _read_back(runtime)
        for name in RunState.__struct_fields__:
            mine, theirs = getattr(shadow, name), getattr(kept, name)
            if mine != theirs:
                raise FoldDiffers(f"Run {shadow.run_id} at {watched.seq}: {_difference(name, mine, theirs)}")


def _read_back(runtime: Runtime) -> RunState:
    """The live state as a snapshot gives it back to whoever opens the run later."""
    try:
        return snapshot.decode(snapshot.encode(runtime.state, runtime.feed.index))[0]
    except OverflowError:
        # A number that none can hold: the run has no snapshots.
        live = copy.deepcopy(runtime.state)
        forget_work(live)
        return live


def _difference(where: str, folded: Any, live: Any) -> str:
    """The innermost place where two values differ."""
    if isinstance(folded, dict) and isinstance(live, dict) and folded.keys() == live.keys():
        for key in folded:
            if folded[key] != live[key]:
                return _difference(f"{where}[{key!r}]", folded[key], live[key])
    if isinstance(folded, Struct) and type(folded) is type(live):
        for name in folded.__struct_fields__:
            mine, theirs = getattr(folded, name), getattr(live, name)
            if mine != theirs:
                return _difference(f"{where}.{name}", mine, theirs)
    return f"{where} was folded to {folded!r:.300} and is {live!r:.300}"


def _store(journal: object) -> Any:
    return str(journal.path) if isinstance(journal, SqliteJournal) else id(journal)


def _acts(runs: dict[tuple[Any, str], _Watched], key: tuple[Any, str]) -> Callable[[str, str], bool]:
    def acts(agent: str, tool: str) -> bool:
        member = runs[key].runtime.team.members.get(agent)
        if tool == SEARCH_TOOLS and member is not None and tool not in member.tools:
            return False
        if member is not None and member.offered is not None and tool not in member.tools:
            member = member.offered(True, (), b"")
        found = member.tools.get(tool) if member is not None else None
        return found is None or found.has_side_effects

    return acts


@contextmanager
def watching() -> Iterator[Witness]:
    """Watch every runtime and journal of this process inside the block; forked children are not."""
    witness = Witness()
    begin = Runtime.__init__
    appends = [(kind, kind.append) for kind in (MemoryJournal, SqliteJournal)]

    def opened(runtime: Runtime, journal: Any, lease: Lease, *rest: Any, **named: Any) -> None:
        begin(runtime, journal, lease, *rest, **named)
        if os.getpid() == witness._process:
            _noting(witness, witness.opened, runtime, lease)

    def wrapped(append: Callable[..., None]) -> Callable[..., None]:
        def appending(self: Any, lease: Lease, row: Row, blobs: Mapping[str, bytes], done: Done) -> None:
            if os.getpid() != witness._process:
                append(self, lease, row, blobs, done)
                return
            _noting(witness, witness.appended, self, lease, row, blobs)

            def told(error: BaseException | None) -> None:
                if error is not None:
                    witness.lost(self, lease)
                done(error)

            append(self, lease, row, blobs, told)

        return appending

    # At class level, because journals are made anywhere; undone when the block is left.
    Runtime.__init__ = opened  # type: ignore[method-assign,assignment]
    for kind, append in appends:
        kind.append = wrapped(append)  # type: ignore[method-assign]
    try:
        yield witness
    finally:
        Runtime.__init__ = begin  # type: ignore[method-assign]
        for kind, append in appends:
            kind.append = append  # type: ignore[method-assign]


def _noting(witness: Witness, note: Callable[..., None], *arguments: Any) -> None:
    """A fault must not change what the watched run does: it is kept for the verdict."""
    try:
        note(*arguments)
    except (InvariantBroken, FoldDiffers) as fault:
        witness.blame(fault)
