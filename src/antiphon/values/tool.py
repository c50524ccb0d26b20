"""Tools: a function as a model may call it, and the contract of its effect on the world.

A tool's schema comes from its signature, once per function. Its effect says what happens when the
process dies in the middle: `read` runs again, `idempotent` runs again with the same key, `once`
asks `reconcile` or ends unknown.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import re
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Generic, Literal, Protocol, cast, overload

import msgspec
from msgspec import Struct, field

from antiphon.errors import ToolDefinitionError, ToolError, UserError
from antiphon.schema.arguments import ArgumentParser, ArgumentsRejected, Invalid, Repaired, check_length
from antiphon.schema.shape import Shape
from antiphon.schema.standins import from_json, to_json
from antiphon.values.codec import clean_fields, clean_text, stored
from antiphon.values.fields import check_fields, fit
from antiphon.values.generic import Given, Held, Returned
from antiphon.values.message import Attachment, ToolResult
from antiphon.values.model import Example, ToolSpec

Effect = Literal["read", "idempotent", "once"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_CACHED = "__antiphon_tool__"
_UNBOUND = frozenset({"reconcile", "examples", "isolated"})


def _gone(handle: str) -> str | None:
    """No output is kept."""
    return None


def _never() -> bool:
    """Nobody stops it."""
    return False


def _silent(text: str) -> None:
    """Progress that nobody listens to."""


class Done(Exception):
    """Raise it from a tool to end the agent's reaction; `result` is then what the agent returns.

    Anything but text becomes JSON; raises ToolError when it cannot.
    """

    def __init__(self, result: Any = "") -> None:
        super().__init__(result)
        self.result = result_of(result).content


class Dependency(Struct, frozen=True):
    """Something tools need: `create(ctx)` makes it when a tool asks for it, `id` is its name."""

    id: str
    create: Callable[[ToolContext], Any]


class ToolContext(Struct, Generic[Held], frozen=True):
    """What a tool may know about its own call; injected into a first parameter named `ctx`."""

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
    """The whole text of a tool result that was cut or removed, by its handle; None when it is gone."""
    report_progress: Callable[[str], None] = _silent
    """Tells whoever watches the run how far the tool has come; the model is not shown it."""
    is_cancelled: Callable[[], bool] = _never
    """Whether the call was given up, for functions in threads that nothing else can stop."""
    dependency_overrides: Mapping[str, Callable[[ToolContext], Any]] = {}
    """What `resolve` makes instead, by the id of the dependency."""
    resolved: dict[str, Any] = field(default_factory=dict)
    """What `resolve` has made in this call, by id."""

    def resolve(self, key: Dependency) -> Any:
        """The dependency, made once in a call of a tool, however often it is asked for."""
        if key.id not in self.resolved:
            self.resolved[key.id] = self.dependency_overrides.get(key.id, key.create)(self)
        return self.resolved[key.id]


class Tool(Struct, Generic[Given, Returned], frozen=True, eq=False, weakref=True, kw_only=True):
    """A function offered to models. Made by `tool` or `as_tool`; immutable, shared freely."""

    name: str
    description: str
    """What the model is told of it."""
    function: Callable[Given, Returned]
    effect: Effect = "once"
    """What happens when the process dies during a call, see the module."""
    reconcile: Callable[..., Any] | None = None
    """Asked after a crash what became of a `once` effect. None: the effect ends `unknown`."""
    timeout: float = 60.0
    """Seconds; a call that takes longer is cancelled, or abandoned when it is synchronous."""
    requires_approval: bool = False
    """A person must allow each call."""
    examples: tuple[Example, ...] = ()
    """Past requests and the calls that were right for them; shown by small local models only."""
    raw: bool = False
    """The only parameter receives the model's text as it is."""
    finishes: bool = False
    """Its result ends the agent's task."""
    labels: tuple[str, ...] = ()
    """What its results carry, such as `untrusted`."""
    exclusive: bool = False
    """Never run beside another tool of the same reply."""
    isolated: bool = False
    """Each call runs in a process of its own, which is killed when it takes too long or is cancelled.

    For functions that hang or crash; no sandbox. That process imports the function anew, so it must
    stand at the top level of a module with a file, not in the program that was started; it shares
    no memory with this process, and each call costs the start of an interpreter. `ctx` has no
    `deps`, no dependencies and no outputs. Only runs do this: called directly it runs here.
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

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON Schema of type object."""
        return self.spec.parameters

    @property
    def has_side_effects(self) -> bool:
        """Whether it may change the world, so that it must be allowed before it starts."""
        return self.effect != "read"

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
        named = given if type(given) is dict else msgspec.structs.asdict(given)
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
        return _bound(self, functools.partial(cast("Callable[..., Any]", self.function), instance))

    def __repr__(self) -> str:
        return f"Tool({self.name!r}, effect={self.effect!r})"


