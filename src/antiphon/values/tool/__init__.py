"""Tools: functions that models may call, with a contract of what they do to the world.

Here is how one is made: of a function, whose signature says what it takes, or of a JSON Schema that says it.
`definition.py` holds what a tool is, what it may know of its call, and what becomes of what it returns. May
import: `errors` and the rest of `values`; nothing that knows a run.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from math import inf
from typing import Any, Protocol, TypedDict, Unpack, cast, overload

import msgspec

from antiphon.errors import ToolDefinitionError, UserError
from antiphon.values.fields import fit, shown
from antiphon.values.generic import Given, Returned
from antiphon.values.message import LABEL, MAX_LABELS, labels_fit
from antiphon.values.model import Example, ToolSpec
from antiphon.values.policy import SubjectsOf
from antiphon.values.progress import FileDiff, FileLocation
from antiphon.values.schema.arguments import ArgumentParser
from antiphon.values.schema.shape import Shape
from antiphon.values.schema.standins import from_json, to_json
from antiphon.values.tool.definition import (
    Dependency,
    Done,
    EarlierCall,
    OutsideCall,
    Presentation,
    Reconcile,
    Tool,
    ToolContext,
    bound,
    result_of,
)
from antiphon.values.tool.offer import Effect, ToolKind

__all__ = [
    "Dependency",
    "Done",
    "EarlierCall",
    "Effect",
    "FileDiff",
    "FileLocation",
    "OfferTool",
    "Tool",
    "ToolContext",
    "ToolKind",
    "ToolOptions",
    "as_tool",
    "result_of",
    "tool",
    "tool_from",
]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
MAX_TITLE, MAX_CAUTION = 200, 500
"""Characters of a title, and of a caution."""
_CACHED = "__antiphon_tool__"
_UNBOUND = frozenset({"reconcile", "examples", "isolated", "kind", "title", "caution", "subjects"})


class OfferTool(Protocol):
    """What `@tool(...)` is, and makes of a function."""

    def __call__(self, function: Callable[Given, Returned], /) -> Tool[Given, Returned]:
        """The function as a tool."""
        ...


class ToolOptions(TypedDict, total=False):
    """The contract of a tool; see the fields of `Tool`."""

    effect: Effect
    reconcile: Reconcile | None
    timeout: float
    requires_approval: bool
    examples: tuple[Example, ...]
    raw: bool
    finishes: bool
    labels: tuple[str, ...]
    exclusive: bool
    isolated: bool
    trusted: bool
    version: str
    kind: ToolKind
    title: str
    caution: str
    subjects: Mapping[str, SubjectsOf]


@overload
def tool(function: Callable[Given, Returned], /) -> Tool[Given, Returned]: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, **contract: Unpack[ToolOptions]
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


def tool_from(
    name: str,
    description: str,
    parameters: Mapping[str, Any],
    call: Callable[..., object] | None = None,
    *,
    result: Mapping[str, Any] | None = None,
    **contract: Unpack[ToolOptions],
) -> Tool:
    """A tool whose arguments a JSON Schema describes, as those of a server or of another language.

    parameters: of type object. Models are shown it as it is, and all of it is checked: see
    `antiphon.values.schema.declared` for what is refused. call: takes the arguments as one dict, of JSON's
    own types, after a first parameter `ctx` if it has one; may be async. None: an outside tool, whose calls
    are questions to whoever runs the request; the answer is the result. result: of such a tool, the JSON
    Schema that the answer must fit. contract: as of `tool`; `effect` of an outside tool is `read` unless
    given, since nothing is done before somebody answers. Raises ToolDefinitionError.
    """
    if call is None:
        call = _outside(name, result, contract)
    elif result is not None:
        raise ToolDefinitionError(
            f"{name}: result goes with a tool without a function; what that returns counts"
        )
    name = _name(name, call)
    if not callable(call):
        raise ToolDefinitionError(f"{name}: call is a function of the arguments; got {call!r}")
    _check_routine(call, name)
    checked = _checked(name, dict(contract))
    if checked.get("raw"):
        raise ToolDefinitionError(f"{name}: a raw tool takes a text as it is, and has no schema")
    from antiphon.values.schema.signature import shape_of_schema

    shape = shape_of_schema(parameters, call, name)
    described = _option("description", description, str)
    return _put_together(name, described, call, shape, dict(contract), checked)


def _outside(name: str, result: Any, contract: ToolOptions) -> OutsideCall:
    """What stands in the place of the function of an outside tool."""
    for option in ("reconcile", "isolated", "raw"):
        if contract.get(option):
            raise ToolDefinitionError(f"{name}: {option} is about a function, and an outside tool has none")
    from antiphon.values.form import wrong_form

    schema = _option("result", result, dict[str, Any] | None, f"{name}: ")
    if wrong := wrong_form((), schema):
        raise ToolDefinitionError(f"{name}: result: {wrong}")
    return OutsideCall(name, schema)


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
    return bound(made, obj) if made._shape.method else _made(obj, None, None, {})


def _made(
    function: Callable[..., Any], name: str | None, description: str | None, contract: dict[str, Any]
) -> Tool:
    name = _name(name, function)
    description = _option("description", description, str | None)
    _check_routine(function, name)
    # Reading signatures takes eight modules, of which an agent without tools needs none.
    from antiphon.values.schema.signature import shape_of

    checked = _checked(name, contract)
    shape = shape_of(function, name, ToolContext)
    if checked.get("raw") and [one.type for one in msgspec.structs.fields(shape.type)] != [str]:
        raise ToolDefinitionError(f"{name}: a raw tool takes exactly one parameter, the text, of type str")
    return _put_together(
        name, shape.described if description is None else description, function, shape, contract, checked
    )


def _name(name: str | None, function: Callable[..., Any]) -> str:
    found = _option("name", name, str | None) or str(getattr(function, "__name__", ""))
    if not _NAME.fullmatch(found):
        raise ToolDefinitionError(
            f"{found!r} cannot be a tool's name: use 1 to 64 letters, digits, '_' and '-' (give name=...)"
        )
    return found


def _routine(function: Callable[..., Any]) -> Any:
    """What runs when it is called."""
    target = function.func if isinstance(function, functools.partial) else function
    return target if inspect.isroutine(target) else type(target).__call__


def _check_routine(function: Callable[..., Any], name: str) -> None:
    if isinstance(function, type):
        raise ToolDefinitionError(f"{name}: a class cannot be a tool; offer a function or a method")
    target = _routine(function)
    if inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target):
        raise ToolDefinitionError(f"{name}: a generator cannot be a tool; return the whole result")


def _put_together(
    name: str, description: str, function: Callable[..., Any], shape: Shape, given: dict[str, Any],
    contract: dict[str, Any],
) -> Tool:  # fmt: skip
    # A number keeps the digest that it always had, 60 or 60.0.
    given = contract | {key: held for key, held in given.items() if type(held) is int}
    if not contract.get("timeout", 1.0) > 0:
        raise ToolDefinitionError(f"{name}: timeout must be more than 0 seconds")
    if not labels_fit(contract.get("labels", ())):
        raise ToolDefinitionError(f"{name}: a tool has at most {MAX_LABELS} labels of {LABEL} characters")
    if contract.get("isolated"):
        _check_importable(function, name)
    spec = ToolSpec(name, description, shape.parameters)
    if isinstance(function, OutsideCall):
        given = given | {"outside": function.result}
        contract = {"timeout": inf, "effect": "read"} | contract
    presented = Presentation(
        contract.pop("kind", "other"),
        _line("title", contract.pop("title", ""), name, MAX_TITLE),
        _line("caution", contract.pop("caution", ""), name, MAX_CAUTION),
        contract.pop("examples", ()),
    )
    return Tool(
        name=name,
        function=function,
        is_async=inspect.iscoroutinefunction(_routine(function)),
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
        _shown=presented,
        _subjects=_known(contract.pop("subjects", {}), shape, name),
        **contract,
    )


def _known(subjects: Mapping[str, SubjectsOf], shape: Shape, name: str) -> Mapping[str, SubjectsOf]:
    properties = shape.parameters.get("properties", {})
    for each in subjects:
        if each not in properties:
            raise ToolDefinitionError(
                f"{name}: subjects says what the argument {each!r} does, and the tool takes"
                f" {', '.join(properties) or 'none'}"
            )
        if not callable(subjects[each]):
            raise ToolDefinitionError(
                f"{name}: subjects[{each!r}] is a function of the argument; got {shown(subjects[each])}"
            )
    return dict(subjects)


def _line(what: str, said: str, name: str, limit: int) -> str:
    if len(said) > limit or not said.isprintable():
        raise ToolDefinitionError(
            f"{name}: {what} is one line of at most {limit} characters; got {shown(said)}"
        )
    return said.strip()


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
    "effect": Effect, "reconcile": Reconcile | None, "timeout": float, "requires_approval": bool,
    "examples": tuple[Example, ...], "raw": bool, "finishes": bool, "labels": tuple[str, ...],
    "exclusive": bool, "isolated": bool, "trusted": bool, "version": str, "kind": ToolKind, "title": str,
    "caution": str,
    "subjects": Mapping[str, Callable[..., Any]],
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
