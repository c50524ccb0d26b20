"""The scripted model: says what it was told to say. For tests, examples and offline runs.

    Script(["Hello.", call("add", a=1, b=2), "It is 3.", finish("done")])
    Script({"researcher": [call("search", query="x"), "found"], "writer": ["written"]})

A reply is written as a text, a `Reply`, a `ToolCall` or a list of them (see `call` and `finish`), an
exception (raised), or a function of the request (plain or async) that gives any of those.
"""

from __future__ import annotations

import inspect
import os
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.errors import ConfigError, ModelError
from antiphon.values.message import ToolCall
from antiphon.values.model import NO_USAGE, ChatMessage, Delta, Emit, ModelRequest, Reply, Usage

Line: TypeAlias = (
    "str | Reply | ToolCall | Sequence[ToolCall] | Exception"
    " | Callable[[ModelRequest], Line | Awaitable[Line]]"
)
"""One scripted reply, as it may be written."""

Lines: TypeAlias = Sequence[Line] | Callable[[ModelRequest], Any]
"""The replies of one voice in order, or one function that answers every call."""

EVERYONE = "*"
"""The key of a mapping script for agents that have no lines of their own."""


def call(name: str, /, **arguments: Any) -> ToolCall:
    """A call of tool `name`; the script gives it an id that is unique in its conversation."""
    return ToolCall("", name, msgspec.json.encode(arguments).decode())


def finish(message: str | None = None, /, **arguments: Any) -> ToolCall:
    """A call of `finish`; `message` is the result handed back, left out when None."""
    return call("finish", **({} if message is None else {"message": message}), **arguments)


def by_agent(request: ModelRequest) -> str:
    """The agent's name, read from `You are "NAME"` in the system text; "" when it is not there."""
    _, mark, rest = request.system.partition('You are "')
    return rest.partition('"')[0] if mark else ""


class _Ready(Struct, frozen=True):
    """A reply with the deltas that announce it, made once."""

    reply: Reply
    deltas: tuple[Delta, ...]


_Entry: TypeAlias = _Ready | Exception | Callable[[ModelRequest], Any]


class Script:
    """A model that answers from a script, in order.

    replies: the lines of every caller together, or a mapping from an agent's name to its lines
        (`"*"` stands for all others). A single function answers every call and never runs out.
    by: what "in order" means. `"call"`: the n-th call gets the n-th reply, whoever asks and
        whatever was said; a restarted process begins anew. `"turn"`: a conversation that holds n
        replies gets the one after the n-th; nothing is remembered, so a resumed run
        goes on where it stopped and every new conversation starts at the top. Exceptions then
        stand for failed attempts of the reply that follows them (attempt N of `Request.effect_id`).
    agent: gives the mapping's key for a request.
    pieces: into how many deltas a text is cut; 0 sends none.
    usage: what each reply claims to have cost, unless it is a `Reply` that says so itself.
    record: how many of the latest requests `requests` keeps.

    Raises `ModelError("validation")` when no reply is left, which is never tried again.
    """

    def __init__(
        self,
        replies: Lines | Mapping[str, Lines],
        *,
        name: str = "script",
        by: Literal["call", "turn"] = "call",
        agent: Callable[[ModelRequest], str] = by_agent,
        pieces: int = 3,
        usage: Usage | None = None,
        record: int = 1000,
    ) -> None:
        if by not in ("call", "turn"):
            raise ConfigError(f"Script(by={by!r}): by is 'call' or 'turn'")
        self._name, self._pieces, self._usage, self._by = name, pieces, usage or NO_USAGE, by
        self._agent = agent
        self._recorded: deque[ModelRequest] = deque(maxlen=record)
        self._asked = 0
        self._parts: dict[str, _Part] = {}
        self._only: _Part | None = None
        if isinstance(replies, Mapping):
            for key, lines in replies.items():
                self._parts[key] = _Part(self._prepared(lines, f"{key}_"), key, by)
        else:
            self._only = _Part(self._prepared(replies, "call_"), "", by)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, by: Literal["call", "turn"] = "turn") -> Script:
        """The script in a YAML file; `ConfigError` says file, line and column of what is wrong."""
        from antiphon.models.script.file import read_script

        return cls(read_script(path), name=f"script:{os.fspath(path)}", by=by)

    @property
    def name(self) -> str:
        return self._name

    @property
    def requests(self) -> list[ModelRequest]:
        """The latest requests, oldest first; at most `record` of them."""
        return list(self._recorded)

    @property
    def asked(self) -> int:
        """How many requests came in all."""
        return self._asked

    @property
    def by(self) -> str:
        """What "in order" means, see the class."""
        return self._by

    @property
    def unsaid(self) -> int:
        """How many lines were not asked for yet; 0 of a script by turn, which remembers nothing."""
        if self._by == "turn":
            return 0
        return sum(part.left for part in ([self._only] if self._only else self._parts.values()))

    def __repr__(self) -> str:
        return f"Script({self._name!r}, asked={self._asked})"

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """Answer with the next line; see the class for the order."""
        self._asked += 1
        self._recorded.append(request)
        part = self._only or self._part(request)
        entry, place = part.take(request)
        if type(entry) is not _Ready:
            entry = await self._play(entry, request, place, part)
        for delta in entry.deltas:
            emit(delta)
        return entry.reply

    def _part(self, request: ModelRequest) -> _Part:
        """The lines for the agent that asks."""
        who = self._agent(request)
        part = self._parts.get(who) or self._parts.get(EVERYONE)
        if part is None:
            known = ", ".join(sorted(self._parts)) or "(none)"
            text = f"{self._name} has no lines for agent {who!r}; it has lines for: {known}"
            raise ModelError("validation", text)
        return part

    async def _play(self, entry: object, request: ModelRequest, place: int, part: _Part) -> _Ready:
        """Raise, or call, until there is a reply."""
        while callable(entry):
            entry = entry(request)
            if inspect.isawaitable(entry):
                entry = await entry
        if entry is None:
            raise ModelError("validation", part.exhausted(self._name))
        ready = self._entry(entry, f"{part.key or 'call'}_", place)
        if isinstance(ready, _Ready):
            return ready
        if isinstance(ready, Exception):
            # The same instance may be raised many times: without this its traceback would grow.
            raise ready.with_traceback(None)
        return await self._play(ready, request, place, part)

    def _prepared(self, lines: Lines, prefix: str) -> list[_Entry] | Callable[[ModelRequest], Any]:
        if callable(lines):
            return lines
        if isinstance(lines, (str, ToolCall, Reply)):
            lines = [lines]
        return [self._entry(line, prefix, place) for place, line in enumerate(lines)]

    def _entry(self, line: object, prefix: str, place: int) -> _Entry:
        """One line in the form it is performed in; `ConfigError` for what is no line."""
        if isinstance(line, _Ready):
            return line
        if isinstance(line, str):
            reply = Reply(line, usage=self._usage, model=self._name)
        elif isinstance(line, Reply):
            reply = line
        elif isinstance(line, ToolCall):
            reply = Reply(calls=(line,), stop="calls", usage=self._usage, model=self._name)
        elif isinstance(line, (list, tuple)) and line and all(isinstance(one, ToolCall) for one in line):
            reply = Reply(calls=tuple(line), stop="calls", usage=self._usage, model=self._name)
        elif isinstance(line, Exception) or callable(line):
            return line
        else:
            raise ConfigError(
                f"{self._name}: line {place + 1} is a {type(line).__name__}; a line is a text, a Reply, "
                "call(...), a list of calls, an exception or a function of the request"
            )
        calls = tuple(
            one if one.id else replace(one, id=f"{prefix}{place + 1}_{index}")
            for index, one in enumerate(reply.calls, 1)
        )
        reply = replace(reply, calls=calls) if calls != reply.calls else reply
        return _Ready(reply, _deltas(reply, self._pieces))


