"""path: where in an agent's world a value stands, as profiles write it: `team.work_modules.WM_1.status`.

The world is JSON data: a mapping with `state`, `meta`, `team`, `run`, `config`, `principal` and `partner`, as
far as they are there. A path begins with one of PREFIXES; without one it begins in the agent's own state.
`[n]` takes the n-th item of a list, `[-1]` the last, and a number between dots does the same. Keys that hold
dots are found: the longest one that is there is taken.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

PREFIXES: Mapping[str, tuple[str, ...]] = {
    "state": ("state",),
    "meta": ("meta",),
    "team": ("team",),
    "run": ("run",),
    "config": ("config",),
    "initial_params": ("state", "initial_parameters"),
    "flags": ("state", "flags"),
    "principal": ("principal",),
    "partner": ("partner",),
    "_self": (),
}
"""What a path may begin with, and where in the world that is."""
MAX_PATH = 250
"""Characters; a longer path leads nowhere."""

Step = str | int
_PART = re.compile(r"([^.\[\]]*)((?:\[-?[0-9]{1,9}\])*)(\.|$)")
_INDEX = re.compile(r"\[(-?[0-9]+)\]")
_NUMBER = re.compile(r"-?[0-9]{1,9}")


@lru_cache(maxsize=4096)
def steps(path: str) -> tuple[Step, ...]:
    """The keys and indices of a path; empty when it is none."""
    if not path or len(path) > MAX_PATH:
        return ()
    found: list[Step] = []
    at = 0
    while True:
        part = _PART.match(path, at)
        if part is None:
            return ()
        if part[1] or not part[2]:
            found.append(part[1])
        found += [int(index) for index in _INDEX.findall(part[2])]
        if not part[3]:
            return tuple(found)
        at = part.end()


def fault(path: str) -> str:
    """What is wrong with a path that is written in a file; empty when nothing is."""
    if len(path) > MAX_PATH:
        return f"a path has at most {MAX_PATH} characters"
    found = steps(path)
    if not found or "" in found or path != path.strip() or "{" in path or "}" in path:
        return f"{path!r} is no path; expected keys and dots, such as team.work_modules or state.messages[-1]"
    first = str(found[0])
    if len(found) > 1 and first not in PREFIXES:
        # What is unknown lies in the state, so only what looks like a slip is one.
        close = difflib.get_close_matches(first, PREFIXES, 1, 0.8)
        if close:
            return f"{first!r} would be looked for in the agent's state; did you mean {close[0]!r}?"
    return ""


def reader(path: str) -> Callable[[Mapping[str, Any]], Any]:
    """A function that gives the value at this path in a world, None when there is none, as `lookup` does."""
    found = steps(path)
    base = PREFIXES.get(found[0]) if found and isinstance(found[0], str) else None
    rest = found if base is None else found[1:]
    if len(rest) != 1 or not isinstance(rest[0], str) or (base and len(base) > 1):
        return lambda world: lookup(world, path)
    under, key = (base or PREFIXES["state"])[0] if base != () else "", rest[0]

    def read(world: Mapping[str, Any]) -> Any:
        value = world.get(under) if under else world
        return value.get(key) if type(value) is dict else lookup(world, path)

    return read


def lookup(world: Mapping[str, Any], path: object, default: Any = None) -> Any:
    """The value at a path, or `default` when there is none or the path is none."""
    found = steps(path) if isinstance(path, str) else ()
    if not found:
        return default
    base = PREFIXES.get(found[0]) if isinstance(found[0], str) else None
    rest = found if base is None else found[1:]
    value: Any = world
    for key in PREFIXES["state"] if base is None else base:
        value = value.get(key) if isinstance(value, dict) else None
    return default if value is None else _walk(value, rest, default)


def _walk(value: Any, rest: Sequence[Step], default: Any) -> Any:
    at = 0
    while at < len(rest):
        step = rest[at]
        if isinstance(value, dict) and isinstance(step, str):
            taken = _longest(value, rest, at)
            if not taken:
                return default
            value = value[".".join(map(str, rest[at : at + taken]))]
            at += taken
            continue
        index = int(step) if isinstance(step, int) or _NUMBER.fullmatch(step) else None
        if not isinstance(value, list) or index is None or not -len(value) <= index < len(value):
            return default
        value = value[index]
        at += 1
    return value


def _longest(value: Mapping[str, Any], rest: Sequence[Step], at: int) -> int:
    """How many steps make up the longest key that is there; 0 when none is."""
    end = at
    while end < len(rest) and isinstance(rest[end], str):
        end += 1
    if end == at + 1:
        return int(rest[at] in value)
    for stop in range(end, at, -1):
        if ".".join(map(str, rest[at:stop])) in value:
            return stop - at
    return 0
