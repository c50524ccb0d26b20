"""How far each run of an SQLite journal must reach, kept outside SQLite in the file `PATH-anchor`.

A journal that lost commits looks like one that never had them. So whoever commits notes here, before it
acknowledges, how far the runs now reach, and whoever opens the journal compares: a run that ends before its
anchor is damaged.

The file has room for 256 bytes a run, at a place that the run's key in `runs` gives, and is never larger:
the newest row (epoch, number, digest) and the newest command (number, digest). A record has a checksum of its
own, lies within one sector, and is overwritten in place. In the place of key 0 stand which journal the anchor
belongs to, and how many rows and runs there are at least.

What is noted survives the death of any process at once. It is synced at most LAG_S after the commit, and
with each claim, release and close, so after a power cut the anchor may know less than the journal, never
more. Where the journal itself is not synced (durability "process") the anchor is not either, and binds
nobody after a power cut: an anchor of an earlier boot is then made anew.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zlib import crc32

import apsw
from msgspec import Struct

from antiphon.errors import JournalCorrupt
from antiphon.journal.files.log import damaged
from antiphon.journal.files.notice import notice
from antiphon.journal.port import Row

LAG_S = 1.0
"""Seconds after which what was noted is synced at the latest."""

RUNS = 32
BLOCK = 8192
"""A block holds so many runs: their newest rows side by side, to be written together, then their commands."""
ROW, COMMAND = 128, 64
_COMMANDS = RUNS * ROW
MAGIC = b"Antpanc1"
MAX_NAMES = 10_000
"""Runs whose name is kept ready to be written."""
WEAK, RENEWED = 1, 2
"""Bits of the header: written without syncs since this boot; the anchor was lost once and made anew."""

_HEADER = struct.Struct("<8s16s16sdI20x")
_TIDE = struct.Struct("<qq")
_ROW = struct.Struct("<qq16s16s72s")
_END = struct.Struct("<qq16s")
"""What of a row's record changes; the rest says which run it is."""
_REST = bytes(ROW - _ROW.size - 4)
_pack_end, _pack_sum = _END.pack, struct.Struct("<I").pack
_COMMAND = struct.Struct("<q16s16s")
_SUM = struct.Struct("<I")
# As what it is opened decides whose mode SQLite gives it: the one of the journal when it is made.
_EXISTING = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_SUPER_JOURNAL
_NEW = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_WAL
_SYNC = 2

_RUNS = (
    "select runs.key, run_id, epoch, seq, runs.digest, runs.commands, commands.digest from runs"
    " left join commands on commands.run = runs.key and number = runs.commands"
)
_ENDS = "select key, run_id, epoch, seq, digest, commands from runs"
# What was deleted was there; formats before 5 deleted nothing.
_TIDES = (
    "select max(coalesce((select max(n) from rows), 0),"
    " coalesce((select value from meta where name = 'newest_removed_row'), 0)),"
    " max(coalesce((select max(key) from runs), 0),"
    " coalesce((select value from meta where name = 'newest_removed_run'), 0))"
)


class AnchorHeader(Struct, frozen=True):
    """Which journal an anchor belongs to, since when (Unix time), written on which boot, and how."""

    journal: bytes
    boot: bytes
    since: float
    flags: int


class AnchoredRun(Struct, frozen=True):
    """How far one run must reach. name: its id, or the first 72 bytes of it."""

    key: int
    epoch: int
    seq: int
    digest: bytes
    run: bytes
    name: str


class LostRun(Struct, frozen=True):
    """A run that does not reach as far as it must: its name, what is wrong, whether all of it is gone."""

    name: str
    text: str
    gone: bool = False


class AnchorReport(Struct, frozen=True):
    """What comparing all of a journal with its anchor found: runs that are gone, and what cannot be known."""

    gone: tuple[str, ...]
    unknown: tuple[str, ...]


