"""The tools that every agent is offered once something of its conversation was cut or removed."""

from __future__ import annotations

from antiphon.values.tool import Tool


def readers() -> tuple[Tool, ...]:
    """`read_output` and `grep_output`."""
    # Not at import: most runs cut nothing, and searching takes a process of its own to import.
    from antiphon.tools.outputs import grep_output, read_output

    return read_output, grep_output
