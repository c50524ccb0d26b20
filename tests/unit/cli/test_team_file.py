"""Teams in YAML: what is understood, and where every mistake is."""

import asyncio

import pytest

from antiphon import Example, Limits, LoopOptions, ModelOptions, RetryPolicy, ToolContext
from antiphon.cli.team_file import EDITING, read_team
from antiphon.config.yaml import MAX_BYTES
from antiphon.errors import ConfigError
from antiphon.models.endpoints import EndpointOptions
from antiphon.tools.knowledge import Federation, FolderSource
from antiphon.tools.web.search import PROVIDERS
from antiphon.values.policy import OPEN, Policy, rule


def no_sources():
    return Federation(())


@pytest.fixture
def read(tmp_path):
    def read(text, folder="."):
        path = tmp_path / "team.yaml"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        found = read_team(str(path), folder, no_sources)
        return found.entry, found.agents

    return read


def test_everything_an_agent_may_have(read):
    entry, (a, b) = read("""
entry: b
model: openai:m
agents:
  - name: a
    instructions: |
      First line.
      Second line.
    description: 12
    model: local:smollm2
    can_call: [b, user]
    completion: finish
    tool_execution: single
    loop: {max_reminders: 1, batch: one}
    asking:
      max_output_tokens: 100
      settings: {temperature: 0.5, stop: [x]}
      fallback_models: [openai:n]
      tool_choice: required
      retry: {max_attempts: 1}
    examples:
      - {request: add, call: calculate, arguments: {expression: 1+1}}
    limits: {turns: 3, tokens: null}
    tools: [arithmetic, dates, convert, calculate]
  - name: b
""")
    assert entry == "b"
    assert (a.instructions, a.description, a.model) == ("First line.\nSecond line.\n", "12", "local:smollm2")
    assert (a.can_call, a.completion, a.tool_execution) == (("b", "user"), "finish", "single")
    assert a.loop == LoopOptions(max_reminders=1, batch="one")
    assert a.examples == (Example("add", "calculate", {"expression": "1+1"}),)
    assert a.limits == Limits(turns=3, tokens=None)
    assert a.asking == ModelOptions(
        max_output_tokens=100,
        settings={"temperature": 0.5, "stop": ["x"]},
        fallback_models=("openai:n",),
        tool_choice="required",
        retry=RetryPolicy(max_attempts=1),
    )
    names = [tool.name for tool in a.tools]
    assert names == ["calculate", "today", "weekday", "days_between", "date_add", "convert"]
    assert b.model == "openai:m"


def test_the_first_agent_is_asked_unless_another_is_named(read):
    entry, _ = read("agents: [{name: x}, {name: y}]")
    assert entry == "x"


