"""Write stored transcripts anew: `python -m tests.oracle.update [NAME ...]`; without names all of them."""

import asyncio
import sys
import tempfile
from pathlib import Path

from tests.oracle.play import STORED, transcript
from tests.oracle.stage import SCENARIOS


def main(names: list[str]) -> None:
    """Play each scenario twice: what is not the same both times cannot be stored."""
    for name in names or SCENARIOS:
        with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
            first, second = (asyncio.run(transcript(name, Path(folder))) for folder in (one, other))
        if first != second:
            raise SystemExit(f"{name} is not the same each time it is played")
        path = STORED / f"{name}.txt"
        if not path.exists() or path.read_text("utf-8") != first:
            path.write_text(first, "utf-8")
            print(f"wrote {path.name}")
    for path in [] if names else STORED.iterdir():
        if path.stem not in SCENARIOS:
            path.unlink()
            print(f"removed {path.name}")


if __name__ == "__main__":
    main(sys.argv[1:])
