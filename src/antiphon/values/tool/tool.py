"""A tool: a function that models may call, what they are shown of it, and the contract of its effect.

The effect says what happens when the process dies in the middle: `read` runs again, `idempotent` runs
again with the same key, `once` asks `reconcile` or ends unknown.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, Literal, cast

import msgspec
from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.schema.arguments import ArgumentParser, ArgumentsRejected, Invalid, Repaired, check_length
from antiphon.schema.shape import Shape
from antiphon.values.generic import Given, Returned
from antiphon.values.model import Example, ToolSpec
from antiphon.values.tool.context import ToolContext

Effect = Literal["read", "idempotent", "once"]


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
        if shape.whole:
            return (
                functools.partial(function, ctx, given)
                if shape.context
                else functools.partial(function, given)
            )
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