class OfferTool(Protocol):
    """What `@tool(...)` is, and makes of a function."""

    def __call__(self, function: Callable[Given, Returned], /) -> Tool[Given, Returned]:
        """The function as a tool."""
        ...


@overload
def tool(function: Callable[Given, Returned], /) -> Tool[Given, Returned]: ...


@overload
def tool(
    *,
    effect: Effect = "once",
    reconcile: Callable[..., object] | None = None,
    timeout: float = 60.0,
    requires_approval: bool = False,
    examples: tuple[Example, ...] = (),
    name: str | None = None,
    description: str | None = None,
    raw: bool = False,
    finishes: bool = False,
    labels: tuple[str, ...] = (),
    exclusive: bool = False,
    isolated: bool = False,
    trusted: bool = True,
    version: str = "",
) -> OfferTool: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **contract: Any,
) -> Any:
    """Offer a function to models; use it bare or with the fields of `Tool` that differ.

    Name, description and schema come from the function's name, docstring and signature. Raises
    ToolDefinitionError when the signature cannot be offered.
    """

    if function is not None and not callable(function):
        raise ToolDefinitionError(f"tool takes a function, or options by name; got {function!r}")

    def offered(function: Callable[Given, Returned], /) -> Tool[Given, Returned]:
        return cast("Tool[Given, Returned]", _made(function, name, description, contract))

    return offered if function is None else offered(function)


def as_tool(obj: Tool | Callable[..., object]) -> Tool:
    """A tool as it is, a function as a tool with the default contract. Made once per function.

    Raises ToolDefinitionError.
    """
    if isinstance(obj, Tool):
        if obj._shape.method:
            raise ToolDefinitionError(
                f"{obj.name}: parameter 'self' is not bound; take the tool from an instance"
            )
        if obj.isolated:
            _check_found(obj)
        return obj
    if not callable(obj):
        raise ToolDefinitionError(f"{obj!r} is not a function and cannot be a tool")
    source = obj.__func__ if inspect.ismethod(obj) else obj
    if not inspect.isfunction(source):
        return _made(obj, None, None, {})
    # Kept on the function, so that it lives as long as the function and no longer. A decorator may
    # have copied the attribute from the function it wraps, hence the comparison.
    made = source.__dict__.get(_CACHED)
    if not isinstance(made, Tool) or made.function is not source:
        made = source.__dict__[_CACHED] = _made(source, None, None, {})
    if source is obj:
        return as_tool(made)
    return _bound(made, obj) if made._shape.method else _made(obj, None, None, {})


def _bound(unbound: Tool, function: Callable[..., Any]) -> Tool:
    shape = msgspec.structs.replace(unbound._shape, method=False)
    return msgspec.structs.replace(unbound, function=function, _shape=shape)


