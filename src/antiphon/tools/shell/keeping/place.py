"""The folder of one command: what was asked, whether it began, what it gave. The keeper and the agent read
it.

asked    what to run, written before a keeper is started
lock     held by the keeper for as long as it lives
begun    there before the command is: it is not begun a second time
head     the first bytes of its output, as they come
tail     its last bytes, twice a second
changed  which files it made others of, see `scan.py`; copies of them, as they were and are, lie beside it
ended    how it ended; whole, or not there
stop     somebody wants it to end
"""

from __future__ import annotations

import os

HEAD = 65_536
"""Bytes of output that are kept from the beginning, and as many from the end."""
Fields = dict[str, list[str]]
_END = ["", "whole"]
"""What stands behind the last field, and is no field."""


def pack(fields: Fields) -> bytes:
    """Named lists of texts as bytes. No text holds a NUL character, no name is empty."""
    parts = []
    for name, values in fields.items():
        parts += [name, str(len(values)), *values]
    return os.fsencode("\0".join([*parts, *_END]))


def unpack(data: bytes) -> Fields:
    """What `pack` was given. Raises ValueError for what was cut off."""
    parts = os.fsdecode(data).split("\0")
    fields: Fields = {}
    at = 0
    while at + 1 < len(parts) and parts[at]:
        count = int(parts[at + 1])
        fields[parts[at]] = parts[at + 2 : at + 2 + count]
        at += 2 + count
    if parts[at:] != _END:
        raise ValueError("the record is cut off")
    return fields


def read(place: str, name: str) -> bytes | None:
    """A file of a command; None when it is not there."""
    try:
        with open(os.path.join(place, name), "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def write(place: str, name: str, data: bytes) -> None:
    """Put a file in its place in one step."""
    spare = os.path.join(place, f".{name}.{os.getpid()}")
    with open(spare, "wb", opener=_private) as file:
        file.write(data)
    os.replace(spare, os.path.join(place, name))


def begin(place: str, data: bytes) -> bool:
    """Say that the command begins; False when somebody has said so before."""
    spare = os.path.join(place, f".begun.{os.getpid()}")
    with open(spare, "wb", opener=_private) as file:
        file.write(data)
    try:
        os.link(spare, os.path.join(place, "begun"))
    except FileExistsError:
        return False
    finally:
        os.unlink(spare)
    return True


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
