"""`antiphon run`: targets, messages, outputs, exit codes."""

import io

import pytest

from antiphon import Limits
from antiphon.cli.target import load_target
from antiphon.models.endpoints import EndpointOptions

CODE = """
from antiphon import Agent
from antiphon import tool
from antiphon.models.script import Script, call, finish

lead = Agent("lead", "Lead.", model=Script(["from code"], by="turn"))
writer = Agent("writer", "Write.", model=Script(["never asked"], by="turn"))
both = [writer, lead]


def team(folder):
    return "lead", [writer, Agent("lead", model=Script([f"in {folder.name}"], by="turn"))]


def pair():
    return lead, [lead, writer]


def apart():
    return lead, [writer]
"""


def test_answer_on_the_standard_output_and_all_else_beside_it(shell):
    said = shell("run", "team.yaml", "How much is 2+3?")
    assert (said.code, said.out) == (0, "The result is 5.\n")
    lines = said.err.splitlines()
    assert lines[0] == "user calls lead: How much is 2+3?"
    assert 'lead uses calculate(expression="2+3")' in lines
    assert "lead gets calculate: 2+3 = 5" in lines
    assert "lead calls writer: Write." in lines
    run_id = lines[1].split()[1].rstrip(";")
    shown = [line.strip().partition(" runs ")[2] for line in lines[-3:]]
    assert shown == [f"show {run_id}", f"tail {run_id}", f"resume {run_id} team.yaml"]
    assert f"run {run_id}: completed" in said.err
    assert "cost unknown" not in said.err  # nothing was billed


def test_quiet_says_the_answer_only(shell):
    said = shell("run", "team.yaml", "go", "--quiet")
    assert (said.out, said.err) == ("The result is 5.\n", "")


def test_json_is_every_record_then_the_result(shell):
    said = shell("run", "team.yaml", "go", "--json")
    *records, result = said.events
    assert said.err == ""
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    assert records[0]["event"]["type"] == "run_started"
    assert {record["agent"] for record in records} == {"user", "lead", "writer"}
    assert result["type"] == "Result"
    assert (result["outcome"], result["output"]) == ("completed", "The result is 5.")
    assert [message["content"] for message in result["messages"]][-1] == "The result is 5."


def test_message_from_the_standard_input(shell, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("over\nlines\n"))
    assert shell("run", "team.yaml").code == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(" \n"))
    empty = shell("run", "team.yaml")
    assert empty.code == 2
    assert "There is no message" in empty.err
    listed = shell("runs", "ls", "--json").value
    assert [run["title"] for run in listed] == ["over\nlines"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "answer"),
    [
        ("code.py:lead", "from code"),
        ("code.py:both", "never asked"),
        ("code.py:team", "in here"),
        ("code.py:pair", "from code"),
        ("code.py:apart", "from code"),
        ("code:lead", "from code"),
    ],
)
def test_targets_in_code(shell, target, answer):
    (shell.folder / "here").mkdir()
    shell.write("code.py", CODE)
    folder = ["--folder", "here"] if target.endswith(":team") else []
    said = shell.apart("run", target, "go", *folder)
    assert (said.code, said.out) == (0, answer + "\n")


def test_tools_of_a_team_file_read_the_folder_given(shell):
    shell.write("docs/a.md", "one two three")
    shell.write("t.yaml", "agents: [{name: a, model: 'script:s.yaml', tools: [files]}]")
    shell.write("s.yaml", "[{call: count_text, args: {path: a.md}}, {finish: done}]")
    said = shell("run", "t.yaml", "go", "--folder", "docs")
    assert "a gets count_text: a.md: 3 words" in said.err
    assert "--folder docs" in said.err  # the printed resume command repeats it


