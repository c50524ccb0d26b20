"""Every journal passes the suite that is shipped for users."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from antiphon.journal import open_journal
from antiphon.journal.check import CASES, check_journal
from antiphon.journal.sqlite import SqliteJournal


def opener(kind, folder):
    def made():
        path = folder / "journal.db"
        if kind == "sealed":
            return SqliteJournal(path, key="a key that nobody knows")
        return open_journal("memory" if kind == "memory" else f"sqlite:///{path}?durability={kind}")

    @asynccontextmanager
    async def opened():
        journal = made()
        try:
            yield journal
        finally:
            await journal.close()

    return opened


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("kind", ["memory", "power", "process", "sealed"])
def test_case(kind, case, tmp_path):
    asyncio.run(case(opener(kind, tmp_path)))


@pytest.mark.parametrize("kind", ["memory", "power", "sealed"])
def test_all_cases_share_one_store(kind, tmp_path):
    asyncio.run(check_journal(opener(kind, tmp_path)))
