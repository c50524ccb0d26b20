"""Tools whose definitions do not stand in the prompt: which they are, how a model finds and calls them.

What toolsets offer may be more than a prompt should hold. Beyond a budget their definitions stay out of it,
and two fixed tools stand in: `search_tools` shows definitions as its result, `call_tool` calls what was
found. So what stands before the conversation, which providers cache, changes with no search and no call; it
changes when a definition does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any

import msgspec

from antiphon.values.message import ToolCall
from antiphon.values.model import ToolSpec
from antiphon.values.schema.arguments import Invalid
from antiphon.values.tool import Tool, tool_from

SEARCH_TOOLS, CALL_TOOL = "search_tools", "call_tool"
TOKEN_BYTES = 4
"""Bytes that count as a token."""
FOUND = 5
"""Tools that a search shows unless it says otherwise."""
MOST_FOUND = 20
MAX_SHOWN = 32_768
"""Bytes of definitions that a search shows; of more it tells the names."""
MAX_NAMES = 200
"""Names that a search tells."""
MAX_QUERY = 1_000
"""Characters of a query that count."""
IN_NAME, IN_TEXT, IN_PARAMETERS = 4.0, 1.0, 0.5
"""What a word counts by where it stands."""
AS_BEGINNING = 0.5
"""What part of that a word counts that only begins with what was asked for."""
_CALLED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "description": "As search_tools told it."},
        "arguments": {"type": "object", "description": "What its parameters say."},
    },
    "required": ["name"],
    "additionalProperties": False,
}
_SEARCHED: dict[str, Any] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "What it should do, in a few words; or names of tools."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "description": "Default: 5."},
    },
    "required": ["query"],
    "additionalProperties": False,
}


def _unwrapped(ctx: Any, arguments: Any) -> str:
    """Stands for what `call_tool` does, which the rules do in its place."""
    return ""


_CALL = tool_from(
    CALL_TOOL, "Call a tool that search_tools has told of.", _CALLED, _unwrapped, effect="once"
)  # fmt: skip


def hidden_of(
    tools: Mapping[str, Tool], sources: Mapping[str, str], taken: Iterable[str], budget: int | None,
    shown: str = "",
) -> frozenset[str]:  # fmt: skip
    """The names of those tools of toolsets whose definitions stay out of the prompt.

    Toolset after toolset is taken as a whole while it fits into the budget. tools: by name, those of
    toolsets among them; sources: the toolset of each. taken: names that others have. budget: tokens; None:
    all stand there. shown: one that stands there in any case.
    """
    if budget is None or {SEARCH_TOOLS, CALL_TOOL} & {*taken, *tools}:
        return frozenset()
    left, hidden = budget * TOKEN_BYTES, set[str]()
    by_source: dict[str, list[str]] = {}
    for name, source in sources.items():
        # What ends the agent's work is not looked for.
        if name != shown and not tools[name].finishes:
            by_source.setdefault(source, []).append(name)
    for names in by_source.values():
        size = sum(len(msgspec.json.encode(tools[name].spec)) for name in names)
        if size <= left:
            left -= size
        else:
            hidden.update(names)
    return frozenset(hidden)


def searching(tools: Mapping[str, Tool], hidden: frozenset[str], sources: Mapping[str, str]) -> Tool:
    """The tool that finds those which are hidden."""
    counts = Counter(sources[name] for name in tools if name in hidden)
    of = ", ".join(f"{source} ({count})" for source, count in counts.items())
    catalogue = _Catalogue([tools[name] for name in tools if name in hidden])

    def search(ctx: Any, arguments: Mapping[str, Any]) -> str:
        return catalogue.told(arguments["query"][:MAX_QUERY], arguments.get("limit", FOUND))

    description = (
        f"Find tools by what they do. Beside those listed here there are {len(hidden):,} more, of: {of}. The"
        f" result has their descriptions and parameters; {CALL_TOOL} calls them."
    )
    return tool_from(SEARCH_TOOLS, description, _SEARCHED, search, effect="read", kind="search")


def standing_in(search: Tool) -> tuple[ToolSpec, ...]:
    """What stands in the prompt for those that are hidden."""
    return search.spec, _CALL.spec


def shown_in_turn(specs: Sequence[ToolSpec], names: Sequence[str]) -> tuple[ToolSpec, ...]:
    """The tools of a prompt that a turn offers by name; where one of them is not there, what finds it."""
    listed = {each.name for each in specs}
    also = {SEARCH_TOOLS, CALL_TOOL} if CALL_TOOL in listed and not listed.issuperset(names) else set[str]()
    return tuple([each for each in specs if each.name in names or each.name in also])


def meant(call: ToolCall) -> ToolCall | Invalid:
    """The call that a call of `call_tool` means."""
    read = _CALL.revalidate(call.arguments)
    if isinstance(read, Invalid):
        # Models write what is in it as a text, too.
        read = _CALL.revalidate(_opened(call.arguments))
    if isinstance(read, Invalid):
        return read
    found = msgspec.json.decode(read)
    return ToolCall(call.id, found["name"], msgspec.json.encode(found.get("arguments", {})).decode())


def _opened(arguments: str) -> str:
    """The arguments with their own arguments as an object, where they are a text that holds one."""
    try:
        given = msgspec.json.decode(arguments)
        given["arguments"] = msgspec.json.decode(given["arguments"])
    except (msgspec.MsgspecError, RecursionError, LookupError, TypeError):
        return arguments
    return msgspec.json.encode(given).decode()


class _Catalogue:
    """Tools that are looked for by words."""

    def __init__(self, tools: Sequence[Tool]) -> None:
        self._tools = tools

    @cached_property
    def _weights(self) -> list[dict[str, float]]:
        """Of each tool, what its words count."""
        found = []
        for each in self._tools:
            weights: dict[str, float] = {}
            for weight, text in (
                (IN_NAME, f"{each.name} {each._shown.title}"), (IN_TEXT, each.description),
                (IN_PARAMETERS, _texts(each.parameters.get("properties", {}))),
            ):  # fmt: skip
                for word in set(_words(text)):
                    weights[word] = weights.get(word, 0.0) + weight
            found.append(weights)
        return found

    @cached_property
    def _rarity(self) -> dict[str, float]:
        """What a word says: the less, the more tools have it."""
        counts = Counter(word for weights in self._weights for word in weights)
        return {word: math.log(1 + len(self._tools) / count) for word, count in counts.items()}

    def told(self, query: str, limit: int) -> str:
        """The tools that fit a query best, as a model is told."""
        named = [each for each in self._tools if each.name in query.split()]
        found = [*named, *[each for each in self._ranked(query) if each not in named]]
        if not found:
            names = [each.name for each in self._tools]
            more = f" and {len(names) - MAX_NAMES:,} more" if len(names) > MAX_NAMES else ""
            return f"No tool fits {query!r}. There are: {', '.join(names[:MAX_NAMES])}{more}"
        lines, left = [], MAX_SHOWN
        for each in found[:limit]:
            text = msgspec.json.encode(each.spec).decode()
            left -= len(text)
            lines.append(
                text if left >= 0 else f"{each.name}: its definition is too long; search for it alone"
            )
            if left < 0 and each is found[0]:
                lines[-1] = text
        rest = [each.name for each in found[limit : limit + MOST_FOUND]]
        lines += [f"Others that may fit: {', '.join(rest)}"] if rest else []
        return "\n".join([*lines, f'To call one: {CALL_TOOL}(name="…", arguments={{…}})'])

    def _ranked(self, query: str) -> list[Tool]:
        """Those that have a word of the query, the best first."""
        asked = dict.fromkeys(_words(query))
        scores = []
        for place, weights in enumerate(self._weights):
            score = 0.0
            for word in asked:
                best = weights.get(word, 0.0) * self._rarity.get(word, 0.0)
                if not best and len(word) > 2:
                    best = AS_BEGINNING * max(
                        (
                            weight * self._rarity[each]
                            for each, weight in weights.items()
                            if each.startswith(word)
                        ),
                        default=0.0,
                    )
                score += best
            if score:
                scores.append((-score, place))
        return [self._tools[place] for _, place in sorted(scores)]


def _texts(properties: Any) -> str:
    """Names and descriptions of parameters."""
    if not isinstance(properties, Mapping):
        return ""
    told = [str(each.get("description", "")) for each in properties.values() if isinstance(each, Mapping)]
    return " ".join([*map(str, properties), *told])


def _words(text: str) -> list[str]:
    """The words of a text in lower case: letters and digits, parted at a change to upper case too. A plural
    counts as its singular."""
    parted = "".join(
        f" {char}" if char.isupper() and before.islower() else char if char.isalnum() else " "
        for before, char in zip(" " + text, text, strict=False)
    )
    return [
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in parted.lower().split()
    ]
