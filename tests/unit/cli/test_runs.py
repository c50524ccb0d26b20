"""`antiphon runs`: ls, show, tail, resume, verify, export."""

import asyncio
import json
import re

import apsw
import pytest

from antiphon import Agent, Record, open_run
from antiphon.cli import exit_codes, store
from antiphon.cli.commands import manage, runs
from antiphon.journal.listing import Labels, RunInfo
from antiphon.journal.port import Row, chain
from antiphon.journal.row_writer import RowWriter, put
from antiphon.journal.sqlite import SqliteJournal
from antiphon.kernel.facts.events import ModelEffect
from antiphon.kernel.facts.summary import RunSummary
from antiphon.models.script import Script
from tests.unit.journal.writing import opened

JOURNAL = ".antiphon/antiphon.db"


@pytest.fixture
def run_id(shell):
    assert shell("run", "team.yaml", "How much is 2+3?", "--quiet").code == 0
    return shell("runs", "ls", "--json").value[0]["run_id"]


def change(shell, sql, *bindings):
    """Change the journal's file behind Antiphon's back."""
    connection = apsw.Connection(str(shell.folder / JOURNAL))
    connection.execute(sql, bindings)
    connection.close()


def test_ls_without_a_journal_is_empty(shell):
    said = shell("runs", "ls")
    assert said.code == 0
    assert "There is no journal" in said.out
    assert shell("runs", "ls", "--json").value == []
    assert not (shell.folder / ".antiphon").exists()


def test_ls(shell, run_id):
    (found,) = shell("runs", "ls", "--json").value
    assert found["state"] == found["outcome"] == "completed"
    assert (found["entry"], found["title"], found["closed"]) == ("lead", "How much is 2+3?", True)
    said = shell("runs", "ls")
    head, row = said.out.splitlines()
    assert head.split() == ["RUN", "AGE", "STATE", "ENTRY", "TOKENS", "COST", "OWNER", "MESSAGE"]
    assert row.split()[0] == run_id[:12]
    assert row.endswith("How much is 2+3?")
    assert shell("run", "team.yaml", "second", "--quiet").code == 0
    limited = shell("runs", "ls", "--limit", "1").out.splitlines()
    assert limited[1].endswith("second")
    newest = limited[1].split()[0]
    assert limited[2] == f"there are older ones; --before {newest} lists them, --limit shows more at once"
    older = shell("runs", "ls", "--before", newest).out.splitlines()
    assert [line.split()[0] for line in older] == ["RUN", run_id[:12]]
    assert shell("runs", "ls", "--before", "nobody").code == 4


def test_ls_lists_only_what_is_asked_for(shell, run_id):
    assert shell("run", "team.yaml", "second", "--quiet").code == 0

    async def labelled():
        async with opened(shell.folder / JOURNAL) as journal:
            await journal.relabel(run_id, Labels("tides", "Ada", "shore"))
            held = await journal.claim("held", create=True)
            await journal.release(held, b'{"seq":0,"state":"waiting","title":"May I?"}')
            await journal.release(await journal.claim("killed", create=True))

    asyncio.run(labelled())
    for options, wanted in (
        (("--project", "tides"), ["How much is 2+3?"]),
        (("--owner", "Ada", "--team", "shore", "--state", "closed"), ["How much is 2+3?"]),
        (("--project", "tides", "--state", "running"), []),
        (("--owner", ""), ["", "May I?", "second"]),
        (("--text", "MUCH"), ["How much is 2+3?"]),
        (("--state", "closed"), ["second", "How much is 2+3?"]),
        (("--state", "waiting"), ["May I?"]),
        (("--state", "completed"), ["second", "How much is 2+3?"]),
        (("--state", "failed"), []),
        (("--state", "completed", "--project", "tides"), ["How much is 2+3?"]),
        (("--state", "suspended"), [""]),
    ):
        assert [each["title"] for each in shell("runs", "ls", "--json", *options).value] == wanted, options
    (found,) = shell("runs", "ls", "--json", "--team", "shore").value
    assert found["labels"] == {"project": "tides", "owner": "Ada", "team": "shore"}
    assert sum(found["activity"]) == found["records"]


