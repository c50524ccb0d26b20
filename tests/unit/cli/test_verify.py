"""`antiphon runs verify` beside the digests: summaries, names, runs that are gone, what it cannot know."""

import asyncio
import json

import apsw
import pytest

from antiphon.journal.port import Row, chain, genesis
from antiphon.journal.row_writer import RowWriter, put
from tests.unit.journal.writing import opened

JOURNAL = ".antiphon/antiphon.db"


@pytest.fixture
def run_id(shell):
    assert shell("run", "team.yaml", "How much is 2+3?", "--quiet").code == 0
    return shell("runs", "ls", "--json").value[0]["run_id"]


def change(shell, sql, *bindings):
    """Change the journal's file behind Antiphon's back."""
    connection = apsw.Connection(str(shell.folder / JOURNAL))
    found = connection.execute(sql, bindings).fetchall()
    connection.close()
    return found


def summary(shell):
    return json.loads(change(shell, "select summary from runs")[0][0])


@pytest.mark.parametrize(
    "changed",
    [
        {"title": "How much is 2+4?"},
        {"tokens": 1},
        {"outcome": "failed"},
        {"entry": "other"},
        {"seq": 3},
        {"seq": 999},
    ],
    ids=["title", "tokens", "outcome", "entry", "an earlier record", "a later record"],
)
def test_a_changed_summary_is_named_as_such(shell, run_id, changed):
    assert shell("runs", "verify").code == 0
    change(shell, "update runs set summary = ?", json.dumps({**summary(shell), **changed}).encode())
    said = shell("runs", "verify", run_id)
    assert said.code == 5
    assert "its summary is not what its records say" in said.out


def test_a_summary_that_is_no_json_is_damage_and_one_of_a_later_version_is_none(shell, run_id):
    change(shell, "update runs set summary = ?", b'{"seq": 3, "title": "How m')
    said = shell("runs", "verify")
    assert said.code == 5
    assert "its summary is no JSON" in said.out
    assert "How much is 2+3?" in shell("runs", "ls").out
    change(shell, "update runs set summary = ?", b'{"seq": {"of": "a later version"}}')
    assert shell("runs", "verify").code == 0


def test_a_summary_of_earlier_records_is_compared_with_those(shell, run_id):
    """Its owner ended without writing another."""
    whole = shell("runs", "tail", run_id, "--json").events
    change(shell, "update runs set summary = ?", b"")
    assert shell("runs", "verify").code == 0
    assert len(whole) > 5


def test_a_changed_name_is_told(shell, run_id):
    assert shell("runs", "rename", run_id, "June").code == 0
    assert shell("runs", "verify").code == 0
    change(shell, "update runs set name = 'Juno'")
    for words in ((), (run_id,)):
        said = shell("runs", "verify", *words)
        assert said.code == 5
        assert f"the name of run {run_id} is not the one that it was given" in said.out


def test_a_run_that_is_gone_is_told(shell, run_id):
    change(shell, "delete from rows")
    change(shell, "delete from runs")
    said = shell("runs", "verify")
    assert said.code == 5
    assert f"journal  DAMAGED  run {run_id} is gone, and reached record" in said.out
    found = shell("runs", "verify", "--json").value
    assert (found["runs"], len(found["damage"])) == ([], 1)


def test_an_anchor_that_was_lost_is_told_and_no_damage(shell, run_id):
    (shell.folder / f"{JOURNAL}-anchor").unlink()
    for _ in range(2):
        said = shell("runs", "verify")
        assert said.code == 0
        assert "unknown: the anchor was lost or damaged, and made anew" in said.out


def test_an_index_that_leads_elsewhere_is_told(shell, run_id):
    """A run that cannot be found by its id would be begun a second time."""
    connection = apsw.Connection(str(shell.folder / JOURNAL))
    connection.config(apsw.SQLITE_DBCONFIG_DEFENSIVE, 0)
    connection.execute("pragma writable_schema = 1")
    connection.execute(
        "update sqlite_schema set sql = 'create index runs_by_owner on runs(seq)'"
        " where name = 'runs_by_owner'"
    )
    connection.close()
    said = shell("runs", "verify")
    assert said.code == 5
    assert "the file's pages: " in said.out


@pytest.mark.parametrize(
    "body", [b"no JSON", b'[{"type":"message"', b'[{"type":"finished","id":"9/9.c9"}]', b"[]"]
)
def test_rows_with_right_digests_that_are_no_records_hide_no_other_run(shell, run_id, body):
    async def forging():
        async with opened(shell.folder / JOURNAL) as journal:
            pen = RowWriter(journal, await journal.claim("forged", create=True))
            await pen.write(body)
            assert pen.digest == chain(genesis("forged"), 1, 1, 1, 1_700_000_000.0 + 1 / 7, body, (), (), 1)

    asyncio.run(forging())
    listed = {each["run_id"]: each["state"] for each in shell("runs", "ls", "--json").value}
    assert listed[run_id] == "completed"
    assert listed["forged"] in ("damaged", "idle")
    assert shell("runs", "ls").code == 0
    said = shell("runs", "verify")
    assert "This is a fault of Antiphon" not in said.err
    assert f"{run_id[:12]}  ok" in said.out


def test_it_says_that_a_chain_without_a_key_can_be_forged(shell, run_id):
    """Whoever can write the file gives a run another past, and nothing shows it."""
    whole = shell("runs", "export", run_id).value

    async def forging():
        async with opened(shell.folder / "forged.db") as journal:
            lease = await journal.claim(run_id, create=True)
            seq, digest = 0, lease.digest
            for each in whole["rows"]:
                body = each["body"].replace("2+3", "7+7").encode()
                fields = (each["count"], 1, each["at"], body, (), tuple(each["blobs"]), each["given"])
                seq += each["count"]
                digest = chain(digest, seq, *fields)
                row = Row(
                    seq, each["count"], 1, each["at"], body, (), digest, tuple(each["blobs"]), each["given"]
                )
                await put(journal, lease, row, {name: text.encode() for name, text in whole["blobs"].items()})

    asyncio.run(forging())
    said = shell("runs", "verify", "--journal", "forged.db")
    assert said.code == 0
    assert "digests: without a key" in said.out
    assert "can write records, digests and anchor anew" in said.out
