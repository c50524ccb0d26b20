"""From a tool to the record of what is offered, and back to a tool that models and rules know."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn

import msgspec

from antiphon.errors import ToolDefinitionError, ToolError
from antiphon.values.codec import encode_value
from antiphon.values.tool import Tool, tool_from
from antiphon.values.tool.definition import OutsideCall, Reconcile
from antiphon.values.tool.offer import ToolOffer

_CONTRACT = ToolOffer.__struct_fields__[3:-2]


def offer_of(tool: Tool) -> ToolOffer:
    """The record of a tool. Raises ToolDefinitionError for one that cannot be offered by a toolset."""
    for kind in ("raw", "isolated"):
        if getattr(tool, kind):
            raise ToolDefinitionError(f"{tool.name}: a toolset cannot offer a tool that is {kind}")
    if isinstance(tool.function, OutsideCall):
        raise ToolDefinitionError(f"{tool.name}: a toolset offers tools that its provider does")
    contract = {each: getattr(tool, each) for each in _CONTRACT}
    contract |= {"title": tool._shown.title, "resumes": tool.reconcile == "resume"}
    return ToolOffer(tool.name, tool.description, tool.parameters, **contract)


def tool_of(offer: ToolOffer) -> Tool:
    """The tool as models and rules know it; calling it raises ToolError, since its code is elsewhere."""
    return _made(encode_value(offer))


@lru_cache(maxsize=4096)
def _made(encoded: bytes) -> Tool:
    """The tool of an offer, the same one for runs that have the same."""
    offer = msgspec.json.decode(encoded, type=ToolOffer)
    contract: dict[str, Any] = {each: getattr(offer, each) for each in (*_CONTRACT, "title")}
    reconcile: Reconcile | None = "resume" if offer.resumes else None
    return tool_from(
        offer.name, offer.description, offer.parameters, _elsewhere, reconcile=reconcile, **contract
    )


async def _elsewhere(ctx: Any, arguments: dict[str, Any]) -> NoReturn:
    """The function of a tool that was made of a record."""
    raise ToolError("it is only known from the record of the run here, and cannot be called")
