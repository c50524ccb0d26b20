"""The research team of test_research_walk.py as people see it: at a terminal, whose live tree tells what
dies, in what the command says of the run, and on the page that draws it."""

import json
import re
import threading

import pytest

from antiphon.values.message import ToolCall
from tests.promises.test_research_walk import CITED, REPORT, folder, killed, lines_of  # noqa: F401 - a fixture
from tests.unit.cli.shell import Shell, Terminal, plain

EDITED = "At Carn neap tides are the smallest of all.\n"
AGAIN = {"call": "rag_query", "args": {"query": "neap tides at Carn", "top_k": 1}}


def written(line):
    """A line of a script as its file has it; what is a function in code asks the same without it."""
    if isinstance(line, ToolCall):
        return {"call": line.name, "args": json.loads(line.arguments)}
    if isinstance(line, list):
        return {"calls": [written(each) for each in line]}
    return line if isinstance(line, str) else AGAIN


def edited_and_killed(place):
    """Once a call of the server is under way: a document is edited, and the server is killed."""
    pid = (place / "pid").read_text()
    (place / "docs/carn.md").write_text(EDITED)
    (place / "known").write_text(pid)
    killed(place / "known")


@pytest.fixture
def asked(folder, capsys):  # noqa: F811 - the fixture
    """What the terminal got while the team answered, and the command."""
    lines = {name: list(map(written, each)) for name, each in lines_of(folder).items()}
    (folder / "script.yaml").write_text(json.dumps(lines))
    threading.Thread(target=edited_and_killed, args=(folder,), daemon=True).start()
    shell = Shell(folder, capsys)
    try:
        words = ("--folder", "docs", "--model", "script:script.yaml", "--policy", "guarded")
        screen = Terminal(shell, "run", "team", "How do tides work?", *words, columns=160, lines=50)
        seen = plain(screen.end())
        assert screen.code == 0, seen
        yield seen, shell
    finally:
        shell.close()


@pytest.mark.slow
def test_it_is_seen_at_the_terminal_in_lists_and_on_the_page(asked):
    seen, shell = asked
    for line in REPORT.splitlines():
        assert line in seen.replace("\r", "")
    assert "almanac is down: " in seen
    run_id = re.search(r"run (\w{12}); to resume", seen)[1]
    assert "toolset almanac: " in shell("runs", "show", run_id).out
    records = json.dumps(shell("runs", "export", run_id).value)
    assert shell("runs", "export", run_id, "--html", "--out", "page.html").code == 0
    page = (shell.folder / "page.html").read_text()
    for text in (page, records):
        assert "smallest of all" in text
        assert "almanac_watch" in text
    for citation in CITED:
        assert re.search(re.escape(citation), page), citation
