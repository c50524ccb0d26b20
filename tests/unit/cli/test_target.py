"""Targets in the user's own code: what is taken, and where a mistake in it is."""

import asyncio
import sys
from typing import get_type_hints

import pytest

from antiphon import run_sync
from antiphon.cli.target import load_declared, load_target
from antiphon.errors import ConfigError, UserError
from antiphon.models.script import Script, call
from antiphon.tools.knowledge import KnowledgeKey, KnowledgeStore
from antiphon.values.policy import Policy


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [path for path in sys.path if path])
    known = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - known:
        del sys.modules[name]


def write(here, text, name="mine.py"):
    (here / name).write_text("from antiphon import Agent, tool\n" + text)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("mine", "'mine' names no target; it is a team file"),
        (":x", "names no target"),
        ("mine.py:", "names no target"),
        ("mine.py", "mine.py has: mine.py:a, mine.py:team"),
        ("other.py:x", "There is no file other.py"),
        ("nobodys.mine:x", "There is no module nobodys, neither installed nor in"),
        ("mine.py:b", "mine.py has no b. Agents and teams in it: a, team"),
        ("mine.py:number", "is a int; expected an Agent"),
        ("mine.py:empty", "is a list; expected an Agent"),
        ("mine.py:Kind", "is a type; expected an Agent"),
        ("mine.py:act", "is a Tool; expected an Agent"),
        ("mine.py:lost", "the entry 'x' is none of its agents"),
        ("mine.py:needs", "needs() missing 1 required positional argument"),
        ("mine.py:raises", "mine.py:16: ZeroDivisionError: division by zero (while loading mine.py:raises)"),
    ],
)
def test_what_is_no_team(here, text, part):
    write(
        here,
        "a = Agent('a')\nnumber = 3\nempty = []\nclass Kind: ...\n@tool\ndef act(): 'Act.'\n"
        "def team():\n    return a\ndef lost():\n    return 'x', [a]\ndef needs(this):\n    return a\n"
        "def inner():\n    pass\n    return 1 / 0\ndef raises():\n    return inner()\n",
    )
    with pytest.raises(ConfigError) as raised:
        load_target(text)
    assert part in str(raised.value)


@pytest.mark.parametrize(
    ("code", "part"),
    [
        ("import nothing_such", "mine.py:2: ModuleNotFoundError: No module named 'nothing_such'"),
        ("x = (", "mine.py:2:5: SyntaxError: '(' was never closed"),
        ("raise SystemExit('stop')", "mine.py:2: SystemExit: stop"),
        ("Agent('user')", "mine.py:2: UserError: An agent's name must be printable"),
        ("import json\njson.loads('{')", "mine.py:3: JSONDecodeError"),
    ],
)
@pytest.mark.parametrize("target", ["mine.py:a", "mine:a"])
def test_mistakes_in_the_users_code_have_a_place(here, code, part, target):
    write(here, code)
    with pytest.raises(ConfigError) as raised:
        load_target(target)
    assert str(raised.value).startswith(part)


def test_a_folder_goes_to_who_takes_one(here):
    write(
        here,
        "def takes(folder):\n    return Agent(folder.name)\n"
        "def any(**given):\n    return Agent(given['folder'].name or 'here')\n"
        "def none():\n    return Agent('n')\n"
        "a = Agent('a')\n",
    )
    assert load_target("mine.py:takes", "x").entry == "x"
    assert load_target("mine.py:any").entry == "here"
    assert load_target("mine.py:none").entry == "n"
    for target in ("mine.py:none", "mine.py:a"):
        with pytest.raises(ConfigError, match="takes no folder"):
            load_target(target, "x")


def test_a_folder_stands_for_the_team_of_its_team_py(here):
    (here / "desk").mkdir()
    write(here, "def team(folder):\n    return [Agent('a', str(folder))]\n", "desk/team.py")
    found = load_target("desk", "docs")
    assert (found.entry, found.agents[0].instructions) == ("a", "docs")


PROFILE = """
type: associate
tool_access_policy: {allowed_toolsets: [files, arithmetic, outputs, flow_control_end, moon_tools]}
"""


def test_a_folder_of_profiles_is_a_team_with_the_tools_that_ship(here, capsys):
    (here / "desk/profiles").mkdir(parents=True)
    (here / "desk/profiles/Clerk.yaml").write_text(PROFILE)
    (here / "desk/profiles/Other.yaml").write_text("type: nothing")
    (here / "docs").mkdir()
    found = load_target("desk", "docs")
    assert (found.entry, [each.name for each in found.agents]) == ("Clerk", ["Clerk"])
    names = {each.name for each in found.agents[0].tools}
    assert names >= {"list_files", "read_lines", "calculate", "read_output", "finish_flow"}
    assert capsys.readouterr().err == ""
    found.tell_findings()
    told = capsys.readouterr().err.splitlines()
    assert told[0].startswith("desk/profiles/Other.yaml:1:7: type: error: 'nothing' is not known here")
    assert (told[1].partition(":")[0], "moon_tools" in told[1]) == ("desk/profiles/Clerk.yaml", True)