BODIES = {
    "no JSON": b"[{",
    "no text": b"\xff\x00",
    "no list": b"7",
    "no events": b"[1, 2]",
    "an event of no kind": b'[{"type":"no such event"}]',
    "an end of what never began": b'[{"type":"finished","id":"7/1.m1"}]',
    "an end of what the user never asked": b'[{"type":"finished","id":"0/1.c1"}]',
    "an end of a turn that never began": b'[{"type":"turn_finished","activation":0}]',
    "a change of nobody": b'[{"type":"state_changed","activation":-1}]',
    "an effect of no place": b'[{"type":"started","id":"0/1.","detail":{"kind":"timer"}}]',
    "a call of nobody": b'[{"type":"started","id":"0/1.c1","detail":{"kind":"call","agent":"a"}}]',
    "an approval of nothing": b'[{"type":"permission_decided","id":"0/1.c1","allowed":true}]',
    "an end of no effect": b'[{"type":"finished","id":"what"}]',
    "a message to nobody": b'[{"type":"message","to":9,"message":{"id":"","sender":"a","receiver":"b"}}]',
    "nested deeper than anything": b"[" * 100_000 + b"]" * 100_000,
}


@pytest.mark.slow
@pytest.mark.parametrize("body", BODIES)
def test_ls_lists_the_others_when_a_run_cannot_be_read(shell, run_id, body):
    """The digests of its rows are right, as if somebody had meant to. It is that run's damage alone."""

    async def forge():
        journal = SqliteJournal(shell.folder / JOURNAL)
        await RowWriter(journal, await journal.claim("forged", create=True)).write(BODIES[body])
        await journal.close()

    asyncio.run(forge())
    found = {entry["run_id"]: entry["state"] for entry in shell("runs", "ls", "--json").value}
    assert found == {run_id: "completed", "forged": "damaged"}
    lines = shell("runs", "ls").out.splitlines()
    assert len(lines) == 3
    assert "antiphon runs verify forged" in lines[1]
    for words in (("show", "forged"), ("tail", "forged"), ("verify",), ("resume", "forged", "team.yaml")):
        said = shell("runs", *words)
        # Records that are each in order are printed, though they are those of no run.
        assert said.code == 5 or (words[0] == "tail" and not said.code), words
        assert "fault of Antiphon" not in said.err
    assert shell("answer").code == 0


def test_a_time_that_no_clock_shows_is_told_as_such(shell, run_id):
    async def forge():
        journal = SqliteJournal(shell.folder / JOURNAL)
        lease = await journal.claim("forged", create=True)
        body = b'[{"type":"run_started","run_id":"forged"}]'
        digest = chain(lease.digest, 1, 1, 1, 1e308, body, ())
        await put(journal, lease, Row(1, 1, 1, 1e308, body, (), digest))
        await journal.close()

    asyncio.run(forge())
    assert shell("runs", "ls").code == 0
    said = shell("runs", "tail", "forged")
    assert (said.code, said.out.split()[:2]) == (0, ["1", "?"])
    assert shell("runs", "rm", "forged").code == 0


def test_a_run_is_renamed_listed_and_found_by_its_name(shell, run_id):
    records = shell("runs", "tail", run_id, "--json").out
    said = shell("runs", "rename", run_id[:6], "sums of June")
    assert (said.code, said.out) == (0, f"run {run_id[:12]} is called sums of June\n")
    assert shell("runs", "ls", "--json").value[0]["name"] == "sums of June"
    assert shell("runs", "ls").out.splitlines()[1].endswith("[sums of June] How much is 2+3?")
    assert shell("runs", "show", "sums of June").out.startswith(f"run {run_id} (sums of June): completed")
    assert shell("runs", "tail", "sums of June", "--json").out == records
    assert shell("runs", "rename", "sums of June", " ").out == f"run {run_id[:12]} has no name\n"
    assert shell("runs", "show", "sums of June").code == exit_codes.NOT_FOUND


def test_a_run_is_made_part_of_a_project_and_of_none(shell, run_id):
    records = shell("runs", "tail", run_id, "--json").out
    said = shell("runs", "move", run_id[:6], "tides")
    assert (said.code, said.out) == (0, f"run {run_id[:12]} is part of tides\n")
    assert shell("runs", "ls", "--json").value[0]["labels"]["project"] == "tides"
    assert shell("runs", "tail", run_id, "--json").out == records
    assert shell("runs", "move", run_id, "").out == f"run {run_id[:12]} is part of no project\n"
    assert shell("runs", "ls", "--json").value[0]["labels"]["project"] == ""
    refused = shell("runs", "move", run_id, "no name")
    assert (refused.code, "A project is named by 1 to 40 letters" in refused.err) == (exit_codes.USAGE, True)
    assert shell("runs", "move", "nobody", "tides").code == exit_codes.NOT_FOUND


