"""Which MCP servers there are: JSON as other programs have it, and every fault of it with its place."""

import json
from pathlib import Path

import pytest

from antiphon.config.json_file import MAX_DEPTH, parse_json
from antiphon.errors import ConfigError, UserError
from antiphon.tools.mcp import McpConfigError, McpServer, configured_servers, read_servers
from antiphon.values.secret import Secret

WHOLE = """{
\t"mcpServers": {
\t\t"files": {"type": "stdio", "command": "npx", "args": ["-y", "srv", "${ROOT:-.}"],
\t\t\t"env": {"TOKEN": "t-${TOKEN}"}},
\t\t"shop": {
\t\t\t"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"},
\t\t\t"required": true, "timeout": 30, "tools": ["find"], "effect": {"buy": "once", "find": "read"}
\t\t}
\t}
}
"""
HERE = Path(__file__).parent
ENV = {"TOKEN": "sk-secret-1", "HOST": "shop.example"}


def read(folder, text, env=ENV):
    (folder / ".mcp.json").write_text(text, "utf-8")
    return read_servers(folder / ".mcp.json", env)


def faults(folder, text, env=ENV):
    """What is wrong, without the file: `line:column: ...` each."""
    with pytest.raises(McpConfigError) as caught:
        read(folder, text, env)
    place = f"{folder / '.mcp.json'}:"
    assert str(caught.value) == "\n".join(map(str, caught.value.faults))
    return [str(each).removeprefix(place) for each in caught.value.faults]


def server(**fields):
    return json.dumps({"mcpServers": {"a": {"command": "x"} | fields}})


def test_a_file_of_another_program_is_read_with_its_variables(tmp_path):
    found = read(tmp_path, WHOLE)
    files, shop = found["files"], found["shop"]
    assert (files.command, files.args) == ("npx", ("-y", "srv", "."))
    assert files.env["TOKEN"].reveal() == "t-sk-secret-1"
    assert (shop.url, shop.required, shop.timeout) == ("https://shop.example/mcp", True, 30.0)
    assert (shop.tools, shop.effect, shop.effects) == (("find",), "read", {"buy": "once", "find": "read"})
    assert shop.headers == {"Authorization": Secret("Bearer sk-secret-1")}
    assert files.origin == str(tmp_path / ".mcp.json")


def test_what_is_secret_is_never_shown(tmp_path):
    found = read(tmp_path, WHOLE)
    assert "sk-secret" not in repr(found)
    assert set(found["shop"].secrets) == {"Bearer sk-secret-1"}


def test_all_that_is_wrong_is_said_at_once_with_its_place_and_what_to_do(tmp_path):
    found = faults(tmp_path, (HERE / "wrong.json").read_text())
    assert found == (HERE / "wrong.txt").read_text().splitlines()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1: is not JSON: a value is expected, and the file ends"),
        ("{\n  // servers\n}", "2:3: is not JSON: a key in quotes is expected, not '/'"),
        ('{"mcpServers": {},}', "1:19: is not JSON: a comma stands before '}'; take it out"),
        ('{"a": 1, "a": 2}', "1:10: is not JSON: the key 'a' stands here twice"),
        ('{"a" 1}', "1:6: is not JSON: ':' is expected after the key 'a', not '1'"),
        ('{"a": 1 "b"}', "1:9: is not JSON: ',' or '}' is expected, not '\"'"),
        ('{"a": "x\ny"}', "1:7: is not JSON: a text begins here that does not end"),
        ('{"a": "\\q"}', "1:8: is not JSON: Invalid \\escape"),
        ('{"a": "\\ud800"}', "1:7: is not JSON: the text holds half of a surrogate pair"),
        ('{"a": 01}', "1:8: is not JSON: ',' or '}' is expected, not '1'"),
        ("{} {}", "1:4: is not JSON: something follows the end of the value"),
        ("[]", "1:1: an object {...} is expected, not a list"),
        ("{}", '1:1: the key "mcpServers" is missing'),
        ("[" * 60 + "]" * 60, f"1:42: is not JSON: nested deeper than {MAX_DEPTH}"),
    ],
)
def test_what_is_no_file_of_servers_is_refused_where_it_is_wrong(tmp_path, text, said):
    (fault,) = faults(tmp_path, text)
    assert fault.startswith(said)


def test_values_and_places_are_those_of_json():
    text = '{"a": [1, -2.5e1, true, null, "\\u00e9\\n"], "b": {}}'
    found = parse_json(text)
    assert found.data == json.loads(text)
    assert (found.value["b"].place.line, found.value["b"].place.column, found.keys["b"].column) == (1, 49, 44)


def test_a_file_that_cannot_be_read_is_one_fault(tmp_path):
    with pytest.raises(McpConfigError, match="cannot be read"):
        read_servers(tmp_path / "none.json")
    (tmp_path / "bin.json").write_bytes(b'{\n"\xff"}')
    with pytest.raises(McpConfigError, match=r"bin\.json:2: is not UTF-8"):
        read_servers(tmp_path / "bin.json")


def test_the_projects_servers_go_before_the_users_and_faults_of_both_are_told(tmp_path):
    home, project = tmp_path / "home/antiphon", tmp_path / "project"
    home.mkdir(parents=True)
    project.mkdir()
    env = {"XDG_CONFIG_HOME": str(tmp_path / "home")}
    assert configured_servers(project, env) == {}
    users = {"a": {"command": "x"}, "b": {"command": "y"}}
    (home / "mcp.json").write_text(json.dumps({"mcpServers": users}))
    (project / ".mcp.json").write_text(json.dumps({"mcpServers": {"b": {"command": "z"}}}))
    found = configured_servers(project, env)
    assert {name: each.command for name, each in found.items()} == {"a": "x", "b": "z"}
    (home / "mcp.json").write_text("[")
    (project / ".mcp.json").write_text("{}")
    with pytest.raises(McpConfigError) as caught:
        configured_servers(project, env)
    assert len(caught.value.faults) == 2
    assert isinstance(caught.value, ConfigError)


def test_the_default_of_a_variable_and_an_empty_one(tmp_path):
    found = read(tmp_path, server(args=["${A:-x:-y}", "$B", "${C}", ""], env={"D": ""}), {"C": ""})["a"]
    assert (found.args, found.env["D"].reveal()) == (("x:-y", "$B", "", ""), "")


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "neither"),
        ({"command": "x", "url": "http://h"}, "both"),
        ({"url": "file:///etc"}, "no http or https address"),
        ({"command": "x", "timeout": float("inf")}, "timeout"),
        ({"command": "x", "effect": "write"}, "effect"),
        ({"command": "x", "env": {"A": 1}}, "env"),
        ({"command": "x", "args": "abc"}, "args"),
    ],
)
def test_a_server_in_code_is_checked_too(fields, said):
    with pytest.raises(UserError, match=said):
        McpServer("a", **fields)


def test_servers_of_one_program_and_credential_have_one_key():
    one = McpServer("a", "x", env={"A": "1"}, effects={"b": "once", "a": "read"})
    assert (
        one.key == McpServer("a", "x", env={"A": "1"}, effects={"a": "read", "b": "once"}, required=True).key
    )
    assert one.key != McpServer("a", "x", env={"A": "2"}, effects={"a": "read", "b": "once"}).key
    assert hash(one.key)