def test_profiles_find_knowledge_under_the_names_they_have_for_it(here, capsys):
    (here / "desk/profiles").mkdir(parents=True)
    (here / "desk/profiles/Clerk.yaml").write_text(
        "type: associate\ntool_access_policy:\n"
        "  {allowed_toolsets: [rag_tools, file_system_tools], allowed_individual_tools: [read_document]}\n"
    )
    (here / "docs").mkdir()
    (here / "docs/tides.md").write_text("The moon pulls the sea.\n")
    found = load_target("desk", "docs")
    found.tell_findings()
    assert capsys.readouterr().err == ""
    assert not (here / ".antiphon").exists(), "nothing is indexed before anybody asks"
    tools = {each.name: each for each in found.agents[0].tools}
    assert {"rag_query", "list_rag_sources", "read_document"} <= set(tools)
    assert {"write_file", "review_workspace_files", "read_lines"} <= set(tools)
    assert asyncio.run(tools["rag_query"]("moon")) == (
        "[files/tides.md:1-1]\n> The moon pulls the sea.\n\n(files: searched by words alone)"
    )
    KnowledgeStore(".antiphon/knowledge").add(KnowledgeKey(), "notes", "docs")
    KnowledgeStore(".antiphon/knowledge").add(KnowledgeKey("tides"), "others", "docs")
    listed = asyncio.run(tools["list_rag_sources"]()).splitlines()
    assert [each.split()[1] for each in listed] == ["notes", "files:"]
    declared = load_declared(here / "desk", here / "docs", project="tides")
    again = {each.name: each for each in declared.agents[0].tools}
    listed = asyncio.run(again["list_rag_sources"]()).splitlines()
    assert [each.split()[1] for each in listed] == ["others", "files:"]


def test_another_profile_of_a_folder_is_asked_by_its_name(here):
    (here / "desk/profiles").mkdir(parents=True)
    for name in ("Clerk", "Other"):
        (here / f"desk/profiles/{name}.yaml").write_text("type: associate")
    found = load_target("desk:Other")
    assert (found.text, found.entry, found.agents[0].name) == ("desk:Other", "Other", "Other")
    with pytest.raises(UserError, match=r"Unknown profile: Nobody\. Known: Clerk, Other"):
        load_target("desk:Nobody")
    write(here, "def team(folder):\n    return [Agent('a'), Agent('b')]\n", "desk/team.py")
    assert load_target("desk:b").entry == "b"
    with pytest.raises(ConfigError, match="the entry 'c' is none of its agents: a, b"):
        load_target("desk:c")


def test_a_folder_without_a_team_is_refused(here):
    (here / "desk").mkdir()
    with pytest.raises(ConfigError, match=r"desk is a folder without a team\.py and without profiles/"):
        load_target("desk")


def test_neighbours_of_the_file_can_be_imported(here):
    (here / "deep").mkdir()
    (here / "deep/tools.py").write_text("NAME = 'from beside'\n")
    write(here, "import tools\na = Agent(tools.NAME)\n", "deep/team.py")
    assert load_target("deep/team.py:a").entry == "from beside"


LATE = """
from msgspec import Struct

class Part(Struct):
    size: {kind}

class Whole(Struct):
    parts: "list[Part]"

a = Agent("a", output_type=Whole)
"""


def test_two_files_of_one_name_are_two_modules(here):
    """As two folders have, each with its team.py: what the types of each name is found in their own."""
    for folder, kind in (("one", "int"), ("two", "str")):
        (here / folder).mkdir()
        write(here / folder, LATE.format(kind=kind))
    one, two = (load_target(f"{folder}/mine.py:a") for folder in ("one", "two"))
    again = load_target("one/mine.py:a")
    modules = [target.agents[0].output_type.__module__ for target in (one, two, again)]
    assert modules == ["mine", "mine_2", "mine"]
    kinds = [get_type_hints(target.agents[0].output_type)["parts"] for target in (one, two)]
    assert [get_type_hints(kind.__args__[0])["size"] for kind in kinds] == [int, str]


def test_a_file_that_is_broken_leaves_what_was_there(here):
    write(here, "a = Agent('a')\n")
    good = load_target("mine.py:a").agents[0]
    write(here, "a = Agent('a')\nraise RuntimeError\n")
    with pytest.raises(UserError):
        load_target("mine.py:a")
    assert sys.modules["mine"].a is good


def test_a_profile_reads_a_file_and_writes_it_anew(here):
    (here / "desk/profiles").mkdir(parents=True)
    (here / "desk/profiles/Clerk.yaml").write_text(
        "type: associate\ntool_access_policy: {allowed_toolsets: [file_system_tools, flow_control_end]}\n"
    )
    (here / "docs").mkdir()
    (here / "docs/tides.md").write_text("The moon.\n")
    model = Script(
        [
            call("review_workspace_files"),
            call("read_lines", path="tides.md"),
            call("write_file", path="tides.md", content="The sun.\n"),
            call("finish_flow", summary="written"),
        ]
    )
    result = run_sync(
        load_target("desk", "docs").agents[0], "Write", model=model, policy=Policy(allow=("write_file",))
    )
    assert (result.outcome, result.output) == ("completed", "written")
    assert (here / "docs/tides.md").read_text() == "The sun.\n"


def test_profiles_find_the_web_under_the_name_they_have_for_it(here, capsys, monkeypatch):
    (here / "desk/profiles").mkdir(parents=True)
    (here / "desk/profiles/Clerk.yaml").write_text(
        "type: associate\ntool_access_policy: {allowed_toolsets: [jina_search_and_visit, flow_control_end]}\n"
    )
    monkeypatch.setenv("JINA_API_KEY", "jina_12345678")
    found = load_target("desk")
    found.tell_findings()
    assert capsys.readouterr().err == ""
    assert {"web_search", "visit_url"} <= {each.name for each in found.agents[0].tools}
