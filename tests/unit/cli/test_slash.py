"""The lines of a conversation that begin with a slash."""

import json

import pytest

from tests.unit.cli.test_screen import Seen

CODE = '''
from antiphon import Agent, tool
from antiphon.errors import ModelError
from antiphon.values.message import ToolCall
from antiphon.values.model import Delta, Reply, Usage


class Priced:
    """Calls another agent when it is told to, stumbles first when it is told so."""

    name = "openai:gpt-4.1"
    stumbled = False

    async def complete(self, request, emit):
        last = request.messages[-1]
        told = [each.content for each in request.messages if each.role == "user"]
        if "<summary>" in last.content:
            return Reply("<summary>They talked.</summary>", usage=Usage(700, 70))
        if last.content == "both" and last.role == "user":
            call = ToolCall("1", "call_agent", '{"agent_name": "writer", "message": "write"}')
            return Reply("", (call,), "calls", Usage(1000, 100, 500))
        if last.content == "stumble" and not Priced.stumbled:
            Priced.stumbled = True
            emit(Delta("text", "I stum"))
            raise ModelError("disconnected", "cut off", retry_after=0.01)
        return Reply(f"{last.content}! I heard {len(told)}: {' / '.join(told)}", usage=Usage(2000, 200))


class Other(Priced):
    name = "openai:gpt-4.1-mini"


team = [Agent("lead", model=Priced(), can_call=["writer"]), Agent("writer", "Writes.", model=Other())]
'''


@pytest.fixture
def piped(shell, monkeypatch):
    """Call `chat` in this process with lines on the standard input."""
    shell.write("code.py", CODE)

    def piped(*lines, words=()):
        shell.write("input", "\n".join(lines))
        with (shell.folder / "input").open() as file, monkeypatch.context() as patch:
            patch.setattr("sys.stdin", file)
            return shell("chat", "code.py:team", *words)

    return piped


def runs(shell):
    return shell("runs", "ls", "--json").value


def heard(said):
    return [line.partition("I heard ")[2] for line in said.out.splitlines() if "I heard" in line]


def test_going_back_forks_before_the_message_and_the_other_run_stays(shell, piped):
    said = piped(
        "one", "two", "three", "/rewind", "/rewind 3", "/history", "drei", "/tree", "/rewind 9", "/rewind x"
    )
    assert heard(said) == ["1: one", "2: one / two", "3: one / two / three", "3: one / two / drei"]
    assert "Back to before the message:" in said.err
    assert "/rewind 3  3  three" in said.err
    assert said.err.count("/rewind takes the number of a message, 1 to 3") == 2
    made, first = runs(shell)
    assert (made["title"], first["title"]) == ("drei", "three")
    assert (
        f"From before message 3 on this is run {made['run_id'][:12]}; /resume {first['run_id'][:12]}"
        in said.err
    )
    # The tree names both, the fork below the run that it branched off.
    rows = said.err.partition("Runs that begin as this one does:")[2].splitlines()[1:3]
    assert first["run_id"][:12] in rows[0]
    assert "three" in rows[0]
    assert f"    {made['run_id'][:12]}  drei  from record " in rows[1]
    assert rows[1].endswith("(this one)")
    assert shell("runs", "verify", made["run_id"]).code == 0


def test_going_back_to_the_first_message_begins_anew_in_a_fork(shell, piped):
    said = piped("one", "/rewind 1", "eins")
    assert heard(said) == ["1: one", "1: eins"]
    made, first = runs(shell)
    assert shell("runs", "show", made["run_id"], "--json").value["fork"]["origin"] == first["run_id"]


def test_a_fork_goes_on_from_here(shell, piped):
    said = piped("/fork", "one", "/fork", "two")
    assert "Nothing was said yet" in said.err
    assert heard(said) == ["1: one", "2: one / two"]
    assert [each["title"] for each in runs(shell)] == ["two", "one"]


def test_what_it_cost_is_what_the_journal_holds(shell, piped):
    """Of all agents, a call that failed and was made again, and a compaction."""
    said = piped("both", "stumble", "/compact", "more", "/cost")
    told = said.err.rpartition("in all: ")[2].splitlines()[0]
    (run,) = runs(shell)
    records = [json.loads(each) for each in shell("runs", "tail", run["run_id"], "--json").out.splitlines()]
    ended = [each["event"] for each in records if each["event"]["type"] == "finished"]
    replies = [each["reply"]["usage"] for each in ended if "usage" in each.get("reply", {})]
    # Two of the lead, one of the writer, one after the stumble, the compaction, and one more.
    assert len(replies) == 6
    into, out = (sum(each.get(name, 0) for each in replies) for name in ("input_tokens", "output_tokens"))
    nano = sum(each.get("cost_nano_usd") or 0 for each in ended)
    # What the call that was cut off cost is not known, and counted as the worst it may have.
    (lost,) = [each["id"] for each in ended if "failure" in each]
    begun = [each["event"] for each in records if each["event"]["type"] == "started"]
    (held,) = [each["detail"]["held_nano_usd"] for each in begun if each["id"] == lost]
    assert held > 0
    nano += held
    assert f"({into:,} in, {out:,} out" in told
    assert f"${nano / 1e9:.4f}" in told
    assert "openai:gpt-4.1: " in said.err
    assert "openai:gpt-4.1-mini: " in said.err


