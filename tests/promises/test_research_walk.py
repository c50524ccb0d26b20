"""The research team that ships answers a question about PDF and Markdown, with citations that open, by
knowledge, files and an MCP server, which is killed in the middle; a file that is edited meanwhile
changes the next search."""

import asyncio
import json
import os
import re
import shutil
import signal
import sys
import threading
from pathlib import Path

import pytest

from antiphon import Policy, open_run
from antiphon.cli.target import load_target
from antiphon.kernel.run.toolsets.provider import close_unused
from antiphon.models.script import Script, call
from antiphon.tools.knowledge import Federation, FolderSource, KnowledgeLibrary
from tests.transcript import results_shown
from tests.unit.tools.documents_made import pdf
from tests.unit.tools.mcp.conftest import HERE, PATIENCE

RESEARCH = Path(__file__).resolve().parents[2] / "examples" / "research"
NEAP = "At Carn neap tides are small.\n"
REPORT = """# Tides

The moon pulls the sea [files/moon.md:3-3]. In the Bay of Fundy it rises by 16 metres
[files/bays.pdf:1-2]. At Carn neap tides are the smallest of all [files/carn.md:1-1], and the range is
4.11 m to 5.71 m (almanac)."""
CITED = {
    "files/moon.md:3-3": "moon pulls",
    "files/bays.pdf:1-2": "16 metres",
    "files/carn.md:1-1": "smallest of all",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A project: the profiles that ship, whose reader has the server and the sources; documents; the
    server."""
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    pytest.importorskip("pypdf", reason="the extra `knowledge` is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    for part in ("profiles", "llm_configs", "handover_protocols"):
        shutil.copytree(RESEARCH / part, tmp_path / "team" / part)
    reader = tmp_path / "team/profiles/Reader.yaml"
    text = reader.read_text()
    assert "allowed_toolsets: [documents, files]" in text
    reader.write_text(text.replace("[documents, files]", "[rag_tools, files, almanac]"))
    docs = tmp_path / "docs"
    docs.mkdir()
    docs.joinpath("moon.md").write_text("# The moon\n\nThe moon pulls the sea, twice a day.\n")
    docs.joinpath("bays.pdf").write_bytes(pdf("In the Bay of Fundy the tide\nrises by 16 metres."))
    docs.joinpath("carn.md").write_text(NEAP)
    os.mkfifo(tmp_path / "pid")
    server = {"command": sys.executable, "args": [str(HERE / "almanac_server.py"), str(tmp_path / "pid")]}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"almanac": server}}))
    return tmp_path


def killed(pipe):
    """Kill whoever tells its process id."""
    os.kill(int(pipe.read_text()), signal.SIGKILL)


def read_and_edited(folder):
    """The reader's lines; the second search comes after a file was edited."""

    def edited(request):
        (folder / "docs/carn.md").write_text("At Carn neap tides are the smallest of all.\n")
        return call("rag_query", query="neap tides at Carn", top_k=1)

    return [
        [call("rag_query", query="moon pulls"), call("rag_query", query="Bay of Fundy rises")],
        [call("rag_query", query="neap tides at Carn", top_k=1), call("almanac_range_at", place="Fundy")],
        call("almanac_watch", place="Carn"),
        edited,
        [call("read_lines", path="carn.md"), call("almanac_range_at", place="Carn")],
        call("finish_flow", summary="All of it is there."),
    ]


def lines_of(folder):
    """What the models of the team say, by agent."""
    module = {"action": "create", "name": "All", "description": "What raises tides, and how far"}
    assigned = {
        "module_id_to_assign": "WM_1", "agent_profile_logical_name": "Reader",
        "assignment_specific_instructions": "Find it.",
    }  # fmt: skip
    done = {"action": "status_change", "module_id": "WM_1", "status": "completed"}
    return {
        "Partner": [
            call("manage_work_modules", actions=[module]), call("LaunchPrincipalExecutionTool"),
            "I am looking into it.", REPORT,
        ],
        "Principal": [
            call("dispatch_submodules", assignments=[assigned], shared_context_for_all_assignments="Cite."),
            call("manage_work_modules", actions=[done]), call("generate_markdown_report", title="Tides"),
            REPORT,
        ],
        "Reader": read_and_edited(folder),
    }  # fmt: skip


def answered(folder):
    """What the team answers, and what its reader was told of its calls, in order."""
    model, library = Script(lines_of(folder)), KnowledgeLibrary(seconds=PATIENCE)
    team = load_target("team", "docs", library)
    threading.Thread(target=killed, args=(folder / "pid",), daemon=True).start()

    async def asked():
        async with (
            asyncio.timeout(PATIENCE),
            open_run(team.agents, model=model, policy=Policy("guarded")) as run,
        ):
            result = await run.result(await run.post(team.entry, "How do tides work?"))
        await close_unused()
        return result

    try:
        result = asyncio.run(asked())
    finally:
        library.close()
    reader = [each for each in model.requests if 'You are "Reader"' in each.system]
    return result, results_shown(reader[-1])


@pytest.mark.slow
def test_the_research_team_goes_on_whatever_dies_or_changes_under_it(folder):
    result, told = answered(folder)
    assert (result.outcome, result.output) == ("completed", REPORT)
    moon, fundy, before, range_before, watched, after, lines, range_after = told
    assert "[files/moon.md:1-3]" in moon
    assert "[files/bays.pdf:1-2] (page 1)" in fundy
    assert "> At Carn neap tides are small." in before
    assert range_before == "Fundy: up to 16 m"
    # Killed in the middle of a call: the agent is told, has the rest, and has it back by the next call.
    assert watched.startswith("Error: [almanac_watch] ")
    assert "> At Carn neap tides are the smallest of all." in after
    assert "small." not in after
    assert "1: At Carn neap tides are the smallest of all." in lines
    assert range_after == "Carn: 4.11 m to 5.71 m"


def test_its_citations_open_where_they_say(folder):
    (folder / "docs/carn.md").write_text("At Carn neap tides are the smallest of all.\n")
    sources = Federation([FolderSource("files", folder / "docs")], seconds=PATIENCE)
    cited = re.findall(r"\[(\S+?:\d+-\d+)\]", REPORT)
    assert sorted(cited) == sorted(CITED)

    async def opened(citation):
        place, _, lines = citation.rpartition(":")
        first, last = map(int, lines.split("-"))
        return " ".join(text for _, text in (await sources.read(place, first, last)).lines)

    for citation, words in CITED.items():
        assert words in asyncio.run(opened(citation))
