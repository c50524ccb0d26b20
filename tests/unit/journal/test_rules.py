"""Rules kept beside the runs of an SQLite file: nobody without the key writes one."""

import asyncio
import shutil
from pathlib import Path

import apsw
import pytest
from msgspec.structs import replace

from antiphon.errors import JournalDamaged, UnknownName
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import StoredRule, StoredRun, rule_digest
from antiphon.journal.sqlite.file import MIGRATIONS
from tests.golden.write_journal import RULE
from tests.unit.journal.writing import opened

KEY = "a key that nobody knows"
SHOP = StoredRule("r1", "project", "shop", b'{"tool":"pay"}', 1.5)
GOLDEN = Path(__file__).parents[2] / "golden"


def written(path, key=""):
    async def writing():
        async with opened(path, key=key) as journal:
            await journal.add_rule(SHOP)

    asyncio.run(writing())


def read(path, key=""):
    async def reading():
        async with opened(path, key=key) as journal:
            return list(await journal.rules())

    return asyncio.run(reading())


def forge(path, rule):
    with apsw.Connection(str(path)) as file:
        values = (rule.id, rule.scope, rule.key, rule.body, rule.created_at, rule_digest(rule), b"")
        file.execute("insert or replace into rules values(?, ?, ?, ?, ?, ?, ?)", values)


def test_the_golden_journal_has_its_rule(tmp_path):
    path = tmp_path / "journal.db"
    shutil.copy(GOLDEN / f"journal_format_{len(MIGRATIONS)}.db", path)
    assert read(path) == [RULE]


@pytest.mark.parametrize(
    "change", ["body = x'7b7d'", "key = 'other'", "scope = 'owner'", "id = 'r2'", "created = 9"]
)
def test_a_rule_that_was_changed_is_not_used(change, tmp_path):
    path = tmp_path / "journal.db"
    written(path)
    with apsw.Connection(str(path)) as file:
        file.execute(f"update rules set {change}")
    with pytest.raises(JournalDamaged, match="is not as it was written; look at it, drop it and add it anew"):
        read(path)


def test_what_was_changed_can_be_dropped(tmp_path):
    path = tmp_path / "journal.db"
    written(path)
    with apsw.Connection(str(path)) as file:
        file.execute("update rules set body = x'7b7d'")

    async def dropping():
        async with opened(path) as journal:
            await journal.drop_rule("r1")
            return await journal.rules()

    assert asyncio.run(dropping()) == []


def test_nobody_without_the_key_makes_a_rule(tmp_path):
    path = tmp_path / "journal.db"
    written(path, KEY)
    assert read(path, KEY) == [SHOP]
    forge(path, replace(SHOP, id="r2", body=b'{"tool":"*"}'))
    with pytest.raises(JournalDamaged, match="the rule 'r2' is not as it was written"):
        read(path, KEY)


def test_sealing_a_journal_seals_its_rules_and_lets_go_of_them_again(tmp_path):
    path = tmp_path / "journal.db"
    written(path)

    async def sealing(old, new):
        async with opened(path, key=old) as journal:
            await journal.seal_all(new)

    asyncio.run(sealing("", KEY))
    assert read(path, KEY) == [SHOP]
    asyncio.run(sealing(KEY, ""))
    assert read(path) == [SHOP]


@pytest.mark.parametrize("on_disk", [True, False])
def test_a_rule_for_a_run_does_not_outlive_it(on_disk, tmp_path):
    """An id may be used anew, by somebody whom nothing was granted."""

    async def using(journal):
        for each in (SHOP, replace(SHOP, id="r2", scope="run", key="till")):
            await journal.add_rule(each)
        await journal.restore(StoredRun("till", (), {}))
        await journal.delete("till")
        left = list(await journal.rules())
        with pytest.raises(UnknownName, match=r"Unknown rule: r2\. Known: r1"):
            await journal.drop_rule("r2")
        return left

    async def opening():
        if not on_disk:
            return await using(MemoryJournal())
        async with opened(tmp_path / "journal.db") as journal:
            return await using(journal)

    assert asyncio.run(opening()) == [SHOP]
