"""Rows are held until the event loop comes round, or somebody waits; who commits them, and when."""

import asyncio
import threading

import apsw
import pytest

from antiphon.errors import LeaseLost
from antiphon.journal.files import anchor
from antiphon.journal.row_writer import RowWriter
from antiphon.journal.sqlite import rounds
from tests.unit.journal.writing import opened

LOOP = threading.main_thread().name


def on_a_file(test):
    """The test, a coroutine, with a journal in a file and what was committed there: (thread, rows)."""

    def run(tmp_path, monkeypatch):
        async def testing():
            async with opened(tmp_path / "journal.db", "process") as journal:
                batches, commit = [], journal._writer._commit

                def noting(items):
                    rows = [each for each in items if hasattr(each, "row")]
                    if rows:
                        batches.append((threading.current_thread().name, len(rows)))
                    return commit(items)

                monkeypatch.setattr(journal._writer, "_commit", noting)
                # The disk is quick, whatever else the machine does.
                commit_now = journal._writer.commit_now

                def quick(rows):
                    # The writer's thread looks after the anchor now and then; that is over first.
                    with journal._writer._writing:
                        pass
                    done = commit_now(rows)
                    return None if done is None else (*done[:2], 0.0)

                monkeypatch.setattr(journal._writer, "commit_now", quick)
                await test(*(journal, batches, monkeypatch)[: test.__code__.co_argcount])

        asyncio.run(testing())

    return run


async def pens(journal, count):
    made = [RowWriter(journal, await journal.claim(f"run {n}", create=True)) for n in range(count)]
    # What the claims were is over, and so is their round.
    await asyncio.sleep(0)
    return made


def append(pen, ends, count=1):
    for _ in range(count):
        row = pen.row(b"x")
        pen.journal.append(pen.lease, row, {}, lambda error, seq=row.seq: ends.append((seq, error)))


@on_a_file
async def test_rows_of_a_round_are_one_transaction_on_the_loops_thread(journal, batches):
    (pen,), ends = await pens(journal, 1), []
    append(pen, ends, 3)
    assert (batches, ends) == ([], [])
    await asyncio.sleep(0)
    assert batches == [(LOOP, 3)]
    assert ends == [(1, None), (2, None), (3, None)]


@on_a_file
async def test_whoever_waits_hurries_them(journal, batches):
    (pen,), ends = await pens(journal, 1), []
    append(pen, ends, 2)
    journal.hurry()
    assert batches == [(LOOP, 2)]
    assert ends == [(1, None), (2, None)]
    journal.hurry()
    assert batches == [(LOOP, 2)]
    append(pen, ends)
    journal.hurry()
    assert batches == [(LOOP, 2), (LOOP, 1)]
    assert len(await journal.read("run 0")) == 3


@on_a_file
async def test_many_runs_share_the_transaction_of_a_round(journal, batches):
    several, ends = await pens(journal, 20), []
    for _ in range(2):
        for pen in several:
            append(pen, ends)
            journal.hurry()
        await asyncio.sleep(0)
    # In the first round the first of them could not know of the others.
    assert batches == [(LOOP, 1), (LOOP, 19), (LOOP, 20)]
    # A round that one of them has to itself, and it need not wait any more.
    append(several[0], ends)
    await asyncio.sleep(0)
    append(several[0], ends)
    journal.hurry()
    assert batches[-2:] == [(LOOP, 1), (LOOP, 1)]
    assert len(ends) == 42


@on_a_file
async def test_what_comes_after_a_job_is_committed_after_it(journal, batches):
    (pen,), ends = await pens(journal, 1), []
    append(pen, ends)
    journal.describe(pen.lease, b'{"title":"after one row"}')
    append(pen, ends)
    journal.hurry()
    await pen.put(pen.row(b"x"))
    assert LOOP not in [thread for thread, _ in batches]
    assert sum(count for _, count in batches) == 3
    assert ends == [(1, None), (2, None)]
    append(pen, ends)
    await asyncio.sleep(0)
    assert batches[-1] == (LOOP, 1)


@on_a_file
async def test_nobody_waits_for_a_slow_disk_until_it_may_be_quick_again(journal, batches):
    (pen,), ends, held = await pens(journal, 1), [], journal._rounds
    writer, commit_now = journal._writer, journal._writer.commit_now
    slow = lambda rows: (*commit_now(rows)[:2], 2 * rounds.QUICK_S)  # noqa: E731 - told once below
    for pause in (1.0, 2.0, 4.0):
        writer.commit_now = slow
        append(pen, ends)
        journal.hurry()
        assert batches[-1] == (LOOP, 1)
        writer.commit_now = commit_now
        await pen.put(pen.row(b"x"))
        assert batches[-1][0] != LOOP
        held._not_before -= pause
    append(pen, ends)
    journal.hurry()
    assert batches[-1] == (LOOP, 1)
    assert held._pause == rounds.PAUSE_S


@on_a_file
async def test_the_loop_does_not_wait_for_another_process(journal, batches):
    (pen,), ends = await pens(journal, 1), []
    other = apsw.Connection(str(journal.path))
    other.execute("begin immediate")
    append(pen, ends)
    journal.hurry()
    assert ends == []
    other.execute("rollback")
    await pen.put(pen.row(b"x"))
    assert ends == [(1, None)]
    assert LOOP not in [thread for thread, _ in batches]
    other.close()


