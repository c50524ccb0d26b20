"""What an agent's own coroutine may do, and what it may know; the operations that it shares with tools.

    async def act(ctx: ActionContext) -> str:
        page = await ctx.step("fetch", fetch, "https://…")     # once, even if the process dies after it
        draft = await ctx.ask_model(f"Summarise: {page}")
        ctx.set("drafts", ctx.data.get("drafts", 0) + 1)
        return draft

A coroutine is the only code that is run again after a crash. What it did through its context is on
record: the same step, asked for again, gives what it gave. What it publishes and sets is recorded
together with its end, so that a second run does neither twice.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from math import inf
from typing import Any, Protocol, TypeVar, overload

import msgspec
from msgspec import Struct

from antiphon.errors import EffectFailed, UserError
from antiphon.values.codec import (
    clean_fields,
    clean_text,
    encode_shallow,
    encode_value,
    stored,
    type_and_text,
)
from antiphon.values.fields import fit, shown
from antiphon.values.message import Message


class StepOperation(Struct, frozen=True):
    """Run `function(*args)`, once."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()


class AskOperation(Struct, frozen=True):
    """Ask the agent's own model, with its instructions and tools."""

    text: str
    name: str = "ask"


class CallOperation(Struct, frozen=True):
    """Let another agent do something."""

    agent: str
    text: str
    name: str = "call"


class QuestionOperation(Struct, frozen=True):
    """Ask the user; `timeout_seconds` from now, None: without an end."""

    text: str
    name: str = "question"
    options: tuple[str, ...] = ()
    schema: dict[str, Any] | None = None
    timeout_seconds: float | None = None


Operation = StepOperation | AskOperation | CallOperation | QuestionOperation
_Value = TypeVar("_Value")


class OperationExecutor(Protocol):
    """Records an operation, performs it and returns its result."""

    async def execute(self, effect_id: str, operation: Operation) -> Any:
        """The result of the effect `effect_id`. Raises EffectFailed for any outcome but `completed`."""
        ...


class Operations:
    """What an action and a tool may do through their context. Each is an effect of its own, on record: when
    the action or the tool is run again after a crash, the same operation gives what it gave."""

    __slots__ = ()

    async def step(self, name: str, function: Callable[..., Any], *args: Any) -> Any:
        """Run `function(*args)`, or `await` it, and keep its result, as JSON has it.

        A step that a crash cut off is run again, one that ended never: name, arguments and occurrence
        identify it. Raises EffectFailed when the function raises, or its result
        is not JSON.
        """
        # A context says in which attempt this is: a step is the same in each.
        known = tuple(type(each).__qualname__ if isinstance(each, Operations) else each for each in args)
        return await self._execute(StepOperation(clean_text(name), function, args), known)

    async def ask_model(self, text: str) -> str:
        """Ask the agent's own model, with its instructions; its tools are there for an action, and not for a
        tool. Raises EffectFailed.

        A text that the model did not end by itself stands under the line `[not the whole answer: ...]`, as
        that of `call` does.
        """
        text = clean_text(text)
        return str(await self._execute(AskOperation(text), text))

    async def call(self, agent: str, text: str) -> str:
        """Let another agent of the team do something. Raises EffectFailed; unknown names too.

        A text that is not the whole answer says so, see `ask_model`.
        """
        agent, text = clean_text(agent), clean_text(text)
        return str(await self._execute(CallOperation(agent, text), (agent, text)))

    @overload
    async def ask_user(
        self, text: str, *, options: Sequence[str] = (), schema: None = None,
        timeout_seconds: float | None = None,
    ) -> str: ...  # fmt: skip

    @overload
    async def ask_user(
        self, text: str, *, options: Sequence[str] = (), schema: Mapping[str, Any],
        timeout_seconds: float | None = None,
    ) -> Any: ...  # fmt: skip

    async def ask_user(
        self, text: str, *, options: Sequence[str] = (), schema: Mapping[str, Any] | None = None,
        timeout_seconds: float | None = None,
    ) -> Any:  # fmt: skip
        """Ask the user, who may take days; the answer.

        options: one of these is the answer. schema: a JSON Schema that the answer must fit; it is returned as
        a value, not as its JSON. What does not fit is refused, and the question stays. timeout_seconds: after
        these it ends without an answer. Raises EffectFailed when nobody is there to answer (`not_found`), or
        nobody did in time (`limit`); UserError for options and a schema that cannot be.
        """
        text, form = clean_text(text), _form(options, schema, timeout_seconds)
        operation = QuestionOperation(text, "question", *form)
        # A plain question is known by its text alone, as it always was.
        content: Any = text if schema is None and not operation.options else (text, *form[:2])
        answer = str(await self._execute(operation, content))
        return msgspec.json.decode(answer) if schema is not None else answer

    async def _execute(self, operation: Operation, content: Any) -> Any:
        """Do an operation; `content` is what it is known by, beside its name."""
        raise NotImplementedError


class OperationIds:
    """The ids of the operations of one action or tool: by name, content and occurrence, so that what is run
    again finds what it had."""

    def __init__(self, effect_id: str) -> None:
        self._effect_id = effect_id
        self._seen: dict[str, int] = {}

    def next(self, name: str, content: Any) -> str:
        """The id of the next operation of that name and content."""
        place = f"{self._effect_id}:{_slug(name)}:{_digest(name, content)}"
        count = self._seen[place] = self._seen.get(place, 0) + 1
        return place if count == 1 else f"{place}:{count}"


