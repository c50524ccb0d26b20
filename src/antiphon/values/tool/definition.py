"""A tool: a function that models may call, what they are shown of it and of what it returns, and the contract
of its effect.

The effect says what happens when the process dies in the middle: `read` runs again, `idempotent` runs
again with the same key, `once` asks `reconcile` or ends unknown. A tool that is run again is given what it
had asked through its context.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Generic, Literal, NoReturn, Protocol, TypeVar, cast

import msgspec
from msgspec import Struct, field

from antiphon.errors import ToolError
from antiphon.values.actions import Operation, Operations
from antiphon.values.codec import clean_fields, clean_text, stored
from antiphon.values.fields import check_fields, shown
from antiphon.values.generic import Given, Held, Returned
from antiphon.values.message import LABEL, MAX_LABELS, Attachment, ToolResult, labels_fit, settled
from antiphon.values.model import Example, ToolSpec
from antiphon.values.policy import CallSubject, SubjectsOf, subjects_of
from antiphon.values.progress import FileDiff, FileLocation, ReportProgress
from antiphon.values.schema.arguments import (
    ArgumentParser,
    ArgumentsRejected,
    Invalid,
    Repaired,
    check_length,
)  # fmt: skip
from antiphon.values.schema.shape import Shape
from antiphon.values.schema.standins import to_json
from antiphon.values.tool.offer import Effect, ToolKind

Reconcile = Callable[..., Any] | Literal["resume"]
_Found = TypeVar("_Found")
MAX_CHANGES = 10_000
"""Files that the result of a call says it changed."""
MAX_FILES, MAX_FILE_DATA = 100, 48 * 2**20
"""Files that a call may attach, and the characters of base64 that these have together."""


class Presentation(Struct, frozen=True):
    """How a tool is shown: to people, and to small models."""

    kind: ToolKind = "other"
    title: str = ""
    """One line; empty: made of the name."""
    caution: str = ""
    """One line for whoever is asked whether a call may run, such as what holds it back."""
    examples: tuple[Example, ...] = ()


def _gone(handle: str) -> str | None:
    """No output is kept."""
    return None


def _never() -> bool:
    """Nobody stops it."""
    return False


def _silent(
    text: str = "", *, locations: Iterable[FileLocation] = (), diffs: Iterable[FileDiff] = ()
) -> None:
    """Progress that nobody listens to."""


class ToolDoor(Protocol):
    """What one call of a tool asks of its run."""

    async def execute(self, operation: Operation, content: Any) -> Any:
        """The result of an operation, which is known by its name and `content`. Raises EffectFailed for any
        outcome but `completed`."""
        ...

    def wait(self, asking: Coroutine[Any, Any, _Found]) -> _Found:
        """What a coroutine returns or raises that the run's event loop runs; for other threads."""
        ...

    @property
    def waits(self) -> bool:
        """Whether others are waited for now, such as a person."""
        ...

    @property
    def own_time(self) -> AbstractAsyncContextManager[None] | None:
        """What the call has left, as a timeout that stands still while others are waited for; None: all."""
        ...

    def close(self) -> None:
        """The call is over: nothing is waited for any more."""
        ...


class _Closed:
    """The door of a tool that no run has called."""

    own_time, waits = None, False

    def close(self) -> None:
        """Nothing is waited for."""

    async def execute(self, operation: Operation, content: Any) -> Any:
        raise ToolError(f"ctx cannot do this {operation.name}: no run has called the tool")

    def wait(self, asking: Coroutine[Any, Any, _Found]) -> _Found:
        asking.close()
        raise ToolError("ctx.wait has nothing to wait for: no run has called the tool")


class EarlierCall(Struct, frozen=True):
    """What a call of a tool gave that the same agent made before, or at the same time."""

    effect_id: str
    """Where in the run the call stands."""
    tool: str
    """Its name."""
    content: str = ""
    """Its result, whole where it was cut for the model; of one that failed what the model is shown."""
    is_error: bool = False
    running: bool = False
    """It has no result yet."""
    steps: tuple[str, ...] = ()
    """While it runs, what its steps gave, as JSON."""


def _none_earlier() -> list[EarlierCall]:
    """No run has called the tool."""
    return []


class Dependency(Struct, frozen=True):
    """Something tools need: `create(ctx)` makes it when a tool asks for it, `id` is its name."""

    id: str
    create: Callable[[ToolContext], Any]


