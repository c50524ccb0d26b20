"""MCP servers in team files and profiles: a server's name is a toolset, `server_tool` a single tool of it."""

import asyncio
import json
import sys

import pytest
import yaml

from antiphon import run_sync, tool
from antiphon.cli.serving.serve import TeamOptions
from antiphon.cli.target import load_declared, load_target
from antiphon.errors import ConfigError, UserError
from antiphon.host.projects import Projects
from antiphon.models.script import Script, call
from antiphon.styles.profiles import ProfileTeam
from antiphon.testing.provider import ScriptedProvider
from antiphon.values.tool import tool_from
from tests.unit.tools.mcp.conftest import HERE

SERVER = {"command": sys.executable, "args": ["-S", "-E", str(HERE / "peer.py"), "honest"]}
PROFILE = """
type: associate
tool_access_policy: {allowed_toolsets: [SETS], allowed_individual_tools: [TOOLS]}
system_prompt_construction:
  system_prompt_segments:
  - {id: tools, type: tool_description, order: 1}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))
    write(tmp_path, {"pages": SERVER, "pages_two": SERVER, "bank": {**SERVER, "tools": ["echo"]}})
    return tmp_path


def write(folder, servers):
    (folder / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))


def team(folder, *tools):
    agents = {"agents": [{"name": "desk", "model": "script", "tools": list(tools)}]}
    (folder / "team.yaml").write_text(yaml.safe_dump(agents))
    return "team.yaml"


def taken(target):
    (agent,) = target.agents
    return [(each.name, each.only) for each in agent.toolsets]


def test_a_team_file_names_servers_and_single_tools_of_them(folder):
    found = load_target(team(folder, "arithmetic", "pages", "pages_two_act", "pages_two_echo", "bank_echo"))
    assert taken(found) == [
        ("pages", ()), ("pages_two", ("pages_two_act", "pages_two_echo")), ("bank", ("bank_echo",)),
    ]  # fmt: skip
    assert taken(load_target(team(folder, "pages_echo", "pages"))) == [("pages", ())]


def test_what_is_no_server_is_refused_where_it_stands_with_those_that_are(folder):
    with pytest.raises(
        ConfigError, match=r"team\.yaml:5:5: unknown tool 'wep'.*MCP servers: pages, pages_two, bank"
    ):
        load_target(team(folder, "wep"))
    with pytest.raises(ConfigError, match="unknown tool 'bank_act'"):
        load_target(team(folder, "bank_act"))


def test_a_broken_file_of_servers_matters_to_teams_that_name_one(folder):
    (folder / ".mcp.json").write_text('{"mcpServers": {"pages": {}}}')
    assert taken(load_target(team(folder, "arithmetic"))) == []
    with pytest.raises(ConfigError, match=r"team\.yaml:5:5: .*\.mcp\.json:1:26: mcpServers\.pages: neither"):
        load_target(team(folder, "pages"))


def test_a_team_of_a_project_has_the_servers_that_its_file_names(folder):
    with pytest.raises(ConfigError, match="MCP servers: none"):
        load_declared(folder / team(folder, "pages"), folder)
    own = folder / "projects/tides"
    own.mkdir(parents=True)
    team(own, "pages", "search_knowledge")
    (folder / "handbook").mkdir()
    (folder / "handbook/moon.md").write_text("The moon pulls the sea.")

    def said(text):
        """The team as a server loads it, or what is wrong with it."""
        (own / "project.yaml").write_text(text)
        projects = Projects(folder / "projects", TeamOptions().load)
        found = projects.get("tides")
        assert found.findings == ()
        try:
            return projects.team(found, "team")
        except UserError as error:
            return str(error)

    assert "unknown tool 'pages'" in said("teams: [team.yaml]")
    assert "MCP servers: bank" in said("teams: [team.yaml]\nmcp_servers: [bank]")
    missing = said("teams: [team.yaml]\nmcp_servers: [shop]")
    assert missing.endswith(
        "mcp_servers: 'shop' is not set up where the server runs; it has pages, pages_two, bank"
    )
    found = said("teams: [team.yaml]\nmcp_servers: [pages]\nknowledge: {book: ../../handbook, gone: nowhere}")
    assert taken(found) == [("pages", ())]
    (search,) = [each for each in found.agents[0].tools if each.name == "search_knowledge"]
    told = asyncio.run(search("moon"))
    assert told.startswith("[book/moon.md:1-1]\n> The moon pulls the sea.")
    assert "(not searched: gone: " in told


def test_a_change_of_the_project_s_file_is_seen_at_the_next_run(folder):
    own = folder / "projects/tides"
    own.mkdir(parents=True)
    team(own, "pages")
    projects = Projects(folder / "projects", TeamOptions().load)
    (own / "project.yaml").write_text("teams: [team.yaml]\nmcp_servers: [pages]")
    assert taken(projects.team(projects.get("tides"), "team")) == [("pages", ())]
    (own / "project.yaml").write_text("teams: [team.yaml]")
    with pytest.raises(UserError, match="unknown tool 'pages'"):
        projects.team(projects.get("tides"), "team")


def profiles(folder, sets="", tools=""):
    (folder / "profiles").mkdir(exist_ok=True)
    text = PROFILE.replace("SETS", sets).replace("TOOLS", tools)
    (folder / "profiles/Clerk.yaml").write_text(text)


def test_profiles_name_them_too(folder):
    profiles(folder, "pages", "bank_echo")
    assert taken(load_target(".")) == [("pages", ()), ("bank", ("bank_echo",))]


def test_profiles_are_checked_without_starting_a_server(folder, shell, monkeypatch):
    monkeypatch.chdir(folder)
    write(folder, {"pages": {"command": "no-such-program"}})
    profiles(folder, "pages, pagse", "pages_echo, pages_nothing, bank_echo")
    said = shell("profiles", "check", ".")
    assert "the toolset 'pagse' is not installed; did you mean 'pages'?" in said.out
    assert "unknown tool 'bank_echo'" in said.out
    assert "pages_nothing" not in said.out
    assert said.code == 3


def test_profiles_are_checked_with_the_tools_that_servers_have(folder, shell, monkeypatch):
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    monkeypatch.chdir(folder)
    write(folder, {"pages": SERVER, "down": {"command": "no-such-program"}})
    profiles(folder, "pages", "pages_echo, pages_nothing, down_any")
    said = shell("profiles", "check", ".", "--connect")
    assert "unknown tool 'pages_nothing'" in said.out
    assert "down_any" not in said.out
    assert "the MCP server down was not checked: 'no-such-program' was not found" in said.err


def test_a_server_with_the_name_of_a_set_is_refused_where_that_is_named(folder):
    write(folder, {"web": SERVER, "bank": SERVER})
    told = r"'web' is a set of tools that comes with Antiphon, and an MCP server; rename the server"
    with pytest.raises(ConfigError, match=rf"team\.yaml:5:5: {told}"):
        load_target(team(folder, "web"))
    assert taken(load_target(team(folder, "files", "bank"))) == [("bank", ())]
    profiles(folder, "files", "bank_echo")
    with pytest.raises(ConfigError, match=told):
        load_target(".")
    (folder / ".mcp.json").write_text("{")
    assert load_target(team(folder, "web")).agents[0].tools[0].name == "visit_url"


def test_a_segment_lists_the_tools_that_are_there_at_that_turn(folder):
    @tool(effect="read")
    def shop_price(item: str) -> str:
        """What it costs."""
        shop.offer(shop_find)
        return "3"

    @tool(effect="read")
    def shop_find(item: str) -> str:
        """Where it is."""
        return "here"

    shop, huge = ScriptedProvider(shop_price), ScriptedProvider(*_many())
    sets = {"shop": shop.toolset("shop"), "huge": huge.toolset("huge")}
    model = Script([call("shop_price", item="tea"), "done", "done", "done"])
    profiles(folder, "shop, huge")
    run_sync(ProfileTeam(folder, tools=sets, models={"Clerk": model}), "What is tea?")
    first, second = [request.tail for request in model.requests[:2]]
    told = "Your tools now, beside others:\n- {}\n- 200 tools of huge"
    assert told.format("shop_price (shop): What it costs.") in first
    assert told.format("shop_find (shop): Where it is.") in second
    assert model.requests[0].system == model.requests[1].system


def _many():
    async def use(ctx, arguments):
        return ""

    return [tool_from(f"huge_{number}", "Does something. " * 5, {}, use) for number in range(200)]
