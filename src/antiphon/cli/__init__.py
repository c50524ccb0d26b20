"""The command line. `main` is all there is to import; everything else loads when it is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command `antiphon` and leave the process with its exit code (see `cli.ends`)."""
    from antiphon.cli.app import start

    raise SystemExit(start(arguments))