class ToolContext(Operations, Struct, Generic[Held], frozen=True):
    """What a tool may know about its own call, and what it may ask of the run in its middle; injected into a
    first parameter named `ctx`.

        region = await ctx.ask_user("Which region?", options=["north", "south"])

    What it asks is on record under its own effect, and counts for its agent's limits. While it waits for that
    its own timeout stands still. A plain function asks with `ctx.wait(ctx.ask_user(...))`.
    """

    run_id: str = ""
    effect_id: str = ""
    """Where in the run the call stands; unique."""
    agent: str = ""
    """Name of the agent that called."""
    idempotency_key: str = ""
    """The same on every attempt of this effect; hand it to the outside system."""
    attempt: int = 1
    """1, and one more each time the effect is run again after a crash."""
    deps: Held = None  # type: ignore[assignment]
    """Whatever the caller of the run passed for its tools."""
    deadline: float | None = None
    """When the call is abandoned, seconds on the event loop's clock. None: no timeout."""
    read_output: Callable[[str], str | None] = _gone
    """The whole text of a result that the agent was shown in part, by its handle; None when it is gone or
    was shown to another."""
    report_progress: ReportProgress = _silent
    """Tells whoever watches the run how far the tool has come, where it works and what it changes; the model
    is not shown it."""
    is_cancelled: Callable[[], bool] = _never
    """Whether the call was given up, for functions in threads that nothing else can stop."""
    dependency_overrides: Mapping[str, Callable[[ToolContext], Any]] = {}
    """What `resolve` makes instead, by the id of the dependency."""
    resolved: dict[str, Any] = field(default_factory=dict)
    """What `resolve` has made in this call, by id."""
    door: ToolDoor = field(default_factory=_Closed)
    """Leads to the run; `ask_user`, `ask_model`, `call` and `step` go through it."""
    attached: list[Attachment] = field(default_factory=list)
    """What `attach` was given in this call."""
    earlier_calls: Callable[[], list[EarlierCall]] = _none_earlier
    """The calls of tools that the agent's conversation holds, oldest first; of the same reply those that have
    ended, then those that still run. All of it is on record, and so the same after a restart."""

    def attach(self, file: Attachment) -> None:
        """Give a file to whoever asked the run: it comes with the result of the request, whoever ends that.

        No model is shown it; what a tool returns is what its model sees. It counts once the call has
        completed. At most 100 files of 48 MiB together (as base64) in a call. Raises ToolError.
        """
        if not isinstance(file, Attachment):
            raise ToolError(f"ctx.attach takes an Attachment; got {shown(file)}")
        size = len(file.data) + sum(len(each.data) for each in self.attached)
        if len(self.attached) >= MAX_FILES or size > MAX_FILE_DATA:
            raise ToolError(
                f"ctx.attach: a call attaches at most {MAX_FILES} files of {MAX_FILE_DATA:,} characters of "
                "base64 together; hand over a larger file by its url"
            )
        self.attached.append(stored(clean_fields(file)))

    def wait(self, asking: Coroutine[Any, Any, _Found]) -> _Found:
        """For functions that are not async: what one of the methods to be awaited returns, or a coroutine of
        your own that awaits several.

        The run's event loop runs it while this thread waits; a step's function runs in this thread. Raises
        what it raises, EffectFailed when the call was given up, UserError on an event loop, which awaits.
        """
        return self.door.wait(asking)

    async def _execute(self, operation: Operation, content: Any) -> Any:
        return await self.door.execute(operation, content)

    def resolve(self, key: Dependency) -> Any:
        """The dependency, made once in a call of a tool, however often it is asked for."""
        if key.id not in self.resolved:
            self.resolved[key.id] = self.dependency_overrides.get(key.id, key.create)(self)
        return self.resolved[key.id]


class Done(Exception):
    """Raise it from a tool to end the agent's reaction; `result` is then what the agent returns.

    Anything but text becomes JSON; raises ToolError when it cannot.
    """

    def __init__(self, result: Any = "") -> None:
        super().__init__(result)
        self.result = result_of(result).content


class OutsideCall(Struct, frozen=True, eq=False):
    """In the place of a tool's function: whoever runs the request does the call, and answers with its
    result."""

    name: str
    """The tool's."""
    result: dict[str, Any] | None = None
    """The JSON Schema of the result; None: any text is one."""

    def __call__(self, arguments: dict[str, Any]) -> NoReturn:
        """Nobody here does it. Raises ToolError."""
        raise ToolError(f"{self.name} has no function: whoever runs the request does it, and answers")


