"""From a server's definitions to tools, and from its results to what a model is shown."""

import base64
import logging

import pytest

from antiphon import Agent, Policy, tool
from antiphon.errors import ToolError
from antiphon.models.script import Script, call
from antiphon.tools.mcp import McpServer
from antiphon.tools.mcp.offers import MAX_BINARY, MAX_TEXT, Definition, shown_result, tool_name, tools_of
from tests.transcript import recorded, results_shown

OBJECT = {"type": "object"}


def define(name="find", description="Find.", parameters=OBJECT, **more):
    whole = {"name": name, "description": description, "inputSchema": parameters} | more
    return Definition(name, description, parameters, whole)


def made(*definitions, **fields):
    server = McpServer("web", "x", **fields)
    return {each.name: each for each in tools_of(server, definitions, None)}


@pytest.mark.parametrize(
    ("hints", "fields", "effect"),
    [
        ({}, {}, "once"),
        ({"readOnlyHint": True}, {}, "read"),
        ({"idempotentHint": True}, {}, "idempotent"),
        ({"readOnlyHint": True, "idempotentHint": True}, {}, "read"),
        ({"readOnlyHint": "true", "idempotentHint": 1}, {}, "once"),
        ({"readOnlyHint": True}, {"effect": "idempotent"}, "idempotent"),
        ({"readOnlyHint": True}, {"effect": "once"}, "once"),
        ({}, {"effect": "read"}, "once"),
        ({}, {"effects": {"find": "read"}}, "read"),
        ({"readOnlyHint": True}, {"effects": {"find": "once", "other": "read"}}, "once"),
    ],
)
def test_a_server_is_believed_as_far_as_its_user_says(hints, fields, effect):
    (tool,) = made(define(annotations=hints), **fields).values()
    assert tool.effect == effect
    assert (tool.trusted, tool.labels, tool.timeout) == (False, ("untrusted",), 60.0)


@pytest.mark.parametrize(
    ("hints", "fields", "kind"),
    [
        ({"readOnlyHint": True}, {}, "fetch"),
        ({"readOnlyHint": True, "openWorldHint": True}, {}, "fetch"),
        ({"readOnlyHint": True, "openWorldHint": False}, {}, "read"),
        ({"readOnlyHint": True, "openWorldHint": "false"}, {}, "fetch"),
        ({"openWorldHint": False}, {}, "other"),
        ({"openWorldHint": False}, {"effects": {"find": "read"}}, "read"),
        ({"readOnlyHint": True, "openWorldHint": False}, {"effect": "once"}, "other"),
    ],
)
def test_what_reads_reaches_out_unless_its_server_says_that_its_world_is_closed(hints, fields, kind):
    (tool,) = made(define(annotations=hints), **fields).values()
    assert (tool.kind, tool.reaches_out) == (kind, kind != "read")


@tool(effect="read", labels=["private"])
def mail() -> str:
    """Read the mail."""
    return "The code is 4711."


@pytest.mark.parametrize(("closed", "told"), [(True, "found"), (False, "nobody is there to ask")])
def test_a_server_that_meets_strangers_is_asked_nothing_by_whoever_read_the_mail(closed, told):
    async def answer(ctx, name, arguments, once):
        return "found"

    hints = {"readOnlyHint": True, "openWorldHint": not closed}
    find = tools_of(McpServer("web", "x"), [define(annotations=hints)], answer)
    model = Script([call("web_find"), call("mail"), call("web_find"), "end"])
    recorded(Agent("a", tools=[*find, mail]), "go", model=model, policy=Policy("open", allow=("*",)))
    first, _, last = results_shown(model.requests[-1])
    assert first == "found"
    assert told in last


def test_names_are_those_that_models_take():
    assert tool_name("web", "find") == "web_find"
    assert tool_name("web", "a.b/c d") == "web_a_b_c_d"
    long = tool_name("web", "x" * 200)
    assert (len(long), long != tool_name("web", "x" * 201)) == (64, True)


def test_two_that_would_have_one_name_are_refused_with_both(caplog):
    with caplog.at_level(logging.WARNING, "antiphon.mcp"):
        assert list(made(define("a.b"), define("a b"), define("c"))) == ["web_c"]
    assert "'a.b' and 'a b' would both be web_a_b; neither is used" in caplog.text


def test_a_tool_whose_arguments_cannot_be_checked_is_left_out_and_the_others_stay(caplog):
    wrong = define("wrong", parameters={"type": "object", "$ref": "http://elsewhere/x"})
    assert list(made(wrong, define(), define(""))) == ["web_find"]
    assert "its tool web_wrong cannot be used" in caplog.text


def test_any_change_of_a_definition_is_another_tool():
    (one,), (same,) = (made(define(title="Find")).values() for _ in range(2))
    (other,) = made(define(title="Find", outputSchema=OBJECT)).values()
    assert (one.digest == same.digest, one.digest == other.digest, one.title) == (True, False, "Find")


def test_a_description_and_a_title_are_bounded():
    (tool,) = made(define(description="x" * 50_000, title="a\nb\x1b[31m" + "y" * 999)).values()
    assert len(tool.description) < 9_000
    assert (len(tool.title), "\n" in tool.title) == (200, False)


def test_what_a_result_holds_is_shown():
    png = base64.b64encode(b"png").decode()
    found = shown_result(
        [
            {"type": "text", "text": "one"},
            {"type": "image", "data": png, "mimeType": "image/png"},
            {"type": "resource_link", "name": "notes", "uri": "file:///n.txt", "mimeType": "text/plain"},
            {"type": "resource", "resource": {"uri": "file:///m.txt", "text": "two"}},
            {"type": "resource", "resource": {"uri": "file:///x", "blob": png}},
        ],
        {"ignored": "since there are texts"},
    )
    assert found.content == (
        "one\n\n[resource: notes, file:///n.txt, text/plain]\n\n[resource: file:///m.txt]\ntwo"
    )
    assert [(each.media_type, each.name) for each in found.attachments] == [
        ("image/png", "image"), ("application/octet-stream", "file:///x"),
    ]  # fmt: skip


def test_what_is_structured_is_shown_where_nothing_else_is():
    assert shown_result([], {"a": [1]}).content == '{"a":[1]}'
    assert shown_result([]).content == "(nothing)"


def test_a_failure_is_raised_with_what_it_says():
    with pytest.raises(ToolError, match="no luck"):
        shown_result([{"type": "text", "text": "no luck"}], failed=True)
    with pytest.raises(ToolError, match="did not say why"):
        shown_result([], failed=True)


def test_a_result_is_bounded():
    big = {"type": "text", "text": "x" * (MAX_TEXT + 10)}
    file = {"type": "image", "data": "A" * (MAX_BINARY + 1), "mimeType": "image/png"}
    found = shown_result([big, file, {"type": "text", "text": "more"}])
    assert len(found.content) < MAX_TEXT + 500
    assert "[10 more characters were left out]" in found.content
    assert found.attachments == ()
