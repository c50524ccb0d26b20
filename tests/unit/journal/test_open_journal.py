"""How a journal is named."""

import asyncio

import pytest

from antiphon.errors import ConfigError
from antiphon.journal import MemoryJournal, open_journal
from antiphon.journal.sqlite import SqliteJournal


@pytest.mark.parametrize("target", [None, "memory"])
def test_memory(target):
    journal = open_journal(target)
    assert isinstance(journal, MemoryJournal)
    assert journal.durability == "none"


def test_a_journal_is_itself():
    journal = MemoryJournal()
    assert open_journal(journal) is journal


@pytest.mark.parametrize(
    ("target", "file", "durability"),
    [
        ("sqlite:///relative.db", "relative.db", "power"),
        ("sqlite:///deep/er/my%20runs.db?durability=process", "deep/er/my runs.db", "process"),
        ("sqlite:///x.db?durability=power", "x.db", "power"),
        ("sqlite:///{tmp}/absolute.db", "absolute.db", "power"),
    ],
)
def test_a_file(target, file, durability, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    async def opening():
        journal = open_journal(target.format(tmp=tmp_path))
        assert isinstance(journal, SqliteJournal)
        assert journal.durability == durability
        await journal.close()

    asyncio.run(opening())
    assert (tmp_path / file).exists()


@pytest.mark.parametrize(
    ("target", "says"),
    [
        ("runs.db", "sqlite:///relative.db"),
        ("postgres://host/db", "sqlite:///relative.db"),
        ("sqlite://runs.db", "three slashes"),
        ("sqlite:///", "three slashes"),
        ("sqlite:///runs.db#part", "three slashes"),
        ("sqlite:///runs.db?mode=ro", "no option 'mode'"),
        ("sqlite:///runs.db?durability=none", "power, process"),
        ("", "memory"),
    ],
)
def test_anything_else_is_told(target, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=says):
        open_journal(target)
    assert list(tmp_path.iterdir()) == []
