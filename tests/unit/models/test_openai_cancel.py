"""A call that is cancelled anywhere leaves no task and no connection behind, and the model works on."""

import asyncio
import functools
import gc
import warnings
from collections.abc import Callable, Generator
from typing import Any

import pytest

from antiphon.errors import ModelError
from antiphon.models.openai import OpenAIModel
from antiphon.models.timeouts import Timeouts
from antiphon.testing.wire import GOOD_STREAM, Answer, WireServer, chunk, chunked, sse
from antiphon.values.model import ChatMessage, ModelRequest, Reply

ASKED = ModelRequest("wire", "", (ChatMessage("user", "Hello"),))
SLOW: Answer = tuple(
    step
    for one in chunked(sse(chunk(content="a"), done=False), sse(chunk("stop")))
    for step in (one, "pause")
)


class CutAt:
    """Drives a coroutine by hand and throws a cancellation into it at its k-th suspension."""

    def __init__(self, coroutine: Any, k: int) -> None:
        self._coroutine, self._left = coroutine, k
        self.cut = False

    def __await__(self) -> Generator[Any, Any, Any]:
        inner = self._coroutine.__await__()
        resume: Callable[[], Any] = functools.partial(next, inner)
        while True:
            try:
                waiting = resume()
            except StopIteration as end:
                return end.value
            self._left -= 1
            if self._left == 0:
                self.cut = True
                task = asyncio.current_task()
                assert task is not None
                task.cancel()
            try:
                given = yield waiting
                resume = functools.partial(inner.send, given)
            except BaseException as error:
                resume = functools.partial(inner.throw, error)


async def cut_call(server: WireServer, model: OpenAIModel, answer: Answer, k: int) -> bool:
    """Whether the call was still going on at its k-th suspension."""
    await server.play(answer)
    call = CutAt(model.complete(ASKED, lambda _: None), k)
    try:
        await call
    except asyncio.CancelledError:
        task = asyncio.current_task()
        assert task is not None
        task.uncancel()
        return True
    assert not call.cut, "the cancellation was swallowed"
    return False


def client_tasks() -> list[str]:
    """Tasks beside this one; the test server's loop accepts each connection in one of its own."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    return [repr(task) for task in others if "_accept_connection2" not in repr(task)]


async def settled(server: WireServer, open_connections: int) -> None:
    """Let the loop see what the sockets have to say; bounded."""
    for _ in range(200):
        if len(server.open) <= open_connections:
            return
        await asyncio.sleep(0)
    assert len(server.open) <= open_connections


@pytest.mark.parametrize(
    "answer", [GOOD_STREAM, SLOW, ("hang",), (*SLOW[:3], "hang")], ids=["good", "slow", "silent", "stuck"]
)
def test_cancelled_at_every_await(answer: Answer) -> None:
    async def all_cuts() -> int:
        for k in range(1, 200):
            async with WireServer() as server:
                await server.play()
                # Only an answer that never ends may run into a limit: the others must not on a busy machine.
                short = 0.4 if "hang" in answer else 20.0
                model = OpenAIModel(
                    "wire",
                    base_url=server.url,
                    connect_timeout=short,
                    first_timeout=short,
                    idle_timeout=short,
                )
                cut = await cut_call_or_late(server, model, answer, k)
                assert client_tasks() == []
                await server.play()
                model._timeouts = Timeouts(20.0, 20.0, 20.0)
                again = await model.complete(ASKED, lambda _: None)
                assert again.content == "fine"
                # One connection may be kept for the next call; the one that was cut may not.
                await settled(server, 1)
                await model.aclose()
                await settled(server, 0)
            if not cut:
                return k
        raise AssertionError("the call never ended")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        steps = asyncio.run(all_cuts())
        gc.collect()
    assert steps > 3


async def cut_call_or_late(server: WireServer, model: OpenAIModel, answer: Answer, k: int) -> bool:
    try:
        return await cut_call(server, model, answer, k)
    except ModelError as error:
        if error.kind != "timeout":
            raise
        return False


def test_a_loop_that_ends_closes_the_connections_it_opened() -> None:
    async def ask() -> Reply:
        async with WireServer() as server:
            await server.play()
            model = OpenAIModel("wire", base_url=server.url)
            models.append(model)
            return await model.complete(ASKED, lambda _: None)

    models: list[OpenAIModel] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert asyncio.run(ask()).content == "fine"
        gc.collect()
    assert models[0]._clients == {}


def test_one_model_serves_one_loop_after_another() -> None:
    model = OpenAIModel("wire", base_url="http://127.0.0.1:9/v1")

    async def ask() -> str:
        with pytest.raises(ModelError) as caught:
            await model.complete(ASKED, lambda _: None)
        return caught.value.kind

    assert [asyncio.run(ask()) for _ in range(3)] == ["network"] * 3


def test_calls_at_once_share_the_client() -> None:
    async def ask() -> tuple[list[str], int]:
        async with WireServer() as server:
            await server.play()
            model = OpenAIModel("wire", base_url=server.url)
            replies = await asyncio.gather(*(model.complete(ASKED, lambda _: None) for _ in range(20)))
            clients = len(model._clients)
            await model.aclose()
            return [reply.content for reply in replies], clients

    assert asyncio.run(ask()) == (["fine"] * 20, 1)
