"""A long run opens from its snapshot in the time of its tail; one that does not fit is as good as none."""

import asyncio
import functools

import apsw
import pytest
from msgspec.structs import replace

from antiphon import Agent, open_run
from antiphon.errors import JournalCorrupt, RunIsClosed
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.state import forget_work
from antiphon.kernel.run import open as opening
from antiphon.kernel.run.rows import fold
from antiphon.kernel.run.snapshots import keeping, version
from antiphon.kernel.run.snapshots.keeping import latest_state
from antiphon.models.script import Script
from tests.unit.journal.writing import opened

AGENTS = [Agent("ann", "You talk.", context="continue"), Agent("ben", "You talk.")]


def on_a_loop(test):
    """The test, a coroutine, on an event loop of its own."""

    @functools.wraps(test)
    def run(*given, **named):
        asyncio.run(test(*given, **named))

    return run


@pytest.fixture
def often(monkeypatch):
    """A snapshot after every tenth record."""
    for room in (keeping, opening):
        monkeypatch.setattr(room, "EVERY", 10)
    monkeypatch.setattr(keeping, "LEFT", 10)
    monkeypatch.setattr(keeping, "SHARE", 1 << 40)


class CountingJournal(MemoryJournal):
    """Counts the rows that were read from it, and the snapshots that were made."""

    rows = snapshots = 0

    async def read(self, *where):
        found = await super().read(*where)
        self.rows += len(found)
        return found

    def keep_snapshot(self, lease, snapshot):
        self.snapshots += 1
        super().keep_snapshot(lease, snapshot)


async def talk(journal, *, times, **options):
    """The run "r" goes on: both agents are asked so often."""
    async with open_run(
        AGENTS, journal=journal, run_id="r", create=True, model=Script(["So."] * 2 * times), **options
    ) as run:
        for _ in range(times):
            for agent in AGENTS:
                await run.result(await run.post(agent, "Well?"))
        return run.seq


async def folded(journal):
    """The run from its first record on, as somebody finds it who opens it."""
    state = await fold(journal, "r")
    forget_work(state)
    return state


@on_a_loop
async def test_a_run_is_read_from_its_snapshot_on(often):
    journal = CountingJournal()
    seq = await talk(journal, times=20)
    assert seq > 200
    whole, journal.rows = await folded(journal), 0
    found = await latest_state(journal, "r")
    assert found.state == whole
    assert seq - 10 < found.kept <= seq
    # Those of the tail, and the one that the snapshot ends with.
    assert journal.rows <= 11
    journal.rows = 0
    await talk(journal, times=1)
    assert journal.rows <= 11
    assert (await latest_state(journal, "r")).state == await folded(journal)


@on_a_loop
async def test_who_is_who_is_known_again(often):
    journal = MemoryJournal()
    await talk(journal, times=5)
    found = await latest_state(journal, "r")
    whole = await keeping._from(journal, "r", keeping.RunState(), keeping.ActivationIndex(), None)
    assert found.kept
    assert found.cast.names == whole.cast.names


@on_a_loop
async def test_a_short_run_has_none_and_a_long_one_few():
    journal = CountingJournal()
    await talk(journal, times=5)
    assert journal.snapshots == 0
    assert (await latest_state(journal, "r")).kept == 0


@on_a_loop
async def test_the_next_one_waits_longer_the_more_there_is(often, monkeypatch):
    few, many = CountingJournal(), CountingJournal()
    await talk(few, times=20)
    monkeypatch.setattr(keeping, "SHARE", 16)
    await talk(many, times=20)
    assert few.snapshots > 2 * many.snapshots > 0


@on_a_loop
async def test_a_run_that_holds_too_much_has_none(often, monkeypatch):
    monkeypatch.setattr(keeping, "LARGEST", 100)
    journal = CountingJournal()
    await talk(journal, times=5)
    assert journal.snapshots == 0


@on_a_loop
async def test_what_no_snapshot_can_hold_is_folded(often):
    journal = CountingJournal()
    await talk(journal, times=5, data={"large": 2**70})
    assert journal.snapshots == 0
    assert (await latest_state(journal, "r")).state.data == {"large": 2**70}


@on_a_loop
async def test_a_run_that_is_thrown_away_makes_none(often, monkeypatch):
    made = []
    monkeypatch.setattr(MemoryJournal, "keep_snapshot", lambda *given: made.append(given))
    async with open_run(AGENTS, model=Script(["So."] * 20), env={}) as run:
        for _ in range(20):
            await run.result(await run.post(AGENTS[0], "Well?"))
    assert made == []


