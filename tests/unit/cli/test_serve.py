"""`antiphon serve` as a process: what it prints, a kill in the middle of a reply, an orderly stop."""

import json
import os
import shutil
import signal
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from antiphon import Agent, ModelOptions
from antiphon.cli.serving.serve import TeamOptions, hosted_teams, offered_models
from antiphon.errors import ConfigError
from antiphon.host import HostedTeam
from tests.unit.cli.shell import PATIENCE

TOKEN = "a token that outlives restarts"
TEAM = '''
import asyncio, os
from antiphon import Agent, tool
from antiphon.models.script import Script, call
from antiphon.values.model import Delta, Reply, Usage


class Writes:
    """Begins an answer, and ends it if the file `open` is there."""

    name = "writes"

    async def complete(self, request, emit):
        emit(Delta("text", "Half an "))
        if not os.path.exists("open"):
            await asyncio.Event().wait()
        emit(Delta("text", "answer."))
        return Reply("Half an answer.", usage=Usage(3, 2))


@tool(requires_approval=True)
def pay(who: str) -> str:
    """Pay somebody."""
    with open("paid", "a") as book:
        book.write(who + "\\n")
    return "paid " + who


clerk = Agent("clerk", model=Writes())
payer = Agent("payer", model=Script([call("pay", who="ann"), "all paid"], by="turn"), tools=[pay])
'''


def test_spans_that_nobody_would_get_are_refused_before_anything_starts(shell):
    shell.write("team.py", TEAM)
    refused = shell("serve", "team.py:clerk", "--otel")
    assert (refused.code, "opentelemetry-instrument" in refused.err) == (3, True)
    assert "--content goes with --otel" in shell("serve", "team.py:clerk", "--content").err


class Server:
    """A server in a process of its own."""

    def __init__(self, shell, *words):
        env = shell.environment
        shell.environment = lambda: {**env(), "ANTIPHON_SERVER_TOKEN": TOKEN}
        shell.write("team.py", TEAM)
        self.process = shell.start(
            "serve", *(words or ("team.py:clerk", "team.py:payer")), "--port", "0", stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        shell.environment = env
        self.said = self.process.stdout.readline()
        assert " at http" in self.said, self.said + self.process.stderr.read()
        self.url = self.said.strip().rpartition(" at ")[2]
        self.client = httpx2.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=PATIENCE
        )

    def end(self, code):
        """Wait until it has ended; what it said on its error output."""
        assert self.process.wait(PATIENCE) == code
        said = self.process.stderr.read()
        self.client.close()
        self.process.stdout.close()
        self.process.stderr.close()
        return said

    def start(self, team):
        reply = self.client.post("/runs", json={"team": team, "message": "Go"})
        assert reply.status_code == 201, reply.text
        return reply.json()["run_id"]

    @contextmanager
    def events(self, run_id, after=0):
        """Server-Sent Events as (event, data), each record under its number, from an open stream."""
        known = {"Last-Event-ID": str(after)}
        with self.client.stream("GET", f"/runs/{run_id}/events", headers=known) as stream:
            lines = stream.iter_lines()
            # The stream is open, and hears what comes from now on.
            assert next(lines).startswith(":")
            yield told(lines)

    def until_ended(self, run_id, call, after=0):
        """The numbers of the records up to the end of a request."""
        seen = []
        with self.events(run_id, after) as events:
            for event, data in events:
                if event == "record":
                    seen.append(data["seq"])
                    if data["event"]["type"] == "finished" and data["event"]["id"] == call:
                        return seen
        raise AssertionError(f"the stream ended before {call}")


def told(lines):
    event = number = ""
    for line in lines:
        name, _, value = line.partition(": ")
        if name == "event":
            event = value
        elif name == "id":
            number = value
        elif name == "data":
            data = json.loads(value)
            assert event != "record" or data["seq"] == int(number)
            yield event, data


