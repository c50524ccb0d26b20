"""`antiphon runs rm`, `runs prune` and `journal vacuum`: what is no longer wanted goes, and nothing else."""

import asyncio
import time

import apsw
import pytest

from antiphon import Agent, open_run, tool
from antiphon.journal.sqlite import SqliteJournal
from antiphon.models.script import Script, call

JOURNAL = ".antiphon/antiphon.db"
DAY = 86_400.0


@tool(requires_approval=True)
def pay() -> str:
    """Pay."""
    return "paid"


def write(shell, run_id, days=0.0, ended=True, asks=False, size=10):
    """A run whose last record is so many days old; not `ended`: its request stays open."""

    async def writing():
        (shell.folder / ".antiphon").mkdir(exist_ok=True)
        journal = SqliteJournal(shell.folder / JOURNAL)
        model = Script([call("pay"), "done"] if asks else ["said " * (size // 5)])
        async with open_run(
            [Agent("a", tools=[pay])], journal=journal, run_id=run_id, create=True, model=model
        ) as run:
            request = await run.post("a", "go")
            if ended:
                await run.result(request)
            elif asks:
                async for item in run.events(deltas=False):
                    if item.asks:
                        break
        await journal.close()

    asyncio.run(writing())
    change(shell, "update runs set updated = ? where run_id = ?", time.time() - days * DAY, run_id)


def change(shell, sql, *bindings):
    """Change the journal's file behind Antiphon's back."""
    connection = apsw.Connection(str(shell.folder / JOURNAL))
    connection.execute(sql, bindings)
    connection.close()


def there(shell):
    return sorted(entry["run_id"] for entry in shell("runs", "ls", "--json", "--limit", "1000").value)


def test_nothing_is_deleted_without_yes(shell):
    write(shell, "one", days=10)
    for words in (("rm", "one"), ("prune", "--older", "1d"), ("prune", "--keep", "0")):
        said = shell("runs", *words)
        assert said.code == 0
        assert said.out.splitlines()[-1] == "1 runs would be deleted; nothing is without --yes"
        assert said.out.startswith("one  ")
        assert shell("runs", *words, "--json").value["dry"] is True
    assert there(shell) == ["one"]


def test_rm_deletes_what_is_named_and_leaves_the_others(shell):
    for run_id in ("one", "two", "three"):
        write(shell, run_id)
    assert shell("runs", "rename", "three", "the third").code == 0
    said = shell("runs", "rm", "one", "the third", "one", "--yes")
    assert (said.code, said.out.splitlines()[-1]) == (
        0, "2 runs deleted; `antiphon journal vacuum` gives their space back",
    )  # fmt: skip
    assert there(shell) == ["two"]
    assert shell("runs", "verify").code == 0


def test_rm_deletes_nothing_when_one_name_is_none(shell):
    write(shell, "one")
    said = shell("runs", "rm", "one", "nobody", "--yes")
    assert said.code == 4
    assert there(shell) == ["one"]


def test_rm_deletes_nothing_when_one_is_driven(shell):
    write(shell, "one")
    write(shell, "held")

    async def hold():
        journal = SqliteJournal(shell.folder / JOURNAL)
        await journal.claim("held")
        return journal

    with asyncio.Runner() as runner:
        journal = runner.run(hold())
        # Another loop runs in the command; the owner is this process and lives.
        said = [shell("runs", "rm", "one", "held", "--yes"), shell("journal", "vacuum")]
        pruned = shell("runs", "prune", "--keep", "0", "--unfinished", "--yes", "--json").value
        runner.run(journal.close())
    assert [each.code for each in said] == [9, 9]
    assert all("is owned by process" in each.err for each in said)
    assert [each["run_id"] for each in pruned["deleted"]] == ["one"]
    assert pruned["kept"][0]["kept"].startswith("held by process")
    assert there(shell) == ["held"]


def test_rm_deletes_a_suspended_and_a_damaged_run_that_is_named(shell):
    write(shell, "suspended", ended=False)
    write(shell, "damaged")
    change(
        shell,
        "update rows set body = x'00' where run = (select key from runs where run_id = 'damaged')",
    )
    said = shell("runs", "rm", "suspended", "damaged")
    assert [line.split()[2] for line in said.out.splitlines()[:2]] == ["suspended", "damaged"]
    assert shell("runs", "rm", "suspended", "damaged", "--yes").code == 0
    assert there(shell) == []


def test_prune_deletes_what_every_filter_lets_go(shell):
    for days in (1, 5, 30, 100, 200):
        write(shell, f"{days}d", days=days)
    chosen = {
        ("--older", "20d"): ["100d", "200d", "30d"],
        ("--older", "2w"): ["100d", "200d", "30d"],
        ("--older", "3000h"): ["200d"],
        ("--keep", "1"): ["100d", "200d", "30d", "5d"],
        ("--keep", "9"): [],
        ("--older", "20d", "--keep", "3"): ["100d", "200d"],
        ("--older", "150d", "--keep", "1"): ["200d"],
    }
    for options, wanted in chosen.items():
        found = shell("runs", "prune", *options, "--json").value
        assert sorted(each["run_id"] for each in found["deleted"]) == wanted, options
    said = shell("runs", "prune", "--older", "20d", "--keep", "3", "--yes")
    assert said.code == 0
    assert there(shell) == ["1d", "30d", "5d"]


def test_prune_keeps_what_is_not_over_unless_asked(shell):
    write(shell, "over", days=10)
    write(shell, "open", days=10, ended=False)
    write(shell, "asking", days=10, ended=False, asks=True)
    write(shell, "told", days=10)
    write(shell, "damaged", days=10)

    async def post():
        journal = SqliteJournal(shell.folder / JOURNAL)
        await journal.post("told", "key", b"{}")
        await journal.close()

    asyncio.run(post())
    change(shell, "update rows set body = x'00' where run = (select key from runs where run_id = 'damaged')")
    said = shell("runs", "prune", "--older", "1d", "--json").value
    assert [each["run_id"] for each in said["deleted"]] == ["over"]
    assert {each["run_id"]: each["kept"] for each in said["kept"]} == {
        "open": "its request is open",
        "asking": "it waits for a person",
        "told": "it has commands that nobody has read",
        "damaged": "damaged; `runs rm` deletes it by its name",
    }
    assert "KEPT: its request is open" in shell("runs", "prune", "--older", "1d").out
    assert shell("runs", "prune", "--older", "1d", "--yes").code == 0
    assert there(shell) == ["asking", "damaged", "open", "told"]
    assert shell("runs", "prune", "--older", "1d", "--unfinished", "--yes").code == 0
    assert there(shell) == ["damaged"]


@pytest.mark.parametrize("options", [[], ["--older", "soon"], ["--older", ""], ["--older", "9" * 400 + "d"]])
def test_prune_needs_a_filter_that_is_one(options, shell):
    write(shell, "one", days=1_000)
    assert shell("runs", "prune", *options, "--yes").code == 2
    assert there(shell) == ["one"]


def test_the_file_is_small_again_after_a_vacuum(shell):
    """What was deleted is gone from the file too."""
    write(shell, "small")
    assert shell("journal", "vacuum").code == 0
    before = (shell.folder / JOURNAL).stat().st_size
    write(shell, "large", size=4_000_000)
    large = (shell.folder / JOURNAL).stat().st_size
    assert large > 4_000_000
    assert shell("runs", "rm", "large", "--yes").code == 0
    freed = shell("journal", "vacuum", "--json").value["freed_bytes"]
    assert freed > 4_000_000
    left = b"".join(file.read_bytes() for file in shell.folder.glob(JOURNAL + "*"))
    assert len(left) < before + 100_000
    assert b"said said said" not in left
    assert shell("runs", "verify").code == 0
    assert shell("journal", "vacuum").out.endswith(" bytes given back\n")
