"""Parameters and results that are pydantic models; only for those who have pydantic."""

from __future__ import annotations

from typing import Any

import pytest

from antiphon.values.schema.arguments import Invalid
from antiphon.values.tool import ToolContext, as_tool, result_of

pydantic = pytest.importorskip("pydantic", reason="pydantic is for users who have it; it is not installed")
CTX = ToolContext("run", "1/1.c0", "writer", "key")


class Address(pydantic.BaseModel):  # type: ignore[misc,name-defined]
    street: str
    number: int = pydantic.Field(alias="no", ge=1)


class Node(pydantic.BaseModel):  # type: ignore[misc,name-defined]
    label: str
    children: list[Node] = pydantic.Field(default_factory=list)


def send(to: Address, copies: list[Address] = [], root: Node | None = None) -> Any:  # noqa: B006
    """Send."""
    return to, copies, root


def test_models_as_parameters() -> None:
    tool = as_tool(send)
    assert tool.parameters["properties"]["to"]["properties"]["no"]["minimum"] == 1
    assert tool.parameters["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    raw = '{"to":{"street":"Main","no":"3"},"root":{"label":"a","children":[{"label":"b"}]}}'
    arguments = tool.prepare(raw)
    assert isinstance(arguments, str)
    assert arguments.startswith('{"to":{"street":"Main","no":3},"copies":[],"root":{')
    assert tool.prepare(arguments) == arguments
    to, copies, root = tool.bind(arguments, CTX)()
    assert (to, copies) == (Address(street="Main", no=3), [])
    assert root.children[0].label == "b"


def test_what_a_model_refuses() -> None:
    refused = as_tool(send).prepare('{"to":{"street":"Main","no":0}}')
    assert isinstance(refused, Invalid)
    assert "$.to" in refused.text
    assert "greater than or equal to 1" in refused.text


def test_models_as_results() -> None:
    assert result_of(Address(street="Main", no=3)).content == '{"street":"Main","no":3}'
    assert result_of([Node(label="a")]).content == '[{"label":"a","children":[]}]'
