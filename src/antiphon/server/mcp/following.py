"""How far a request of a run has come: followed until it ends, waits for people, or time is up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import Struct

from antiphon.kernel.facts import ids
from antiphon.kernel.facts.records import Record
from antiphon.view import OpenQuestion, RunConnection, RunTree
from antiphon.view.changes import Change, EffectStart
from antiphon.view.nodes import EffectNode
from antiphon.view.reading.events import RunEvents

FIRST = ids.call_id(0, 1, 0)
"""The request that a run begins with."""
MAX_WORDS = 200
"""Characters of a line on progress."""

Tell = Callable[[int, str], Awaitable[None]]
"""Is told of progress: a number that grows, and a line."""


class Standing(Struct, frozen=True):
    """How a request stands. end: how it ended; None while it has not. questions: what people are asked before
    it goes on; none while it goes on by itself."""

    run_id: str
    request: str
    end: EffectNode | None = None
    questions: tuple[OpenQuestion, ...] = ()
    closed: bool = False


def is_request(text: str) -> bool:
    """Whether a text can be the id of a request of the user."""
    with suppress(ValueError):
        found = ids.parse(text)
        return found.activation == 0 and found.turn > 0 and str(found) == text and found.place == "c1"
    return False


def last_request(tree: RunTree) -> str:
    """The user's latest request; the first one where it has not been taken in yet."""
    found = [each for each in tree.effects if is_request(each)]
    return found[-1] if found else FIRST


class RequestWatch:
    """Follows one request of a run. tell: is told of what goes on meanwhile. Use it in `aclosing`."""

    def __init__(self, run: RunConnection, request: str, tell: Tell) -> None:
        self._run, self._request, self._tell = run, request, tell
        self._tree: RunTree | None = None
        self._events: RunEvents | None = None

    async def settled(self, deadline: float | None = None, *, waits_for_people: bool = False) -> Standing:
        """Wait until the request has ended, or waits for people and for nothing else.

        deadline: of the loop's clock, after which it is said how it stands. waits_for_people: what it waits
        for people is waited for, too. Raises JournalError.
        """
        if self._tree is None or self._events is None:
            self._tree = await self._run.tree()
            self._events = self._run.events(self._tree.seq, deltas=False)
        tree, events, request = self._tree, self._events, self._request
        late = False
        while True:
            found = tree.effects.get(request)
            if found is not None and found.ended_at is not None:
                return Standing(self._run.run_id, request, found)
            if tree.waits(request) and (late or not waits_for_people) and (asked := await self._asked(tree)):
                return Standing(self._run.run_id, request, questions=asked)
            if late or events.is_over:
                return Standing(self._run.run_id, request, closed=events.is_over)
            try:
                async with asyncio.timeout_at(deadline):
                    batch = await events.batch()
            except TimeoutError:
                late = True
                continue
            for record in batch:
                for change in tree.add(record) if isinstance(record, Record) else ():
                    if line := told(change):
                        await self._tell(tree.seq, line)

    async def _asked(self, tree: RunTree) -> tuple[OpenQuestion, ...]:
        """What people are asked under the request."""
        under = {number for number, each in tree.activations.items() if each.request == self._request}
        asked = await self._run.open_questions()
        return tuple([each for each in asked if ids.activation_of(each.id) in under])

    async def aclose(self) -> None:
        """Stop following."""
        if self._events is not None:
            self._events.close()


async def until_closed(run: RunConnection, question: str) -> None:
    """Wait until a question is open no more, whoever has answered it."""
    while True:
        folded = await run.folded()
        if question not in folded.tree.human_inputs:
            return
        await folded.wait()


def told(change: Change) -> str:
    """What is going on, in a line; empty for what says nothing to whoever waits."""
    if not isinstance(change, EffectStart):
        return ""
    effect, agent = change.effect, change.activation.agent
    if effect.callee is not None:
        line = (
            f"{agent} asks {effect.callee.agent}" if change.activation.id else f"{effect.callee.agent} begins"
        )
    elif effect.is_tool:
        line = f"{agent}: {effect.name}"
    elif effect.is_reply:
        line = f"{agent} thinks"
    elif effect.is_retry:
        line = f"{agent} asks its model again"
    else:
        return ""
    return line[:MAX_WORDS]
