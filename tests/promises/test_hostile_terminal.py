"""No command lets a journal, an exported file, a team or a model reach the terminal with a control character.

The commands are found in the program: a new one without a case here fails the first test.
"""

import asyncio
import json
import shutil
import unicodedata
from pathlib import Path

import apsw
import click
import pytest
from msgspec.structs import replace

from antiphon import Agent, ToolError, open_run, tool
from antiphon.cli.app import antiphon
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import Row, chain, genesis
from antiphon.journal.row_writer import put
from antiphon.journal.sqlite import SqliteJournal
from antiphon.journal.transfer import named_blobs
from antiphon.kernel.facts.summary import RunSummary
from antiphon.kernel.facts.summary import encode as encode_summary
from antiphon.models.script import Script, call
from antiphon.values.message import FileChange, FileState, ToolResult
from tests.unit.cli.conftest import shell  # noqa: F401 - a fixture

HOSTILE = (
    "\x1b]0;owned\x07\x1b[2J\x1b[31m\x9b2J\x90q\x00\x08\x7f\r"
    "\u202eevil\u202c\u2066x\u2069\u200b\u2028\ufeff\nFORGED"
)
"""CSI, OSC, DCS, C1, NUL, backspace, direction, invisible signs, and a line that looks like one of ours."""
JOURNAL = ".antiphon/antiphon.db"
PLACES = (
    "zzrun", "zzagent", "zztool", "zzhelper", "zzargument", "zzresult", "zzerror", "zzsaid", "zzasked",
    "zzreason",
)  # fmt: skip
"""Texts of a real run in whose place the hostile one is put, each behind itself."""


def commands(group=antiphon, path=()):
    """Every command that can be called, by the words that name it."""
    context = click.Context(group)
    found = {}
    for name in group.list_commands(context):
        each = group.get_command(context, name)
        if isinstance(each, click.Group):
            found |= commands(each, (*path, name))
        else:
            found[(*path, name)] = each
    return found


