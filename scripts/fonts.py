#!/usr/bin/env python3
"""Writes ui/src/styles/fonts anew: IBM Plex for the page, with nothing in it that no page shows.

    python scripts/fonts.py

Takes the fonts of the npm packages in ui/node_modules (SIL Open Font License 1.1) and leaves out weights
below 400 and above 620, alternative shapes, fractions. Every character stays, and so do hints and kerning.
What is changed may not carry the name Plex: they are called Antiphon Sans and Antiphon Mono. The tools come
from the package index into an environment that is thrown away.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

PACKAGES = ("fonttools", "brotli")
UI = Path(__file__).resolve().parents[1] / "ui"
OUTPUT = UI / "src/styles/fonts"
MODULES = UI / "node_modules"
SANS = MODULES / "@fontsource-variable/ibm-plex-sans/files/ibm-plex-sans-latin-wght-normal.woff2"
MONO = MODULES / "@fontsource/ibm-plex-mono/files/ibm-plex-mono-latin-400-normal.woff2"
WEIGHTS = (400, 620)
FEATURES = ["kern", "ccmp", "liga", "mark", "mkmk"]
KEPT = (0, 13, 14)
"""Entries of the name table that stay: copyright, licence, where the licence stands."""


def main() -> None:
    if "--inside" not in sys.argv:
        again()
        return
    OUTPUT.mkdir(parents=True, exist_ok=True)
    shutil.copy(SANS.parents[1] / "LICENSE", OUTPUT / "LICENSE")
    for source, name, weights in ((SANS, "Sans", WEIGHTS), (MONO, "Mono", None)):
        made = OUTPUT / f"{name.lower()}.woff2"
        write(source, made, f"Antiphon {name}", weights)
        print(f"{made.relative_to(UI)}: {made.stat().st_size} bytes of {source.stat().st_size}")


def again() -> None:
    """Run this script where the tools are."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *PACKAGES], check=True
        )
        subprocess.run([python, __file__, "--inside"], check=True)


def write(source: Path, made: Path, name: str, weights: tuple[int, int] | None) -> None:
    """One font, smaller."""
    from fontTools.subset import Options, Subsetter  # only where the tools are
    from fontTools.ttLib import TTFont
    from fontTools.varLib import instancer

    font = TTFont(source)
    if weights is not None:
        between = io.BytesIO()
        instancer.instantiateVariableFont(font, {"wght": weights}).save(between)
        font = TTFont(between)
    options = Options(layout_features=FEATURES, name_IDs=["*"], notdef_outline=True)
    subsetter = Subsetter(options)
    subsetter.populate(unicodes=font.getBestCmap())
    subsetter.subset(font)
    names = font["name"]
    names.names = [each for each in names.names if each.nameID in KEPT]
    for number, text in ((1, name), (2, "Regular"), (4, name), (6, name.replace(" ", ""))):
        names.setName(text, number, 3, 1, 0x409)
    font.flavor = "woff2"
    font.save(made)


if __name__ == "__main__":
    main()
