"""The world outside: a file that only grows, in which every execution of a tool leaves its line."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from antiphon.values.tool import ToolContext


class ToolExecution(Struct, frozen=True):
    """One execution of a tool: of which effect, under which key, the how-manyeth."""

    effect_id: str
    key: str
    attempt: int
    pid: int
    note: str = ""


class World:
    """What tools did, whichever process they ran in; a line is there once `did` has returned.

    counted: the lines leave themselves (`points.count_effects`), and so each step under its whole id; by
    hand a step leaves its line as `1/1.x:name`, so each needs its own name.
    """

    def __init__(self, path: Path, *, counted: bool = False) -> None:
        self._path, self._counted = path, counted

    def did(self, ctx: ToolContext, note: str = "") -> None:
        """Leave a line: call it in the tool, where the tool would act."""
        self.note(ctx.effect_id, ctx.idempotency_key, ctx.attempt, note)

    def note(self, effect_id: str, key: str, attempt: int, note: str = "") -> None:
        """Leave a line of any effect."""
        deed = ToolExecution(effect_id, key, attempt, os.getpid(), note)
        add_line(self._path, msgspec.json.encode(deed))

    def known_as(self, effect_id: str) -> str:
        """Under which id the lines of an effect stand."""
        return effect_id if self._counted else ":".join(effect_id.split(":")[:2])

    def deeds(self) -> list[ToolExecution]:
        """Every execution so far, oldest first."""
        return [msgspec.json.decode(line, type=ToolExecution) for line in lines(self._path)]


def add_line(path: Path, line: bytes) -> None:
    """Append one line; it survives the death of the process at once."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line + b"\n")
    finally:
        os.close(descriptor)


def lines(path: Path) -> list[bytes]:
    """The lines of a file that may not exist."""
    return path.read_bytes().splitlines() if path.exists() else []
