"""What a host asks of programs in its robots.txt (RFC 9309)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

MAX_ROBOTS = 500 * 1024
"""Bytes of robots.txt that are read."""
MAX_RULES = 5_000
"""Rules that are obeyed; who writes more means something else."""
_ESCAPE = re.compile(r"%([0-9a-fA-F]{2})")
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class RobotRules(Struct, frozen=True):
    """What is asked of us. delay: seconds between two requests."""

    rules: tuple[tuple[str, bool], ...] = ()
    """Patterns of paths, and whether these may be visited."""
    delay: float = 0.0

    def allows(self, path: str) -> bool:
        """Whether a path with its query may be visited: the longest pattern counts, of two as long the one
        that allows."""
        path = _normal(path)
        best = max(
            ((len(pattern), allowed) for pattern, allowed in self.rules if _matches(pattern, path)),
            default=(0, True),
        )
        return best[1]


EVERYTHING = RobotRules()
NOTHING = RobotRules((("/", False),))


def robot_rules(text: str, product: str) -> RobotRules:
    """What a robots.txt asks of a product: the groups that name it, else those of everybody."""
    found: dict[str, list[tuple[str, bool]]] = {}
    delays: dict[str, float] = {}
    agents: list[str] = []
    listing = False
    for key, value in _lines(text):
        if key == "user-agent":
            if not listing:
                agents = []
            listing = True
            agents.append(value.partition("/")[0].strip().lower())
            found.setdefault(agents[-1], [])
            continue
        # Any other line ends the list of who is meant, but for the one that belongs to no group.
        listing = listing and key == "sitemap"
        if key in ("allow", "disallow") and value:
            for each in agents:
                found[each].append((_normal(value), key == "allow"))
        elif key == "crawl-delay":
            delays.update(dict.fromkeys(agents, _seconds(value)))
    name = product.lower() if product.lower() in found else "*"
    return RobotRules(tuple(found.get(name, [])[:MAX_RULES]), delays.get(name, 0.0))


def _lines(text: str) -> Iterable[tuple[str, str]]:
    for line in text.lstrip("\ufeff").splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        if colon:
            yield key.strip().lower(), value.strip()


def _seconds(value: str) -> float:
    try:
        found = float(value)
    except ValueError:
        return 0.0
    return found if 0 < found < 1e6 else 0.0


def _normal(path: str) -> str:
    """A path as it is compared: what need not be escaped is not, and escapes are in capitals."""
    raw = "".join(
        each if each.isascii() else "".join(f"%{byte:02X}" for byte in each.encode()) for each in path
    )
    return _ESCAPE.sub(_unescaped, raw)


def _unescaped(match: re.Match[str]) -> str:
    plain = chr(int(match[1], 16))
    return plain if plain in _PLAIN else match[0].upper()


def _matches(pattern: str, path: str) -> bool:
    """Whether a path begins as a pattern says: `*` stands for anything, `$` at its end for the end."""
    ends = pattern.endswith("$")
    first, *parts = (pattern[:-1] if ends else pattern).split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for part in parts[:-1] if ends else parts:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if not ends:
        return True
    return path.endswith(parts[-1]) and len(path) - len(parts[-1]) >= at if parts else at == len(path)