class ActionContext(Operations):
    """What one action may do. Belongs to that action: of no use once it has ended.

    new_messages: the messages that the action is for. all_messages: all that the activation has taken
    and published, in order, `new_messages` included. attempt: 1, and one more each time the action is run
    again after a crash. deps: what the caller of the run passed. can_publish: whether the caller distributes
    what is published; if not, publishing is refused.
    """

    def __init__(
        self, executor: OperationExecutor, effect_id: str, agent: str,
        new_messages: Sequence[Message], all_messages: Sequence[Message], data: Mapping[str, Any],
        *, run_id: str = "", attempt: int = 1, deps: Any = None, can_publish: bool = False,
    ) -> None:  # fmt: skip
        self.run_id, self.effect_id, self.agent = run_id, effect_id, agent
        self.new_messages, self.all_messages = new_messages, all_messages
        self.attempt, self.deps, self.can_publish = attempt, deps, can_publish
        self.published: list[Message] = []
        self.changed: dict[str, Any] = {}
        self.appended: dict[str, list[Any]] = {}
        self._executor = executor
        self._kept = data
        self._data: Mapping[str, Any] | None = None
        self._ids = OperationIds(effect_id)

    @property
    def data(self) -> Mapping[str, Any]:
        """What the agent has recorded, as a copy made at the first look; changing it records nothing."""
        if self._data is None:
            self._data = msgspec.json.decode(encode_value(self._kept)) if self._kept else {}
        return self._data

    def publish(self, message: Message) -> None:
        """Give a message to the caller for distribution, once the action has ended.

        Raises UserError when the caller distributes nothing, or it is no message whose data are JSON.
        """
        if not isinstance(message, Message):
            raise UserError(f"{self.agent}: what it publishes is a Message; got {shown(message)}")
        if not self.can_publish:
            raise UserError(f"{self.agent} was called by somebody who distributes nothing; return the result")
        try:
            self.published.append(stored(message))
        except (TypeError, ValueError, RecursionError):
            # The slow way makes texts right, and says what cannot be.
            self.published.append(self._json(clean_fields(message), "what it publishes"))

    def set(self, key: str, value: Any) -> None:
        """Record `data[key] = value` once the action has ended. Raises UserError when it is not JSON."""
        key = clean_text(key)
        self.changed |= self._json({key: value}, f"data[{key!r}]")
        self.appended.pop(key, None)

    def append(self, key: str, values: Sequence[Any]) -> None:
        """Record that the list `data[key]` goes on with `values`; the list itself is not written again.

        Raises UserError when there is something else, or the values are not JSON.
        """
        key = clean_text(key)
        held = self.changed.get(key, self._kept.get(key, []))
        if not isinstance(held, list):
            raise UserError(f"{self.agent}: data[{key!r}] is no list that could go on; set it")
        found = self._json(list(values), f"data[{key!r}]")
        (held if key in self.changed else self.appended.setdefault(key, [])).extend(found)

    def _json(self, value: _Value, what: str) -> _Value:
        """A value as it will be read back."""
        try:
            return stored(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise UserError(f"{self.agent}: {what} must be what JSON can hold: {error}") from error

    async def _execute(self, operation: Operation, content: Any) -> Any:
        return await self._executor.execute(self._ids.next(operation.name, content), operation)


def _form(
    options: Sequence[str], schema: Mapping[str, Any] | None, timeout_seconds: float | None
) -> tuple[tuple[str, ...], dict[str, Any] | None, float | None]:
    """The form of a question as it will be recorded, unless no question can have it. Raises UserError."""
    where = "ask_user"
    given = tuple(map(clean_text, fit(options, tuple[str, ...], f"{where}(options)")))
    held = fit(schema, dict[str, Any] | None, f"{where}(schema)")
    seconds = fit(timeout_seconds, float | None, f"{where}(timeout_seconds)")
    if seconds is not None and not 0 < seconds < inf:
        raise UserError(f"{where}(timeout_seconds) takes a number of seconds above 0; got {seconds!r}")
    return given, held, seconds


Perform = Callable[[Callable[[], Any]], Awaitable[Any]]
"""Calls a function where it may take its time, and returns what that returns or raises."""


async def perform(step: StepOperation, elsewhere: Perform | None = None) -> str:
    """Run a step; its result as JSON. Raises EffectFailed, also when its result is not JSON.

    elsewhere: runs the function; None: this event loop does.
    """
    try:
        if elsewhere is None:
            found = step.function(*step.args)
        else:
            found = await elsewhere(partial(step.function, *step.args))
        if inspect.isawaitable(found):
            found = await found
    except Exception as error:
        said = f"step {step.name}: {type_and_text(error)}"
        raise EffectFailed("failed", said) from error
    try:
        return encode_shallow(found).decode()
    except (TypeError, ValueError, RecursionError) as error:
        raise EffectFailed("failed", f"step {step.name} must return what JSON can hold: {error}") from error


Act = Callable[[ActionContext], Awaitable[Any]]
"""An agent's own coroutine; what it returns is the agent's result."""


def _slug(name: str) -> str:
    return "".join(each if each.isalnum() or each in "_-" else "_" for each in name)[:40]


_encode = msgspec.json.Encoder(enc_hook=lambda value: type(value).__qualname__, order="deterministic").encode


def _digest(name: str, content: Any) -> str:
    return blake2b(_encode((name, content)), digest_size=6).hexdigest()
