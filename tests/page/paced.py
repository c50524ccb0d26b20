"""A model that takes its time."""

from collections.abc import Callable
from typing import Any

import msgspec

from antiphon.testing.clock import VirtualClock
from antiphon.values.model import Reply, Usage


class Paced:
    """A model that takes its time, thinks aloud and counts its tokens; lines are `(seconds, reply)`."""

    def __init__(self, clock: VirtualClock, lines: dict[str, list[tuple[float, Any, str]]]) -> None:
        self.name, self._clock, self._lines = "openai:gpt-4.1-mini", clock, lines

    async def complete(self, request: Any, emit: Callable[[Any], None]) -> Reply:
        """The next line of whoever asks."""
        who = request.system.partition('You are "')[2].partition('"')[0]
        said = sum(each.role == "assistant" for each in request.messages)
        attempt = int(request.effect_id.partition(".m")[2] or 1)
        lines = self._lines[who]
        if callable(lines):
            lines = lines(request)
        options = lines[said] if isinstance(lines[said], list) else [lines[said]]
        seconds, line, thought = options[min(attempt, len(options)) - 1]
        await self._clock.sleep_until(self._clock.now() + seconds)
        if isinstance(line, Exception):
            raise line
        calls = tuple(line) if isinstance(line, list) else ()
        calls = tuple(msgspec.structs.replace(each, id=f"{who}_{said}_{n}") for n, each in enumerate(calls))
        text = line if isinstance(line, str) else ""
        sent = len(request.system) // 4 + 260 + sum(len(each.content) // 4 for each in request.messages)
        usage = Usage(sent, 24 + len(text) // 4 + 40 * len(calls), sent * 3 // 4 if said else 0)
        return Reply(text, calls, "calls" if calls else "stop", usage, reasoning=thought)