def test_another_agent_is_talked_with(piped):
    said = piped("/to nobody", "/to writer", "one", "/agents", "/to lead", "two")
    assert "There is no agent nobody here; there are: lead, writer" in said.err
    assert heard(said) == ["1: one", "1: two"]
    assert "writer  Writes.  you talk with it" in said.err
    assert said.err.count("You talk with ") == 2


def test_what_is_the_case_is_told(shell, piped):
    said = piped("/context", "/rules", "/jobs", "one", "/context", "/name", "/name a name", "/rules")
    assert "Nothing was said yet" in said.err
    assert "openai:gpt-4.1: window 1,047,576 tokens" in said.err
    assert "the last request took 2,000 of it, its reply 200" in said.err
    assert "no rules but those of the policy" in said.err
    assert "nothing runs in the background here" in said.err
    assert "without a name" in said.err
    assert "called a name" in said.err
    assert runs(shell)[0]["name"] == "a name"
    run_id = runs(shell)[0]["run_id"]
    assert shell("rules", "add", "send", "deny", "--run", run_id, "--match", "to=a*").code == 0
    assert "deny  send  to=a*  for this run" in piped("/rules", words=("--resume", run_id)).err
    assert "one line of at most" in piped("/name " + "x" * 1_000, words=("--resume", run_id)).err


def test_a_run_is_written_into_a_file(shell, piped):
    said = piped(
        "/export", "one", "/export", "/export out.html", "/export out.html", "/export no/folder.json"
    )
    run_id = runs(shell)[0]["run_id"]
    assert "Nothing was said yet" in said.err
    assert f"This run is in run-{run_id[:12]}.json" in said.err
    assert "out.html exists; name another file" in said.err
    assert "Not exported: " in said.err
    assert shell("runs", "verify", f"run-{run_id[:12]}.json").code == 0
    assert (shell.folder / "out.html").read_text().lower().startswith("<!doctype html>")
    assert (shell.folder / "out.html").stat().st_mode & 0o777 == 0o600


def test_other_runs_are_offered(shell, piped):
    piped("one")
    said = piped("/resume", "two", "/resume")
    first = runs(shell)[-1]["run_id"]
    assert said.err.count(f"/resume {first}") == 2
    assert f"{first[:12]}  one" in said.err


def test_an_agent_is_asked_to_describe_the_folder(piped):
    said = piped("/init in German")
    assert "Write AGENTS.md in this folder" in said.out
    assert said.out.rstrip().endswith("in German")


def test_help_names_all(piped):
    from antiphon.cli.session.slash.commands import COMMANDS

    said = piped("/help")
    assert [name for name in COMMANDS if f"/{name} " not in said.err] == []


@pytest.mark.slow
def test_esc_twice_goes_back_with_the_message_in_the_editor(shell):
    shell.write("code.py", CODE)
    screen = Seen(shell, "chat", "code.py:team", columns=100)
    screen.until("lead\x1b")
    for number, text in enumerate(("one", "two", "three"), 1):
        screen.type(f"{text}\r")
        screen.until(f"I heard {number}")
    screen.type("\x1b")
    screen.type("\x1b")
    screen.until("(3 of 3)")
    screen.type("\x1b[A\r")
    screen.until("> two")
    screen.type(" again\r")
    screen.until("I heard 2: one / two again")
    screen.type("/resume\r")
    screen.until("Esc leaves it")
    screen.type("\r")
    screen.until("three! I heard 3")
    screen.type("\x04")
    screen.end()
    assert screen.code == 0
    assert any("From before message 2 on this is run" in each for each in screen.screen.text())
    assert len(runs(shell)) == 2


@pytest.mark.slow
def test_what_git_says_of_the_folder_is_shown_and_not_told(shell):
    shell.write("code.py", CODE)
    commit = "git -c user.name=a -c user.email=a@b commit -qm x"
    assert shell.paste(f"git init -q && git add code.py && {commit} && echo '# more' >> code.py").code == 0
    screen = Seen(shell, "chat", "code.py:team", columns=100)
    screen.until("lead\x1b")
    screen.type("/diff\r")
    screen.until("(exit code 0)")
    screen.type("\x0f")
    screen.until("+# more")
    screen.type("go\r")
    screen.until("I heard 1: go")
    screen.type("\x04")
    screen.end()
    assert screen.code == 0
