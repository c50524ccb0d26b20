"""A file that is replaced under a living owner: nothing more is acknowledged, and the run is suspended."""

import asyncio
import os
import shutil

import pytest

from antiphon import Agent, open_run, tool
from antiphon.errors import JournalDamaged, RunSuspended
from antiphon.journal.row_writer import RowWriter
from antiphon.models.script import Script, call
from tests.unit.journal.writing import opened


def removed(path):
    path.unlink()


def moved(path):
    path.rename(path.with_name("elsewhere"))


def replaced(path):
    copy = path.with_name("copy")
    shutil.copy(path, copy)
    copy.replace(path)


@pytest.mark.parametrize("side", ["", "-wal", "-shm"], ids=["file", "log", "index"])
@pytest.mark.parametrize("how", [removed, moved, replaced])
def test_nothing_is_acknowledged_once_a_file_is_another(side, how, tmp_path):
    path = tmp_path / "journal.db"

    async def losing():
        async with opened(path) as journal:
            pen = RowWriter(journal, await journal.claim("run", create=True))
            await pen.write(b"before")
            how(tmp_path / f"journal.db{side}")
            there = sorted(each.name for each in tmp_path.iterdir())
            with pytest.raises(JournalDamaged, match=f"journal.db{side} was removed or replaced"):
                await pen.write(b"after")
            with pytest.raises(JournalDamaged):
                await journal.claim("another", create=True)
            with pytest.raises(JournalDamaged):
                await journal.post("run", "key", b"")
        return there

    there = asyncio.run(losing())
    # Closing removes no file by a name that is another's by now.
    assert sorted(each.name for each in tmp_path.iterdir()) == there


def test_an_owner_that_has_nothing_to_write_notices_when_it_says_that_it_lives(tmp_path):
    async def beating():
        async with opened(tmp_path / "journal.db") as journal:
            await journal.claim("run", create=True)
            await journal.beat()
            removed(tmp_path / "journal.db-wal")
            with pytest.raises(JournalDamaged):
                await journal.beat()

    asyncio.run(beating())


def test_a_run_parks_before_its_next_act(tmp_path):
    """The old owner does nothing more; what it had not been told to be durable, the next owner may do."""
    acts = []

    @tool
    def pay(item: int) -> str:
        """Pay for an item.

        Args:
            item: Its number.
        """
        acts.append(item)
        if item == 2:
            os.unlink(tmp_path / "journal.db-wal")
        return f"paid {item}"

    agent = Agent("clerk", "You pay.", tools=[pay], model=Script([call("pay", item=n) for n in range(5)]))

    async def paying():
        async with open_run([agent], journal=f"sqlite:///{tmp_path}/journal.db") as run:
            with pytest.raises(RunSuspended) as raised:
                await run.result(await run.post("clerk", "Pay all"))
            return raised.value

    found = asyncio.run(paying())
    assert isinstance(found.__cause__, JournalDamaged)
    assert acts == [0, 1, 2]


def test_an_instance_that_is_opened_and_closed_beside_another_leaves_its_locks(tmp_path):
    """SQLite deletes the log when the last one closes: the locks must say who is left."""

    async def beside():
        async with opened(tmp_path / "journal.db") as journal:
            pen = RowWriter(journal, await journal.claim("run", create=True))
            for n in range(3):
                async with opened(tmp_path / "journal.db") as other:
                    await other.runs()
                child = await asyncio.create_subprocess_exec(
                    "python3", "-c", "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
                    " print(c.execute('select count(*) from rows').fetchall()); c.close()",
                    str(tmp_path / "journal.db"), stdout=asyncio.subprocess.PIPE,
                )  # fmt: skip
                assert await child.communicate()
                await pen.write(b"%d" % n)

    asyncio.run(beside())
