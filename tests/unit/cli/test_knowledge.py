"""`antiphon knowledge`: sources added, listed, searched, followed and forgotten."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/knowledge.md"
LEASES = """# Leases

A run has one owner.

## When an owner dies
Its lease is taken over after 15 s.
"""


@pytest.fixture
def docs(shell):
    shell.write("docs/operations/leases.md", LEASES)
    return shell


@pytest.mark.slow
def test_the_examples_of_the_document(docs):
    block = re.search(r"```console\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)[1]
    for example in block.split("$ antiphon ")[1:]:
        command, *lines = example.splitlines()
        words = [each.strip('"') for each in re.findall(r'"[^"]*"|\S+', command)]
        said = docs(*words, *(("--seconds", "60") if words[1] == "search" else ()))
        assert (said.code, said.err) == (0, ""), command
        got = [line for line in said.out.splitlines() if line]
        assert len(got) == len(lines), (command, got)
        for line, said_line in zip(lines, got, strict=True):
            pattern = ".*".join(re.escape(part) for part in line.split("…"))
            assert re.fullmatch(pattern, said_line), (command, line, said_line)


def test_each_key_has_sources_of_its_own(docs):
    docs("knowledge", "add", "handbook", "docs", "--project", "tides", "--owner", "ana", "--words-only")
    docs("knowledge", "add", "notes", "docs", "--words-only")
    listed = docs("knowledge", "ls", "--json").value
    assert [(each["name"], each["project"], each["owner"]) for each in listed] == [
        ("notes", "", ""),
        ("handbook", "tides", "ana"),
    ]
    assert docs("knowledge", "ls").out.splitlines()[1].endswith("docs  project tides  owner ana")
    found = docs(
        "knowledge", "search", "lease", "--seconds", "60", "--project", "tides", "--owner", "ana", "--json"
    ).value
    assert {each["source"] for each in found["passages"]} == {"handbook"}
    assert docs("knowledge", "search", "lease", "--seconds", "60", "--project", "tides").code == 4
    assert docs("knowledge", "rm", "handbook", "--yes").code == 3


def test_what_was_not_read_and_not_searched_is_told(docs):
    docs.write("docs/odd.md", "\0")
    docs.write("gone/a.md", "A lease.")
    said = docs("knowledge", "add", "handbook", "docs", "--words-only")
    assert "  not read: odd.md is a binary file, not text" in said.out.splitlines()
    assert docs("knowledge", "stats", "--json").value[0]["unreadable"] == [
        {"path": "odd.md", "reason": "odd.md is a binary file, not text"}
    ]
    docs("knowledge", "add", "gone", "gone", "--words-only")
    (docs.folder / "gone").rename(docs.folder / "away")
    said = docs("knowledge", "search", "owner", "--seconds", "60", "--json")
    assert said.code == 6
    assert [each["source"] for each in said.value["missing"]] == ["gone"]
    assert {each["citation"] for each in said.value["passages"]} == {
        "handbook/operations/leases.md:1-3",
        "handbook/operations/leases.md:5-6",
    }


def test_mistakes_say_what_to_do(docs):
    assert docs("knowledge", "ls").out == (
        "There are no sources; `antiphon knowledge add NAME FOLDER` adds one\n"
    )
    assert docs("knowledge", "ls", "--json").value == []
    for words in (("search", "x"), ("watch",)):
        said = docs("knowledge", *words)
        assert (said.code, "adds one" in said.err) == (4, True)
    assert docs("knowledge", "add", "handbook", "docs", "--words-only").code == 0
    for words, code, told in (
        (("add", "handbook", "docs"), 3, "source"),
        (("add", "a b", "docs"), 3, "letters, digits"),
        (("add", "more", "none"), 2, "does not exist"),
        (("search", "x", "--source", "hndbook"), 3, "handbook"),
        (("search", "x", "-n", "0"), 2, "0"),
        (("rm", "none"), 3, "handbook"),
        (("stats", "none"), 3, "handbook"),
    ):
        said = docs("knowledge", *words)
        assert (said.code, told in said.err) == (code, True), (words, said)


@pytest.fixture
def library(docs, monkeypatch):
    """The command in a folder whose file names the MCP server `library`; see library_server.py."""
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(docs.folder / "home"))
    server = Path(__file__).resolve().parents[1] / "tools/mcp/library_server.py"
    docs("mcp", "add", "library", sys.executable, str(server), "usual")
    docs("mcp", "add", "away", "no-such-program-here")
    return docs


@pytest.mark.slow
def test_an_mcp_server_is_a_source(library):
    said = library("knowledge", "add", "papers", "--mcp", "library", "--description", "what is published")
    assert (said.code, said.out) == (0, "papers: MCP server: Search the papers.\n")
    assert library("knowledge", "ls").out == "papers  MCP server library  what is published\n"
    found = library("knowledge", "search", "moon", "--seconds", "60", "--json")
    assert (found.code, found.value["missing"]) == (0, [])
    assert [each["citation"] for each in found.value["passages"]] == ["papers/p1"]
    (told,) = library("knowledge", "stats", "--json").value
    assert (told["mcp"], told["about"], told["reason"]) == (
        {"server": "library", "search": "search", "fetch": "fetch"}, "MCP server: Search the papers.", "",
    )  # fmt: skip
    assert library("knowledge", "rm", "papers", "--yes").out == "papers (MCP server library) is forgotten\n"
    assert library("knowledge", "ls", "--json").value == []


@pytest.mark.slow
def test_a_server_that_cannot_be_asked_is_no_source_unless_that_is_wanted(library):
    wrong = library("knowledge", "add", "papers", "--mcp", "library", "--search", "find")
    assert (wrong.code, wrong.out) == (1, "")
    assert "it has no tool 'find'; its tools: search, fetch. Nothing was added" in wrong.err
    away = library("knowledge", "add", "papers", "--mcp", "away")
    assert away.code == 1
    assert "can not be reached: 'no-such-program-here' was not found" in away.err
    assert library("knowledge", "ls", "--json").value == []
    said = library("knowledge", "add", "papers", "--mcp", "away", "--unchecked")
    assert (said.code, said.out) == (
        0,
        "papers: MCP server away, but can not be reached: 'no-such-program-here' was not found\n",
    )
    library("knowledge", "add", "handbook", "docs", "--words-only")
    stats = library("knowledge", "stats", "--json")
    assert (stats.code, [each["name"] for each in stats.value]) == (6, ["handbook", "papers"])
    found = library("knowledge", "search", "lease", "--seconds", "60", "--json")
    assert found.code == 6
    assert [each["source"] for each in found.value["missing"]] == ["papers"]
    assert found.value["passages"]


def test_a_search_of_the_web_is_a_source(docs, monkeypatch):
    monkeypatch.delenv("BRAVE_API_KEY", raising=False)
    wanting = docs("knowledge", "add", "web", "--web", "brave")
    assert (wanting.code, "BRAVE_API_KEY, the key of brave, is not set" in wanting.err) == (3, True)
    monkeypatch.setenv("BRAVE_API_KEY", "k")
    assert docs("knowledge", "add", "web", "--web", "brave").out == "web: the web, searched by brave\n"
    assert docs("knowledge", "ls").out == "web  the web by brave\n"
    monkeypatch.delenv("BRAVE_API_KEY")
    said = docs("knowledge", "search", "tides", "--json")
    assert (said.code, said.value["missing"][0]["text"]) == (6, "BRAVE_API_KEY, the key of brave, is not set")
    assert docs("knowledge", "stats").code == 6


def test_a_source_is_of_one_kind(docs):
    for words in ((), ("docs", "--web", "brave"), ("--mcp", "a", "--web", "brave")):
        said = docs("knowledge", "add", "more", *words)
        assert (said.code, "A source is a FOLDER, --mcp SERVER or --web WHO" in said.err) == (2, True)
    said = docs("knowledge", "add", "more", "docs", "--fetch", "read")
    assert (said.code, "give --mcp SERVER with them" in said.err) == (2, True)
    for words, told in (
        (("--mcp", "papers"), "Unknown MCP server: papers"),
        (("--web", "gopher"), "Unknown search of the web: gopher"),
    ):
        said = docs("knowledge", "add", "more", *words)
        assert (said.code, told in said.err) == (3, True)
    assert docs("knowledge", "ls", "--json").value == []


def test_faults_of_the_servers_file_are_told_with_their_places(docs):
    docs.write(".mcp.json", '{"mcpServers": {\n "library": {"comand": "x"}}}')
    said = docs("knowledge", "add", "papers", "--mcp", "library")
    assert said.code == 3
    assert ".mcp.json:2:14: mcpServers.library.comand: unknown key; did you mean 'command'?" in said.err


def test_nothing_is_removed_without_yes(docs):
    docs("knowledge", "add", "handbook", "docs", "--words-only")
    assert docs("knowledge", "rm", "handbook").out.endswith("would be forgotten; nothing is without --yes\n")
    assert docs("knowledge", "rm", "handbook", "--yes", "--json").value["removed"] is True
    assert docs("knowledge", "ls", "--json").value == []
    assert (docs.folder / "docs/operations/leases.md").is_file()


def test_a_damaged_source_hides_no_other(docs):
    docs("knowledge", "add", "handbook", "docs", "--words-only")
    docs("knowledge", "add", "notes", "docs", "--words-only")
    docs.write(".antiphon/knowledge/-/-/notes/source.json", "{")
    said = docs("knowledge", "ls")
    assert said.code == 3
    assert said.out.startswith("handbook  ")
    assert "notes/source.json:1:2: is not JSON" in said.err
    assert docs("knowledge", "rm", "notes", "--yes").out == "notes (damaged) is forgotten\n"
    assert docs("knowledge", "ls").code == 0


@pytest.mark.slow
def test_changes_are_printed_until_ctrl_c(docs):
    docs("knowledge", "add", "handbook", "docs", "--words-only")
    docs.write("docs/new.md", "New.\n")
    command = [sys.executable, "-m", "antiphon.cli", "knowledge", "watch"]
    with subprocess.Popen(
        command,
        cwd=docs.folder,
        env=docs.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout.readline() == "handbook: added new.md\n"
            assert process.stderr.readline() == "following; Ctrl-C ends it\n"
            os.replace(docs.folder / "docs/new.md", docs.folder / "docs/other.md")
            told = {process.stdout.readline(), process.stdout.readline()}
            assert told == {"handbook: added other.md\n", "handbook: removed new.md\n"}
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()