@pytest.mark.parametrize("name", ["two\nlines", "\x1b[2J", "x" * 121])
def test_a_name_is_one_line(shell, run_id, name):
    said = shell("runs", "rename", run_id, name)
    assert said.code == exit_codes.USAGE
    assert "A run's name is one line of at most 120 characters" in said.err
    assert shell("runs", "ls", "--json").value[0]["name"] == ""


def test_ls_folds_what_has_no_summary(shell, run_id):
    before = shell("runs", "ls", "--json").value
    change(shell, "update runs set summary = x''")
    assert shell("runs", "ls", "--json").value == before


def test_ls_lists_a_damaged_run_too(shell, run_id):
    change(shell, "update runs set summary = x''")
    change(
        shell, "update rows set body = cast(replace(body, 'run_started', 'run_startet') as blob) where n = 1"
    )
    said = shell("runs", "ls")
    assert said.code == 0
    assert "damaged" in said.out
    assert f"antiphon runs verify {run_id[:12]}" in said.out


@pytest.mark.parametrize(
    ("state", "owner", "shown"),
    [
        ("open", "", "suspended"),
        ("waiting", "", "waiting"),
        ("open", "process 1", "running"),
        ("waiting", "process 1", "waiting"),
        ("idle", "", "idle"),
        ("closed", "", "closed"),
    ],
)
def test_states(state, owner, shown):
    entry = RunInfo("r", 0.0, 0.0, 1, 1, owner, b"")
    assert store.state_of(entry, RunSummary(1, state=state)) == shown


@pytest.mark.parametrize(
    ("span", "text"), [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (200_000, "2 d")]
)
def test_ages(span, text):
    assert runs.age(span) == text


def test_show(shell, run_id):
    said = shell("runs", "show", run_id[:6])
    lines = said.out.splitlines()
    assert lines[0].startswith(f"run {run_id}: completed, ")
    tree = lines[lines.index("") + 1 : lines.index("messages") - 1]
    assert tree[0].startswith("✓ lead  How much is 2+3?")
    assert tree[0].endswith("→ The result is 5.")
    assert [line.split("  ")[0] for line in tree[1:]] == [
        "├─ Let me see.",
        '├─ ✓ calculate(expression="2+3")',
        "└─ ✓ writer",
    ]
    assert lines[-2:] == ["  user < lead", "      The result is 5."]
    found = shell("runs", "show", run_id, "--json").value
    (request,) = found["requests"]
    assert (request["agent"], request["outcome"], request["result"]) == (
        "lead",
        "completed",
        "The result is 5.",
    )
    assert [item.get("name", item.get("agent")) for item in request["items"]] == ["", "calculate", "writer"]
    assert len(found["messages"]) == 4


def test_tail(shell, run_id):
    lines = shell("runs", "tail", run_id).out.splitlines()
    assert [int(line.split()[0]) for line in lines] == list(range(1, len(lines) + 1))
    assert lines[0].endswith(f"run started: {run_id}")
    assert lines[-1].endswith("run closed")
    assert shell("runs", "tail", run_id, "-n", "2").out.splitlines() == lines[-2:]
    events = shell("runs", "tail", run_id, "--json").events
    assert [event["seq"] for event in events] == list(range(1, len(lines) + 1))
    assert (
        shell("runs", "tail", run_id, "--follow").out.splitlines() == lines
    )  # it is closed: nothing follows


def test_resume_of_an_ended_run_says_its_answer_again(shell, run_id):
    said = shell("runs", "resume", run_id, "team.yaml")
    assert (said.code, said.out) == (0, "The result is 5.\n")
    assert "had ended already" in said.err
    *_, result = shell("runs", "resume", run_id, "team.yaml", "--json").events
    assert result["output"] == "The result is 5."


def test_a_conversation_of_a_program_is_resumed_but_not_ended(shell):
    agent = Agent("a", model=Script([lambda request: asyncio.Event().wait()]))

    async def leave_open():
        async with open_run([agent], journal=f"sqlite:///{JOURNAL}") as run:
            await run.post("a", "go")
            async for found in run.events():
                if isinstance(found, Record) and isinstance(
                    getattr(found.event, "detail", None), ModelEffect
                ):
                    return run.run_id

    run_id = asyncio.run(leave_open())
    assert shell("runs", "ls", "--json").value[0]["state"] == "suspended"
    assert "to resume it" not in shell("runs", "show", run_id).out
    shell.write("one.yaml", "agents: [{name: a, model: 'script:s.yaml'}]")
    shell.write("s.yaml", "[hello]")
    for _ in range(2):
        said = shell("runs", "resume", run_id, "one.yaml")
        assert (said.code, said.out) == (0, "hello\n")
    (listed,) = shell("runs", "ls", "--json").value
    assert (listed["state"], listed["closed"]) == ("completed", False)
    change(shell, "update runs set summary = x'7b7d'")
    assert shell("runs", "ls", "--json").value == [listed]


