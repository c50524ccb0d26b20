"""The format of events, written down: kinds, fields, defaults. A stored journal is read by exactly these.

`python -m tests.unit.kernel.facts.test_format` writes it anew. A field that is added with a default is
read from every stored journal; any other change needs a new format, see CONTRIBUTING.md.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec
from msgspec import NODEFAULT, Struct

from antiphon.kernel.facts import events
from antiphon.kernel.facts.agent_call import AgentCall
from antiphon.kernel.facts.summary import RunSummary
from antiphon.kernel.run import commands

LIST = Path(__file__).parents[3] / "golden" / f"events_format_{events.FORMAT}.txt"


def structs_of(hint: Any) -> Iterator[type[Struct]]:
    """The structs that a type names."""
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    elif get_origin(hint) is not None or get_args(hint):
        for each in get_args(hint):
            yield from structs_of(each)


def reached(*hints: Any) -> list[type[Struct]]:
    """These structs and all that their fields hold, each once."""
    found: list[type[Struct]] = []
    for hint in hints:
        for struct in structs_of(hint):
            if struct not in found:
                found.append(struct)
    for struct in found:
        for hint in get_type_hints(struct).values():
            found.extend(each for each in structs_of(hint) if each not in found)
    return found


def described() -> str:
    lines = []
    for struct in sorted(reached(events.Event, commands.Command, AgentCall, RunSummary), key=str):
        config = struct.__struct_config__
        tag = f" {config.tag_field}={config.tag}" if config.tag is not None else ""
        lines.append(f"{struct.__name__}{tag}{' sparse' if config.omit_defaults else ''}")
        hints = get_type_hints(struct)
        for field in msgspec.structs.fields(struct):
            said = "" if field.default is NODEFAULT else f" = {field.default!r}"
            if field.default_factory is not NODEFAULT:
                said = f" = {field.default_factory.__name__}()"
            lines.append(f"    {field.encode_name}: {plain(hints[field.name])}{said}")
    return "\n".join(lines) + "\n"


def plain(hint: Any) -> str:
    """A type without the modules its parts come from."""
    said = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return re.sub(r"\b[a-z_]+(?:\.[a-z_]+)*\.(?=\w)", "", said)


def test_the_format_of_events_is_the_one_that_is_written_down() -> None:
    assert described() == LIST.read_text("utf-8")


if __name__ == "__main__":
    LIST.write_text(described(), "utf-8")
