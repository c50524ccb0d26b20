"""protocol: what an agent hands to another one when it starts it, as a handover protocol file says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from antiphon.styles.profiles.conditions.expression import Expression
from antiphon.styles.profiles.files.diagnostics import SourceLocation
from antiphon.styles.profiles.files.template import Template


class ReadFrom(Struct, frozen=True):
    """The value at one path. replace: for each name in double braces, the path of what stands for it."""

    path: Template
    place: SourceLocation
    replace: Mapping[str, str] = {}


class ReadEach(Struct, frozen=True):
    """The values at many paths, in one list. iterate_on: for the name in double braces, where its list is."""

    path_to_iterate: Template
    iterate_on: Mapping[str, str]
    place: SourceLocation


class Inheritance(Struct, frozen=True):
    """One thing that is handed over. condition: None holds always. title: its heading in the briefing."""

    from_source: ReadFrom | ReadEach
    as_payload_key: str
    place: SourceLocation
    condition: Expression | None = None
    title: str = ""
    schema: Mapping[str, Any] = {}


class Protocol(Struct, frozen=True):
    """A handover protocol.

    context_parameters: JSON Schema of what the model must say itself; it joins the parameters of the tool.
    source: of the inbox item that comes out of it.
    """

    protocol_name: str
    place: SourceLocation
    source: str
    version: str = ""
    description: str = ""
    context_parameters: Mapping[str, Any] = {}
    inheritance: tuple[Inheritance, ...] = ()
