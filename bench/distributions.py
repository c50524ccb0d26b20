"""How many distributions an installation without extras brings."""

from __future__ import annotations

import importlib.metadata as metadata
import re
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def needed() -> list[str]:
    """The names of all distributions that Antiphon without extras needs, itself among them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = {"antiphon"}
    _follow(project["dependencies"], found)
    return sorted(found)


def installed() -> list[str]:
    """The names of all distributions of this environment but the installer's own."""
    names = {found.metadata["Name"] for found in metadata.distributions()}
    return sorted(name for name in names if name and name not in ("pip", "setuptools"))


def versions(names: Iterable[str]) -> dict[str, str]:
    """The installed versions of some distributions."""
    return {name: metadata.version(name) for name in names}


def _follow(requirements: Iterable[str], found: set[str]) -> None:
    for requirement in requirements:
        stated, _, marker = requirement.partition(";")
        name = re.split(r"[\s\[<>=!~(]", stated.strip())[0].lower().replace("_", "-")
        if name in found or "extra ==" in marker:
            continue
        try:
            needs = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            # Not for this platform or this Python: the marker said so.
            continue
        found.add(name)
        _follow(needs, found)
