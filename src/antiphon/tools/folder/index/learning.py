"""The index brought up to date: an unchanged file costs a `stat`, a changed one is read and stored by digest.

Every batch of files is one transaction that leaves the index whole: killed anywhere, what is missing is
found at the next look. Files are read and cut outside of it, so that whoever searches never waits for a
document. A file that changed within `SETTLING` before it was read is read once more then, since a second
change may have left its time as it was.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import islice
from pathlib import PurePosixPath

import apsw
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import ToolError
from antiphon.tools.folder.index.file import writing
from antiphon.tools.folder.readers import VERSION, is_code, not_installed, read_document, reader_of
from antiphon.tools.folder.root import FolderEntry, Root
from antiphon.tools.folder.text.passages import Passage, passages
from antiphon.tools.folder.text.terms import terms

SETTLING = 2_000_000_000
"""Nanoseconds: the coarsest time of change that file systems keep."""
BATCH = 64
BATCH_BYTES = 8_000_000
Held = Callable[[], AbstractContextManager[apsw.Connection]]
"""The index's connection, for as long as nobody else may use it."""


class IndexBounds(Struct, frozen=True):
    """What is too much for an index: files, bytes of one, bytes together. Prose is kept before code."""

    documents: int = 100_000
    document_bytes: int = 20_000_000
    total_bytes: int = 4_000_000_000


class Unreadable(Struct, frozen=True):
    """A document that is not in the index, and why."""

    path: str
    reason: str