COMMANDS = commands()
FORMATS = ("text", "mermaid", "svg")
CASES = {
    ("run",): [
        ["team.yaml", "go"],
        ["team.yaml", HOSTILE, "--quiet"],
        ["hostile.yaml", "go"],
        ["no\x1b[31mfile.yaml", "go"],
        ["team.yaml", "go", "--journal", "no\x1b[31m://x"],
    ],
    ("chat",): [["team.yaml", "--resume", "b0"], ["team.yaml", "--resume", "\x1b[31m"], ["hostile.yaml"]],
    ("answer",): [
        *([], ["a0"], ["b0"], ["c0"], ["d0"], ["e0"]),
        *(["b0", "9/9.c9", "yes"], ["b0", "1/1.\x1b[31mc", HOSTILE], ["c0", HOSTILE]),
        *(["b0", "1/1.c1", "yes"], ["b0", "1/1.c1", "no"]),
    ],
    ("serve",): [
        ["no\x1b[31m.yaml"],
        ["hostile.yaml", "--host", "\x1b[31m"],
        ["x=hostile.yaml", "x=team.yaml"],
    ],
    ("ui",): [["\x1b[31m"], ["no\x1b[31m.json"], ["./raw.json"], ["zznamed"], ["--journal", "\x1b[31m.db"]],
    ("runs", "ls"): [[]],
    ("runs", "show"): [["a0"], ["b0"], ["c0"], ["e0"], ["zznamed"], ["\x1b[31m"], ["d0"]],
    ("runs", "tail"): [["a0"], ["b0"], ["c0"], ["a0", "-n", "3"]],
    ("runs", "request"): [
        *([each, "1/1.m1"] for each in ("a0", "b0", "c0", "e0", "d0")),
        *(["a0", "2/1.m1"], ["a0", "1/1.\x1b[31mm"], ["a0", HOSTILE], ["a0", "1/1.m1", "--json"]),
    ],
    ("runs", "resume"): [["a0", "team.yaml"], ["b0", "team.yaml"], ["c0", "team.yaml"], ["d0", "team.yaml"]],
    ("runs", "check"): [["a0", "team.yaml"], ["b0", "hostile.yaml"], ["c0", "team.yaml"], ["\x1b[31m", "x"]],
    ("runs", "move"): [["a0", HOSTILE], ["a0", "plain"], ["b0", ""]],
    ("runs", "undo"): [
        *([each, "--dry-run"] for each in ("a0", "b0", "c0", "d0", "e0", "\x1b[31m")),
        *(["a0", "--to", HOSTILE], ["a0", "--folder", "no\x1b[31m"], ["a0"], ["a0", "--folder", "."]),
    ],
    ("runs", "redo"): [["a0"], ["d0"], ["\x1b[31m"]],
    ("runs", "fork"): [["a0"], ["b0", "--at", "3"], ["c0"], ["d0"], ["e0", "--at", "1"], ["\x1b[31m"]],
    ("runs", "rename"): [["a0", HOSTILE], ["a0", "plain"], ["b0", ""]],
    ("runs", "cancel"): [["a0", "--yes"], ["b0", "1/1.\x1b[31m"], ["b0"], ["b0", "--yes"]],
    ("runs", "verify"): [[], ["a0"], ["c0"], ["./forged.json"], ["./raw.json"], ["./no\x1b[31m.json"]],
    ("runs", "export"): [["a0"], *[["a0", "--out", "o\x1b[31m.json"]] * 2, ["c0"]],
    ("runs", "import"): [["forged.json"], ["raw.json"], ["no\x1b[31m.json"]],
    ("runs", "rm"): [["a0", "b0"], ["c0", "--yes"], ["nobody\x1b[31m"]],
    ("runs", "prune"): [["--keep", "0"], ["--keep", "0", "--yes"], ["--older", "\x1b[31m"]],
    ("journal", "vacuum"): [[], ["--journal", "\x1b[31m.db"]],
    ("journal", "seal"): [[], ["--was", "\x1b[31m"], ["--journal", "\x1b[31m.db"]],
    ("journal", "salvage"): [
        ["--out", "saved.db"],
        ["--out", "\x1b[31m.db"],
        ["--journal", "\x1b[31m.db", "--out", "x.db"],
    ],
    ("rules", "add"): [
        ["\x1b[31m*", "deny", "--project", "shop\x1b[31m", "--by", "\x1b[31m"],
        *(["pay", "allow", "--run", each] for each in ("b0", "\x1b[31m")),
        ["pay", "\x1b[31m", "--owner", "ann"],
        ["pay", "ask", "--owner", "ann", "--match", "\x1b[31m", "--expires-in", "\x1b[31m"],
        ["pay", "ask", "--owner", "ann", "--match", "to=\x1b[31m", "--agent", "\x1b[31m"],
    ],
    ("rules", "ls"): [[], ["--run", "\x1b[31m"], ["--project", "\x1b[31m"]],
    ("rules", "rm"): [["\x1b[31m"]],
    ("graph",): [
        ["team.yaml"],
        ["hostile.yaml"],
        *(["hostile.py:team", "--format", each] for each in FORMATS),
    ],
    ("profiles", "check"): [["profiles"], ["no\x1b[31m"]],
    ("profiles", "schema"): [[], ["\x1b[31m"]],
    ("knowledge", "add"): [
        ["\x1b[31m", "notes"],
        ["more", "no\x1b[31m"],
        ["more", "notes", "--description", HOSTILE],
        ["more", "notes", "--project", "\x1b[31m"],
        ["more", "--mcp", "zz\x1b[31m"],
        ["more", "--mcp", "zzserver", "--search", "\x1b[31m", "--unchecked"],
        ["more", "--web", "\x1b[31m"],
    ],
    ("knowledge", "ls"): [[]],
    ("knowledge", "search"): [
        ["zzrun"],
        [HOSTILE],
        ["zzrun", "--source", "\x1b[31m"],
        ["x", "--owner", "\x1b[31m"],
    ],
    ("knowledge", "watch"): [["--project", "none"], ["--owner", "\x1b[31m"]],
    ("knowledge", "stats"): [[], ["zznotes"], ["\x1b[31m"]],
    ("mcp", "ls"): [[], ["--json"], ["--connect"]],
    ("mcp", "add"): [
        ["zz\x1b[31m", "x"],
        ["--env", "\x1b[31m", "zzserver", "x"],
        ["--env", "TOKEN\x1b[31m=\x1b[31m", "zzserver", "\x1b[31mx", "\x1b[31m"],
        ["--url", "http://h/\x1b[31m", "zzserver"],
    ],
    ("mcp", "approve"): [["zzserver"], ["\x1b[31m"]],
    ("mcp", "test"): [[], ["zzserver"], ["\x1b[31m"]],
    ("mcp", "serve"): [["\x1b[31m"], ["\x1b[31m.yaml"], ["\x1b[31m=\x1b[31m.py:x", "--http"]],
    ("mcp", "call"): [["\x1b[31m", "x"], ["zzserver", "\x1b[31m"], ["zzserver", "x", "\x1b[31m"]],
    ("knowledge", "rm"): [["\x1b[31m"], ["zznotes"], ["zznotes", "--yes"]],
    ("models", "ls"): [[], ["\x1b[31m"], ["zzmodel*"]],
    ("models", "show"): [["\x1b[31m"], ["zzmodel"], ["gpt-4.1-mini"]],
    ("doctor",): [[], ["--model", HOSTILE.replace("\x00", "")]],
}


def test_every_command_has_a_case():
    assert CASES.keys() == COMMANDS.keys()