class Anchor:
    """The anchor of the journal at `path`, through the file layer `vfs`; each thread has one of its own.

    header: None when there is no anchor, or none that can be read.
    """

    def __init__(self, path: Path, vfs: str | None, boot: str) -> None:
        self.path = Path(f"{os.path.realpath(path)}-anchor")
        self._journal = path
        self._vfs, self._boot = vfs or "", blake2b(boot.encode(), digest_size=16).digest()
        self._boot_known = bool(boot)
        self._file: apsw.VFSFile | None = None
        self._staged: dict[int, bytes] = {}
        self._sync_staged = False
        self._dirty_since = 0.0
        self._noted = 0, 0
        self._torn = 0
        self._names: dict[int, tuple[str, bytes]] = {}
        self.header: AnchorHeader | None = None
        if self.path.exists():
            self._open(_EXISTING)
            self._read_header()

    @property
    def same_boot(self) -> bool:
        """Whether this machine has run on since the journal was opened last."""
        return self._boot_known and self.header is not None and self.header.boot == self._boot

    @property
    def outlived(self) -> bool:
        """Whether a power cut may have come between, after commits that nobody had synced."""
        return self.header is not None and bool(self.header.flags & WEAK) and self.header.boot != self._boot

    def attach(self, connection: apsw.Connection, durability: str) -> None:
        """Make the anchor fit the journal: create it when the journal has none, make it anew when it is lost,
        note whether commits are synced."""
        weak = WEAK if durability == "process" else 0
        if not self._fits(connection, weak):
            connection.execute("begin immediate")
            try:
                self._fit(connection, weak)
                connection.execute("commit")
            except apsw.Error:
                if connection.in_transaction:
                    connection.execute("rollback")
                raise
        self._noted = self._tide()

    def _fits(self, connection: apsw.Connection, weak: int) -> bool:
        self._read_header()
        if self.header is None or not self.belongs_to(connection):
            return False
        return self.header.boot == self._boot and self.header.flags | weak == self.header.flags

    def _fit(self, connection: apsw.Connection, weak: int) -> None:
        if self._fits(connection, weak):
            # Another process did it meanwhile.
            return
        named = connection.execute("select value from meta where name = 'anchor'").fetchone()
        if named is None or self.header is None or self.header.journal != named[0] or self.outlived:
            # Not told where nothing was lost: a new journal, an older one, a power cut that may forget.
            renewed = RENEWED if named is not None and not self.outlived else 0
            journal = os.urandom(16)
            connection.execute("insert or replace into meta values('anchor', ?)", (journal,))
            self._create(connection, AnchorHeader(journal, self._boot, time.time(), weak | renewed))
            if renewed:
                text = "Anchor %s was lost or damaged, and is made anew: what older runs lost cannot be known"
                notice(text, self.path)
            return
        flags = self.header.flags | weak
        self._write_header(AnchorHeader(self.header.journal, self._boot, self.header.since, flags))

    def belongs_to(self, connection: apsw.Connection) -> bool:
        """Whether this is the anchor of the journal that is open, and still binds it."""
        if self.header is None or self.outlived:
            return False
        named = connection.execute("select value from meta where name = 'anchor'").fetchone()
        return named is not None and bool(named[0] == self.header.journal)

    # What a commit notes.

    def row(self, key: int, run_id: str, epoch: int, seq: int, digest: bytes) -> None:
        """Note where a run ends now; `write` or `drop` follows."""
        name = self._names.get(key)
        if name is None or name[0] != run_id:
            if len(self._names) >= MAX_NAMES:
                self._names.clear()
            name = run_id, run_hash(run_id) + run_id.encode()[:72].ljust(72, b"\0")
            self._names[key] = name
        packed = _pack_end(epoch, seq, digest) + name[1]
        self._staged[_row_at(key)] = packed + _pack_sum(crc32(packed, key)) + _REST

    def command(self, key: int, run_id: str, number: int, digest: bytes) -> None:
        """Note a run's newest command."""
        packed = _COMMAND.pack(number, digest, run_hash(run_id))
        self._staged[_command_at(key)] = _sealed(packed, key)

    def tide(self, rows: int = 0, runs: int = 0) -> None:
        """Note the newest row and run of the journal, as far as known; written when the anchor is synced."""
        self._noted = rows or self._noted[0], runs or self._noted[1]

    def unnote(self, key: int) -> None:
        """Forget what was noted of a run's rows: they were refused."""
        self._staged.pop(_row_at(key), None)

    def sync_with_this(self) -> None:
        """Let the next `write` sync too."""
        self._sync_staged = True

    def drop(self) -> None:
        """Forget what was noted: the commit did not happen."""
        self._staged.clear()
        self._sync_staged = False

    def write(self) -> None:
        """Write what was noted, after the commit and before anybody is told of it. Raises apsw.Error."""
        if self._staged and self._file is not None:
            self._write_staged(self._file)
            self._dirty_since = self._dirty_since or time.monotonic()
        if self._sync_staged or self.due_in() == 0:
            self.sync()

    def due_in(self) -> float | None:
        """Seconds until what was written must be synced; None when nothing is to be."""
        if not self._dirty_since:
            return None
        return max(0.0, self._dirty_since + LAG_S - time.monotonic())

    def sync(self) -> None:
        """Sync what was written. Raises apsw.Error."""
        self._sync_staged = False
        if self._dirty_since and self._file is not None and self.header is not None:
            self._file.xWrite(_sealed(_TIDE.pack(*self._noted), 0), _command_at(0))
            if not self.header.flags & WEAK:
                self._file.xSync(_SYNC)
            self._dirty_since = 0.0

    def forget(self, keys: list[int]) -> None:
        """Let go of runs that are about to be deleted, synced, before they are; also of what was noted."""
        for key in keys:
            self._staged.pop(_row_at(key), None)
            self._staged.pop(_command_at(key), None)
        if self._file is not None:
            for key in keys:
                self._file.xWrite(bytes(ROW), _row_at(key))
                self._file.xWrite(bytes(COMMAND), _command_at(key))
            self._dirty_since = self._dirty_since or time.monotonic()
            self.sync()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.xClose()
            self._file = None

    # What an opening compares. The anchor is read first, the journal after: it may only have got further.

    def run(self, key: int) -> AnchoredRun | None:
        """How far the run of this key must reach; None when that is not known."""
        if self._file is None:
            return None
        return _unpacked(self._file.xRead(ROW, _row_at(key)), key)

    def command_of(self, key: int, run: bytes) -> tuple[int, bytes]:
        """The newest command that the run must have, and its digest; 0 when that is not known."""
        if self._file is not None:
            found = _opened(_COMMAND, self._file.xRead(COMMAND, _command_at(key)), key)
            if found is not None and found[2] == run:
                return found[0], found[1]
        return 0, b""

    def is_ahead(self, connection: apsw.Connection) -> bool:
        """Whether rows or runs are missing for certain, as far as one look tells."""
        noted = self._tide()
        rows, runs = self._tides(connection)
        return bool(noted[0] > rows or noted[1] > runs)

    def _tides(self, connection: apsw.Connection) -> tuple[int, int]:
        """The newest row and run that the journal has ever had. Raises JournalDamaged."""
        ((rows, runs),) = connection.execute(_TIDES)
        if not isinstance(rows, int) or not isinstance(runs, int):
            raise damaged(self._journal, "what it says of deleted runs is no number")
        return rows, runs

    def _tide(self) -> tuple[int, int]:
        found = None
        if self._file is not None:
            found = _opened(_TIDE, self._file.xRead(COMMAND, _command_at(0)), 0)
        return (found[0], found[1]) if found is not None else (0, 0)

    def missing(self, run_id: str) -> None:
        """Raise JournalCorrupt when the anchor knows a run that the journal does not have."""
        wanted = run_hash(run_id)
        for run in self.runs():
            if run.run == wanted:
                raise JournalCorrupt(run_id, 0, f"it is gone, its anchor says that it reached {run.seq}")

    def lost(self, connection: apsw.Connection) -> list[LostRun]:
        """Every run that does not reach as far as it must."""
        wanted = [(run, self.command_of(run.key, run.run)[0]) for run in self.runs()]
        ends = {key: each for key, *each in connection.execute(_ENDS)}
        found = []
        for run, command in wanted:
            run_id, epoch, seq, digest, commands = ends.get(run.key, ("", 0, 0, b"", 0))
            if run.key not in ends or run_hash(str(run_id)) != run.run:
                now = self.run(run.key)
                if now is None or now.run != run.run:
                    # Another process deleted it meanwhile: the anchor lets go first.
                    continue
                found.append(LostRun(run.name, f"is gone, and reached record {run.seq:,}", True))
            elif behind(run, epoch, seq, digest):
                found.append(LostRun(run.name, f"ends at record {seq:,}, and reached record {run.seq:,}"))
            elif commands < command:
                found.append(LostRun(run.name, f"has {commands:,} commands, and had {command:,}"))
        return found

    def report(self, connection: apsw.Connection) -> AnchorReport:
        """Compare the whole journal; runs that only end too early are told when they are read."""
        gone = tuple(f"run {run.name} {run.text}" for run in self.lost(connection) if run.gone)
        unknown = []
        if self.header is not None and self.header.flags & RENEWED:
            since = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(self.header.since))
            unknown.append(
                f"the anchor was lost or damaged, and made anew at {since}; it knows nothing older"
            )
        if self._torn:
            unknown.append(f"the anchor's records of {self._torn:,} runs cannot be read")
        return AnchorReport(gone, tuple(unknown))

    def runs(self) -> list[AnchoredRun]:
        """Every run that the anchor knows."""
        found: list[AnchoredRun] = []
        self._torn = 0
        size = self._file.xFileSize() if self._file is not None else 0
        for block in range(0, size, BLOCK):
            data = self._file.xRead(_COMMANDS, block) if self._file is not None else b""
            for start in range(0, len(data), ROW):
                key = block // BLOCK * RUNS + start // ROW
                record = data[start : start + ROW]
                run = _unpacked(record, key) if key else None
                if run is not None:
                    found.append(run)
                elif key and any(record):
                    self._torn += 1
        return found

    # The file.

    def _open(self, flags: int) -> None:
        self._file = apsw.VFSFile(self._vfs, str(self.path), [flags, 0])

    def _read_header(self) -> None:
        self.header = None
        if self._file is not None:
            found = _opened(_HEADER, self._file.xRead(ROW, 0), 0)
            if found is not None and found[0] == MAGIC:
                self.header = AnchorHeader(*found[1:])

    def _write_header(self, header: AnchorHeader) -> None:
        packed = _HEADER.pack(MAGIC, header.journal, header.boot, header.since, header.flags)
        if self._file is not None:
            self._file.xWrite(_sealed(packed, 0), 0)
            # That nothing else is synced must itself survive.
            self._file.xSync(_SYNC)
        self._dirty_since = 0.0
        self.header = header

    def _create(self, connection: apsw.Connection, header: AnchorHeader) -> None:
        if self._file is None:
            self._open(_NEW)
        if self._file is None:
            return
        self._file.xTruncate(0)
        for key, run_id, epoch, seq, digest, number, command in connection.execute(_RUNS):
            self.row(key, run_id, epoch, seq, digest)
            if command is not None:
                self.command(key, run_id, number, command)
        rows, runs = self._tides(connection)
        self._staged[_command_at(0)] = _sealed(_TIDE.pack(rows, runs), 0)
        self._write_staged(self._file)
        self._write_header(header)

    def _write_staged(self, file: apsw.VFSFile) -> None:
        """Write the records, those that lie side by side at once."""
        begin, size = 0, 0
        together: list[bytes] = []
        for at in sorted(self._staged):
            if at != begin + size or not together:
                if together:
                    file.xWrite(b"".join(together), begin)
                begin, size, together = at, 0, []
            data = self._staged[at]
            together.append(data)
            size += len(data)
        file.xWrite(b"".join(together), begin)
        self._staged.clear()