@pytest.mark.slow
def test_a_client_of_a_server_that_was_killed_has_every_record_once(shell):
    shell.write("open", "")
    server = Server(shell)
    run_id = server.start("clerk")
    seen = server.until_ended(run_id, "0/1.c1")
    os.remove("open")
    pieces = []
    with server.events(run_id, seen[-1]) as events:
        server.client.post(f"/runs/{run_id}/requests", json={"agent": "clerk", "message": "More"})
        for event, data in events:
            if event == "record":
                seen.append(data["seq"])
            elif event == "delta":
                pieces.append(data["text"])
                # In the middle of the reply.
                server.process.kill()
                break
    server.end(-signal.SIGKILL)
    assert pieces == ["Half an "]
    shell.write("open", "")
    server = Server(shell)
    seen += server.until_ended(run_id, "0/2.c1", seen[-1])
    assert seen == list(range(1, seen[-1] + 1))
    tree = server.client.get(f"/runs/{run_id}/tree").json()
    assert [each["content"] for each in tree["activations"][1:]] == ["Half an answer."] * 2
    server.process.terminate()
    server.end(0)


@pytest.mark.slow
def test_sigterm_tells_the_readers_and_the_question_is_there_after_a_restart(shell):
    server = Server(shell)
    run_id = server.start("payer")
    ends, began = [], 0.0
    with server.events(run_id) as events:
        for event, data in events:
            if event == "end":
                ends.append(data)
            elif not began and server.client.get(f"/runs/{run_id}/questions").json():
                server.process.terminate()
                began = time.monotonic()
    said = server.end(0)
    assert time.monotonic() - began < 10
    assert ends == [{"reason": "server_left"}]
    assert said == "leaving the runs in good order (once more: at once)\n"
    server = Server(shell, "team.py:payer", "--log", "json")
    (item,) = server.client.get("/inbox").json()["items"]
    assert (item["run_id"], item["question"]["tool"]) == (run_id, "pay")
    answer = {"question": item["question"]["id"], "content": "yes"}
    assert server.client.post(f"/runs/{run_id}/answers", json=answer).status_code == 202
    server.until_ended(run_id, "0/1.c1")
    assert (shell.folder / "paid").read_text() == "ann\n"
    server.process.terminate()
    lines = [json.loads(line) for line in server.end(0).splitlines()]
    answered = next(each for each in lines if each.get("route") == "/runs/{run_id}/answers")
    assert (answered["status"], answered["subject"], answered["run_id"]) == (202, "local", run_id)
    assert [each["message"] for each in lines if "effect_id" in each][-1].endswith("ended: completed")
    assert lines[0]["message"].startswith("serving payer at port ")
    assert lines[-1]["message"] == "left; runs in which something was cut off: 0"


@pytest.mark.slow
def test_a_second_signal_leaves_at_once_and_loses_nothing(shell):
    server = Server(shell)
    run_id = server.start("clerk")
    before = server.client.get(f"/runs/{run_id}").json()["records"]
    server.process.terminate()
    assert server.process.stderr.readline().startswith("leaving the runs")
    server.process.terminate()
    server.end(8)
    shell.write("open", "")
    server = Server(shell)
    assert server.until_ended(run_id, "0/1.c1")[-1] > before
    server.process.terminate()
    server.end(0)


@pytest.mark.slow
def test_a_server_that_nobody_reads_leaves_all_the_same(shell):
    server = Server(shell)
    server.process.stderr.close()
    server.process.terminate()
    assert server.process.wait(PATIENCE) == 0
    server.client.close()
    server.process.stdout.close()


@pytest.mark.slow
def test_a_run_of_the_command_line_is_shown_and_left_alone(shell):
    shell.write("team.py", TEAM)
    shell("run", "team.py:payer", "Go")
    server = Server(shell)
    (line,) = server.client.get("/runs").json()["runs"]
    # It belongs to whoever started it.
    assert (line["team"], line["driven_by"]) == ("", "")
    assert server.client.get(f"/runs/{line['run_id']}/tree").json()["outcome"]
    server.process.terminate()
    server.end(0)


def test_an_address_that_others_reach_is_refused(shell):
    said = shell("serve", "team.yaml", "--host", "0.0.0.0")
    assert (said.code, said.out) == (3, "")
    assert "--host 0.0.0.0 can be reached from other machines" in said.err


def test_a_port_that_is_taken_is_told(shell):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        said = shell("serve", "team.yaml", "--port", taken.getsockname()[1])
    assert said.code == 3
    assert "Give another --port" in said.err


