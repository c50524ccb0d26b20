"""Sessions of the user's own: an object that names a conversation, keeps it, and hears of model calls."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import count
from typing import Any, Protocol

import msgspec
from msgspec.structs import replace

from antiphon import Agent, ModelError, Run, UserError
from antiphon.config.dotenv import environment
from antiphon.kernel.context.compaction import HISTORY
from antiphon.models.endpoints.shared import share
from antiphon.values.model import ChatMessage, Emit, Model, ModelRequest, Reply

_read_messages = list[ChatMessage]


class SessionStore(Protocol):
    """A session as an object. It has at least an id: `session_id`, or else `run_id`.

    It may have three methods more. `load()` returns the messages that the conversation goes on from,
    ChatMessages or what JSON makes of them; None for those that the agent knows. `save(messages)` is given
    the conversation after every request. Both may be async; what they raise, the request raises.
    `append(record)` is given each model call in order, as plain data: an `llm.request` with `seq` and
    `input`, then the `llm.response` of the same `seq` with `output` or `error`; it must not block.
    """

    @property
    def session_id(self) -> str: ...


def session_key(session: str | SessionStore | None) -> str | None:
    """The name of a session. Raises UserError for an object without one."""
    if session is None or isinstance(session, str):
        return session
    for name in ("session_id", "run_id"):
        found = getattr(session, name, None)
        if found and isinstance(found, str):
            return found
    raise UserError(
        "session=... takes a name, or an object that has one as session_id or run_id; got a"
        f" {type(session).__name__}"
    )


def stored(session: str | SessionStore | None, numbers: Iterator[int] | None = None) -> StoredSession | None:
    """What is done with a session of the user's own; None for one that is a name. numbers: of model calls."""
    if session is None or isinstance(session, str):
        return None
    return StoredSession(session, numbers or count(1))


class StoredSession:
    """What a request does with a session of the user's own."""

    def __init__(self, store: Any, numbers: Iterator[int]) -> None:
        self._store, self._numbers = store, numbers

    async def load(self, run: Run, agent: Agent) -> None:
        """Have the run go on from what the store says, where that differs."""
        load = getattr(self._store, "load", None)
        found = load() if load is not None else None
        if inspect.isawaitable(found):
            found = await found
        if found is None:
            return
        messages = healed(msgspec.convert(list(found), _read_messages, from_attributes=True))
        if messages != list(run.transcript(agent)):
            text = msgspec.json.encode(messages).decode()
            await run.result(await run.post(agent, text, intent=HISTORY))

    async def save(self, run: Run, agent: Agent) -> None:
        """Give the conversation to the store."""
        save = getattr(self._store, "save", None)
        done = save(list(run.transcript(agent))) if save is not None else None
        if inspect.isawaitable(done):
            await done

    def heard(self, agent: Agent, env: Mapping[str, str] | None, stack: AsyncExitStack) -> Agent:
        """The agent with models that tell the store what they are asked, if it wants to know."""
        if getattr(self._store, "append", None) is None:
            return agent
        spare = [self._heard(each, env, stack) for each in agent.asking.fallback_models]
        asking = replace(agent.asking, fallback_models=tuple(spare))
        return replace(agent, model=self._heard(agent.model, env, stack), asking=asking)

    def _heard(
        self, model: str | Model | None, env: Mapping[str, str] | None, stack: AsyncExitStack
    ) -> Model:
        if model is None or isinstance(model, str):
            model, _ = share(model, environment() if env is None else env, {}, ())
            close = getattr(model, "aclose", None)
            if close is not None:
                stack.push_async_callback(close)
        return HeardModel(model, self)

    def begin(self, request: ModelRequest) -> int:
        """Record a request; the number of the pair."""
        seq = next(self._numbers)
        plain = {
            "model": request.model,
            "system": request.system,
            "messages": [msgspec.to_builtins(each) for each in request.messages],
            "tools": msgspec.to_builtins(request.tools),
            "tool_choice": request.tool_choice,
            "tail": request.tail,
            "max_output": request.max_output,
            "effect_id": request.effect_id,
        }
        self._append("llm.request", seq, input=plain)
        return seq

    def end(self, seq: int, **found: Any) -> None:
        """Record how the request of that number ended."""
        self._append("llm.response", seq, **found)

    def _append(self, kind: str, seq: int, **found: Any) -> None:
        self._store.append({"type": kind, "seq": seq, "timestamp": time.time(), **found})


class HeardModel:
    """Passes calls on to `model` and tells a store of them; everything else of it is the model's own."""

    def __init__(self, model: Model, session: StoredSession) -> None:
        self._model, self._session = model, session

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._model.name

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """See `Model.complete`."""
        seq = self._session.begin(request)
        try:
            reply = await self._model.complete(request, emit)
        except BaseException as error:
            kind = error.kind if isinstance(error, ModelError) else type(error).__name__
            self._session.end(seq, error={"kind": kind, "text": str(error)})
            raise
        self._session.end(seq, output=msgspec.to_builtins(reply))
        return reply


def healed(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    """The messages without system prompts, every call followed by exactly one result, in order."""
    found: list[ChatMessage] = []
    given: Sequence[ChatMessage] = list(messages)
    for index, each in enumerate(given):
        if each.role in ("system", "tool"):
            continue
        found.append(each)
        if not each.calls:
            continue
        results: dict[str, ChatMessage] = {}
        for later in given[index + 1 :]:
            if later.role != "tool":
                break
            results.setdefault(later.call_id, later)
        for call in each.calls:
            lost = ChatMessage("tool", "Error: interrupted", (), call.id, call.name, is_error=True)
            found.append(results.get(call.id, lost))
    return found
