"""A reader that does not keep up costs a bounded buffer, and misses only what it never asked for."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from antiphon import Agent, ReplyDelta, open_run
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.run.api import stream
from antiphon.kernel.run.feed import DELTA_BUFFER, Subscription
from antiphon.values.model import Delta, ModelRequest, Reply

Said = Sequence[Delta]


class Talker:
    """Says its deltas without a pause, so that nobody can read in between; then an answer."""

    name = "talker"

    def __init__(self, deltas: Said) -> None:
        self._deltas = deltas

    async def complete(self, request: ModelRequest, emit: Any) -> Reply:
        for delta in self._deltas:
            emit(delta)
        return Reply("done")


def heard(deltas: Said) -> list[ReplyDelta]:
    """The pieces that a reader gets who comes too late for each of them."""

    async def reading() -> list[ReplyDelta]:
        async with stream(Agent("a", model=Talker(deltas)), "go") as items:
            return [item async for item in items if isinstance(item, ReplyDelta)]

    return asyncio.run(reading())


def words(count: int, width: int = 5) -> list[str]:
    return [f"{number:0{width}}" for number in range(count)]


def test_what_was_not_read_is_joined_and_nothing_of_it_is_missing() -> None:
    said = words(1_000)
    (piece,) = heard([Delta("text", each) for each in said])
    assert piece == ReplyDelta("1/1.m1", 1, "a", "text", "".join(said))


def test_texts_are_told_apart_by_kind_and_place() -> None:
    deltas = [
        Delta("reasoning", "hm"), Delta("reasoning", "m"), Delta("text", "a"), Delta("text", ""),
        Delta("text", "b"), Delta("call_arguments", "{", 0), Delta("call_arguments", "[", 1),
        Delta("call_arguments", "]", 1), Delta("call_arguments", "}", 0),
    ]  # fmt: skip
    assert [(each.kind, each.index, each.text) for each in heard(deltas)] == [
        ("reasoning", 0, "hmm"), ("text", 0, "ab"), ("call_arguments", 0, "{"), ("call_arguments", 1, "[]"),
        ("call_arguments", 0, "}"),
    ]  # fmt: skip


@pytest.mark.parametrize("texts", [1, 2, 7])
def test_beyond_the_buffer_the_oldest_deltas_go(texts: int) -> None:
    """Whether it is one text or several: what is left is the end of what was said, and it fits."""
    said = words(40_000)
    share = len(said) // texts
    deltas = [Delta("text", each, min(number // share, texts)) for number, each in enumerate(said)]
    left = "".join(piece.text for piece in heard(deltas))
    assert DELTA_BUFFER - 5 < len(left) <= DELTA_BUFFER
    assert "".join(said).endswith(left)


def test_a_delta_that_is_larger_than_the_buffer_comes_whole() -> None:
    large = "x" * (DELTA_BUFFER + 1)
    assert [piece.text for piece in heard([Delta("text", "before"), Delta("text", large)])] == [large]


def test_after_a_loss_the_buffer_has_all_its_room_again() -> None:
    """The books of the buffer survive what was dropped from it: a later text that fits is complete."""
    flood = [Delta("text", each) for each in words(40_000)]
    later = [Delta("reasoning", each) for each in words(10_000)]

    async def reading() -> str:
        go_on = asyncio.Event()

        class Twice(Talker):
            async def complete(self, request: ModelRequest, emit: Any) -> Reply:
                await super().complete(request, emit)
                await go_on.wait()
                for delta in later:
                    emit(delta)
                return Reply("done")

        found = ""
        async with stream(Agent("a", model=Twice(flood)), "go") as items:
            async for item in items:
                if isinstance(item, ReplyDelta):
                    go_on.set()
                    found += item.text if item.kind == "reasoning" else ""
        return found

    assert asyncio.run(reading()) == "".join(each.text for each in later)


def test_a_reader_that_never_reads_holds_nobody_up() -> None:
    """Nor does it hold more than its buffer; who reads gets everything."""
    said = words(40_000)

    class Pausing(Talker):
        async def complete(self, request: ModelRequest, emit: Any) -> Reply:
            for place, text in enumerate(said):
                emit(Delta("text", text))
                if place % 100 == 0:
                    await asyncio.sleep(0)
            return Reply("done")

    async def talking() -> tuple[str, int]:
        async with open_run([Agent("a", model=Pausing(()))]) as run:
            dead, alive = run.events(), run.events()
            call = await run.post("a", "go")
            reading = asyncio.create_task(_texts(alive, call))
            result = await run.result(call)
            assert result.output == "done"
            return await reading, len(await _texts(dead, call))

    read, unread = asyncio.run(talking())
    assert read == "".join(said)
    assert unread <= DELTA_BUFFER


async def _texts(items: Subscription, call: str) -> str:
    """What is said until the call has ended."""
    found = ""
    async with aclosing(items):
        async for item in items:
            if isinstance(item, ReplyDelta):
                found += item.text
            elif isinstance(item.event, EffectFinished) and item.event.id == call:
                break
    return found
