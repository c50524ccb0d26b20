"""Every journal passes the suite that is shipped for users."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from antiphon.journal import open_journal
from antiphon.journal.check import CASES, check_journal


def opener(kind, folder):
    target = {
        "memory": "memory",
        "power": f"sqlite:///{folder}/journal.db",
        "process": f"sqlite:///{folder}/journal.db?durability=process",
    }[kind]

    @asynccontextmanager
    async def opened():
        journal = open_journal(target)
        try:
            yield journal
        finally:
            await journal.close()

    return opened


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("kind", ["memory", "power", "process"])
def test_case(kind, case, tmp_path):
    asyncio.run(case(opener(kind, tmp_path)))


@pytest.mark.parametrize("kind", ["memory", "power"])
def test_all_cases_share_one_store(kind, tmp_path):
    asyncio.run(check_journal(opener(kind, tmp_path)))
