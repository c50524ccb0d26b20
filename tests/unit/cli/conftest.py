import os
import signal

import pytest

from tests.unit.cli.shell import SETTINGS, Shell

TEAM = """\
entry: lead
model: script:script.yaml
agents:
  - name: lead
    instructions: You lead.
    tools: [calculate]
  - name: writer
    instructions: You write.
"""
SCRIPT = """\
lead:
- text: Let me see.
  calls:
  - {call: calculate, args: {expression: 2+3}}
  - {call: call_agent, args: {agent_name: writer, message: Write.}}
- {finish: The result is 5.}
writer:
- {finish: Written.}
"""


@pytest.fixture
def shell(tmp_path, monkeypatch, capsys):
    """A folder with team.yaml and its script, entered, and the command; no setting from outside."""
    for name in list(os.environ):
        if SETTINGS.match(name):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    found = Shell(tmp_path, capsys)
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(found.home / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", os.fspath(found.home))
    found.write("team.yaml", TEAM)
    found.write("script.yaml", SCRIPT)
    yield found
    found.close()


@pytest.fixture(autouse=True, scope="session")
def signals_are_heard():
    """A check in the background of a script may ignore them; the commands tested here must not."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):
        number = getattr(signal, name)
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL)