def test_cancel_when_the_owner_does_not_answer(shell, monkeypatch):
    monkeypatch.setattr(manage, "PATIENCE", 0.05)
    agent = Agent("a", model=Script(["never"]))

    async def hold():
        journal = SqliteJournal(JOURNAL)
        async with open_run([agent], journal=journal) as run:
            run_id = run.run_id
        await journal.claim(run_id)  # this process lives, but reads no mail
        await asyncio.get_running_loop().run_in_executor(None, cancelled, run_id)
        await journal.close()

    def cancelled(run_id):
        told.append(shell("runs", "cancel", run_id, "--yes"))

    told = []
    asyncio.run(hold())
    assert told[0].code == 9
    assert "did not answer within 0.05 s" in told[0].out


@pytest.mark.parametrize("command", ["show", "tail", "verify", "export", "cancel", "resume", "rename"])
def test_unknown_runs_are_not_found(shell, run_id, command):
    more = {"resume": ["team.yaml"], "rename": ["sums"]}.get(command, [])
    said = shell("runs", command, "zz", *more)
    assert said.code == 4
    assert said.err.startswith("error: No run starts with 'zz'. The newest: " + run_id[:12])


def test_prefixes():
    found = [RunInfo(name, 0.0, 0.0, 0, 0, "", b"") for name in ("ab", "abc", "b")]
    assert store.choose(found, "b").run_id == "b"
    assert store.choose(found, "ab").run_id == "ab"  # an id in full is always that run
    named = [RunInfo(run_id, 0.0, 0.0, 0, 0, "", b"", name) for run_id, name in (("ab", "b"), ("b", "ab"))]
    assert store.choose(named, "b").run_id == "b"  # nor does a name stand in an id's way
    assert store.choose([named[0]], "b").run_id == "ab"
    with pytest.raises(exit_codes.NotFound, match="2 runs are called 'x': ab, b"):
        store.choose([RunInfo(each.run_id, 0.0, 0.0, 0, 0, "", b"", "x") for each in named], "x")
    with pytest.raises(exit_codes.NotFound, match="2 runs start with 'a': ab, abc"):
        store.choose(found, "a")
    with pytest.raises(exit_codes.NotFound, match="No run starts with ''"):
        store.choose(found, "")
    with pytest.raises(exit_codes.NotFound, match=r"newest: \(none\)"):
        store.choose([], "a")


def test_verify_says_what_is_promised(shell, run_id):
    said = shell("runs", "verify")
    assert said.code == 0
    assert f"{run_id[:12]}  ok" in said.out
    assert "durability: power" in said.out
    found = shell("runs", "verify", run_id, "--json").value
    assert (found["damaged"], found["durability"]) == (0, "power")
    weaker = shell("runs", "verify", "--journal", f"sqlite:///{JOURNAL}?durability=process")
    assert "not a power cut" in weaker.out


@pytest.mark.parametrize(
    "sql",
    [
        "update rows set body = cast(replace(body, '2+3', '2+4') as blob)",
        "update rows set at = at + 1 where n = 3",
        "delete from rows where n = 2",
        "update blobs set data = x'22' where key = 1",
    ],
)
def test_verify_finds_every_change(shell, run_id, sql):
    change(shell, sql)
    said = shell("runs", "verify")
    assert said.code == 5
    assert "DAMAGED" in said.out
    assert "1 damaged" in said.out
    assert shell("runs", "verify", "--json").value["damaged"] == 1


def test_export_as_a_page(shell, run_id, monkeypatch):
    monkeypatch.setattr("antiphon.view.page._asset", lambda name: f"/* {name} */")
    said = shell("runs", "export", run_id, "--html", "--out", "run.html")
    assert said.code == 0
    assert re.search(r"run \w{12}: \d+ records in run.html; open it in a browser", said.err)
    page = (shell.folder / "run.html").read_text()
    assert page.startswith("<!doctype html>")
    assert run_id in page
    assert (shell.folder / "run.html").stat().st_mode & 0o077 == 0
    assert shell("runs", "export", run_id, "--html").out.startswith("<!doctype html>")


