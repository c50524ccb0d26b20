"""A stream that stalls is given up, after 60 seconds where nobody says it; the clock is the test's."""

import asyncio

import pytest

from antiphon.errors import ModelError
from antiphon.models.openai import OpenAIModel
from antiphon.testing.wire import WireServer, chunk, sse
from antiphon.values.model import ModelRequest

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


async def ask(monkeypatch, answer, waits, **options):
    """How a call ends whose loop has waited so many seconds after the first piece (or for it)."""
    loop = asyncio.get_running_loop()
    ahead, steady = [0.0], loop.time
    monkeypatch.setattr(loop, "time", lambda: steady() + ahead[0])
    begun = asyncio.Event()
    async with WireServer() as server:
        await server.play(answer)
        model = OpenAIModel("m", base_url=server.url, **options)
        asking = asyncio.ensure_future(model.complete(ModelRequest("m", "", ()), lambda _: begun.set()))
        if b"data" in answer[0]:
            await begun.wait()
        else:
            while not server.requests:  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0)
        ahead[0] = waits
        done, _ = await asyncio.wait([asking], timeout=0.05)
        if done:
            return asking.exception()
        asking.cancel()
        await asyncio.wait([asking])
        return None


BEGUN = (HEAD + sse(chunk(content="fi"), done=False), "hang")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "options", "short", "long", "said"),
    [
        (BEGUN, {}, 59.0, 61.0, "nothing for 60 s (idle_timeout)"),
        (BEGUN, {"idle_timeout": 5}, 4.0, 6.0, "nothing for 5 s (idle_timeout)"),
        (BEGUN, {"idle_timeout": 500, "total_timeout": 9}, 8.0, 10.0, "9 s in all (total_timeout)"),
        ((HEAD, "hang"), {}, 299.0, 301.0, "has sent nothing for 300 s (first_timeout)"),
        ((HEAD, "hang"), {"total_timeout": 20}, 19.0, 21.0, "has sent nothing for 20 s (total_timeout)"),
    ],
)
def test_silence_is_borne_for_so_long(monkeypatch, answer, options, short, long, said):
    assert asyncio.run(ask(monkeypatch, answer, short, **options)) is None
    error = asyncio.run(ask(monkeypatch, answer, long, **options))
    assert isinstance(error, ModelError)
    assert (error.kind, error.retryable) == ("timeout", True)
    assert said in error.text