@pytest.mark.parametrize(
    ("options", "outcome", "code"),
    [
        (["--limit-tokens", "10"], "budget", 6),
        (["--limit-turns", "1"], "limit", 6),
        (["--limit-calls", "0"], "limit", 6),
        (["--model", "script:short.yaml"], "failed", 1),
        (["--model", "script:idle.yaml"], "no_progress", 6),
    ],
)
def test_every_outcome_has_its_exit_code(shell, options, outcome, code):
    shell.write("short.yaml", "[]")
    shell.write("idle.yaml", "[a, b, c, d, e]")
    if outcome == "no_progress":
        shell.write("team.yaml", "agents: [{name: lead, completion: finish}]")
    said = shell("run", "team.yaml", "go", *options)
    assert said.code == code, said.err
    assert f"error: the request ended {outcome}: " in said.err
    (listed,) = shell("runs", "ls", "--json").value
    assert listed["state"] == outcome


@pytest.mark.slow
def test_an_answer_that_is_not_whole_is_printed_and_ends_with_a_code_of_its_own(shell):
    shell.write(
        "cut.py",
        """
from antiphon import Agent
from antiphon.models.script import Script
from antiphon.values.model import Reply
a = Agent("a", model=Script([Reply("one, two", stop="length")]))
""",
    )
    said = shell.apart("run", "cut.py:a", "go")
    assert (said.code, said.out) == (6, "one, two\n")
    assert (
        "error: this is not the whole answer: the text was cut at the agent's max_output_tokens" in said.err
    )
    said = shell.apart("run", "cut.py:a", "go", "--json")
    assert said.code == 6
    assert '"incomplete":"length"' in said.out.splitlines()[-1]


def test_limits_are_those_asked_for(shell):
    said = shell("run", "team.yaml", "go", "--json", "--limit-depth", "3", "--policy", "strict")
    options = said.events[0]["event"]["options"]
    assert options["limits"]["depth"] == 3
    assert "turns" not in options["limits"]  # the default, which is not written down
    assert Limits().turns == 200
    assert options["policy"] == {"preset": "strict"}


@pytest.mark.slow
def test_nobody_attends_so_asking_means_no(shell):
    shell.write(
        "act.py",
        "from antiphon import Agent, tool\n"
        "from antiphon.models.script import Script, call, finish\n"
        "@tool\n"
        "def wipe(path: str) -> str:\n"
        "    'Wipe.'\n"
        "    open('wiped', 'w').close()\n"
        "    return 'wiped'\n"
        "a = Agent('a', tools=[wipe], model=Script([call('wipe', path='x'), finish('end')], by='turn'))\n",
    )
    said = shell.apart("run", "act.py:a", "go")
    assert said.code == 0
    assert "nobody is there to ask" in said.err
    assert not (shell.folder / "wiped").exists()
    assert shell.apart("run", "act.py:a", "go", "--policy", "open").code == 0
    assert (shell.folder / "wiped").exists()


def test_control_characters_never_reach_the_terminal(shell):
    shell.write(
        "s.yaml",
        '[{call: call_agent, args: {agent_name: "a\\e[2Jb", message: "\\a"}}, "x\\e]0;t\\ay\\u009b2J"]',
    )
    shell.write("t.yaml", "agents: [{name: a, model: 'script:s.yaml'}]")
    for words in (["run", "t.yaml", "go\x1b[2J"], ["run", "t.yaml", "go\x1b[2J", "--json"]):
        said = shell(*words)
        assert said.code == 0
        harmful = set(said.out + said.err) & {"\x1b", "\x07", "\x9b"}
        assert not harmful
    run_id = shell("runs", "ls", "--json").value[0]["run_id"]
    for words in (["ls"], ["show", run_id], ["tail", run_id], ["show", run_id, "--json"], ["export", run_id]):
        said = shell("runs", *words)
        assert not set(said.out + said.err) & {"\x1b", "\x07", "\x9b"}


def test_journal_in_memory_leaves_nothing(shell):
    said = shell("run", "team.yaml", "go", "--journal", "memory")
    assert said.code == 0
    assert "runs show" not in said.err
    assert not (shell.folder / ".antiphon").exists()


