"""Documents of formats that need a library, read in a process of their own.

A hostile file costs its bounds of time and memory and nothing else.
"""

from __future__ import annotations

import base64
import functools
import json
import subprocess
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from antiphon.errors import ToolError
from antiphon.tools.child import MEMORY, run_alone

QUIET = {"ORT_DISABLE_TELEMETRY": "1", "ORT_TELEMETRY_DISABLED": "1"}
"""Settings under which onnxruntime, which offices' formats need too, tells nobody that it is used."""
SECONDS = 60.0
"""Of time or of computing, after which a document is given up."""


@functools.cache
def is_installed(distribution: str) -> bool:
    """Whether the library that reads a format is there; nothing of it is imported."""
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


def read_apart(path: str, program: str, data: bytes, *, memory: int = MEMORY, **asked: Any) -> dict[str, Any]:
    """What a program writes as JSON, that is given `asked` and the bytes in base64, as `data`.

    Raises ToolError: beyond the bounds, killed, or what the program writes as `error`.
    """
    given = json.dumps({"data": base64.b64encode(data).decode(), **asked})
    try:
        found = json.loads(run_alone(program, given, seconds=SECONDS, memory=memory, packages=True))
    except (subprocess.SubprocessError, ValueError) as error:
        raise ToolError(f"{path} can not be read within the bounds of time and memory") from error
    except OSError as error:
        raise ToolError(f"{path} can not be read here: {error.strerror}") from error
    if "error" in found:
        raise ToolError(f"{path} {found['error']}")
    return dict(found)
