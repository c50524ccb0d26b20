"""A key is taken once, however many processes post it at the same time."""

import asyncio

import pytest

from tests.unit.journal.children import start
from tests.unit.journal.writing import opened

PROCESSES = 4


async def create(path):
    async with opened(path) as journal:
        await journal.claim("run", create=True)


async def letters(path):
    async with opened(path) as journal:
        return await journal.commands("run")


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "posts"), [(10, 200), pytest.param(500, 10_000, marks=pytest.mark.deep)])
def test_each_key_once(keys, posts, tmp_path):
    path = tmp_path / "journal.db"
    asyncio.run(create(path))
    children = [start("duplicates", path, "run", keys, posts // PROCESSES) for _ in range(PROCESSES)]
    for child in children:
        assert child.stdout.readline() == "ready\n"
    for child in children:
        child.stdin.write("go\n")
        child.stdin.flush()
    new = [int(child.communicate(timeout=120)[0]) for child in children]
    found = asyncio.run(letters(path))
    assert [letter.number for letter in found] == list(range(1, keys + 1))
    assert {letter.key for letter in found} == {f"key {n}" for n in range(keys)}
    assert all(letter.body == letter.key.encode() for letter in found)
    assert sum(new) == keys