def _deltas(reply: Reply, pieces: int) -> tuple[Delta, ...]:
    """What a stream of this reply would have announced, texts cut into `pieces`."""
    if pieces < 1:
        return ()
    out = [Delta("reasoning", reply.reasoning)] if reply.reasoning else []
    size = -(-len(reply.content) // pieces) or 1
    out += [Delta("text", reply.content[at : at + size]) for at in range(0, len(reply.content), size)]
    for index, one in enumerate(reply.calls):
        out += [Delta("call_name", one.name, index), Delta("call_arguments", one.arguments, index)]
    return tuple(out)


class _Part:
    """The lines of one voice; `take` gives the next one and its place from 0, None past the end."""

    def __init__(self, entries: list[_Entry] | Callable[[ModelRequest], Any], key: str, by: str) -> None:
        self.key = key
        self._entries: list[_Entry] = [] if callable(entries) else entries
        self._always = entries if callable(entries) else None
        self._next = 0
        # Failures belong to the turn of the reply that follows them: they add no message.
        self._turns: list[list[int]] = [[]]
        for place, entry in enumerate(self._entries):
            self._turns[-1].append(place)
            if not isinstance(entry, Exception):
                self._turns.append([])
        if not self._turns[-1]:
            self._turns.pop()
        self._counted: dict[int, tuple[ChatMessage, ChatMessage, int, int]] = {}
        self.take = self._by_turn if by == "turn" else self._by_call

    @property
    def left(self) -> int:
        """How many lines were not taken yet, by call."""
        return max(len(self._entries) - self._next, 0)

    def exhausted(self, name: str) -> str:
        """The text of the error when there is nothing left to say."""
        whose = f" for agent {self.key!r}" if self.key else ""
        return f"{name} has no reply left{whose}: it holds {len(self._entries)}, and one more was asked for"

    def _by_call(self, request: ModelRequest) -> tuple[_Entry | None, int]:
        """The n-th call gets the n-th line."""
        place = self._next
        self._next = place + 1
        if place < len(self._entries):
            return self._entries[place], place
        return self._always, place

    def _by_turn(self, request: ModelRequest) -> tuple[_Entry | None, int]:
        """The conversation's own length says which line is next."""
        turn = self._spoken(request.messages)
        if turn >= len(self._turns):
            return self._always, turn
        places = self._turns[turn]
        place = places[0] if len(places) == 1 else places[min(_attempt(request.effect_id), len(places)) - 1]
        return self._entries[place], place

    def _spoken(self, messages: Sequence[ChatMessage]) -> int:
        """How many replies there are; counts only those that came since the last time."""
        if not messages:
            return 0
        first, size = messages[0], len(messages)
        seen = self._counted.get(id(first))
        start, count = 0, 0
        # An id may be used again, so both ends must be the very objects that were counted.
        if seen and seen[0] is first and seen[2] <= size and messages[seen[2] - 1] is seen[1]:
            start, count = seen[2], seen[3]
        for place in range(start, size):
            count += messages[place].role == "assistant" and not messages[place].given
        if len(self._counted) > 4096:
            self._counted.clear()
        self._counted[id(first)] = (first, messages[size - 1], size, count)
        return count


def _attempt(effect_id: str) -> int:
    """N of an effect id that ends in `.mN`; 1 when it does not."""
    digits = effect_id.rpartition(".m")[2]
    return max(1, int(digits)) if digits.isascii() and digits.isdigit() and len(digits) < 10 else 1