@on_a_file
async def test_what_is_held_is_stored_by_whatever_follows(journal, batches):
    (pen, another), ends = await pens(journal, 2), []
    append(pen, ends, 2)
    await journal.release(pen.lease)
    assert ends == [(1, None), (2, None)]
    append(another, ends)
    await journal.close()
    assert ends[2:] == [(1, None)]


@on_a_file
async def test_a_row_that_is_refused_is_told_where_it_was_hurried(journal, batches):
    (pen,), ends = await pens(journal, 1), []
    pen.row(b"never appended")
    append(pen, ends)
    journal.hurry()
    ((seq, error),) = ends
    assert seq == 2
    assert "cannot follow" in str(error)


@on_a_file
async def test_the_writers_thread_moves_the_log_and_syncs_the_anchor(journal, batches, monkeypatch):
    (pen,), writer = await pens(journal, 1), journal._writer
    done, checkpoint, sync = [], writer._checkpoint, writer._sync_anchor

    def noting(what, work):
        def doing():
            done.append((what, threading.current_thread().name == LOOP))
            work()
            told.set()

        return doing

    told = threading.Event()
    writer._checkpoint, writer._sync_anchor = noting("log", checkpoint), noting("anchor", sync)
    # So that it is due at once, for whoever looks.
    monkeypatch.setattr(anchor, "LAG_S", 0.001)
    monkeypatch.setattr("antiphon.journal.sqlite.writer.CHECKPOINT_PAGES", 1)
    append(pen, [])
    journal.hurry()
    while ("log", False) not in done or ("anchor", False) not in done:
        assert await asyncio.to_thread(told.wait, 10)
        told.clear()
    assert ("log", True) not in done


@pytest.mark.parametrize("durability", ["process", "power"])
def test_a_turn_commits_once_and_changes_no_thread(durability, tmp_path, monkeypatch):
    """Both rows of a tool turn, the call and what it gave with the next question, share a transaction."""
    monkeypatch.setattr(rounds, "QUICK_S", 60)
    from bench import durable

    async def running():
        async with opened(tmp_path / "journal.db", durability) as journal:
            batches, commit = [], journal._writer._commit

            def noting(items):
                batches.append((threading.current_thread().name, len(items)))
                return commit(items)

            monkeypatch.setattr(journal._writer, "_commit", noting)
            await durable.one_run(journal, 20, offered=durable.note)
            return batches

    batches = asyncio.run(running())
    on_loop = [count for thread, count in batches if thread == LOOP]
    assert on_loop.count(2) >= 18, batches


def held_up(journal, monkeypatch):
    """Holds up the writer's thread until the event is set: what is queued meanwhile is one batch. And of how
    many runs the rows were that it wrote at once."""
    writer, together, began, go = journal._writer, [], threading.Event(), threading.Event()
    flush = writer._flush

    def noting(ended):
        if writer._staged:
            together.append(len(writer._staged))
        flush(ended)

    monkeypatch.setattr(writer, "_flush", noting)
    journal._write(lambda job: began.set() or go.wait(10))
    assert began.wait(10)
    return go, together


@on_a_file
async def test_runs_that_begin_and_end_beside_others_leave_their_rows_together(journal, batches, monkeypatch):
    several, ends = await pens(journal, 20), []
    go, together = held_up(journal, monkeypatch)
    jobs = []
    for number, pen in enumerate(several):
        append(pen, ends, 2)
        jobs.append(asyncio.ensure_future(journal.release(pen.lease, b'{"title":"over"}')))
        jobs.append(asyncio.ensure_future(journal.claim(f"new {number}", create=True)))
        await asyncio.sleep(0)
    go.set()
    await asyncio.gather(*jobs)
    assert together == [20]
    assert [error for _, error in ends] == [None] * 40
    assert [len(await journal.read(f"run {number}")) for number in range(20)] == [2] * 20
    assert len(await journal.runs()) == 40


@on_a_file
async def test_of_one_run_everything_stays_in_order(journal, batches, monkeypatch):
    pen, other = await pens(journal, 2)
    ends = []
    go, _ = held_up(journal, monkeypatch)
    append(pen, ends)
    leaving = asyncio.ensure_future(journal.release(pen.lease))
    await asyncio.sleep(0)
    append(pen, ends)
    append(other, ends)
    again = asyncio.ensure_future(journal.claim("run 0"))
    await asyncio.sleep(0)
    go.set()
    await leaving
    lease = await again
    assert (lease.epoch, lease.seq) == (2, 1)
    assert [None if error is None else type(error) for _, error in ends] == [None, LeaseLost, None]


@on_a_file
async def test_what_may_be_of_any_run_comes_after_all_rows_before_it(journal, batches, monkeypatch):
    several, ends = await pens(journal, 3), []
    go, together = held_up(journal, monkeypatch)
    seen = []
    for pen in several:
        append(pen, ends)
        journal._rounds.pass_on()
        journal._write(lambda job: seen.append(sum(together)))
    go.set()
    await several[0].put(several[0].row(b"x"))
    assert seen == [1, 2, 3]
