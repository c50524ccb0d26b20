"""The shape of a function's arguments: what its signature was read as."""

from __future__ import annotations

from typing import Any

from msgspec import Struct


class Shape(Struct, frozen=True, eq=False):
    """A signature as arguments.

    type: a Struct type with one field per shown parameter, in declared order; of a schema that somebody wrote
    the stand-in that reads the arguments, as a dictionary.
    parameters: the JSON Schema of type object.
    described: the docstring without its section about parameters.
    context: the name of the injected parameter, or empty.
    whole: the function takes all arguments as one dictionary.
    plain: the arguments can be given by position, after the injected one.
    sparse: some default cannot be written as JSON; its field is UNSET unless it is given.
    method: the first parameter is `self`, still to be bound.
    ordered: no set occurs in the arguments.
    foreign: a type occurs that msgspec does not know.
    """

    type: type[Any]
    parameters: dict[str, Any]
    described: str
    context: str
    whole: bool
    plain: bool
    sparse: bool
    method: bool
    ordered: bool
    foreign: bool
