"""A reader that does not keep up costs nothing, holds nobody up, and is told what it has missed."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from typing import Any

import pytest

from antiphon import Agent, ReplyDelta, open_run
from antiphon.kernel.facts.events import EffectFinished
from antiphon.kernel.run.api import stream
from antiphon.kernel.run.live import feed
from antiphon.kernel.run.live.deltas import KEPT, WAITING
from antiphon.kernel.run.live.feed import Subscription
from antiphon.values.model import Delta, ModelRequest, Reply

Said = Sequence[Delta]
PIECE = 1_000
"""Deltas that are said without a pause."""


class Talker:
    """Says its deltas without a pause, so that nobody can read in between; then an answer."""

    name = "talker"

    def __init__(self, deltas: Said) -> None:
        self._deltas = deltas

    async def complete(self, request: ModelRequest, emit: Any) -> Reply:
        for delta in self._deltas:
            emit(delta)
        return Reply("done")


class Pausing(Talker):
    """Lets everybody read now and then."""

    async def complete(self, request: ModelRequest, emit: Any) -> Reply:
        for place, delta in enumerate(self._deltas):
            emit(delta)
            if place % PIECE == 0:
                await pause()
        return Reply("done")


async def pause() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every delta is shown as soon as the event loop comes round."""
    monkeypatch.setattr(feed, "SOON", 0.0)


def heard(deltas: Said) -> list[ReplyDelta]:
    """The pieces that a reader gets who comes too late for each of them."""

    async def reading() -> list[ReplyDelta]:
        async with stream(Agent("a", model=Talker(deltas)), "go") as items:
            return [item async for item in items if isinstance(item, ReplyDelta)]

    return asyncio.run(reading())


def words(count: int, width: int = 5) -> list[str]:
    return [f"{number:0{width}}" for number in range(count)]


def texts(count: int, kind: Any = "text") -> list[Delta]:
    return [Delta(kind, each) for each in words(count)]


def test_what_was_not_read_is_joined_and_nothing_of_it_is_missing() -> None:
    (piece,) = heard(texts(40_000))
    assert piece == ReplyDelta("1/1.m1", 1, "a", "text", "".join(words(40_000)))


def test_texts_are_told_apart_by_kind_and_place() -> None:
    deltas = [
        Delta("reasoning", "hm"), Delta("reasoning", "m"), Delta("text", "a"), Delta("text", ""),
        Delta("text", "b"), Delta("call_arguments", "{", 0), Delta("call_arguments", "[", 1),
        Delta("call_arguments", "]", 1), Delta("call_arguments", "}", 0),
    ]  # fmt: skip
    assert [(each.kind, each.index, each.text) for each in heard(deltas)] == [
        ("reasoning", 0, "hmm"), ("text", 0, "ab"), ("call_arguments", 0, "{}"), ("call_arguments", 1, "[]"),
    ]  # fmt: skip


def test_however_much_is_said_without_a_pause_who_reads_has_all_of_it() -> None:
    said = words(3 * WAITING, 6)
    (piece,) = heard([Delta("text", each) for each in said])
    assert (piece.text, piece.cut) == ("".join(said), False)


def test_of_more_than_can_wait_for_a_reader_the_oldest_go_and_that_is_told() -> None:
    said = words(WAITING + 100, 6)

    async def reading() -> list[ReplyDelta]:
        go_on, talked = asyncio.Event(), asyncio.Event()

        class Waiting(Talker):
            async def complete(self, request: ModelRequest, emit: Any) -> Reply:
                reply = await super().complete(request, emit)
                talked.set()
                await go_on.wait()
                return reply

        async with open_run([Agent("a", model=Waiting([Delta("text", each) for each in said]))]) as run:
            call = await run.post("a", "go")
            await talked.wait()
            events = run.events()
            go_on.set()
            return await until_end(events, call)

    (piece,) = asyncio.run(reading())
    assert (piece.text, piece.cut) == ("".join(said[100:]), True)


def test_a_delta_of_any_size_comes_whole() -> None:
    large = "x" * (KEPT + 1)
    assert [piece.text for piece in heard([Delta("text", "before"), Delta("text", large)])] == [
        f"before{large}"
    ]


@pytest.mark.parametrize("kinds", [1, 2, 7])
def test_a_reader_that_never_reads_holds_nobody_up(at_once: None, kinds: int) -> None:
    """Nor is more kept for it than for anybody; who reads gets everything."""
    share = 40_000 // kinds
    deltas = [Delta("call_arguments", each, at // share) for at, each in enumerate(words(share * kinds))]
    said = "".join(each.text for each in deltas)

    async def talking() -> tuple[list[ReplyDelta], list[ReplyDelta]]:
        async with open_run([Agent("a", model=Pausing(deltas))]) as run:
            dead, alive = run.events(), run.events()
            call = await run.post("a", "go")
            reading = asyncio.create_task(until_end(alive, call))
            result = await run.result(call)
            assert result.output == "done"
            return await reading, await until_end(dead, call)

    read, unread = asyncio.run(talking())
    assert "".join(each.text for each in read) == said
    assert not any(each.cut for each in read)
    left = "".join(each.text for each in unread)
    assert KEPT <= len(left) <= KEPT + 3 * 5 * PIECE
    assert said.endswith(left)
    whole = "".join(each.text for each in deltas if each.index == unread[0].index)
    assert unread[0].cut
    assert unread[0].offset == len(whole) - len(unread[0].text)
    assert not any(each.cut for each in unread[1:])


def test_after_a_loss_everything_is_told_again(at_once: None) -> None:
    """Once it reads, it misses nothing any more: a later text that fits is complete."""

    async def reading() -> list[ReplyDelta]:
        go_on, said = asyncio.Event(), asyncio.Event()

        class Twice(Pausing):
            async def complete(self, request: ModelRequest, emit: Any) -> Reply:
                await super().complete(request, emit)
                said.set()
                await go_on.wait()
                for delta in texts(10_000, "reasoning"):
                    emit(delta)
                return Reply("done")

        async with open_run([Agent("a", model=Twice(texts(40_000)))]) as run:
            events = run.events()
            call = await run.post("a", "go")
            await said.wait()
            found = []
            async with aclosing(events):
                async for item in events:
                    if isinstance(item, ReplyDelta):
                        found.append(item)
                        go_on.set()
                    elif isinstance(item.event, EffectFinished) and item.event.id == call:
                        return found
        return found

    found = asyncio.run(reading())
    assert found[0].cut
    assert "".join(each.text for each in found if each.kind == "reasoning") == "".join(words(10_000))


async def until_end(items: Subscription, call: str) -> list[ReplyDelta]:
    """What is said until the call has ended."""
    found = []
    async with aclosing(items):
        async for item in items:
            if isinstance(item, ReplyDelta):
                found.append(item)
            elif isinstance(item.event, EffectFinished) and item.event.id == call:
                break
    return found