def _made(
    function: Callable[..., Any], name: str | None, description: str | None, contract: dict[str, Any]
) -> Tool:
    name = _option("name", name, str | None) or str(getattr(function, "__name__", ""))
    description = _option("description", description, str | None)
    given, contract = contract, _checked(name, contract)
    if not _NAME.fullmatch(name):
        raise ToolDefinitionError(
            f"{name!r} cannot be a tool's name: use 1 to 64 letters, digits, '_' and '-' (give name=...)"
        )
    if isinstance(function, type):
        raise ToolDefinitionError(f"{name}: a class cannot be a tool; offer a function or a method")
    target = function.func if isinstance(function, functools.partial) else function
    target = target if inspect.isroutine(target) else type(target).__call__
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise ToolDefinitionError(f"{name}: a generator cannot be a tool; return the whole result")
    # Reading signatures takes eight modules, of which an agent without tools needs none.
    from antiphon.schema.signature import shape_of

    shape = shape_of(function, name, ToolContext)
    if contract.get("raw") and [one.type for one in msgspec.structs.fields(shape.type)] != [str]:
        raise ToolDefinitionError(f"{name}: a raw tool takes exactly one parameter, the text, of type str")
    # A number keeps the digest that it always had, 60 or 60.0.
    given = contract | {key: held for key, held in given.items() if type(held) is int}
    if not contract.get("timeout", 1.0) > 0:
        raise ToolDefinitionError(f"{name}: timeout must be more than 0 seconds")
    if contract.get("isolated"):
        _check_importable(function, name)
    described = shape.described if description is None else description
    spec = ToolSpec(name, described, shape.parameters)
    return Tool(
        name=name,
        description=described,
        function=function,
        is_async=inspect.iscoroutinefunction(target),
        spec=spec,
        digest=_digest(spec, given),
        _shape=shape,
        _reader=ArgumentParser(
            name,
            shape.type,
            shape.parameters,
            from_json,
            to_json,
            ordered=shape.ordered,
            foreign=shape.foreign,
        ),
        **contract,
    )


def _check_importable(function: Callable[..., Any], name: str) -> None:
    """Whether another process could import it, as far as that is known where it is defined."""
    module, qualname = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    file = getattr(sys.modules.get(module), "__file__", None)
    if not inspect.isfunction(function) or not qualname.isidentifier() or file is None:
        raise ToolDefinitionError(
            f"{name}: with isolated=True another process imports the function, so it must stand at the top "
            f"level of a module with a file; got {qualname or function!r} in {module}"
        )
    if module == "__main__":
        raise ToolDefinitionError(
            f"{name}: with isolated=True another process imports the function, and would run the program "
            f"{file} again; put the function into a module that the program imports"
        )


def _check_found(offered: Tool) -> None:
    function = offered.function
    found = getattr(sys.modules.get(function.__module__), function.__qualname__, None)
    if getattr(found, "function", found) is not function:
        raise ToolDefinitionError(
            f"{offered.name}: with isolated=True another process imports the function, and "
            f"{function.__module__}.{function.__qualname__} is something else; give each a name of its own"
        )


_CONTRACT: Mapping[str, Any] = {
    "effect": Effect, "reconcile": Callable[..., Any] | None, "timeout": float, "requires_approval": bool,
    "examples": tuple[Example, ...], "raw": bool, "finishes": bool, "labels": tuple[str, ...],
    "exclusive": bool, "isolated": bool, "trusted": bool, "version": str,
}  # fmt: skip
"""What `tool` may be told beside name and description."""


def _checked(name: str, contract: dict[str, Any]) -> dict[str, Any]:
    for key in contract:
        if key not in _CONTRACT:
            close = get_close_matches(key, _CONTRACT, 1)
            meant = f"did you mean {close[0]}?" if close else f"it takes {', '.join(_CONTRACT)}"
            raise ToolDefinitionError(f"{name}: tool has no {key!r}; {meant}")
    return {key: _option(key, held, _CONTRACT[key], f"{name}: ") for key, held in contract.items()}


def _option(key: str, held: Any, hint: Any, whose: str = "") -> Any:
    try:
        return fit(held, hint, f"{whose}tool({key}=...)")
    except UserError as error:
        raise ToolDefinitionError(str(error)) from None


def _digest(spec: ToolSpec, contract: dict[str, Any]) -> str:
    """What a remembered approval and a recorded call are bound to: what it does to the world.

    Neither its code nor its examples are part of it, nor where it runs.
    """
    bound = {name: value for name, value in contract.items() if name not in _UNBOUND}
    canonical = msgspec.json.encode((spec, bound), order="sorted")
    return hashlib.blake2b(canonical, digest_size=16).hexdigest()


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
        return stored(clean_fields(value))
    if value is None:
        return ToolResult("")
    if isinstance(value, Attachment):
        return ToolResult("", (stored(clean_fields(value)),))
    if isinstance(value, (list, tuple)) and any(isinstance(item, Attachment) for item in value):
        parts = [result_of(item) for item in value]
        files = tuple(file for part in parts for file in part.attachments)
        return ToolResult("\n".join(part.content for part in parts if part.content), files)
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
