"""The public face changes on purpose only: names, signatures and fields are compared with a list.

A change that is meant is written down with `python -m tests.taste.test_public_api` and reviewed like code.
"""

import difflib
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

import antiphon

LIST = Path(__file__).with_name("public_api.txt")
UPDATE = "If this is meant, run `python -m tests.taste.test_public_api`, and say so in CHANGELOG.md."


def described() -> str:
    """Every public name with what its user can see of it."""
    return (
        "\n".join(line for name in antiphon.__all__ for line in lines_of(name, getattr(antiphon, name)))
        + "\n"
    )


def lines_of(name: str, thing: Any) -> Iterator[str]:
    if not isinstance(thing, type):
        yield f"{name}{signature(thing)}" if callable(thing) else f"{name} = {thing!r}"
        return
    parent = thing.__mro__[1].__name__
    yield f"class {name}" + ("" if parent in ("object", "Struct") else f"({parent})")
    if issubclass(thing, msgspec.Struct):
        types = inspect.get_annotations(thing)
        yield from (
            f"    {field_of(each, types)}" for each in msgspec.structs.fields(thing) if each.name[0] != "_"
        )
    elif "__init__" in vars(thing) and parent != "Protocol":
        yield f"    __init__{signature(thing.__init__)}"
    for member, value in vars(thing).items():
        if member.startswith("_") or member in getattr(thing, "__struct_fields__", ()):
            continue
        if isinstance(value, property):
            yield f"    {member}: {inspect.signature(value.fget).return_annotation}"
        elif inspect.isfunction(value):
            kind = "async " if inspect.iscoroutinefunction(value) else ""
            yield f"    {kind}{member}{signature(value)}"


class Plain:
    """A text that shows itself without quotes."""

    def __init__(self, text: object) -> None:
        self.text = text

    def __repr__(self) -> str:
        return str(self.text)


def signature(function: Any) -> str:
    """A signature with its annotations as they were written."""
    found = inspect.signature(function)
    parameters = [
        each if each.annotation is each.empty else each.replace(annotation=Plain(each.annotation))
        for each in found.parameters.values()
    ]
    return str(found.replace(parameters=parameters, return_annotation=Plain(found.return_annotation)))


def field_of(field: msgspec.structs.FieldInfo, types: dict[str, Any]) -> str:
    text = f"{field.name}: {types.get(field.name, '?')}"
    if field.default is not msgspec.NODEFAULT:
        default = field.default
        return f"{text} = {default.__name__ if inspect.isfunction(default) else repr(default)}"
    return text + (" = ..." if field.default_factory is not msgspec.NODEFAULT else "")


def test_the_public_api_is_the_one_that_is_written_down() -> None:
    written = LIST.read_text(encoding="utf-8").splitlines()
    found = described().splitlines()
    difference = "\n".join(difflib.unified_diff(written, found, "written down", "found", lineterm="", n=1))
    assert not difference, f"The public API has changed:\n{difference}\n{UPDATE}"


def test_a_change_would_be_seen() -> None:
    """The list holds what it is there for: fields, signatures, methods, the kinds of errors."""
    found = described().splitlines()
    assert "class RunFailed(AntiphonError)" in found
    assert any(line.startswith("    tool_execution: ") for line in found)
    assert any(line.startswith("    async post(self, to: ") for line in found)
    assert any(line.startswith("run_sync(entry: ") for line in found)


if __name__ == "__main__":
    LIST.write_text(described(), encoding="utf-8")
