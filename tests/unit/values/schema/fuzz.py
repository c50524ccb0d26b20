"""Tools of random annotations, each given random arguments many times over.

`python -m tests.unit.values.schema.fuzz SEED COUNT` prints how many could be made.

Runs in a process of its own, because what it looks for ends the process.
"""

from __future__ import annotations

import gc
import json
import random
import sys
from typing import Any

from antiphon.errors import ToolDefinitionError
from antiphon.values.tool import Tool, as_tool
from tests.unit.values.schema.annotations import annotation, value_for


def tool_of(kind: Any) -> Tool:
    """A tool with one argument of this type."""

    def take(value: Any) -> str:
        return "taken"

    take.__annotations__["value"] = kind
    return as_tool(take)


def main(seed: int, count: int) -> None:
    rng = random.Random(seed)
    refused = 0
    for _ in range(count):
        kind = annotation(rng, models=True)
        try:
            tool = tool_of(kind)
        except ToolDefinitionError:
            refused += 1
            continue
        schema = tool.parameters
        for _ in range(12):
            arguments = tool.prepare(
                json.dumps({"value": value_for(rng, schema["properties"]["value"], schema.get("$defs", {}))})
            )
            if isinstance(arguments, str):
                tool.bind(arguments)()
        del tool
        gc.collect()
    print(count - refused)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
