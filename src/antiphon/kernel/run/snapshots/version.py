"""Which fold made a snapshot: another one's is of no use."""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from pathlib import Path

import msgspec

from antiphon.kernel import run

ROOMS = ("errors.py", "schema", "values", "kernel/context", "kernel/facts", "kernel/run/rows.py")
"""All that a fold is made of, in the package's folder."""
PARTS = (".py", ".so", ".pyd")


@cache
def fold_version() -> bytes:
    """16 bytes over the code that reads events and folds them; empty where its files cannot be read.

    Computed, since nobody can be relied on to raise a number whenever a line is changed.
    """
    package, digest = Path(run.__file__).parents[2], blake2b(digest_size=16)
    digest.update(msgspec.__version__.encode())
    try:
        for room in ROOMS:
            place = package / room
            files = [place] if place.is_file() else sorted(place.rglob("*"))
            for file in files:
                if file.suffix in PARTS:
                    data = file.read_bytes()
                    digest.update(f"\0{file.relative_to(package).as_posix()}\0{len(data)}\0".encode() + data)
    except OSError:
        # In a zip file, for one: every run is folded from its beginning then.
        return b""
    return digest.digest()
