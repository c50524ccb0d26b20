"""`antiphon journal salvage`: what can be read of a damaged journal becomes a new one. `journal seal`."""

import asyncio
import shutil

import apsw
import pytest

from antiphon.journal.listing import Labels
from antiphon.journal.port import StoredRule, blob_digest
from antiphon.journal.row_writer import RowWriter
from tests.unit.journal.writing import facts, opened, write_story

FRAME = 4_120


def killed(folder):
    """A journal whose process ended without closing it, as `crashed.db` in `folder`; what it held."""

    async def writing():
        async with opened(folder / "journal.db") as journal:
            await write_story(journal, lambda fact: None)
            await journal.rename("run 0", "tides")
            for side in ("", "-wal"):
                shutil.copy(folder / f"journal.db{side}", folder / f"crashed.db{side}")
            return await facts(journal)

    return asyncio.run(writing())


def held(path):
    async def looking():
        async with opened(path) as journal:
            return await facts(journal), {each.run_id: each.name for each in await journal.runs()}

    return asyncio.run(looking())


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 4
    path.write_bytes(data)


def without_summaries(found):
    return {fact for fact in found if fact[0] != "summary"}


@pytest.mark.parametrize(
    "place", [16, 32 + 4 * FRAME + 9, 32 + 4 * FRAME + 17], ids=["header", "salt", "sum"]
)
def test_what_only_the_log_had_wrong_is_kept_whole(shell, place):
    whole = killed(shell.folder)
    flip(shell.folder / "crashed.db-wal", place)
    before = [(shell.folder / name).read_bytes() for name in ("crashed.db", "crashed.db-wal")]
    refused = shell("runs", "ls", "--journal", "crashed.db")
    assert refused.code == 5
    assert "antiphon journal salvage --journal crashed.db --out NEW" in refused.err
    said = shell("journal", "salvage", "--journal", "crashed.db", "--out", "new.db")
    assert (said.code, said.out.splitlines()[-1]) == (0, "2 runs copied to new.db, 0 of them not whole")
    found, names = held(shell.folder / "new.db")
    assert without_summaries(found) == without_summaries(whole)
    assert names == {"run 0": "tides", "run 1": ""}
    assert [(shell.folder / name).read_bytes() for name in ("crashed.db", "crashed.db-wal")] == before
    assert not list(shell.folder.glob(".salvage-*"))


def test_a_changed_row_costs_its_run_the_rest_and_no_other_run_anything(shell):
    async def writing():
        async with opened(shell.folder / "journal.db") as journal:
            pens = [RowWriter(journal, await journal.claim(name, create=True)) for name in ("one", "two")]
            for n in range(12):
                for pen in pens:
                    data = b"%s %d " % (pen.lease.run_id.encode(), n) * 700
                    name = blob_digest(data)
                    await pen.put(pen.row(b"row %d" % n, refs=(("/x", name),)), {name: data})
            await journal.post("two", "key", b"command")
            for side in ("", "-wal"):
                shutil.copy(shell.folder / f"journal.db{side}", shell.folder / f"crashed.db{side}")

    asyncio.run(writing())
    log = shell.folder / "crashed.db-wal"
    data = log.read_bytes()
    pages = range(32, len(data), FRAME)
    flip(log, next(at for at in pages if data[at : at + FRAME].count(b"one 5 ") > 600) + 2_000)
    found = shell("journal", "salvage", "--journal", "crashed.db", "--out", "new.db", "--json").value
    assert found["damaged"] == 1
    kept = {each["run_id"]: each for each in found["runs"]}
    assert kept["two"] == {"run_id": "two", "records": 12, "blobs": 12, "commands": 1, "lost": ""}
    assert kept["one"]["records"] == 5
    assert kept["one"]["lost"] == "7 of 12 records, from 6 on"
    assert len([fact for fact in held(shell.folder / "new.db")[0] if fact[1] == "one"]) == 5


def test_a_file_of_which_a_page_is_damaged_keeps_what_is_on_the_others(shell):
    killed(shell.folder)
    data = bytearray((shell.folder / "journal.db").read_bytes())
    assert len(data) > 8_192
    # The page of the index over commands' keys: nothing that cannot be made again.
    with_index = next(at for at in range(0, len(data), 4_096) if b"key 0" in data[at : at + 4_096])
    data[with_index] ^= 0xFF
    (shell.folder / "rotten.db").write_bytes(data)
    said = shell("journal", "salvage", "--journal", "rotten.db", "--out", "new.db")
    assert said.code == 0
    rows = {fact for fact in held(shell.folder / "new.db")[0] if fact[0] == "row"}
    assert len(rows) == 16