@on_a_loop
async def test_a_closed_run_has_none(often):
    journal = MemoryJournal()
    await talk(journal, times=5)
    assert await journal.snapshot("r") is not None
    async with open_run(AGENTS, journal=journal, run_id="r", model=Script([])) as run:
        await run.close()
    assert await journal.snapshot("r") is None
    with pytest.raises(RunIsClosed):
        await talk(journal, times=1)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda kept: replace(kept, version=b"another fold"), id="another fold"),
        pytest.param(lambda kept: replace(kept, version=b""), id="no fold"),
        pytest.param(lambda kept: replace(kept, digest=bytes(16)), id="another row"),
        pytest.param(lambda kept: replace(kept, seq=kept.seq - 1), id="no row's end"),
        pytest.param(lambda kept: replace(kept, seq=10**9), id="beyond the end"),
        pytest.param(lambda kept: replace(kept, seq=-1), id="before the beginning"),
        pytest.param(lambda kept: replace(kept, data=b""), id="nothing"),
        pytest.param(lambda kept: replace(kept, data=kept.data[:-1]), id="cut"),
        pytest.param(lambda kept: replace(kept, data=b"\x96\x80\x90\x90\x90\x80\x93\x90\x90\x90"), id="bare"),
    ],
)
@on_a_loop
async def test_one_that_does_not_fit_is_thrown_away(often, spoil):
    journal = MemoryJournal()
    await talk(journal, times=5)
    journal._runs["r"].snapshot = spoil(await journal.snapshot("r"))
    found = await latest_state(journal, "r")
    assert found.state == await folded(journal)
    assert found.kept == 0
    # Whoever drives the run makes a new one at once.
    journal._runs["r"].snapshot = None
    await talk(journal, times=1)
    assert (await latest_state(journal, "r")).kept


@on_a_loop
async def test_damage_behind_a_snapshot_is_told(often):
    journal = MemoryJournal()
    await talk(journal, times=5)
    run = journal._runs["r"]
    run.snapshot = replace(run.snapshot, seq=run.rows[-3].seq, digest=run.rows[-3].digest)
    run.rows[-1] = replace(run.rows[-1], body=run.rows[-1].body + b" ")
    with pytest.raises(JournalCorrupt):
        await latest_state(journal, "r")


def test_the_version_is_of_every_file_that_the_fold_is_made_of(tmp_path, monkeypatch):
    package = tmp_path / "antiphon"
    for room in version.ROOMS:
        place = package / room
        place = place if place.suffix else place / "a.py"
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("one = 1\n")
    (package / "kernel/run").mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(version.run, "__file__", str(package / "kernel/run/__init__.py"))
    made = version.fold_version.__wrapped__
    known = {made()}
    for room in version.ROOMS:
        place = package / room
        place = place if place.suffix else place / "a.py"
        place.write_text("one = 2\n")
        assert made() not in known
        known.add(made())
    (package / "values/notes.txt").write_text("no code")
    assert made() in known
    (package / "errors.py").unlink()
    assert made() not in known


def test_the_version_is_the_same_in_every_process_and_cannot_be_unknown():
    assert len(version.fold_version()) == 16
    assert version.fold_version() == version.fold_version.__wrapped__()


# -- in a file ------------------------------------------------------------------------------------


@on_a_loop
async def test_a_snapshot_in_a_file_can_be_deleted_at_any_time(often, tmp_path):
    async with opened(tmp_path / "journal.db", "process") as journal:
        await talk(journal, times=5)
        assert (await latest_state(journal, "r")).kept
        with apsw.Connection(str(tmp_path / "journal.db")) as beside:
            beside.execute("delete from snapshots")
        assert (await latest_state(journal, "r")).kept == 0
        await talk(journal, times=1)
        found = await latest_state(journal, "r")
        assert found.kept
        assert found.state == await folded(journal)


@on_a_loop
async def test_a_snapshot_that_nobody_with_the_key_wrote_is_none(often, tmp_path):
    path = tmp_path / "journal.db"
    key = "a key that nobody knows"
    async with opened(path, "process", key=key) as journal:
        await talk(journal, times=5)
        assert (await latest_state(journal, "r")).kept
        with apsw.Connection(str(path)) as beside:
            beside.execute("update snapshots set seal = zeroblob(16)")
        assert await journal.snapshot("r") is None
        await talk(journal, times=1)
        assert await journal.snapshot("r") is not None
    async with opened(path, "process", key=key) as journal:
        await journal.seal_all("another key that nobody knows")
    async with opened(path, "process", key="another key that nobody knows") as journal:
        assert await journal.snapshot("r") is None
        await talk(journal, times=1)


def flips(cell):
    """The cell with one of its bits changed, each in turn."""
    if isinstance(cell, int):
        yield from (cell ^ 1 << bit for bit in range(62))
        return
    for place in range(len(cell)):
        for bit in range(8):
            yield cell[:place] + bytes([cell[place] ^ 1 << bit]) + cell[place + 1 :]


@pytest.mark.slow
@on_a_loop
async def test_no_changed_bit_of_a_snapshot_is_believed(often, tmp_path):
    async with opened(tmp_path / "journal.db", "process") as journal:
        await talk(journal, times=2)
        kept = await journal.snapshot("r")
        rot, tried = apsw.Connection(str(tmp_path / "journal.db")), 0
        rot.execute("pragma synchronous = off")
        for column in ("seq", "row_digest", "version", "data", "digest", "seal"):
            ((cell,),) = rot.execute(f"select {column} from snapshots")
            for flipped in flips(cell):
                rot.execute(f"update snapshots set {column} = ?", (flipped,))
                tried += 1
                assert await journal.snapshot("r") is None, f"{column}: {flipped!r}"
            rot.execute(f"update snapshots set {column} = ?", (cell,))
        for wrong in ("a text", 1, 1.5, b""):
            rot.execute("update snapshots set data = ?", (wrong,))
            assert await journal.snapshot("r") is None
        rot.execute("update snapshots set data = ?", (kept.data,))
        assert await journal.snapshot("r") == kept
        assert tried > 8 * len(kept.data)
        rot.close()