def behind(run: AnchoredRun, epoch: int, seq: int, digest: bytes) -> bool:
    """Whether a run that ends so does not reach as far as its anchor says."""
    return seq < run.seq or epoch < run.epoch or (seq == run.seq and digest != run.digest)


def check_end(run: AnchoredRun | None, run_id: str, epoch: int, seq: int, digest: bytes) -> None:
    """Raise JournalCorrupt for a run that does not reach as far as its anchor says."""
    if run is None or run.run != run_hash(run_id) or not behind(run, epoch, seq, digest):
        return
    if seq < run.seq:
        raise JournalCorrupt(run_id, seq, f"it ends there, its anchor says that it reached {run.seq}")
    if epoch < run.epoch:
        text = f"it says that it had {epoch} owners, its anchor says {run.epoch}"
    else:
        text = "it is not the record that its anchor names"
    raise JournalCorrupt(run_id, seq, text)


def check_passes(run: AnchoredRun | None, run_id: str, rows: Sequence[Row]) -> None:
    """Raise JournalCorrupt for rows that pass by the one that the anchor names; they may end before it."""
    if run is None or run.run != run_hash(run_id) or not rows:
        return
    if not rows[0].seq - rows[0].count < run.seq <= rows[-1].seq:
        return
    named = next(row for row in rows if row.seq >= run.seq)
    if (named.seq, named.digest) != (run.seq, run.digest):
        raise JournalCorrupt(run_id, run.seq, "it is not the record that its anchor names")