@tool(effect="read")
def zztool(zzargument: str) -> str:
    """Look something up.

    Args:
        zzargument: What.
    """
    if zzargument == "fail":
        raise ToolError("zzerror")
    return "zzresult"


@tool
def zzchange() -> ToolResult:
    """Change files."""
    one, two = FileState.of(b"zzsaid\nsame\n"), FileState.of(b"zzerror\nsame\n")
    named = ("note.md", "zzargument")
    return ToolResult("zzresult", changes=tuple(FileChange("/zzrun", each, one, two) for each in named))


@tool(requires_approval=True)
def zzpay(zzargument: str) -> str:
    """Pay.

    Args:
        zzargument: What.
    """
    return "zzresult"


async def talk(journal, run_id, *replies, ended=True):
    """A run of two agents whose texts are those of PLACES."""
    team = [Agent("zzagent", "zzasked", tools=[zztool, zzpay, zzchange]), Agent("zzhelper", "zzasked")]
    model = Script(list(replies))
    async with open_run(team, journal=journal, run_id=run_id, create=True, model=model) as run:
        request = await run.post("zzagent", "zzasked")
        if ended:
            await run.result(request)
            await run.cancel(reason="zzreason")
            return
        async for item in run.events(deltas=False):
            if item.asks:
                return


def spoiled(value, nested):
    """A value with the hostile text behind every one of PLACES; nested: JSON in a text stays JSON."""
    match value:
        case dict():
            return {spoiled(key, nested): spoiled(each, nested) for key, each in value.items()}
        case list():
            return [spoiled(each, nested) for each in value]
        case str() if nested and value.startswith("{"):
            return json.dumps(spoiled(json.loads(value), nested))
        case str():
            for place in PLACES:
                value = value.replace(place, place + HOSTILE)
    return value


async def forged(journal, source, run_id, prefix, nested=True):
    """Write a run of `source` into the journal, its texts made hostile and its digests right."""
    origin = f"origin of {run_id}"
    lease, digest = await journal.claim(run_id, create=True, origin=origin), genesis(run_id, origin)
    for row in await source.read(run_id):
        data = json.dumps(spoiled(json.loads(row.body), nested)).encode()
        digest = chain(digest, row.seq, row.count, 1, row.at, data, row.refs, row.blobs, row.given)
        blobs = {name: await source.blob(run_id, name) for name in named_blobs([row])}
        await put(journal, lease, replace(row, epoch=1, body=data, digest=digest), blobs)
    await journal.release(lease)
    return prefix + HOSTILE, origin


REPLIES = (
    call("zztool", zzargument="zzargument"),
    call("zztool", zzargument="fail"),
    call("zzchange"),
    call("call_agent", agent_name="zzhelper", message="zzasked"),
    "zzsaid",
    call("call_agent", agent_name="nobody zzagent", message="zzasked"),
    call("zznothing", zzargument="zzargument"),
    "zzsaid",
)


async def hostile_journal(path):
    """Runs that only an attacker would write: one that has ended, three that ask, one of no events."""
    source = MemoryJournal()
    await talk(source, "zzrun ended", *REPLIES)
    await talk(source, "zzrun asks", call("zzpay", zzargument="zzargument"), ended=False)
    await talk(source, "zzrun begs", call("zzpay", zzargument="zzargument"), ended=False)
    await talk(source, "zzrun wonders", call("call_agent", agent_name="user", message="zzasked"), ended=False)
    journal = SqliteJournal(path)
    ids = {}
    runs = {"zzrun ended": "a0", "zzrun asks": "b0", "zzrun wonders": "c0", "zzrun begs": "e0"}
    for run_id, prefix in runs.items():
        # The arguments of the last are no JSON any more.
        ids[run_id] = await forged(journal, source, run_id, prefix, nested=run_id != "zzrun begs")
    lease = await journal.claim("zzrun damaged", create=True)
    body = json.dumps([HOSTILE]).encode()
    await put(journal, lease, Row(1, 1, 1, 1.0, body, (), chain(lease.digest, 1, 1, 1, 1.0, body, ())))
    await journal.close()
    with apsw.Connection(str(path)) as file:
        for run_id, (hostile, origin) in ids.items():
            # No journal of ours takes such an id: only the file itself can be made to hold one.
            file.execute("update runs set run_id = ?, origin = ? where run_id = ?", (hostile, origin, run_id))
        file.execute("update runs set name = ?", ("zznamed" + HOSTILE,))
        seq = file.execute("select seq from runs where origin = 'origin of zzrun ended'").fetchall()[0][0]
        summary = encode_summary(RunSummary(seq, "zz" + HOSTILE, "zz" + HOSTILE, "closed", "zz" + HOSTILE))
        file.execute("update runs set summary = ? where origin = 'origin of zzrun ended'", (summary,))
        file.execute("update runs set run_id = ? where run_id = 'zzrun damaged'", ("d0" + HOSTILE,))


