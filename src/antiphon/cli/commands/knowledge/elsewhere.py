"""Sources that are no folders, as `antiphon knowledge` asks them what they hold, and shows it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from antiphon.cli.commands.knowledge.shown import WIDTH, plain_spec
from antiphon.cli.display import output, terminal_escape
from antiphon.errors import AntiphonError
from antiphon.tools.knowledge import KnowledgeKey, SourceSpec
from antiphon.tools.knowledge.source import HeldSource
from antiphon.values.codec import text_of

SECONDS = 30.0
"""What asking a source may take: a server is started in it."""


class SourceSaid(Struct, frozen=True):
    """What a source says of itself, or why it says nothing."""

    about: str = ""
    fault: str = ""


async def said_of(sources: Iterable[HeldSource]) -> dict[str, SourceSaid]:
    """What each source says of itself, one after the other; their connections end."""

    async def one(source: HeldSource) -> SourceSaid:
        try:
            async with asyncio.timeout(SECONDS):
                return SourceSaid(await source.about())
        except TimeoutError:
            return SourceSaid(fault=f"it said nothing within {SECONDS:g} seconds")
        except AntiphonError as error:
            return SourceSaid(fault=text_of(error))
        finally:
            source.let_go()
            await source.left()

    return {each.name: await one(each) for each in sources}


def say_elsewhere(key: KnowledgeKey, spec: SourceSpec, said: SourceSaid, as_json: bool) -> dict[str, Any]:
    """Print what a source says of itself, unless it is to be JSON, which is returned."""
    told = {**plain_spec(key, spec), "about": said.about, "reason": said.fault}
    if not as_json:
        what = f"{said.about or spec.place}{f', but {said.fault}' if said.fault else ''}"
        output.say(terminal_escape.line(f"{spec.name}: {what}", WIDTH))
    return told