def run_hash(run_id: str) -> bytes:
    """What the anchor knows a run by."""
    return blake2b(run_id.encode(), digest_size=16).digest()


def _row_at(key: int) -> int:
    return key // RUNS * BLOCK + key % RUNS * ROW


def _command_at(key: int) -> int:
    return key // RUNS * BLOCK + _COMMANDS + key % RUNS * COMMAND


def _sealed(packed: bytes, key: int) -> bytes:
    """A record: what it says, its checksum, and nothing up to its full length."""
    size = ROW if len(packed) > COMMAND else COMMAND
    return (packed + _SUM.pack(crc32(packed, key))).ljust(size, b"\0")


def _opened(form: struct.Struct, data: bytes, key: int) -> tuple[Any, ...] | None:
    """The fields of a record; None when there is none, or it was torn or changed."""
    if len(data) < form.size + _SUM.size:
        return None
    packed = data[: form.size]
    (told,) = _SUM.unpack_from(data, form.size)
    return form.unpack(packed) if told == crc32(packed, key) and any(packed) else None


def _unpacked(data: bytes, key: int) -> AnchoredRun | None:
    found = _opened(_ROW, data, key)
    if found is None:
        return None
    epoch, seq, digest, run, name = found
    return AnchoredRun(key, epoch, seq, digest, run, name.rstrip(b"\0").decode(errors="replace"))