def test_a_team_is_named_by_its_folder_file_object_or_word(shell):
    shell.write("desk/team.py", TEAM.replace("clerk =", "team ="))
    shell.write("team.py", TEAM)
    given = ["desk", "team.py:payer", "team.yaml", "other=team.yaml"]
    shell.write("a/b.yaml", (shell.folder / "team.yaml").read_text().replace("script.yaml", "../script.yaml"))
    found = hosted_teams([*given, "a/b.yaml"], None, TeamOptions(policy="strict"))
    assert list(found) == ["desk", "payer", shell.folder.name, "other", "b"]
    assert {each.policy for each in found.values()} == {"strict"}
    with pytest.raises(ConfigError, match="Two teams are called x; give one another name"):
        hosted_teams(["x=team.yaml", "x=desk"], None, TeamOptions())


@pytest.mark.slow
def test_projects_bring_teams_in_yaml_and_files_that_their_tools_read(shell):
    examples = Path(__file__).parents[3] / "examples/lookup"
    shell.write("p/tides/project.yaml", "teams: [desk=team.yaml, lookup=lookup/, code=code/]\n")
    shell.write("p/tides/team.yaml", "agents:\n- {name: desk, tools: [files], model: 'script:lines.yaml'}\n")
    shell.write("p/tides/code/team.py", "raise SystemExit('imported')")
    shell.write("p/tides/files/team.py", "raise SystemExit('imported')")
    shell.write("lines.yaml", "- {call: read_lines, args: {path: moon.txt}}\n- Read.\n")
    shutil.copytree(examples, shell.folder / "p/tides/lookup")
    server = Server(shell, "--projects", "p")
    try:
        found = server.client.get("/projects/tides").json()
        assert found["teams"] == ["desk", "lookup"]
        (wrong,) = found["findings"]
        assert "code: holds team.py; what is not on the command line is never imported" in wrong
        assert server.client.put("/projects/tides/files/moon.txt", content=b"It pulls.").status_code == 200
        body = {"team": "desk", "message": "Why?", "project": "tides"}
        run_id = server.client.post("/runs", json=body).json()["run_id"]
        server.until_ended(run_id, "0/1.c1")
        tree = server.client.get(f"/runs/{run_id}/tree").json()
        (read,) = [each for each in tree["activations"][1]["turns"][0]["effects"] if each["kind"] == "tool"]
        assert "It pulls." in read["content"]
        assert tree["activations"][1]["content"] == "Read."
    finally:
        server.process.terminate()
        server.end(0)


def test_there_must_be_something_to_serve(shell):
    said = shell("serve")
    assert (said.code, "give a TARGET, or --projects DIR" in said.err) == (2, True)
    shell.write("file", "x")
    said = shell("serve", "--projects", "file/x")
    assert (said.code, "file/x: cannot be the folder of projects" in said.err) == (3, True)


def test_models_that_the_settings_reach_may_be_chosen(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_DEFAULT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTIPHON_MODEL", "ollama:llama3")
    asking = ModelOptions(fallback_models=("ollama:small", "openai:gpt-x"))
    agents = (Agent("a", model="script:lines.yaml", asking=asking), Agent("b", model="ollama:llama3"))
    assert offered_models([HostedTeam(agents)], "local:smollm2") == [
        "ollama:llama3", "local:smollm2", "ollama:small",
    ]  # fmt: skip
    monkeypatch.setenv("OPENAI_API_KEY", "a key")
    assert offered_models([HostedTeam(agents)], None) == ["ollama:llama3", "ollama:small", "openai:gpt-x"]


def test_a_folder_is_for_the_teams_that_take_one_and_refused_if_none_does(tmp_path):
    (tmp_path / "teams.py").write_text(
        "from antiphon import Agent\n"
        "def reads(folder):\n    return Agent('reads', str(folder))\n"
        "def plain():\n    return Agent('plain')\n"
    )
    plain, reads = f"a={tmp_path}/teams.py:plain", f"b={tmp_path}/teams.py:reads"
    found = hosted_teams([plain, reads], str(tmp_path), TeamOptions(policy="open"))
    assert found["b"].agents[0].instructions == str(tmp_path)
    with pytest.raises(ConfigError, match="takes no folder"):
        hosted_teams([plain], str(tmp_path), TeamOptions(policy="open"))


def test_the_run_that_is_started_names_a_team_and_says_something(shell):
    shell.write("one.py", "from antiphon import Agent\ndesk = Agent('desk')\n")
    for text in ("desk", "desk=", "desk= ", "other=Hi", "=Hi", ""):
        said = shell("serve", "one.py:desk", "--start", text)
        assert (said.code, "--start is NAME=MESSAGE, NAME one of: desk" in said.err) == (2, True), text
