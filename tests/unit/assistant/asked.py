"""The assistant, asked once with a model that is a script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from antiphon import Result, run_sync
from antiphon.assistant import coder
from antiphon.models.script import Script


def lines(*replies: Any) -> Script:
    """A model that says this as the assistant."""
    return Script({"coder": list(replies)})


def ask(place: Path, script: Script, text: str = "go", **options: Any) -> Result:
    """Ask it in a folder; the result."""
    return run_sync(coder(place, model=script), text, **options)
