"""The queue before an endpoint: so many requests at once, so many and so many tokens a minute, in turn.

It belongs to the process, because the provider counts all of its requests: threads with an event loop each,
and one loop after another, wait in the same line. What one loop does here takes microseconds, under a lock.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from math import inf
from threading import Lock

import msgspec

from antiphon.errors import ModelError
from antiphon.values.agent import EndpointOptions
from antiphon.values.model import Delta, Emit, Model, ModelRequest, Reply, Usage

MINUTE = 60.0
DEFAULT_CONCURRENCY = 100
"""Requests at once where nobody says it."""
LONGEST_HOLD = 60.0
"""Seconds that a provider's Retry-After keeps others back. Of a longer one everybody is told by the provider
itself, since only their own rules say whether to wait for it or to ask another model."""
TICK = 1.0
"""Seconds between two looks of a loop at its waiting requests, at most: then they are told their place."""
CHARACTERS_PER_TOKEN = 4
_NOT_BILLED = frozenset(
    {"rate_limit", "overloaded", "network", "quota", "auth", "permission", "validation", "context_length"}
)
"""Failures of requests that no model has worked on."""


class Admitted:
    """A request that was let in. `tokens`: what it is counted with in the minute that begins at `at`."""

    __slots__ = ("at", "counted", "tokens")

    def __init__(self, at: float, tokens: int) -> None:
        self.at, self.tokens, self.counted = at, tokens, True


class _Waiter:
    """A request in the line. `told`: the place it has last been told. `place`: it was let in."""

    __slots__ = ("emit", "future", "loop", "place", "run", "said", "tokens", "told")

    def __init__(self, run: str, tokens: int, emit: Emit) -> None:
        self.run, self.tokens, self.emit = run, tokens, emit
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Admitted] = self.loop.create_future()
        self.place: Admitted | None = None
        self.told, self.said = -1, 0

    def tell(self, number: int) -> None:
        """Tell whoever watches which place in the line the request has; 0: it is asked now."""
        if number != self.told:
            self.told, self.said = number, self.said + 1
            self.emit(Delta("queued", str(number), self.said))


class RequestQueue:
    """Lets requests of many runs through to one endpoint; each run in turn, and first come first served in
    it.

    now: seconds of a steady clock.
    """

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._lock = now, Lock()
        self._users: Counter[tuple[int | None, ...]] = Counter()
        self._concurrency: int = DEFAULT_CONCURRENCY
        self._requests: int | None = None
        self._tokens: int | None = None
        self._running = 0
        self._minute: deque[Admitted] = deque()
        self._spent = 0
        self._held_until = -inf
        # A plain dict is slow to find its first key once many before it are gone.
        self._waiting: OrderedDict[str, deque[_Waiter]] = OrderedDict()
        self._loops: Counter[asyncio.AbstractEventLoop] = Counter()
        self._timers: dict[asyncio.AbstractEventLoop, tuple[float, asyncio.TimerHandle]] = {}
        self._gone: deque[_Waiter | Admitted] = deque()

    # -- whose limits hold ------------------------------------------------------------------

    def join(self, options: EndpointOptions) -> None:
        """Count with the limits of one more user; of several the lowest of each holds."""
        with self._lock:
            self._users[_limits(options)] += 1
            self._set_limits()

    def part(self, options: EndpointOptions) -> None:
        """Count without the limits of a user that has joined."""
        with self._lock:
            self._users[_limits(options)] -= 1
            self._users += Counter()
            self._set_limits()
            self._let_in()

    def _set_limits(self) -> None:
        concurrency, self._requests, self._tokens = map(
            _least, zip(*(self._users or [_NO_LIMITS]), strict=True)
        )
        self._concurrency = concurrency or DEFAULT_CONCURRENCY

    @property
    def idle(self) -> bool:
        """Nobody uses it, and nothing is counted that could matter to the next one."""
        with self._lock:
            self._let_in()
            now = self._now()
            self._forget(now)
            return not (
                self._users or self._running or self._waiting or self._minute or self._held_until > now
            )

    # -- one request ------------------------------------------------------------------------

    async def ask(self, model: Model, request: ModelRequest, emit: Emit) -> Reply:
        """`model.complete`, once it is the request's turn. Whoever is cancelled gives the place up."""
        tokens = estimate(request) if self._tokens is not None else 0
        place = await self._enter(request.session, tokens, emit)
        try:
            reply = await model.complete(request, emit)
        except GeneratorExit:
            # Thrown away, perhaps by the garbage collector in the middle of what the lock guards.
            self._gone.append(place)
            raise
        except BaseException as error:
            self._leave(place, self._failed(error))
            raise
        usage = getattr(reply, "usage", None)
        # Zeros are what an adapter says that does not know.
        self._leave(place, usage.total or None if isinstance(usage, Usage) else None)
        return reply

    async def _enter(self, run: str, tokens: int, emit: Emit) -> Admitted:
        with self._lock:
            if self._gone:
                self._let_in()
            if not self._waiting and self._wait_for(tokens) <= 0:
                return self._admit(tokens)
            waiter = _Waiter(run, tokens, emit)
            self._waiting.setdefault(run, deque()).append(waiter)
            self._loops[waiter.loop] += 1
            self._let_in()
        try:
            place = await waiter.future
            if waiter.told > 0:
                waiter.tell(0)
        except GeneratorExit:
            self._gone.append(waiter)
            raise
        except BaseException:
            self._withdraw(waiter)
            raise
        return place

    def _withdraw(self, waiter: _Waiter) -> None:
        """Nobody waits for it any more: it leaves the line, or gives back the place that it was given."""
        with self._lock:
            self._strike(waiter)
            self._let_in()

    def _leave(self, place: Admitted, billed: int | None) -> None:
        """A request has ended. billed: its tokens; None where nobody knows, so that the estimate stays."""
        with self._lock:
            self._running -= 1
            if billed is not None and place.counted:
                self._spent += billed - place.tokens
                place.tokens = billed
            if self._waiting or self._gone:
                self._let_in()

    def _failed(self, error: BaseException) -> int | None:
        """The tokens of a request that failed, if they are known. Where the provider asks it to wait, nobody
        is let in so long.
        """
        if not isinstance(error, ModelError):
            return None
        wait = error.retry_after
        if wait is not None and 0 < wait <= LONGEST_HOLD and error.kind in ("rate_limit", "overloaded"):
            with self._lock:
                self._held_until = max(self._held_until, self._now() + wait)
        return 0 if error.kind in _NOT_BILLED else None

    # -- under the lock ---------------------------------------------------------------------

    def _wait_for(self, tokens: int) -> float:
        """Seconds until a request may be let in; infinite when another one has to end first."""
        if self._running >= self._concurrency:
            return inf
        now, minute = self._now(), self._minute
        self._forget(now)
        wait = self._held_until - now
        if self._requests is not None and len(minute) >= self._requests:
            wait = max(wait, minute[len(minute) - self._requests].at + MINUTE - now)
        if self._tokens is not None and self._spent > 0 and self._spent + tokens > self._tokens:
            # One that is larger than the limit is let in alone: it would wait for ever.
            left = self._spent
            for place in minute:
                left -= place.tokens
                if left + tokens <= self._tokens or left <= 0:
                    wait = max(wait, place.at + MINUTE - now)
                    break
        return wait

    def _forget(self, now: float) -> None:
        minute = self._minute
        while minute and minute[0].at + MINUTE <= now:
            place = minute.popleft()
            self._spent -= place.tokens
            place.counted = False

    def _admit(self, tokens: int) -> Admitted:
        place = Admitted(self._now(), tokens)
        self._running += 1
        self._minute.append(place)
        self._spent += tokens
        return place

    def _take_back(self, place: Admitted) -> None:
        """A request was let in and never asked: it counts for nothing."""
        self._running -= 1
        if place.counted:
            self._minute.remove(place)
            self._spent -= place.tokens

    def _strike(self, waiter: _Waiter) -> None:
        if waiter.place is not None:
            self._take_back(waiter.place)
            return
        line = self._waiting.get(waiter.run, deque())
        if waiter in line:
            line.remove(waiter)
            self._left(waiter)
            if not line:
                del self._waiting[waiter.run]

    def _left(self, waiter: _Waiter) -> None:
        """A request stands in the line no more."""
        self._loops[waiter.loop] -= 1
        if not self._loops[waiter.loop]:
            del self._loops[waiter.loop]
            _, timer = self._timers.pop(waiter.loop, (0.0, None))
            if timer is not None and waiter.loop is _running_loop():
                timer.cancel()

    def _let_in(self) -> None:
        """Let in those who may come now, one of each run in turn; then have this loop look again in time."""
        while self._gone:
            gone = self._gone.popleft()
            if isinstance(gone, _Waiter):
                self._strike(gone)
            else:
                self._running -= 1
        wait = 0.0
        while self._waiting:
            run, line = next(iter(self._waiting.items()))
            waiter = line[0]
            wait = self._wait_for(waiter.tokens)
            if wait > 0 and not waiter.future.done():
                break
            line.popleft()
            self._left(waiter)
            if line:
                # The others come first.
                self._waiting.move_to_end(run)
            else:
                del self._waiting[run]
            if not waiter.future.done():
                self._give(waiter)
        self._look_again(wait)

    def _give(self, waiter: _Waiter) -> None:
        waiter.place = self._admit(waiter.tokens)
        if waiter.loop is _running_loop():
            waiter.future.set_result(waiter.place)
            return
        try:
            waiter.loop.call_soon_threadsafe(_set, waiter.future, waiter.place)
        except RuntimeError:
            # Its loop is closed, and nobody can wait in it.
            self._take_back(waiter.place)
            waiter.place = None

    def _line(self) -> Iterator[tuple[int, _Waiter]]:
        """Who waits, in the order in which they will be let in, with their place from 1."""
        lines, number, turn = list(self._waiting.values()), 0, 0
        while lines:
            for line in lines:
                number += 1
                yield number, line[turn]
            turn += 1
            lines = [line for line in lines if len(line) > turn]

    def _look_again(self, wait: float) -> None:
        """Have the running loop look again, if somebody waits in it: when it may be their turn, or to tell
        them their place. Other loops look by themselves.
        """
        loop = _running_loop()
        if loop is None or loop not in self._loops:
            return
        wait = min(wait, TICK)
        at = self._now() + wait
        due, timer = self._timers.get(loop, (inf, None))
        if at < due:
            if timer is not None:
                timer.cancel()
            self._timers[loop] = at, loop.call_later(wait, self._look, loop)

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._lock:
            self._timers.pop(loop, None)
            self._let_in()
            told = [(number, waiter) for number, waiter in self._line() if waiter.loop is loop]
        for number, waiter in told:
            waiter.tell(number)


def estimate(request: ModelRequest) -> int:
    """The tokens of a request, as many as its reply may have included; known for certain only when billed."""
    characters = len(request.system) + len(request.tail)
    for message in request.messages:
        characters += len(message.content) + sum(len(call.arguments) for call in message.calls)
    if request.tools:
        characters += len(msgspec.json.encode(request.tools))
    return characters // CHARACTERS_PER_TOKEN + request.max_output


_NO_LIMITS = (None, None, None)


def _limits(options: EndpointOptions) -> tuple[int | None, ...]:
    return options.concurrency, options.requests_per_minute, options.tokens_per_minute


def _least(given: Iterable[int | None]) -> int | None:
    return min((each for each in given if each is not None), default=None)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _set(future: asyncio.Future[Admitted], place: Admitted) -> None:
    if not future.done():
        future.set_result(place)
