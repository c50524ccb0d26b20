"""The Model port: what is asked of a language model and what it answers.

An adapter is any object with a `name` and one coroutine, `complete(request, emit)`. It calls
`emit` for each piece that arrives and returns exactly one `Reply`, or raises `ModelError`. A
reply exists only after the provider's explicit end mark; partial text is never a reply.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol

from msgspec import Struct, field

from antiphon.errors import ModelError
from antiphon.values.fields import Checked, CheckedWhenMade, unchecked
from antiphon.values.message import Attachment, ToolCall

Stop = Literal["stop", "calls", "length", "refusal"]
"""Why a model stopped, as the provider said it; an adapter never invents one."""


MOST_TOKENS = 10**12
"""Tokens that no single call bills: a larger count is nonsense."""


class Usage(CheckedWhenMade, frozen=True, gc=False, omit_defaults=True):
    """Tokens as the provider billed them."""

    input_tokens: int = 0
    """Those read from and written to the provider's cache included."""
    output_tokens: int = 0
    """Reasoning included."""
    cache_read_tokens: int = 0
    """Part of the input that was read from the provider's cache."""
    reasoning_tokens: int = 0
    """Part of the output that the provider counted as reasoning."""
    cache_write_tokens: int = 0
    """Part of the input that was written to the provider's cache."""

    def __add__(self, other: Usage) -> Usage:
        return _usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )

    @property
    def total(self) -> int:
        """Input and output tokens together."""
        return self.input_tokens + self.output_tokens

    @classmethod
    def reported(cls, *counts: Any) -> Usage | None:
        """Usage as a provider reported it, its counts in the order of the fields.

        None where it says nothing, or what cannot be: a count that is no whole number from 0 to
        MOST_TOKENS, or zeros only. What nobody said is unknown, and never 0.
        """
        for each in counts:
            if type(each) is not int or not 0 <= each <= MOST_TOKENS:
                return None
        return _usage(*counts) if any(counts) else None


_usage = unchecked(Usage)
NO_USAGE = Usage()
"""Nothing was used, or nobody said what."""


class ChatMessage(Struct, frozen=True, gc=False, omit_defaults=True):
    """One entry of a conversation as a model is shown it.

    role `tool` answers the call `call_id` of tool `name`; `ref` is the handle of its output.
    `opaque` is a provider's own data on an assistant message (signed reasoning, for one), sent back
    to that provider untouched. given: the calls came with a message; no model made them.
    """

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    name: str = ""
    is_error: bool = False
    ref: str = ""
    attachments: tuple[Attachment, ...] = ()
    reasoning: str = ""
    opaque: Any = None
    given: bool = False


class ToolSpec(Struct, frozen=True, omit_defaults=True):
    """A tool as a model is shown it; `parameters` is a JSON Schema of type object."""

    name: str
    description: str
    parameters: dict[str, Any]


class Example(Checked, frozen=True, omit_defaults=True):
    """A past request and the call that was right for it: `call` with `arguments`.

    Adapters may show the nearest ones to a small model; large models do without.
    """

    request: str
    call: str
    arguments: dict[str, Any] = field(default_factory=dict)


class ModelRequest(Struct, frozen=True):
    """Everything one model call depends on: plain data, that JSON and a copy can hold.

    messages: the conversation so far, a list. It is shared with the calls that follow: whoever would change
    it changes a copy. Kept beyond the call, it stays as it was.
    tail: text for this call only, "" for none; a provider is shown it after the last message, as the user's.
    max_output: tokens; always sent to the provider as its cap.
    settings: temperature, reasoning_effort and so on, passed through under the field's names.
    effect_id: where in the run the call stands; unique per attempt.
    session: the same for all calls of a run; a provider may keep its cache by it.
    """

    model: str
    system: str
    messages: Sequence[ChatMessage]
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: str = "auto"
    tail: str = ""
    max_output: int = 4096
    output_schema: dict[str, Any] | None = None
    settings: Mapping[str, Any] = {}
    examples: tuple[Example, ...] = ()
    effect_id: str = ""
    session: str = ""


class Delta(Struct, frozen=True, gc=False, omit_defaults=True):
    """A piece of a reply on its way. `index` tells the calls of one reply apart.

    A reader that ignores deltas misses nothing: the reply holds all of it. `progress` is a tool's, not a
    model's: how far it says that it has come; `index` counts what it says. `queued` comes before a reply: its
    request waits for its turn at the endpoint, `text` is its place in the line ("1" comes next, "0" is asked
    now), `index` counts what is said of it.
    """

    kind: Literal["text", "reasoning", "call_name", "call_arguments", "progress", "queued"]
    text: str
    index: int = 0


MAX_CALLS = 256
"""Tool calls that one reply may hold; one with more fails as `provider`, and nothing of it is done."""


class Reply(Struct, frozen=True, gc=False, omit_defaults=True):
    """A whole answer. Made in every turn, and so checked once, where it is received.

    usage: None when the provider did not say it, or said nonsense (see `Usage.reported`); the call is then
    charged all that was held for it.
    """

    content: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = "stop"
    usage: Usage | None = NO_USAGE
    reasoning: str = ""
    model: str = ""
    opaque: Any = None


Emit = Callable[[Delta], None]


class Model(Protocol):
    """The port. `name` is what the journal and the prices know the model by."""

    @property
    def name(self) -> str: ...

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """Ask once. Cancellation must close the connection; raises only `ModelError`."""
        ...


def too_many_calls(where: str, count: int) -> ModelError:
    """The error for a reply with more than `MAX_CALLS` calls."""
    return ModelError(
        "provider",
        f"{where} asked for {count:,} calls or more in one reply; at most {MAX_CALLS} are taken,"
        " so none was done",
    )