class Changes(Struct, frozen=True):
    """What a look at the files changed: paths, in order."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    """Those of the added and changed ones that could not be read."""
    left_out: int = 0
    """Files beyond the bounds; only known of a look at all of it."""
    seen: int = 0
    """Documents that were looked at."""

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class IndexProgress(Struct, frozen=True):
    """How far a look at the files has come: files and bytes of those that are read."""

    done: int
    total: int
    bytes_done: int
    bytes_total: int
    path: str


class _Known(Struct, frozen=True):
    size: int
    changed: int
    settled: bool
    content: int | None
    reason: str


class _Learned(Struct, frozen=True):
    """A file that was read outside of any transaction."""

    entry: FolderEntry
    settled: bool
    digest: bytes = b""
    kind: str = ""
    passages: tuple[tuple[Passage, str, str], ...] = ()
    """Each with the terms of its name and of its text."""
    reason: str = ""


def refresh(
    held: Held,
    root: Root,
    bounds: IndexBounds,
    clock: Callable[[], int],
    paths: Iterable[str] | None,
    progress: Callable[[IndexProgress], None] | None,
) -> Changes:
    """See `FolderIndex.refresh`."""
    with held() as connection:
        known, full = _known(connection), left_out(connection) > 0
    # What frees a place lets in what was left out, wherever that lies: then only a look at all of it tells.
    wanted = None if paths is None or full else _topmost(paths)
    places = frozenset(wanted or ())
    now = {entry.path: entry for entry in _listed(root, wanted, bounds)}
    inside = {path: each for path, each in known.items() if wanted is None or _is_inside(path, places)}
    out = _keep_within(now, bounds, [each for path, each in known.items() if path not in inside])
    if out and wanted is not None:
        return refresh(held, root, bounds, clock, None, progress)
    gone = sorted(path for path in inside if path not in now)
    stale = sorted(
        (entry for entry in now.values() if _differs(entry, known.get(entry.path))),
        key=lambda entry: (is_code(entry.path), entry.path),
    )
    added: list[str] = []
    changed: list[str] = []
    unreadable: list[Unreadable] = []
    for batch in _read_in_batches(root, stale, bounds, clock, progress):
        for each in _store(held, batch):
            (changed if each.entry.path in known else added).append(each.entry.path)
            if each.reason:
                unreadable.append(Unreadable(each.entry.path, each.reason))
    # Last, so that a file that was moved keeps its passages and their vectors.
    _forget(held, gone)
    if wanted is None:
        _note_left_out(held, out)
    return Changes(tuple(added), tuple(changed), tuple(gone), tuple(unreadable), out, len(now))


def left_out(connection: apsw.Connection) -> int:
    """Files beyond the bounds at the last look at all of it."""
    return int(connection.execute("select value from meta where name = 'left_out'").get or 0)


def _note_left_out(held: Held, count: int) -> None:
    with held() as connection:
        if left_out(connection) != count:
            connection.execute("insert or replace into meta values('left_out', ?)", (count,))


def _known(connection: apsw.Connection) -> dict[str, _Known]:
    rows = connection.execute("select path, size, changed, settled, content, reason from files")
    return {
        path: _Known(size, changed, bool(settled), content, reason)
        for path, size, changed, settled, content, reason in rows
    }


def _listed(root: Root, wanted: list[str] | None, bounds: IndexBounds) -> Iterator[FolderEntry]:
    """The documents to look at; a folder that can not be listed stands for itself, its name ends in `/`."""
    refused: list[str] = []
    most = bounds.documents * 10
    if wanted is not None and not root.has_folder("."):
        raise ToolError(f"The folder {root.path.name} is gone")
    for place in ["."] if wanted is None else wanted:
        single = root.entry(place) if wanted is not None else None
        if single is not None:
            found: Iterable[FolderEntry] = [single]
        elif wanted is None or root.has_folder(place):
            found = root.files(place, limit=most, refused=refused)
        else:
            continue
        for entry in found:
            if reader_of(entry.path) is not None:
                yield entry if entry.path.isprintable() else _shown(entry)
    yield from (FolderEntry(f"{path}/", 0, 0) for path in refused)


def _shown(entry: FolderEntry) -> FolderEntry:
    """The entry under a name that can be stored: names need not be UTF-8."""
    return replace(entry, path=entry.path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _keep_within(now: dict[str, FolderEntry], bounds: IndexBounds, others: list[_Known]) -> int:
    """Take out what is beyond the bounds, code before prose; returns how many that are."""
    held = len(others)
    size = sum(each.size for each in others)
    out = 0
    for entry in sorted(now.values(), key=lambda entry: (is_code(entry.path), entry.path)):
        own = entry.size if entry.size <= bounds.document_bytes else 0
        if held >= bounds.documents or size + own > bounds.total_bytes:
            del now[entry.path]
            out += 1
        else:
            held, size = held + 1, size + own
    return out


def _differs(entry: FolderEntry, known: _Known | None) -> bool:
    if known is None or (known.size, known.changed) != (entry.size, entry.changed):
        return True
    # What nobody here can read is tried again once somebody can.
    return not known.settled and not (known.reason and known.reason == not_installed(entry.path))


def _read_in_batches(
    root: Root,
    stale: list[FolderEntry],
    bounds: IndexBounds,
    clock: Callable[[], int],
    progress: Callable[[IndexProgress], None] | None,
) -> Iterator[list[_Learned]]:
    done = read = 0
    total = sum(entry.size for entry in stale)
    for batch in _batches(stale):
        learned: list[_Learned] = []
        for entry in batch:
            learned.append(_read(root, entry, bounds, clock))
            done, read = done + 1, read + entry.size
            if progress is not None:
                progress(IndexProgress(done, len(stale), read, total, entry.path))
        yield learned


def _batches(entries: Iterable[FolderEntry]) -> Iterator[list[FolderEntry]]:
    waiting = iter(entries)
    while batch := list(islice(waiting, 1)):
        size = batch[0].size
        while len(batch) < BATCH and size < BATCH_BYTES and (more := next(waiting, None)) is not None:
            batch.append(more)
            size += more.size
        yield batch


def _read(root: Root, entry: FolderEntry, bounds: IndexBounds, clock: Callable[[], int]) -> _Learned:
    settled = abs(clock() - entry.changed) > SETTLING
    if entry.path.endswith("/"):
        return _Learned(entry, False, reason=f"{entry.path} can not be listed")
    if reason := not_installed(entry.path):
        return _Learned(entry, False, reason=reason)
    try:
        data = root.read(entry.path, bounds.document_bytes)
        name = PurePosixPath(entry.path)
        head = f"{VERSION}\0{name.stem}\0{name.suffix.lower()}\0"
        digest = hashlib.blake2b(data, digest_size=16, key=hashlib.blake2b(head.encode()).digest()).digest()
        reading = read_document(entry.path, data)
    except ToolError as error:
        # What is told of names near to it may hold some that no index can store.
        reason = str(error).encode("utf-8", "replace").decode()
        return _Learned(entry, settled, reason=reason)
    cut = tuple(
        (each, " ".join(terms(f"{each.heading} {name.stem}")), " ".join(terms(each.text)))
        for each in passages(entry.path, reading)
    )
    return _Learned(entry, settled, digest, reading.kind, cut)


def _store(held: Held, learned: list[_Learned]) -> list[_Learned]:
    """Write what was read; returns what is new or stands differently in the index now."""
    differing: list[_Learned] = []
    with held() as connection, writing(connection):
        for each in learned:
            path, entry = each.entry.path, each.entry
            before = connection.execute(
                "select content, reason from files where path = ?", (path,)
            ).fetchone()
            content = None if each.reason else _content(connection, each)
            connection.execute(
                "insert or replace into files values(?, ?, ?, ?, ?, ?)",
                (path, entry.size, entry.changed, int(each.settled), content, each.reason),
            )
            if before != (content, each.reason):
                differing.append(each)
                if before is not None and before[0] is not None and before[0] != content:
                    _drop_unused(connection, before[0])
    return differing


def _content(connection: apsw.Connection, learned: _Learned) -> int:
    known = connection.execute("select key from contents where digest = ?", (learned.digest,)).get
    if known is not None:
        return int(known)
    connection.execute("insert into contents(digest, kind) values(?, ?)", (learned.digest, learned.kind))
    key = connection.last_insert_rowid()
    # A search tells code by its key alone, without looking up what it finds.
    first = connection.execute("select coalesce(max(key), 0) / 2 * 2 + 2 from passages").get
    first += learned.kind == "code"
    for place, (each, name, body) in enumerate(learned.passages):
        connection.execute(
            "insert into passages values(?, ?, ?, ?, ?, ?, ?, ?)",
            (first + 2 * place, key, place, each.first, each.last, each.heading, each.text, embedded(each)),
        )
        connection.execute(
            "insert into words(rowid, name, body) values(?, ?, ?)", (first + 2 * place, name, body)
        )
    return key


def embedded(passage: Passage) -> bytes:
    """What a passage's vector is stored under: 16 bytes of what is embedded."""
    return hashlib.blake2b(f"{passage.heading}\0{passage.text}".encode(), digest_size=16).digest()


