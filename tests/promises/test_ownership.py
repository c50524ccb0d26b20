"""On one store: one owner at a time, a dead one is replaced at once, a silent one after its time."""

import asyncio
import os
import signal
import time

import apsw
import pytest

from antiphon.errors import LeaseLost, RunInUse
from antiphon.journal.owner import Owner, is_dead, this_process
from antiphon.journal.row_writer import RowWriter
from tests.unit.journal.children import start
from tests.unit.journal.writing import opened


class Clock:
    """Time that passes when told to."""

    def __init__(self, tick=time.monotonic):
        self.ahead, self._tick = 0.0, tick

    def __call__(self):
        return self._tick() + self.ahead


@pytest.fixture
def holder(tmp_path):
    child = start("hold", tmp_path / "journal.db", "run")
    assert child.stdout.readline() == "holding\n"
    yield child
    child.send_signal(signal.SIGCONT)
    child.kill()
    child.communicate()


def ask(child, line):
    child.stdin.write(line + "\n")
    child.stdin.flush()
    return child.stdout.readline().strip()


def test_a_living_owner_is_respected_and_named(holder, tmp_path):
    async def claiming():
        async with opened(tmp_path / "journal.db", ttl=3600) as journal:
            with pytest.raises(RunInUse, match=f"process {holder.pid} on ") as caught:
                await journal.claim("run")
            assert caught.value.run_id == "run"
            assert str(holder.pid) in (await journal.runs())[0].owner
        assert ask(holder, "go on") == "written"

    asyncio.run(claiming())


@pytest.mark.parametrize("reaped", [True, False])
def test_a_killed_owner_is_replaced_at_once(holder, tmp_path, reaped):
    os.kill(holder.pid, signal.SIGKILL)
    if reaped:
        holder.wait()
    else:
        os.waitid(os.P_PID, holder.pid, os.WEXITED | os.WNOWAIT)

    async def claiming():
        async with opened(tmp_path / "journal.db", ttl=3600) as journal:
            assert (await journal.runs())[0].owner == ""
            lease = await journal.claim("run")
            assert (lease.epoch, lease.seq) == (2, 1)
            await RowWriter(journal, lease).write(b"mine now")

    asyncio.run(claiming())


def test_a_stopped_owner_is_replaced_after_its_time_and_its_late_write_refused(holder, tmp_path):
    os.kill(holder.pid, signal.SIGSTOP)

    async def claiming():
        steady, wall = Clock(), Clock(time.time)
        async with opened(tmp_path / "journal.db", ttl=3600, steady=steady, wall=wall) as journal:
            wall.ahead = 1e9
            with pytest.raises(RunInUse):
                await journal.claim("run")
            steady.ahead = 3599
            with pytest.raises(RunInUse):
                await journal.claim("run")
            steady.ahead = 3601
            pen = RowWriter(journal, await journal.claim("run"))
            os.kill(holder.pid, signal.SIGCONT)
            assert ask(holder, "am I still the owner?") == "LeaseLost"
            assert ask(holder, "and now?") == "LeaseLost"
            await pen.write(b"mine")
            assert [row.body for row in await journal.read("run")] == [b"first", b"mine"]

    asyncio.run(claiming())


def test_an_owner_on_another_host_is_replaced_after_its_time(tmp_path):
    async def claiming():
        wall = Clock(lambda: 1_000.0)
        async with (
            opened(tmp_path / "journal.db", wall=wall) as one,
            opened(tmp_path / "journal.db", wall=wall) as two,
        ):
            pen = RowWriter(one, await one.claim("run", create=True))
            with apsw.Connection(str(tmp_path / "journal.db")) as other:
                other.execute("update owners set host = 'elsewhere', boot = 'another'")
            wall.ahead = 14.9
            with pytest.raises(RunInUse, match=f"process {os.getpid()} on elsewhere"):
                await two.claim("run")
            await one.beat()
            wall.ahead = 29.8
            with pytest.raises(RunInUse):
                await two.claim("run")
            wall.ahead = 29.91
            taken = RowWriter(two, await two.claim("run"))
            with pytest.raises(LeaseLost):
                await pen.write(b"late")
            await taken.write(b"in time")
            # Who was thought dead says it lives: it is no owner of that run, but may own others.
            await one.beat()
            await RowWriter(one, await one.claim("other", create=True)).write(b"x")
            with pytest.raises(RunInUse):
                await one.claim("run")

    asyncio.run(claiming())


EARLIER = "5b4e4d4c-0f9f-4c11-a1f5-0d6f3c2b1a00 pid:[4026531836]"


def test_an_owner_of_an_earlier_boot_is_replaced_at_once_whatever_its_clock_said(tmp_path):
    async def claim():
        path = tmp_path / "journal.db"
        async with opened(path, wall=Clock(lambda: time.time() + 86_400)) as ahead:
            await ahead.claim("run", create=True)
            with apsw.Connection(str(path)) as other:
                other.execute("update owners set boot = ?", (EARLIER,))
            async with opened(path) as journal:
                assert (await journal.claim("run")).epoch == 2

    asyncio.run(claim())


def test_a_reused_process_number_is_not_taken_for_the_owner():
    me = this_process()
    assert not is_dead(me, me)
    assert is_dead(Owner(me.host, me.boot, me.pid, me.started + "1"), me)
    assert is_dead(Owner(me.host, me.boot, 2**22 + 1, "1"), me)
    assert not is_dead(Owner("elsewhere", me.boot, 2**22 + 1, "1"), me)
    # A boot that is not told as one, and a namespace of processes that is not ours.
    assert not is_dead(Owner(me.host, "another boot", 2**22 + 1, "1"), me)
    assert not is_dead(Owner(me.host, f"{me.boot}0", 2**22 + 1, "1"), me)
    assert not is_dead(Owner(me.host, "", 2**22 + 1, "1"), Owner(me.host, "", 1, "1"))


def test_an_owner_that_closes_lets_go(tmp_path):
    async def claiming():
        async with opened(tmp_path / "journal.db") as one:
            await one.claim("run", create=True)
        async with opened(tmp_path / "journal.db", ttl=3600) as two:
            assert (await two.runs())[0].owner == ""
            assert (await two.claim("run")).epoch == 2
        with apsw.Connection(str(tmp_path / "journal.db")) as file:
            assert file.execute("select count(*) from owners").fetchall() == [(0,)]

    asyncio.run(claiming())


def test_a_zombies_rows_are_refused_and_leave_nothing_while_its_other_runs_go_on(tmp_path):
    async def claiming():
        path = tmp_path / "journal.db"
        async with opened(path) as zombie, opened(path, ttl=0) as heir:
            lost, kept = [
                RowWriter(zombie, await zombie.claim(name, create=True)) for name in ("lost", "kept")
            ]
            first = await lost.write(b"before")
            taken = RowWriter(heir, await heir.claim("lost"))
            ends = {"lost": [], "kept": []}
            for _ in range(5):
                zombie.append(lost.lease, lost.row(b"zombie"), {}, ends["lost"].append)
                zombie.append(kept.lease, kept.row(b"mine"), {}, ends["kept"].append)
            await zombie.release(kept.lease)
            assert [type(end) for end in ends["lost"]] == [LeaseLost] * 5
            assert ends["kept"] == [None] * 5
            after = await taken.write(b"after")
            assert list(await heir.read("lost")) == first + after
            assert len(await heir.read("kept")) == 5
        with apsw.Connection(str(path)) as file:
            assert file.execute("select count(*) from rows").fetchall() == [(7,)]

    asyncio.run(claiming())