TEAM = """
entry: zzagent
agents:
  - {name: zzagent, instructions: You act., tools: [calculate], model: "script:script.yaml"}
  - {name: zzhelper, instructions: You help., model: "script:script.yaml"}
"""
HOSTILE_TEAM = "entry: {0}\nagents:\n  - {{name: {0}, instructions: {0}, tools: [{0}]}}\n"
HOSTILE_MODULE = "from antiphon import Agent\nteam = [Agent('zzagent', {0!r}, description={0!r})]\n"


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """The folder of the journal, written once."""
    folder = tmp_path_factory.mktemp("kept")
    asyncio.run(hostile_journal(folder / Path(JOURNAL).name))
    return folder


@pytest.fixture
def attacked(shell, kept, monkeypatch):  # noqa: F811 - the fixture of that name
    """A folder full of harm, entered."""
    shutil.copytree(kept, (shell.folder / JOURNAL).parent)
    quoted = json.dumps(HOSTILE)
    shell.write("team.yaml", TEAM)
    shell.write(
        "script.yaml",
        f"zzagent:\n- text: {quoted}\n  calls:\n  - {{call: calculate, args: {{expression: {quoted}}}}}\n"
        f"  - {{call: call_agent, args: {{agent_name: zzhelper, message: {quoted}}}}}\n"
        f"  - {{call: {quoted}, args: {{{quoted}: {quoted}}}}}\n- {{finish: {quoted}}}\n"
        f"zzhelper:\n- {{finish: {quoted}}}\n",
    )
    shell.write("hostile.yaml", HOSTILE_TEAM.format(quoted))
    shell.write("hostile.py", HOSTILE_MODULE.format(HOSTILE))
    shell.write("profiles/profiles/bad.yaml", f"{quoted}: {quoted}\nprofile_name: {quoted}\n")
    shell.write("models.yaml", f"zzmodel:\n  {quoted}: 1\n")
    shell.write("notes/zz\x1b[31m.md", f"# zzrun {HOSTILE}\n\nzzrun {HOSTILE}\n")
    shell.write("note.md", f"{HOSTILE}\n")
    shell.write("notes/good.md", f"# zzrun {HOSTILE}\n\nzzrun {HOSTILE}\n".replace("\x00", ""))
    assert shell("knowledge", "add", "zznotes", "notes", "--description", HOSTILE).code == 0
    said = shell("runs", "export", "a0")
    shell.write("forged.json", said.out)
    shell.write("raw.json", json.dumps({"antiphon_export": HOSTILE}))
    monkeypatch.setenv("ANTIPHON_MODELS", "models.yaml")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/" + "\x1b[31m")
    shell.write("typed", "hello\n" + "y\n")
    return shell


def harmful(text):
    """The characters that no terminal should be given."""
    found = {each for each in text if unicodedata.category(each) in ("Cc", "Cf", "Cs", "Zl", "Zp")}
    return sorted(found - {"\n"})


@pytest.mark.slow
@pytest.mark.parametrize("path", CASES, ids=" ".join)
def test_nothing_harmful_reaches_the_terminal(path, attacked, monkeypatch):
    options = [option for parameter in COMMANDS[path].params for option in parameter.opts]
    forms = [(), ("--json",)] if "--json" in options else [()]
    for words in CASES[path]:
        for form in forms:
            with (attacked.folder / "typed").open() as typed, monkeypatch.context() as patch:
                patch.setattr("sys.stdin", typed)
                said = attacked(*path, *words, *form)
            told = said.out + said.err
            assert harmful(told) == [], (words, form, told)
            lines = [line for line in told.splitlines() if line.startswith("FORGED")]
            # What a model answers may have lines of its own; nothing else may look like a line of ours.
            answered = path in (("run",), ("chat",), ("runs", "resume"))
            assert not lines or answered, (words, form, told)
            assert said.code != 70, (words, form, told)


def test_the_journal_is_what_it_is_taken_for(attacked):
    """The attack is one: the texts are there, and the runs that hold them verify."""
    found = attacked("runs", "ls", "--json").value
    assert sorted(entry["run_id"][:2] for entry in found) == ["a0", "b0", "c0", "d0", "e0"]
    assert all(entry["run_id"].endswith(HOSTILE) for entry in found)
    for run_id in ("b0", "c0"):
        assert attacked("runs", "verify", run_id).code == 0
    # Its summary, which lists show, is made up.
    assert "its summary is not what its records say" in attacked("runs", "verify", "a0").out
    shown = attacked("runs", "show", "a0", "--json").out
    assert all(place in shown for place in PLACES if place not in ("zzrun", "zzreason"))
    assert attacked("answer", "b0", "--json").value[0]["agent"].endswith(HOSTILE)