def test_toolsets_read_the_folder(read, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d/x.md").write_text("hello world")
    _, (agent,) = read("agents: [{name: x, tools: [documents, files, read_lines]}]", str(tmp_path / "d"))
    names = ["search_documents", "list_files", "read_lines", "count_text", "folder_statistics"]
    names += ["grep_files", "find_files", "view_image", "attach_file"]
    assert sorted(tool.name for tool in agent.tools) == sorted(names)
    count = next(tool for tool in agent.tools if tool.name == "count_text")
    assert "2 words" in count("x.md")


def test_the_sets_of_knowledge_search_the_sources_that_were_given(tmp_path):
    (tmp_path / "tides.md").write_text("The moon pulls the sea.\n")
    path = tmp_path / "team.yaml"
    path.write_text(
        "agents:\n  - {name: a, tools: [knowledge, rag_tools, review_workspace_files, write_file]}\n"
    )
    found = read_team(
        str(path), str(tmp_path), lambda: Federation([FolderSource("sea", tmp_path)], seconds=60)
    )
    tools = {each.name: each for each in found.agents[0].tools}
    assert list(tools) == [
        "search_knowledge", "list_sources", "read_document", "rag_query", "list_rag_sources",
        "review_workspace_files", "write_file",
    ]  # fmt: skip
    expected = "[sea/tides.md:1-1]\n> The moon pulls the sea.\n\n(sea: searched by words alone)"
    assert asyncio.run(tools["search_knowledge"]("moon")) == expected
    assert asyncio.run(tools["rag_query"]("moon")) == expected
    assert tools["review_workspace_files"]().startswith("team.yaml (")


def test_tools_that_change_files_are_asked_for_where_a_file_names_them(read, tmp_path):
    (tmp_path / "d").mkdir()
    _, (agent,) = read(
        "agents: [{name: x, tools: [edits, file_system_tools, edit_file]}]", str(tmp_path / "d")
    )
    edits = {tool.name: tool for tool in agent.tools}
    read_too = ["review_workspace_files", "read_lines"]
    assert list(edits) == ["edit_file", "write_file", "move_file", "delete_file", *read_too]
    # `open` allows what was handed over in code, and this was not.
    assert {rule(OPEN, edits[name])[0] for name in EDITING} == {"ask"}
    assert edits["write_file"](ToolContext(), "a.txt", "made\n").content.startswith("a.txt, written, version")
    assert (tmp_path / "d" / "a.txt").read_text() == "made\n"


def test_the_web_is_searched_where_somebody_is_set_up_for_it(read, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for each in PROVIDERS.values():
        monkeypatch.delenv(each.variable, raising=False)
    _, (agent,) = read("agents: [{name: x, tools: [web]}]")
    assert [each.name for each in agent.tools] == ["visit_url"]
    with pytest.raises(
        ConfigError, match=r":1:29: web_search needs somebody who searches: set one of BRAVE_API_KEY"
    ):
        read("agents: [{name: x, tools: [ web_search]}]")
    monkeypatch.setenv("TAVILY_API_KEY", "sk-12345678")
    for tools in ("web", "jina_search_and_visit", "web_search, visit_url"):
        _, (agent,) = read(f"agents: [{{name: x, tools: [{tools}]}}]")
        assert [each.name for each in agent.tools] == ["web_search", "visit_url"]
    assert {rule(Policy("guarded"), each)[0] for each in agent.tools} == {"allow"}
    monkeypatch.setenv("ANTIPHON_WEB_SEARCH", "bing")
    with pytest.raises(ConfigError, match="ANTIPHON_WEB_SEARCH is bing"):
        read("agents: [{name: x, tools: [web]}]")


def test_tools_that_run_commands_are_asked_for_where_a_file_names_them(read, tmp_path):
    _, (agent, other) = read(
        "agents: [{name: x, tools: [shell]}, {name: y, tools: [list_jobs]}]", str(tmp_path)
    )
    tools = {tool.name: tool for tool in agent.tools}
    rulings = {name: rule(OPEN, tool)[0] for name, tool in tools.items()}
    assert rulings == {"shell": "ask", "list_jobs": "allow", "read_job": "allow", "stop_job": "ask"}
    assert [tool.name for tool in other.tools] == ["list_jobs"]


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("", 1, 1, "is empty"),
        ("- a", 1, 1, "a team: expected `key: value` lines"),
        ("entry: a", 1, 1, "`agents` is missing"),
        ("agents: {}", 1, 9, "`agents` is a list"),
        ("agents: []", 1, 9, "`agents` is a list"),
        ("agents:\n  - x", 2, 5, "an agent: expected `key: value` lines"),
        ("agents:\n  - {}", 2, 5, "needs a `name`"),
        ("agents:\n  - name: ''", 2, 11, "An agent's name must be printable"),
        ("agents:\n  - name: user", 2, 11, "not 'user'"),
        ("agents:\n  - name:", 2, 10, "name: Expected `str`"),
        ("agents:\n  - name: a\n  - name: a", 3, 5, "two agents are named 'a'"),
        ("agents: [{name: a}]\nentri: a", 2, 1, "a team: unknown key 'entri'; did you mean 'entry'?"),
        (
            "agents: [{name: a}]\nzzz: a",
            2,
            1,
            "a team: unknown key 'zzz'; it is one of: entry, model, endpoints, agents",
        ),
        ("agents:\n  - name: a\n    instruction: x", 3, 5, "did you mean 'instructions'?"),
        ("agents:\n  - name: a\n    name: b", 3, 5, "'name' stands here twice"),
        ("agents: [{name: a}]\nentry: b", 2, 8, "the entry 'b' is none of the agents; it is one of: a"),
        ("agents:\n  - name: a\n    can_call: [b]", 3, 15, "can_call names 'b'"),
        ("agents:\n  - name: a\n    can_call: b", 3, 15, "can_call: Expected `array`"),
        ("agents:\n  - name: a\n    tools: files", 3, 12, "`tools` is a list of names"),
        (
            "agents:\n  - name: a\n    tools: [files, shall]",
            3,
            20,
            "unknown tool 'shall'. Toolsets: documents, files",
        ),
        ("agents:\n  - name: a\n    completion: maybe", 3, 17, "it is one of: text, finish"),
        ("agents:\n  - name: a\n    loop: {max_reminders: many}", 3, 11, "loop: Expected `int`"),
        ("agents:\n  - name: a\n    limits: {turns: -1}", 3, 13, "limits: Limits(turns=...) is at least 0"),
        ("agents:\n  - name: a\n    limits: {usd: -0.5}", 3, 13, "limits: Limits(usd=...) is at least 0"),
        ("agents:\n  - name: a\n    limits: {usd: .inf}", 3, 13, "limits: Limits(usd=...)"),
        ("agents:\n  - name: a\n    limits: {cached_share: 2}", 3, 13, "limits: Limits(cached_share=...)"),
        ("agents:\n  - name: a\n    loop: {max_reminders: -1}", 3, 11, "loop: LoopOptions(max_reminders"),
        ("agents:\n  - name: a\n    asking: {max_output_tokens: 0}", 3, 13, "asking: ModelOptions(max_out"),
        ("agents:\n  - name: a\n    asking: {retry: {max_attempts: 0}}", 3, 21, "retry: RetryPolicy(max_att"),
        ("agents:\n  - name: a\n    loop: {nudges: 1}", 3, 12, "loop: unknown key 'nudges'"),
        ("agents:\n  - name: a\n    loop: {finish_mode: x}", 3, 11, "loop: Invalid enum value 'x'"),
        ("agents:\n  - name: a\n    asking: 3", 3, 13, "asking"),
        ("agents:\n  - name: a\n    asking: {max_output: 3}", 3, 14, "unknown key 'max_output'"),
        ("agents:\n  - name: a\n    asking: {max_output_tokens: x}", 3, 33, "Expected `int`"),
        (
            "agents:\n  - name: a\n    limits: {turn: 3}",
            3,
            14,
            "limits: unknown key 'turn'; did you mean 'turns'?",
        ),
        ("agents:\n  - name: a\n    limits: {turns: 3, turns: 4}", 3, 24, "'turns' stands here twice"),
        ("agents:\n  - name: a\n    asking: {settings: {a: {b: 1, b: 2}}}", 3, 35, "'b' stands here twice"),
        ("agents:\n  - name: a\n    examples: [{request: x, cal: y}]", 3, 29, "did you mean 'call'?"),
        ("agents:\n  - name: a\n    asking: {settings: {when: 2026-99-99}}", 3, 24, "settings"),
        ("agents: [{name: &x a}, {name: *x}]", 1, 31, "aliases (*name) are not allowed"),
        ("agents: !!python/object:os.system []", 1, 9, "the tag tag:yaml.org,2002:python/object:os.system"),
        ("agents: [{name: a}\nx", 2, 1, "is not YAML"),
        ("agents:\n\t- name: a", 2, 1, "is not YAML"),
        ("a: " + "[" * 40 + "]" * 40, 1, 43, "nested deeper than 40"),
        ("a: 1\n---\nb: 2", 2, 1, "another document begins here"),
        ("? [a]\n: 1", 1, 3, "a key: expected a text"),
    ],
)
def test_mistakes_have_a_place(read, text, line, column, part):
    with pytest.raises(ConfigError) as raised:
        read(text)
    error = raised.value
    assert part in str(error)
    assert (error.line, error.column) == (line, column), str(error)