@pytest.mark.slow
def test_journal_folder_is_private_and_can_be_named(shell, monkeypatch):
    assert shell("run", "team.yaml", "go").code == 0
    assert (shell.folder / ".antiphon").stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("ANTIPHON_HOME", "home")
    assert shell("run", "team.yaml", "go").code == 0
    assert (shell.folder / "home/antiphon.db").exists()
    said = shell("run", "team.yaml", "go", "--journal", "odd name?%41.db")
    assert (shell.folder / "odd name?%41.db").exists()
    shown = next(line for line in said.err.splitlines() if " runs show " in line)
    assert shell.paste(shown).code == 0


def test_help_is_quick_and_names_every_command(shell):
    said = shell("--help")
    assert said.code == 0
    for name in ("run", "runs", "doctor", "Exit codes"):
        assert name in said.out
    for words in (
        ["run"],
        ["runs"],
        ["doctor"],
        *(["runs", each] for each in ("ls", "show", "tail", "cancel")),
    ):
        assert shell(*words, "--help").code == 0


def test_a_wait_says_how_long_why_and_for_which_attempt(shell):
    shell.write("script.yaml", "lead:\n- {error: {kind: rate_limit, text: slow down}}\n- {finish: done}\n")
    shell.write(
        "team.yaml",
        "model: script:script.yaml\nagents:\n- name: lead\n"
        "  asking: {retry: {max_attempts: 2, initial_delay: 0.001}}\n",
    )
    said = shell("run", "team.yaml", "go")
    assert said.out == "done\n"
    lines = said.err.splitlines()
    at = lines.index("lead waits 0.0 s: rate limit (attempt 2 of 2)")
    assert lines[at - 1].startswith("lead gets no reply: failed (rate_limit: slow down")
    assert not [line for line in lines[at + 1 :] if line.startswith("lead")]
    run_id = shell("runs", "ls", "--json").value[0]["run_id"]
    assert "lead has waited" in shell("runs", "tail", run_id).out
    assert "waited 0.0 s: rate limit (attempt 2 of 2)" in shell("runs", "show", run_id).out


def test_how_models_are_asked_is_said_on_the_command_line_and_again_when_it_is_resumed(shell):
    said = shell("run", "team.yaml", "go", "--endpoint", "* concurrency=3", "--endpoint", "* idle_timeout=9")
    assert said.code == 0
    assert "team.yaml --endpoint '* concurrency=3' --endpoint '* idle_timeout=9'" in said.err
    again = shell("runs", "resume", newest(shell), "team.yaml", "--endpoint", "* concurrency=3")
    assert again.code == 0


def newest(shell):
    return shell("runs", "ls", "--json").value[0]["run_id"]


def test_what_the_command_line_says_goes_before_the_team_file(shell):
    shell.write(
        "team.yaml",
        "model: openai:m\nendpoints:\n  openai: {concurrency: 8, idle_timeout: 7}\nagents: [{name: a}]",
    )
    found = load_target("team.yaml").with_endpoints(("* concurrency=2", "m first_timeout=3"), None)
    assert found["openai:m"] == EndpointOptions(concurrency=2, idle_timeout=7, first_timeout=3)
    assert found["openai"] == EndpointOptions(concurrency=2, idle_timeout=7)


def test_a_misspelt_endpoint_is_told_before_anything_begins(shell):
    said = shell("run", "team.yaml", "go", "--endpoint", "opneai concurrency=3")
    assert said.code == 3
    assert "--endpoint: 'opneai' names no provider" in said.err
    assert "did you mean 'openai'" in said.err


@pytest.mark.filterwarnings("default")
def test_an_endpoint_that_nobody_asks_is_told_in_a_line(shell):
    said = shell("run", "team.yaml", "go", "--endpoint", "ollama concurrency=3")
    assert said.code == 0
    assert "warning: endpoints: nobody asks ollama; the agents ask script:script.yaml\n" in said.err
