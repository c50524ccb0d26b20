"""A model with bounds: so many calls at once, so many a minute, and every run has its turn."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any

from antiphon.values.model import Emit, Model, ModelRequest, Reply

MINUTE = 60.0


class Bounded:
    """Passes calls on to `model`, at most `at_once` together and `per_minute` started in any minute.

    Whoever waits is served run by run in turn, so a run with a hundred calls does not keep another
    with one waiting. Share one instance between runs; it belongs to one event loop. Everything else
    of the model (its window, its prices) is the model's own.
    """

    def __init__(self, model: Model, *, at_once: int = 8, per_minute: int | None = None) -> None:
        if at_once < 1 or (per_minute is not None and per_minute < 1):
            raise ValueError(
                "a model that may never be asked is of no use: at_once and per_minute are 1 or more"
            )
        self._model, self._at_once, self._per_minute = model, at_once, per_minute
        self._running = 0
        self._started: deque[float] = deque(maxlen=per_minute or 1)
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._alarm: asyncio.TimerHandle | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._model.name

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """See `Model.complete`; waits for its turn first, and gives its place up when cancelled."""
        await self._enter(request.session)
        try:
            return await self._model.complete(request, emit)
        finally:
            self._running -= 1
            self._let_in()

    async def _enter(self, run: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(run, deque()).append(turn)
        self._let_in()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # Let in and cancelled in the same moment: the place goes to the next.
                self._running -= 1
                self._let_in()
            raise

    def _let_in(self) -> None:
        """Start those who may start now, one of each run in turn."""
        loop = asyncio.get_running_loop()
        while self._waiting and self._running < self._at_once:
            now = loop.time()
            if self._per_minute is not None and len(self._started) == self._per_minute:
                wait = self._started[0] + MINUTE - now
                if wait > 0:
                    if self._alarm is None:
                        self._alarm = loop.call_later(wait, self._ring)
                    return
            run, turns = next(iter(self._waiting.items()))
            del self._waiting[run]
            turn = turns.popleft()
            if turns:
                # To the end of the line: the others come first.
                self._waiting[run] = turns
            if not turn.done():
                self._started.append(now)
                self._running += 1
                turn.set_result(None)

    def _ring(self) -> None:
        self._alarm = None
        self._let_in()
