"""Whatever an endpoint does, the call ends in its declared class and the next call is answered."""

import asyncio
import logging
import socket

import msgspec
import pytest

from antiphon.errors import ModelError
from antiphon.models.openai import OpenAIModel
from antiphon.models.timeouts import Timeouts
from antiphon.testing.wire import Wire, WireServer
from antiphon.testing.wire_scripts import ECHO, LIMIT, wires
from antiphon.values.model import ChatMessage, Delta, ModelRequest, Reply, ToolSpec
from antiphon.values.secret import Secret

SCRIPTS = wires()
ASKED = ModelRequest(
    "wire", "Be brief.", (ChatMessage("user", "Hello"),), (ToolSpec("add", "Adds.", {"type": "object"}),)
)


def adapter(url: str, *, stream: bool, patient: bool) -> OpenAIModel:
    # Only scripts that must time out get short limits: the others may not fail on a busy machine.
    short = 20.0 if patient else 0.025
    return OpenAIModel(
        "wire",
        base_url=url,
        api_key=Secret(ECHO),
        stream=stream,
        connect_timeout=short,
        first_timeout=short,
        idle_timeout=short,
        max_response=LIMIT,
    )


async def play(wire: Wire, stream: bool) -> tuple[Reply | ModelError, list[Delta], Reply]:
    """What the script came to, the deltas of it, and the answer to the call after it."""
    deltas: list[Delta] = []
    async with WireServer() as server:
        await server.play(*(wire.stream if stream else wire.whole))
        model = adapter(server.url, stream=stream, patient=wire.outcome != "timeout")
        came: Reply | ModelError
        try:
            came = await model.complete(ASKED, deltas.append)
        except ModelError as error:
            came = error
        await server.play()
        # The same instance, but now it must not be late on a busy machine.
        model._timeouts = Timeouts(20.0, 20.0, 20.0)
        model_again = await model.complete(ASKED, lambda _: None)
        await model.aclose()
        assert asyncio.all_tasks() == {asyncio.current_task()}
    return came, deltas, model_again


def test_there_are_enough_scripts_and_their_names_differ() -> None:
    assert len(SCRIPTS) >= 60
    assert len({wire.name for wire in SCRIPTS}) == len(SCRIPTS)


@pytest.mark.slow
@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
@pytest.mark.parametrize("wire", SCRIPTS, ids=lambda wire: wire.name)
def test_every_script_ends_in_its_class(wire: Wire, stream: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    came, deltas, after = asyncio.run(play(wire, stream))
    if isinstance(came, ModelError):
        assert (came.kind, came.text) == (wire.outcome, came.text)
        assert came.retry_after == wire.retry_after
        assert came.text
        assert came.text.isprintable()
        assert len(came.text) < 500
        assert ECHO not in f"{came!r} {came.text}"
    else:
        assert wire.outcome == "reply", came
        assert came.content == wire.content
        assert tuple((call.name, call.arguments) for call in came.calls) == wire.calls
        assert came.stop == wire.stop
        assert len({call.id for call in came.calls} - {""}) == len(came.calls)
        assert_deltas_agree(came, deltas)
    assert after.content == "fine"
    assert ECHO not in caplog.text


def assert_deltas_agree(reply: Reply, deltas: list[Delta]) -> None:
    """What was announced is what the reply holds."""
    text = "".join(delta.text for delta in deltas if delta.kind == "text")
    if "�" not in text:
        assert text.strip() == reply.content.strip()
    for index, call in enumerate(reply.calls):
        pieces = [d.text for d in deltas if d.kind == "call_arguments" and d.index == index]
        assert ("".join(pieces) or "{}") == call.arguments
        assert "".join(d.text for d in deltas if d.kind == "call_name" and d.index == index) == call.name
    msgspec.json.encode(deltas)


def test_an_unknown_host_reads_well(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> ModelError:
        async def unknown(*_: object, **__: object) -> None:
            raise socket.gaierror(-2, "Name or service not known")

        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)
        model = OpenAIModel("m", base_url="https://models.invalid/v1", api_key=ECHO)
        with pytest.raises(ModelError) as caught:
            await model.complete(ASKED, lambda _: None)
        await model.aclose()
        return caught.value

    error = asyncio.run(ask())
    assert error.kind == "network"
    assert error.text == "https://models.invalid/v1: the host name is unknown; check base_url and the network"


def test_tls_against_a_plain_server_is_a_network_error() -> None:
    async def ask() -> ModelError:
        async with WireServer() as server:
            await server.play((b"HTTP/1.1 400 plain text\r\n\r\n", "close"))
            url = server.url.replace("http:", "https:")
            model = OpenAIModel("m", base_url=url, connect_timeout=20.0)
            with pytest.raises(ModelError) as caught:
                await model.complete(ASKED, lambda _: None)
            await model.aclose()
            return caught.value

    error = asyncio.run(ask())
    assert error.kind == "network"
    assert "TLS" in error.text


def test_a_local_endpoint_that_is_not_there_says_what_to_start() -> None:
    wire = next(wire for wire in SCRIPTS if wire.name == "refused")
    came, _, _ = asyncio.run(play(wire, True))
    assert isinstance(came, ModelError)
    assert came.text.startswith("Nothing answers at http://127.0.0.1:")
    assert "Is the server running" in came.text
