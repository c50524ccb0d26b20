"""DeltaLog: what the open effects of one run have said, kept once for all who watch.

An emitted delta is only put by, in the list of its effect: a C call, whether anybody listens or not. A look
takes in what was put by since the last one: deltas of one text are joined and get one number. A reader is a
cursor, the highest number that it has read; whoever comes late begins at 0, and so with all that is kept of
what is open.

What is kept is bounded, however many readers there are and however slow they are:

- of one effect KEPT characters, and whatever came since the round of readers before this one began; what is
  older is cut, and who had not read it is told so;
- WAITING deltas of one effect between two looks; of more the oldest are lost;
- TEXTS texts of one effect (its answer, its reasoning, its calls); deltas of further ones are ignored;
- of effects that have ended KEPT characters and ENDED effects together, and always the last one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from antiphon.kernel.facts.ids import activation_of
from antiphon.kernel.facts.records import ActivationIndex, ReplyDelta
from antiphon.values.model import MAX_CALLS, Delta
from antiphon.values.progress import ToolProgress

Emitted = Delta | ToolProgress
"""What is put by of an effect."""
KEPT = 65_536
"""Characters."""
WAITING = 65_536
"""Deltas."""
TEXTS = 2 * MAX_CALLS + 4
"""Name and arguments of each call, the answer, the reasoning, and the words below."""
ENDED = 1_000
"""Effects."""
NEWEST = 1 << 62
"""A number that is never reached."""
LATEST = frozenset({"queued", "progress"})
"""Kinds that tell how it stands: the latest one is all that matters."""
NO_REPORT = ToolProgress("")
VOID = "void"
"""The kind of a delta that takes back what its effect has said."""


class _SaidText:
    """One text of an effect: what is kept of it, oldest first, each part with its number.

    length: characters said so far. cut: the number of the newest part that is lost, or was shortened. report:
    the latest one of a tool.
    """

    __slots__ = ("cut", "index", "kind", "length", "parts", "report")

    def __init__(self, kind: str, index: int) -> None:
        self.kind, self.index = kind, index
        self.parts: deque[tuple[int, str]] = deque()
        self.length = self.cut = 0
        self.report = NO_REPORT

    def after(self, cursor: int, upto: int) -> tuple[str, int, bool] | None:
        """What is kept between two numbers: the text, its offset, whether something before is missing."""
        found, later = [], 0
        for number, text in reversed(self.parts):
            if number <= cursor:
                break
            if number > upto:
                later += len(text)
            else:
                found.append(text)
        if not found:
            return None
        found.reverse()
        text = "".join(found)
        first = self.parts[0][0] > cursor
        return text, self.length - later - len(text), self.cut > cursor and first


class SaidByEffect:
    """All texts of one effect.

    number: the newest part's, or that of its end. spoke: that of its first part of a reply, 0 before. final:
    the newest that was taken in before its end. ended: the record of its end. void: it ended without a reply,
    so nothing of what it said counts. rest: once it has ended, what was told last to a reader at a place.
    """

    __slots__ = (
        "activation", "agent", "effect_id", "ended", "final", "number", "order", "rest", "size", "spoke",
        "texts", "void",
    )  # fmt: skip

    def __init__(self, effect_id: str, agent: str) -> None:
        self.effect_id, self.activation, self.agent = effect_id, activation_of(effect_id), agent
        self.texts: dict[tuple[str, int], _SaidText] = {}
        # The texts whose parts count towards the size, one entry a part, oldest part first.
        self.order: deque[_SaidText] = deque()
        self.number = self.spoke = self.final = self.ended = self.size = 0
        self.void = False
        self.rest: tuple[int, list[ReplyDelta]] = (-1, [])

    def add(self, number: int, waiting: deque[Any]) -> bool:
        """Take in deltas, under one number; whether there was anything in them.

        What an adapter hands over that is no delta is ignored: its reply is what counts.
        """
        count, joined, report = len(waiting), dict[tuple[str, int], list[str]](), NO_REPORT
        lost = count == waiting.maxlen and count > 1
        for _ in range(count):
            delta = waiting.popleft()
            try:
                kind, index, text = delta.kind, delta.index, delta.text
            except AttributeError:
                continue
            if type(delta) is ToolProgress:
                report = delta
            elif not (isinstance(text, str) and text and isinstance(kind, str) and isinstance(index, int)):
                continue
            key = kind, index
            if key in joined:
                joined[key].append(text)
            else:
                joined[key] = [text]
        if lost:
            self._forget_all()
        for (kind, index), found in joined.items():
            if kind == VOID:
                continue
            self._add(number, kind, index, found, lost, report)
        return bool(joined)

    def _add(
        self, number: int, kind: str, index: int, found: list[str], lost: bool, report: ToolProgress
    ) -> None:
        latest = kind in LATEST
        key = kind, 0 if latest else index
        text = self.texts.get(key)
        if text is None:
            if len(self.texts) >= TEXTS:
                return
            text = self.texts[key] = _SaidText(kind, index)
        self.number = number
        if latest:
            text.index, text.report = index, report
            text.parts.clear()
            text.parts.append((number, found[-1][:KEPT]))
            text.length = len(found[-1][:KEPT])
            return
        self.spoke = self.spoke or number
        said = "".join(found)
        text.parts.append((number, said))
        text.length += len(said)
        text.cut = number if lost else text.cut
        self.order.append(text)
        self.size += len(said)

    def _forget_all(self) -> None:
        """What comes after a gap is read without what was before it."""
        for text in self.order:
            number, _ = text.parts.popleft()
            text.cut = max(text.cut, number)
        self.order.clear()
        self.size = 0

    def shorten(self, upto: int) -> None:
        """Keep the last KEPT characters; parts numbered above `upto` are kept whole."""
        while self.size > KEPT:
            text = self.order[0]
            number, said = text.parts[0]
            if number > upto:
                return
            much = self.size - KEPT
            text.cut = number
            if much < len(said):
                text.parts[0] = number, said[much:]
                self.size = KEPT
                return
            text.parts.popleft()
            self.order.popleft()
            self.size -= len(said)

    def take_back(self) -> None:
        """It ended without a reply."""
        self.texts.clear()
        self.order.clear()
        self.void, self.size = True, 0

    def after(self, cursor: int, upto: int = NEWEST) -> Iterator[ReplyDelta]:
        """What was said between two numbers, one delta a text. Who began to read is told that it is void."""
        if self.void:
            if self.spoke <= cursor:
                yield ReplyDelta(self.effect_id, self.activation, self.agent, VOID, "")
            return
        for text in self.texts.values():
            found = text.after(cursor, upto)
            if found is not None:
                said, offset, cut = found
                yield ReplyDelta(
                    self.effect_id, self.activation, self.agent, text.kind, said, text.index, offset, cut,
                    text.report.locations, text.report.diffs,
                )  # fmt: skip


class DeltaLog:
    """See the module.

    waiting: what was put by since the last look, by open effect. open: what was taken in of them. ended: of
    those that have ended, what somebody may not have read. number: the newest part's.
    """

    def __init__(
        self,
        index: ActivationIndex,
        waiting: dict[str, deque[Emitted]],
        said: dict[str, SaidByEffect],
    ) -> None:
        self.waiting, self.open = waiting, said
        self.number = 0
        self._index = index
        self._begun: dict[str, int] = {}
        self.ended: dict[str, SaidByEffect] = {}
        self._ended_size = 0
        self._offered = 0
        self._found: tuple[tuple[int, int, int], list[ReplyDelta]] = ((0, 0, 0), [])

    def take_in(self, recorded: int = 0, durable: int = 0) -> bool:
        """Look at what was put by; whether some of it has to wait.

        recorded: the last record there is, so that the effects have begun with it or before. durable: the
        last one that readers are shown. Nobody is told what an effect says before they are shown its start.
        """
        number, held = self.number + 1, False
        for effect_id, waiting in self.waiting.items():
            if not waiting:
                continue
            if effect_id not in self.open and self._begun.setdefault(effect_id, recorded) > durable:
                held = True
            elif self._said_by(effect_id).add(number, waiting):
                self.number = number
        return held

    def _said_by(self, effect_id: str) -> SaidByEffect:
        found = self.open.get(effect_id)
        if found is None:
            agent = self._index.agent(activation_of(effect_id))
            found = self.open[effect_id] = SaidByEffect(effect_id, agent)
            self._begun.pop(effect_id, None)
        return found

    def end(self, effect_id: str, seq: int, *, void: bool, keep: bool) -> None:
        """An effect has ended with record `seq`. keep: somebody reads; the rest is theirs until then."""
        waiting = self.waiting.pop(effect_id)
        said = self._said_by(effect_id)
        del self.open[effect_id]
        if not keep:
            return
        if not (said.number or waiting):
            return
        self.number += 1
        said.final = said.number
        said.add(self.number, waiting)
        said.number, said.ended = self.number, seq
        if void and said.spoke:
            said.take_back()
        self.ended[effect_id] = said
        self._ended_size += said.size
        while len(self.ended) > 1 and (self._ended_size > KEPT or len(self.ended) > ENDED):
            self._drop(next(iter(self.ended)))

    def _drop(self, effect_id: str) -> None:
        self._ended_size -= self.ended.pop(effect_id).size

    def begin_round(self, read: int) -> None:
        """Everybody was offered what there was when the last round began: shorten that, if it is long.

        read: the number of a record that all of them have read.
        """
        for effect_id in [each.effect_id for each in self.ended.values() if each.ended <= read]:
            self._drop(effect_id)
        for said in (*self.open.values(), *self.ended.values()):
            said.shorten(self._offered)
        self._ended_size = sum(said.size for said in self.ended.values())
        self._offered = self.number

    def keep_for_nobody(self) -> None:
        """Nobody reads: keep what somebody who comes now would be given."""
        self.ended.clear()
        self._begun.clear()
        self._ended_size = 0
        self._offered = self.number
        for said in self.open.values():
            said.shorten(self.number)

    def after(self, cursor: int, position: int) -> list[ReplyDelta]:
        """What was said above a number, for one who has read the records up to `position`.

        What effects said last that have ended since is left to `rest`. Readers at the same place share one
        list, and are not to change it.
        """
        place = cursor, self.number, position if self.ended else 0
        if self._found[0] != place:
            found: list[ReplyDelta] = []
            for said in self.ended.values():
                if said.number > cursor and said.ended > position:
                    found += said.after(cursor, said.final)
            for said in self.open.values():
                if said.number > cursor:
                    found += said.after(cursor)
            self._found = place, found
        return self._found[1]

    def rest(self, effect_id: str, cursor: int) -> list[ReplyDelta]:
        """What an effect that has ended, and is kept, said that a reader has not been given.

        Readers at the same place share one list, and are not to change it.
        """
        said = self.ended[effect_id]
        if cursor >= said.number:
            # It was given, or told, the rest by `after` since the end.
            if said.void:
                return []
            cursor = said.final
        if said.rest[0] != cursor:
            said.rest = cursor, list(said.after(cursor))
        return said.rest[1]