@pytest.mark.parametrize("damage", ["", "update rules set body = 'x' where id = 'b'", "drop table rules"])
def test_rules_beside_the_runs_are_kept_or_said_to_be_lost(shell, damage):
    rules = [
        StoredRule(each, "project", "tides", b'{"deny":["pay"]}', float(at)) for at, each in enumerate("abc")
    ]

    async def writing():
        async with opened(shell.folder / "journal.db") as journal:
            for each in rules:
                await journal.add_rule(each)

    async def kept():
        async with opened(shell.folder / "new.db") as journal:
            return list(await journal.rules())

    killed(shell.folder)
    asyncio.run(writing())
    connection = apsw.Connection(str(shell.folder / "journal.db"))
    connection.execute(damage)
    connection.close()
    said = shell("journal", "salvage", "--journal", "journal.db", "--out", "new.db")
    assert said.code == 0
    told = [line for line in said.out.splitlines() if line.startswith("rules")]
    if not damage:
        assert told == ["rules  3 that hold beyond one run"]
        assert asyncio.run(kept()) == rules
    elif "drop" in damage:
        assert told == ["rules  LOST: rules beside the runs that cannot be read"]
        assert asyncio.run(kept()) == []
    else:
        assert told == [
            "rules  2 that hold beyond one run", "rules  LOST: the rule b, which is not as it was written",
        ]  # fmt: skip
        assert asyncio.run(kept()) == [rules[0], rules[2]]


