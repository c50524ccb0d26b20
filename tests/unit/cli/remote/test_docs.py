"""docs/server.md, "From a terminal elsewhere": each command is called against a server."""

import re
import shlex
from pathlib import Path

import pytest

from antiphon import Agent
from antiphon.models.script import Script
from tests.unit.cli.conftest import shell  # noqa: F401 - a fixture
from tests.unit.cli.remote.serving import TOKEN, serving
from tests.unit.cli.test_docs import CONSOLE, shown

DOCUMENT = Path(__file__).resolve().parents[4] / "docs/server.md"
RUN = "k4c1f00dba5e"
"""The id of the first run, as the document writes it."""


@pytest.mark.slow
def test_examples(shell, monkeypatch, tmp_path_factory):  # noqa: F811
    (block,) = CONSOLE.findall(DOCUMENT.read_text("utf-8"))
    clerk = Agent("clerk", model=Script(["Tea reached Europe in 1610.", "It is 1610 still."]))
    first, *examples = block.split("$ ")[1:]
    assert first.startswith("export ANTIPHON_SERVER=http://127.0.0.1:8000 ANTIPHON_SERVER_TOKEN=")
    real = ""
    with serving(tmp_path_factory.mktemp("elsewhere") / "runs.db", {"desk": clerk}) as server:
        monkeypatch.setenv("ANTIPHON_SERVER", server.url)
        monkeypatch.setenv("ANTIPHON_SERVER_TOKEN", TOKEN)
        for example in examples:
            command, *lines = example.splitlines()
            words = shlex.split(command)
            typed = words[1] + "\n" if words[0] == "echo" else ""
            words = words[words.index("antiphon") + 1 :]
            shell.write("typed", typed)
            with (shell.folder / "typed").open() as file, monkeypatch.context() as patch:
                patch.setattr("sys.stdin", file)
                said = shell(*[real or word if word == RUN else word for word in words])
            assert said.code == 0, (command, said)
            real = real or re.search(r"run (\w{12}), driven", said.err)[1]
            got = [line.replace(real, RUN) for line in (said.err + said.out).splitlines()]
            for line in lines:
                assert any(shown(line).fullmatch(each) for each in got), (command, line, got)
    assert len(examples) == 7
    assert not (shell.folder / ".antiphon").exists()
