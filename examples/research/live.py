"""The same team, saying the lines of `script.yaml` at the pace of a model: something to watch without one.

    antiphon serve tides=examples/research/live.py:team --start "tides=How do tides work?" --open

The plan and the report are always those about tides; the readers really search the documents beside it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

from antiphon.models.script import Script
from antiphon.styles.profiles import ProfileLimits, ProfileTeam
from antiphon.tools import folder_tools
from antiphon.values.model import Delta, Emit, ModelRequest, Reply

HERE = Path(__file__).parent
THINKING_SECONDS = 0.8
PIECE_SECONDS = 0.04


class Unhurried:
    """A script that takes a moment before each reply, and says it word by word."""

    name = "script:unhurried"

    def __init__(
        self, script: Script, thinking: float = THINKING_SECONDS, piece: float = PIECE_SECONDS
    ) -> None:
        self._script, self._thinking, self._piece = script, thinking, piece

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """The script's reply, said slowly."""
        reply = await self._script.complete(request, lambda _: None)
        await asyncio.sleep(self._thinking)
        for delta in _pieces(reply):
            emit(delta)
            await asyncio.sleep(self._piece)
        return reply


def _pieces(reply: Reply) -> Iterator[Delta]:
    for word in re.findall(r"\s*\S+\s*", reply.content):
        yield Delta("text", word)
    for index, call in enumerate(reply.calls):
        yield Delta("call_name", call.name, index)
        for at in range(0, len(call.arguments), 12):
            yield Delta("call_arguments", call.arguments[at : at + 12], index)


def team() -> ProfileTeam:
    """The partner, first, and its team."""
    tools = {each.name: each for each in folder_tools(HERE / "documents")}
    reading = {
        "documents": [tools["search_documents"]],
        "files": [tools["list_files"], tools["read_lines"]],
    }
    model = Unhurried(Script.load(HERE / "script.yaml"))
    models = dict.fromkeys(("Partner", "Principal", "Reader"), model)
    return ProfileTeam(HERE, tools=reading, models=models, bounds=ProfileLimits(steps=20, fan_out=4))