class Tool(Struct, Generic[Given, Returned], frozen=True, eq=False, weakref=True, kw_only=True):
    """A function offered to models. Made by `tool` or `as_tool`; immutable, shared freely."""

    name: str
    function: Callable[Given, Returned]
    effect: Effect = "once"
    """What happens when the process dies during a call, see the module."""
    reconcile: Reconcile | None = None
    """Asked after a crash what became of a `once` effect; it is given the ToolContext, and what the tool had
    asked through it. None: the effect ends `unknown`.

    `"resume"`: all that the tool changes before it has asked, it changes in steps, and it changes nothing
    while it waits for what it asked. So one that died while it waited is run again with the answers on
    record, and goes on waiting; one that died at any other time ends `unknown`.
    """
    timeout: float = 60.0
    """Seconds; a call that takes longer is cancelled, or abandoned when it is synchronous. Of an outside
    tool: how long an answer is waited for, for ever unless it is given."""
    requires_approval: bool = False
    """A person must allow each call."""
    raw: bool = False
    """The only parameter receives the model's text as it is."""
    finishes: bool = False
    """Its result ends the agent's task."""
    labels: tuple[str, ...] = ()
    """What its results carry: they stick to whoever is shown one, and to all that hands on.

    An agent that was shown something `untrusted` and something `private` asks a person before each call that
    acts, whatever was granted.
    """
    exclusive: bool = False
    """Never run beside another tool of the same reply."""
    isolated: bool = False
    """Each call runs in a process of its own, which is killed when it takes too long or is cancelled.

    For functions that hang or crash; no sandbox. That process imports the function anew, so it must
    stand at the top level of a module with a file, not in the program that was started; it shares
    no memory with this process, and each call costs the start of an interpreter. `ctx` has no
    `deps`, no dependencies and no outputs, and cannot ask. Only runs do this: called directly it runs here.
    """
    is_async: bool
    trusted: bool = True
    """Handed over in code by the developer; False when it came from a file or a server."""
    version: str = ""
    """The developer's word that its behaviour changed, where nothing else of it did."""
    spec: ToolSpec
    """What a model is shown."""
    digest: str
    """32 hex characters of BLAKE2b over `spec` and the contract, `version` included."""
    _shape: Shape
    _reader: ArgumentParser
    _shown: Presentation = Presentation()
    _subjects: Mapping[str, SubjectsOf] = {}

    @property
    def description(self) -> str:
        """What the model is told of it."""
        return self.spec.description

    @property
    def kind(self) -> ToolKind:
        """What it is for: a word for people and their programs, which decides `reaches_out` alone."""
        return self._shown.kind

    @property
    def title(self) -> str:
        """What people are shown in place of the name, one line."""
        return self._shown.title or self.name.replace("_", " ").replace("-", " ").strip().capitalize()

    @property
    def examples(self) -> tuple[Example, ...]:
        """Past requests and the calls that were right for them; small local models are shown them."""
        return self._shown.examples

    @property
    def outside(self) -> bool:
        """Whether a call of it is a question to whoever runs the request, see `tool_from`."""
        return type(self.function) is OutsideCall

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of type object."""
        return self.spec.parameters

    @property
    def has_side_effects(self) -> bool:
        """Whether it may change the world, so that it must be allowed before it starts."""
        return self.effect != "read"

    @property
    def reaches_out(self) -> bool:
        """Whether a call may tell a stranger what its agent knows, by what it does or asks for."""
        return self.effect != "read" or self.kind == "fetch"

    @property
    def takes_context(self) -> bool:
        """Whether the function has a parameter for the ToolContext."""
        return bool(self._shape.context)

    def prepare(self, raw: str) -> str | Repaired | Invalid:
        """The canonical JSON of the validated arguments, defaults filled in; pure, never raises.

        Text that is no JSON is repaired for a tool that only reads, and whose result is not yet the
        agent's own; for every other one it is refused.
        """
        if not self.raw:
            found = self._reader.read(raw)
            if type(found) is Invalid and found.broken and self.effect == "read" and not self.finishes:
                return self._reader.repair(raw)
            return found
        try:
            check_length(raw)
            return msgspec.json.encode({self._shape.type.__struct_fields__[0]: raw}).decode()
        except ArgumentsRejected as error:
            return self._reader.refuse(str(error))
        except UnicodeEncodeError:
            return self._reader.refuse("the text holds half of a surrogate pair; give the whole character")

    def revalidate(self, arguments: str) -> str | Invalid:
        """`prepare` for what is canonical already or a person edited: JSON, for a raw tool too."""
        return self._reader.read(arguments)

    def subjects(self, arguments: str) -> tuple[CallSubject, ...]:
        """What a call with these canonical arguments does, thing by thing: each must be allowed.

        Where the tool was not told how to see it (`tool(subjects=...)`), the call as a whole.
        """
        return subjects_of(self._subjects, arguments) if self._subjects else (CallSubject(arguments),)

    def bind(self, arguments: str, ctx: ToolContext | None = None) -> Callable[[], Any]:
        """A call of the function with canonical arguments; its result is awaitable when `is_async`.

        Raises ToolError when the arguments no longer fit, because the function changed since.
        """
        try:
            given = self._reader.decode(arguments)
        except (msgspec.MsgspecError, ValueError) as error:
            raise ToolError(
                f"The recorded arguments do not fit tool {self.name!r} as it is now: {error}"
            ) from error
        function: Callable[..., Any] = self.function
        shape = self._shape
        if shape.plain:
            if shape.context:
                return functools.partial(function, ctx, *msgspec.structs.astuple(given))
            return functools.partial(function, *msgspec.structs.astuple(given))
        if shape.whole:
            return functools.partial(function, *((ctx, given) if shape.context else (given,)))
        named = msgspec.structs.asdict(given)
        if shape.sparse:
            named = {name: value for name, value in named.items() if value is not msgspec.UNSET}
        if shape.context:
            named[shape.context] = ctx
        return functools.partial(function, **named)

    def __call__(self, *args: Given.args, **kwargs: Given.kwargs) -> Returned:
        """The function itself, as if it had not been decorated."""
        return self.function(*args, **kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Tool:
        """A tool defined in a class is bound to the instance it is taken from."""
        if instance is None or not self._shape.method:
            return self
        return bound(self, functools.partial(cast("Callable[..., Any]", self.function), instance))

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, effect={self.effect!r})"


def bound(unbound: Tool, function: Callable[..., Any]) -> Tool:
    """A tool of a method, bound to an instance by `function`."""
    shape = msgspec.structs.replace(unbound._shape, method=False)
    return msgspec.structs.replace(unbound, function=function, _shape=shape)


def result_of(value: Any) -> ToolResult:
    """What a tool returned, as the model is shown it.

    Text stays text, None is empty, an Attachment or a list that holds one is split into text and
    attachments, anything else is JSON. Raises ToolError naming the type that JSON cannot carry.
    """
    if type(value) is str and value.isascii():
        return ToolResult(value)
    if isinstance(value, str):
        return ToolResult(clean_text(value))
    if isinstance(value, ToolResult):
        check_fields(value)
        if not labels_fit(value.labels):
            raise ToolError(f"A result has at most {MAX_LABELS} labels of {LABEL} characters; drop some")
        if len(value.changes) > MAX_CHANGES:
            raise ToolError(f"A result has changes of at most {MAX_CHANGES:,} files")
        found = stored(clean_fields(value))
        return msgspec.structs.replace(found, changes=settled(found.changes)) if found.changes else found
    if value is None:
        return ToolResult("")
    if isinstance(value, Attachment):
        return ToolResult("", (stored(clean_fields(value)),))
    if isinstance(value, (list, tuple)) and any(isinstance(item, Attachment) for item in value):
        parts = [result_of(item) for item in value]
        files = tuple(file for part in parts for file in part.attachments)
        labels = tuple(dict.fromkeys(label for part in parts for label in part.labels))
        return ToolResult("\n".join(part.content for part in parts if part.content), files, labels=labels)
    if isinstance(value, Coroutine):
        value.close()
        raise ToolError(
            "The tool returned a coroutine that nobody waited for: make its function async and await it, or "
            "in one that is not async say ctx.wait(...)"
        )
    return ToolResult(_json_of(value))


_encode = msgspec.json.Encoder(enc_hook=to_json).encode


def _json_of(value: Any) -> str:
    try:
        return str(_encode(value), "utf-8")
    except UnicodeEncodeError:
        plain = msgspec.to_builtins(value, enc_hook=to_json, str_keys=True)
        return clean_text(json.dumps(plain, ensure_ascii=False, separators=(",", ":")))
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        path, culprit = _culprit(value)
        raise ToolError(
            f"The tool returned a {type(culprit).__qualname__} at {path}, which JSON cannot carry: {error}"
        ) from error


def _culprit(value: Any) -> tuple[str, Any]:
    """The innermost part of a result that cannot be written as JSON, and the path to it."""
    path = "$"
    for _ in range(100):
        parts: list[tuple[str, Any]] = []
        if isinstance(value, dict):
            parts = [(f"[{key!r}]", part) for key, part in value.items()]
        elif isinstance(value, (list, tuple, set, frozenset)):
            parts = [(f"[{place}]", part) for place, part in enumerate(value)]
        elif hasattr(value, "__struct_fields__") or hasattr(value, "__dataclass_fields__"):
            names = getattr(value, "__struct_fields__", None) or value.__dataclass_fields__
            parts = [(f".{name}", getattr(value, name)) for name in names]
        found = next(((step, part) for step, part in parts if not _writable(part)), None)
        if found is None:
            return path, value
        path, value = path + found[0], found[1]
    return path, value


def _writable(value: Any) -> bool:
    try:
        msgspec.json.encode(value, enc_hook=to_json)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return False
    return True