def test_a_page_of_rules_that_is_damaged_costs_those_on_it(shell):
    path = shell.folder / "journal.db"
    body = b'{"why":"' + b"tides " * 150 + b'"}'

    async def writing():
        async with opened(path) as journal:
            for number in range(100):
                await journal.add_rule(StoredRule(f"r{number:02}", "project", "tides", body, float(number)))

    async def kept():
        async with opened(shell.folder / "new.db") as journal:
            return len(await journal.rules())

    asyncio.run(writing())
    connection = apsw.Connection(str(path))
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    connection.close()
    data = bytearray(path.read_bytes())
    pages = [at for at in range(0, len(data), 4_096) if data[at : at + 4_096].count(b"tides tides") > 100]
    data[pages[len(pages) // 2]] = 0xFF
    path.write_bytes(data)
    said = shell("journal", "salvage", "--journal", "journal.db", "--out", "new.db")
    assert "rules  LOST: rules beside the runs that cannot be read" in said.out
    assert 80 < asyncio.run(kept()) < 100


def test_a_name_that_changed_is_lost_and_an_id_that_none_can_have_costs_no_other_run_anything(shell):
    killed(shell.folder)
    connection = apsw.Connection(str(shell.folder / "journal.db"))
    connection.execute("update runs set name = 'tiles' where run_id = 'run 0'")
    connection.execute("update runs set run_id = 'run \x1b' where run_id = 'run 1'")
    connection.close()
    said = shell("journal", "salvage", "--journal", "journal.db", "--out", "new.db")
    assert said.code == 0
    assert said.out.splitlines()[0].endswith("LOST: its name")
    assert "it must be 1 to 200 visible characters" in said.out
    assert "2 of them not whole" in said.out
    assert held(shell.folder / "new.db")[1] == {"run 0": ""}


def test_labels_are_copied_and_those_that_changed_are_lost(shell):
    killed(shell.folder)
    labels = Labels("tides", "Ada", "shore")

    async def labelled():
        async with opened(shell.folder / "journal.db") as journal:
            for run_id in ("run 0", "run 1"):
                await journal.relabel(run_id, labels)

    asyncio.run(labelled())
    connection = apsw.Connection(str(shell.folder / "journal.db"))
    connection.execute("update runs set label_owner = 'Bo' where run_id = 'run 1'")
    connection.close()
    said = shell("journal", "salvage", "--journal", "journal.db", "--out", "new.db")
    assert [line.partition("LOST: ")[2] for line in said.out.splitlines()[:2]] == ["", "its labels"]

    async def kept():
        async with opened(shell.folder / "new.db") as journal:
            return {each.run_id: each.labels for each in await journal.runs()}

    assert asyncio.run(kept()) == {"run 0": labels, "run 1": Labels()}


def test_the_runs_of_the_copy_begin_as_ones_from_elsewhere(shell):
    """What a run did behind the end that is left of it is not known: nothing it was allowed there holds."""
    killed(shell.folder)
    assert shell("journal", "salvage", "--journal", "journal.db", "--out", "new.db").code == 0

    async def leases():
        async with opened(shell.folder / "new.db") as journal:
            return [(await journal.claim(run_id)).imported for run_id in ("run 0", "run 1")]

    assert asyncio.run(leases()) == [True, True]


def test_it_overwrites_nothing_and_needs_a_journal(shell):
    killed(shell.folder)
    assert shell("journal", "salvage", "--journal", "crashed.db", "--out", "journal.db").code == 2
    assert shell("journal", "salvage", "--journal", "nowhere.db", "--out", "new.db").code == 4
    shell.write("text.db", "This is no journal. " * 1_000)
    refused = shell("journal", "salvage", "--journal", "text.db", "--out", "new.db")
    assert refused.code == 5
    assert "nothing of it can be read" in refused.err


KEY, NEXT = "a key that nobody knows", "another key, as long"


@pytest.fixture
def run_id(shell):
    """A run in the journal of the folder, without a key."""
    assert shell("run", "team.yaml", "How much is 2+3?", "--quiet").code == 0
    return shell("runs", "ls", "--json").value[0]["run_id"]


def test_a_journal_is_sealed_and_then_needs_its_key(shell, run_id, monkeypatch):
    monkeypatch.setenv("ANTIPHON_JOURNAL_KEY", KEY)
    said = shell("runs", "ls")
    assert said.code == 5
    assert "was written without a key, and ANTIPHON_JOURNAL_KEY is set; `antiphon journal seal`" in said.err
    assert shell("journal", "seal").out == "1 runs sealed\n"
    assert shell("runs", "resume", run_id, "team.yaml").code == 0
    said = shell("runs", "verify")
    assert said.code == 0
    assert "digests: sealed with a key" in said.out
    assert shell("runs", "verify", "--json").value["sealed"]
    monkeypatch.delenv("ANTIPHON_JOURNAL_KEY")
    said = shell("runs", "show", run_id)
    assert said.code == 5
    assert "is sealed with a key, and none was given; ANTIPHON_JOURNAL_KEY in the environment" in said.err


def test_a_seal_is_replaced_and_taken_away(shell, run_id, monkeypatch):
    monkeypatch.setenv("ANTIPHON_JOURNAL_KEY", KEY)
    for _ in range(2):
        assert shell("journal", "seal").code == 0
    monkeypatch.setenv("LAST_KEY", KEY)
    monkeypatch.setenv("ANTIPHON_JOURNAL_KEY", NEXT)
    assert "is sealed with another key than the given one" in shell("journal", "seal").err
    assert shell("runs", "ls").code == 5
    assert shell("journal", "seal", "--was", "LAST_KEY", "--json").value == {"runs": 1, "sealed": True}
    assert shell("runs", "show", run_id).code == 0
    assert shell("journal", "seal", "--off").out == "1 runs have no seal any more\n"
    monkeypatch.delenv("ANTIPHON_JOURNAL_KEY")
    assert shell("runs", "show", run_id).code == 0
    assert "digests: without a key" in shell("runs", "verify").out


def test_a_damaged_journal_is_not_sealed(shell, run_id, monkeypatch):
    with apsw.Connection(str(shell.folder / ".antiphon/antiphon.db")) as file:
        file.execute("update rows set body = body || ' ' where n = 1")
    monkeypatch.setenv("ANTIPHON_JOURNAL_KEY", KEY)
    said = shell("journal", "seal")
    assert said.code == 5
    assert f"is damaged, and was not sealed: run {run_id[:12]}" in said.err
    monkeypatch.delenv("ANTIPHON_JOURNAL_KEY")
    assert shell("runs", "ls").code == 0


@pytest.mark.parametrize(
    ("words", "env", "code", "text"),
    [
        ((), {}, 2, "ANTIPHON_JOURNAL_KEY is not set"),
        ((), {"ANTIPHON_JOURNAL_KEY": "short"}, 3, "has 5 characters; give it at least 16"),
        (("--was", "NOBODY"), {"ANTIPHON_JOURNAL_KEY": KEY}, 2, "NOBODY is not set"),
        (("--was", "HOME", "--off"), {"ANTIPHON_JOURNAL_KEY": KEY}, 2, "--off takes no other key"),
    ],
)
def test_a_key_that_is_missing_is_asked_for(words, env, code, text, shell, run_id, monkeypatch):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    said = shell("journal", "seal", *words)
    assert said.code == code
    assert text in said.err


def test_a_key_beside_the_journal_is_refused(shell, run_id):
    shell.write(".env", f"ANTIPHON_JOURNAL_KEY={KEY}\n")
    for words in (("runs", "ls"), ("run", "team.yaml", "go"), ("runs", "verify")):
        said = shell(*words)
        assert said.code == 2
        assert "stands in .env, beside what it is to protect" in said.err
