"""`antiphon ui`: a journal, a run or a file in a browser, read-only; what it says and how it ends."""

import json
import signal
import socket
import subprocess
import sys
from contextlib import closing

import apsw
import httpx2
import pytest

from antiphon.cli import exit_codes
from antiphon.cli.serving import browser
from antiphon.cli.serving.ui import path_of
from tests.unit.cli.shell import PATIENCE, Terminal

JOURNAL = ".antiphon/antiphon.db"
ASKING = """
from antiphon import Agent, tool
from antiphon.models.script import Script, call

@tool(requires_approval=True)
def pay(who: str) -> str:
    return "paid " + who

payer = Agent("payer", model=Script([call("pay", who="ann"), "all paid"], by="turn"), tools=[pay])
"""


class Look:
    """`antiphon ui` in a process of its own, and a client that has its token."""

    def __init__(self, shell, *words):
        self.process = shell.start(
            "ui", "--no-open", *words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.said = [self.process.stdout.readline() for _ in range(3)]
        assert self.said[-1].startswith("Ctrl-C"), [*self.said, self.process.stderr.read()]
        self.address = self.said[1].strip().removeprefix("in a browser: ")
        self.url, _, after = self.address.partition("/#")
        self.path, _, self.token = after.partition("token=")
        self.client = httpx2.Client(
            base_url=self.url, headers={"Authorization": f"Bearer {self.token}"}, timeout=PATIENCE
        )

    def get(self, path):
        reply = self.client.get(path)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def end(self, number=signal.SIGINT):
        self.process.send_signal(number)
        return self.ended()

    def ended(self):
        _, err = self.process.communicate(timeout=PATIENCE)
        self.client.close()
        assert "Traceback" not in err, err
        return self.process.returncode


def run_id(shell):
    assert shell("run", "team.yaml", "What is it?").code == 0
    return shell("runs", "ls", "--json").value[0]["run_id"]


@pytest.mark.slow
def test_a_finished_run_is_shown_and_nothing_of_it_changes(shell):
    run = run_id(shell)
    before = shell("runs", "export", run).out
    look = Look(shell, run[:8])
    assert look.said[0] == f"a read-only look at run {run[:12]}\n"
    assert look.path == f"/run/{run}?"
    assert look.get(f"/runs/{run}")["state"] == "completed"
    told = look.get("/session")
    assert (told["drives"], told["scopes"]) == (False, ["read"])
    assert told["commands"]["resume"].endswith("runs resume {run} TARGET")
    refused = look.client.post(f"/runs/{run}/close", json={})
    assert (refused.status_code, refused.json()["type"]) == (403, "urn:antiphon:problem:read_only")
    assert httpx2.get(look.url + "/").status_code == 200
    assert httpx2.get(look.url + "/runs").status_code == 401
    assert look.end() == exit_codes.COMPLETED
    assert shell("runs", "export", run).out == before


@pytest.mark.slow
def test_a_run_of_another_terminal_is_watched_and_goes_on_as_the_page_says(shell):
    shell.write("asks.py", ASKING)
    screen = Terminal(shell, "run", "asks.py:payer", "Pay ann")
    screen.until("pay")
    look = Look(shell)
    run = look.get("/runs")["runs"][0]["run_id"]
    with look.client.stream("GET", f"/runs/{run}/events?view=frames") as stream:
        lines = stream.iter_lines()
        for line in lines:
            if '"purpose":"approval"' in line:
                break
        assert [each["question"]["tool"] for each in look.get("/inbox")["items"]] == ["pay"]
        goes_on = look.get("/session")["commands"]["answer"].replace("{run}", run)
        assert shell.paste(f"{goes_on} yes").code == 0
        assert any("all paid" in line for line in lines)
    assert "all paid" in screen.end()
    assert screen.code == 0
    assert look.end(signal.SIGTERM) == exit_codes.COMPLETED


@pytest.mark.slow
def test_an_exported_file_is_a_journal_of_one_run(shell):
    run = run_id(shell)
    shell("runs", "export", run, "--out", "told.json")
    shell("runs", "rm", run, "--yes")
    look = Look(shell, "told.json")
    assert [each["run_id"] for each in look.get("/runs")["runs"]] == [run]
    assert look.get("/session")["commands"].keys() == {"import"}
    assert look.end() == 0
    data = json.loads((shell.folder / "told.json").read_text())
    data["rows"][0]["at"] += 1
    shell.write("changed.json", json.dumps(data))
    said = shell("ui", "--no-open", "changed.json")
    assert said.code == exit_codes.JOURNAL
    assert "changed.json is damaged and is not shown" in said.err


@pytest.mark.slow
def test_two_looks_at_once_each_with_a_token_of_its_own_and_one_ends_by_itself(shell):
    run_id(shell)
    one, other = Look(shell), Look(shell, "--idle", "0.01s")
    assert one.url != other.url
    assert one.token != other.token
    assert (
        httpx2.get(one.url + "/runs", headers={"Authorization": f"Bearer {other.token}"}).status_code == 401
    )
    assert other.get("/runs")
    assert other.ended() == exit_codes.COMPLETED
    assert one.get("/runs")
    assert one.end() == 0


@pytest.mark.slow
def test_a_damaged_run_is_listed_as_one_and_said_to_be(shell):
    run = run_id(shell)
    with closing(apsw.Connection(str(shell.folder / JOURNAL))) as file:
        file.execute("update rows set body = zeroblob(10)")
        file.execute("update runs set summary = x''")
    look = Look(shell)
    assert [each["state"] for each in look.get("/runs")["runs"]] == ["damaged"]
    said = look.client.get(f"/runs/{run}/frames")
    assert said.status_code == 500
    assert "damaged" in said.json()["title"]
    assert look.end() == 0


def test_what_cannot_be_looked_at_is_said_before_anything_listens(shell):
    assert shell("ui").code == exit_codes.NOT_FOUND
    run_id(shell)
    said = shell("ui", "zzz")
    assert said.code == exit_codes.NOT_FOUND
    assert "No run starts with 'zzz'" in said.err
    assert shell("ui", "no.json").code == exit_codes.NOT_FOUND
    assert shell("ui", "--idle", "soon").code == exit_codes.USAGE
    with socket.create_server(("127.0.0.1", 0)) as busy:
        said = shell("ui", "--no-open", "--port", busy.getsockname()[1])
    assert said.code == exit_codes.CONFIG
    assert "Give another --port" in said.err
    with closing(apsw.Connection(str(shell.folder / JOURNAL))) as file:
        file.execute("update meta set value = 999 where name = 'format'")
    said = shell("ui", "--no-open")
    assert said.code == exit_codes.JOURNAL
    assert "has format 999" in said.err


def test_a_page_that_is_not_built_is_said_with_what_builds_it(shell, monkeypatch):
    run_id(shell)
    monkeypatch.setattr("antiphon.cli.serving.ui.is_built", lambda: False)
    said = shell("ui")
    assert said.code == exit_codes.CONFIG
    assert "scripts/page.sh builds it" in said.err


def test_an_id_that_only_a_hostile_journal_has_steers_no_address():
    assert path_of("k0ff-1_a") == "/run/k0ff-1_a"
    assert path_of("a?token=x#/b\x1b[31m") == "/run/a%3Ftoken%3Dx%23%2Fb%1B%5B31m"
    assert path_of("") == ""


def test_without_a_screen_no_browser_is_tried(monkeypatch, capsys):
    opened = []
    monkeypatch.setattr(browser.webbrowser, "open", lambda url: opened.append(url) or False)
    monkeypatch.setattr(sys, "platform", "linux")
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    browser._open("http://127.0.0.1:1/")
    assert opened == []
    monkeypatch.setenv("DISPLAY", ":0")
    browser._open("http://127.0.0.1:1/")
    assert opened == ["http://127.0.0.1:1/"]
    assert capsys.readouterr().err == 2 * "no browser could be opened here: open that address in one\n"


def test_the_address_a_browser_is_given_holds_no_token(monkeypatch):
    given = []
    monkeypatch.setattr(browser, "_open", given.append)
    monkeypatch.setattr(browser, "is_built", lambda: True)

    class Served:
        class subjects:
            opening = staticmethod(lambda token: f"once for {len(token)}")

    browser.open_browser(Served, "http://127.0.0.1:1", "secret", "/run/x")
    browser.open_browser(Served, "http://127.0.0.1:1", "")
    while len(given) < 2:
        pass
    assert sorted(given) == ["http://127.0.0.1:1/", "http://127.0.0.1:1/#/run/x?opening=once for 6"]