ENDPOINTS = """
model: openai:m
endpoints:
  openai: {concurrency: 8, requests_per_minute: 500, idle_timeout: 30}
  n: {first_timeout: 1.5}
  "*": {retry: {max_attempts: 5, statuses: [429]}}
agents:
  - name: a
    asking: {fallback_models: [n]}
"""


def test_endpoints_of_a_team(tmp_path):
    path = tmp_path / "team.yaml"
    path.write_text(ENDPOINTS)
    assert read_team(str(path), ".", no_sources).endpoints == {
        "openai": EndpointOptions(concurrency=8, requests_per_minute=500, idle_timeout=30),
        "openai:n": EndpointOptions(first_timeout=1.5),
        "*": EndpointOptions(retry=RetryPolicy(max_attempts=5, statuses=(429,))),
    }


@pytest.mark.parametrize(
    ("text", "line", "column", "part"),
    [
        ("opnai: {concurrency: 8}", 2, 3, "'opnai' names no provider and no model"),
        ("openai: {concurency: 8}", 2, 12, "did you mean 'concurrency'?"),
        ("openai: {concurrency: many}", 2, 25, "Expected `int | null`"),
        ("openai: {concurrency: 0}", 2, 3, "at least 1"),
        ("openai: {retry: {attempts: 8}}", 2, 20, "did you mean 'max_attempts'?"),
        ("openai: {concurrency: 8, concurrency: 9}", 2, 28, "'concurrency' stands here twice"),
        ("openai: 8", 2, 11, "expected `key: value` lines"),
        ("claude: {concurrency: 8}\n  anthropic: {concurrency: 8}", 3, 3, "stands here twice"),
        ("local: {concurrency: 8}", 2, 3, "runs in this process"),
    ],
)
def test_mistakes_in_endpoints_have_a_place(read, text, line, column, part):
    with pytest.raises(ConfigError) as raised:
        read(f"endpoints:\n  {text}\nagents: [{{name: a}}]")
    error = raised.value
    assert part in str(error)
    assert (error.line, error.column) == (line, column), str(error)


def test_files_that_are_none(read, tmp_path):
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_team(str(tmp_path / "none.yaml"), ".", no_sources)
    with pytest.raises(ConfigError, match="larger than 4 MB"):
        read("#" * (MAX_BYTES + 1))
    with pytest.raises(ConfigError, match=r"team\.yaml:2: is not UTF-8"):
        read(b"a: 1\n\xff")
    with pytest.raises(ConfigError, match=r"team\.yaml:1:28: "):
        read("agents: [{name: a, tools: [files]}]", str(tmp_path / "none"))
    assert read(b"\xef\xbb\xbfagents: [{name: a}]")[0] == "a"


def test_the_tools_that_read_cut_results_are_a_set_and_single_tools(read):
    _, (a, b) = read("agents: [{name: a, tools: [outputs]}, {name: b, tools: [grep_output]}]")
    assert [each.name for each in a.tools] == ["read_output", "grep_output"]
    assert [each.name for each in b.tools] == ["grep_output"]
