"""The tool by which the assistant asks its user."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from antiphon import ToolContext, ToolError, tool
from antiphon.errors import EffectFailed, UserError

MAX_OPTIONS = 8


@tool(effect="read", kind="other", title="Ask the user")
async def ask_user(
    ctx: ToolContext, question: str, options: Annotated[tuple[str, ...], Meta(max_length=MAX_OPTIONS)] = ()
) -> str:
    """Ask the person you work for what only they can decide, and wait for the answer.

    Args:
        question: one question, with what they need to know to answer it.
        options: the answers to choose from, if there are some; none for an answer in words.
    """
    try:
        return await ctx.ask_user(question, options=options)
    except UserError as error:
        raise ToolError(str(error)) from error
    except EffectFailed as error:
        raise ToolError(
            f"{error}; decide yourself what is safest, and say in your answer what you decided"
        ) from error