def test_export_as_spans(shell, run_id):
    said = shell("runs", "export", run_id, "--otel")
    sent = [
        span["name"]
        for line in said.out.splitlines()
        for resource in json.loads(line)["resourceSpans"]
        for span in resource["scopeSpans"][0]["spans"]
    ]
    assert (said.code, sent.count("turn") > 0, sent[-2].split()[0]) == (0, True, "invoke_workflow")
    assert shell("runs", "export", run_id, "--otel").out == said.out
    assert "gen_ai.output.messages" not in said.out
    assert "gen_ai.output.messages" in shell("runs", "export", run_id, "--otel", "--content").out
    told = shell("runs", "export", run_id, "--otel", "--out", "spans.jsonl")
    assert told.err.endswith(f"{len(sent)} spans in spans.jsonl\n")
    assert "--otel" in shell("runs", "export", run_id, "--content").err
    assert "one or the other" in shell("runs", "export", run_id, "--otel", "--html").err


def test_export_is_checked_anywhere(shell, run_id):
    said = shell("runs", "export", run_id, "--out", "run.json")
    assert said.code == 0
    path = shell.folder / "run.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert shell("runs", "export", run_id).out == path.read_text()
    assert shell("runs", "verify", "./run.json").code == 0
    refused = shell("runs", "export", run_id, "--out", "run.json")
    assert (refused.code, "--yes" in refused.err) == (2, True)
    assert shell("runs", "export", run_id, "--out", "run.json", "--yes").code == 0
    assert [each.name for each in shell.folder.iterdir() if each.name.startswith(".run")] == []


def _body(found):
    row = next(row for row in found["rows"] if "2+3" in row["body"])
    row["body"] = row["body"].replace("2+3", "2+4")


def _digest(found):
    found["rows"][0]["digest"] = "no number"


def _blob(found):
    found["blobs"][next(iter(found["blobs"]))] = '"changed"'


def _dropped(found):
    del found["rows"][1]


def _other_run(found):
    found["run_id"] = "other"


@pytest.mark.parametrize("spoil", [_body, _digest, _blob, _dropped, _other_run])
def test_a_changed_export_is_found_out(shell, run_id, spoil):
    found = shell("runs", "export", run_id).value
    spoil(found)
    shell.write("run.json", json.dumps(found))
    said = shell("runs", "verify", "run.json")
    assert said.code == 5
    assert "DAMAGED" in said.out


def test_large_payloads_are_exported_too(shell):
    shell.write("s.yaml", json.dumps([{"finish": "x" * 20_000}]))
    assert shell("run", "team.yaml", "go", "--model", "script:s.yaml", "--quiet").code == 0
    run_id = shell("runs", "ls", "--json").value[0]["run_id"]
    found = shell("runs", "export", run_id).value
    assert max(map(len, found["blobs"].values())) > 20_000
    shell.write("run.json", json.dumps(found))
    assert shell("runs", "verify", "run.json").code == 0
    found["blobs"] = {}
    shell.write("run.json", json.dumps(found))
    assert shell("runs", "verify", "run.json").code == 5


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[]", 5),
        ("{", 5),
        (None, 4),
        ('{"antiphon_export": 9, "run_id": "r", "created_at": 0, "rows": [], "blobs": {}}', 5),
    ],
)
def test_what_is_no_export(shell, text, code):
    if text is not None:
        shell.write("run.json", text)
    said = shell("runs", "verify", "run.json")
    assert said.code == code
    assert said.err.startswith("error: run.json ")


def test_request_shows_what_a_model_was_asked(shell, run_id):
    said = shell("runs", "request", run_id, "1/2.m1")
    assert said.code == 0
    assert "lead asks script" in said.out
    assert "this is what was asked, to the letter" in said.out
    assert 'You are "lead". You lead.' in said.out
    assert "messages, 4 in all, the first 1 as in the request before" in said.out
    assert "How much is 2+3?" not in said.out
    assert 'calls calculate {"expression":"2+3"}' in said.out
    found = shell("runs", "request", run_id, "1/2.m1", "--json").value
    assert found["verified"]
    assert [each["role"] for each in found["request"]["messages"]] == ["user", "assistant", "tool", "tool"]
    assert found["request"]["system"].startswith('You are "lead".')


def test_request_of_what_is_no_model_call_lists_those_there_are(shell, run_id):
    said = shell("runs", "request", run_id, "9/9.m9")
    assert said.code == exit_codes.NOT_FOUND
    assert "1/1.m1, 1/2.m1, 2/1.m1" in said.err
