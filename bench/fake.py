"""The model of Antiphon's cells: it answers at once, from the number of messages alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from antiphon import Limits, ToolCall
from antiphon.values.model import Delta, Emit, ModelRequest, Reply
from bench.cell import Marks
from bench.workloads import WORD

AMPLE = Limits(depth=10_000, activations=10**6, turns=10**6, calls=10**6, tokens=10**12)
"""Every limit is kept and checked, and none is reached."""


class Fake:
    """A Model port of constant cost, for any number of runs at once.

    answer: the reply to a conversation of so many messages. delay: seconds of every call.
    """

    name = "fake"

    def __init__(
        self, answer: Callable[[int], Reply], delay: float = 0.0, marks: Marks | None = None
    ) -> None:
        self._answer, self._delay, self._marks = answer, delay, marks

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """See `antiphon.values.model.Model`."""
        if self._marks is not None:
            self._marks.mark()
        if self._delay:
            await asyncio.sleep(self._delay)
        return self._answer(len(request.messages))


class Talker:
    """A Model port that says WORD `n` times; the loop runs on after each `burst` of them."""

    name = "talker"

    def __init__(self, n: int, burst: int) -> None:
        self._n, self._burst = n, burst

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """See `antiphon.values.model.Model`."""
        for said in range(1, self._n + 1):
            emit(Delta("text", WORD))
            if said % self._burst == 0:
                await asyncio.sleep(0)
        return Reply(WORD * self._n)


def call(name: str, arguments: str, count: int = 1, turn: int = 0) -> tuple[ToolCall, ...]:
    """`count` calls of one tool with the same arguments."""
    if count == 1:
        return (ToolCall(f"c{turn:04}", name, arguments),)
    return tuple(ToolCall(f"c{turn:04}_{number}", name, arguments) for number in range(count))


def turns(n: int, name: str, arguments: str, text: str = "") -> Callable[[int], Reply]:
    """Replies of `n` turns with one call each, then of an answer."""

    def answer(messages: int) -> Reply:
        turn = messages // 2
        if turn < n:
            return Reply(text, call(name, arguments, turn=turn), "calls")
        return Reply("done")

    return answer