def _forget(held: Held, paths: list[str]) -> None:
    for start in range(0, len(paths), BATCH):
        with held() as connection, writing(connection):
            for path in paths[start : start + BATCH]:
                before = connection.execute("select content from files where path = ?", (path,)).get
                connection.execute("delete from files where path = ?", (path,))
                if before is not None:
                    _drop_unused(connection, before)


def _drop_unused(connection: apsw.Connection, content: int) -> None:
    """Delete a content that no file has any more, and the vectors that no passage has any more."""
    if connection.execute("select 1 from files where content = ? limit 1", (content,)).get:
        return
    held = connection.execute("select key, digest from passages where content = ?", (content,)).fetchall()
    connection.executemany("delete from words where rowid = ?", [(key,) for key, _ in held])
    connection.execute("delete from passages where content = ?", (content,))
    connection.execute("delete from contents where key = ?", (content,))
    connection.executemany(
        "delete from vectors where digest = ?1 and not exists(select 1 from passages where digest = ?1)",
        [(digest,) for _, digest in held],
    )


def _topmost(paths: Iterable[str]) -> list[str]:
    """Each path once, none that lies inside of another; everything is `.`."""
    found: set[str] = set()
    for path in sorted({path.strip("/") or "." for path in paths}, key=len):
        if not _is_inside(path, found):
            found.add(path)
    return sorted(found)


def _is_inside(path: str, places: Container[str]) -> bool:
    """Whether a path is one of the places or lies inside of one."""
    if "." in places or path in places:
        return True
    at = path.find("/")
    while at >= 0:
        if path[:at] in places:
            return True
        at = path.find("/", at + 1)
    return False
