"""Result: how a request ended; ActivationInfo: a look at one that has not; Difference: what another team
means for a run at rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal

from msgspec import Struct

from antiphon.values.codec import visible
from antiphon.values.fields import CheckedWhenMade, shown
from antiphon.values.generic import Out
from antiphon.values.message import Attachment, Message
from antiphon.values.model import ChatMessage, Usage

Outcome = Literal[
    "completed", "failed", "cancelled", "limit", "budget", "no_progress", "interrupted",
    "denied", "skipped", "invalid_arguments", "not_found", "unknown",
]  # fmt: skip
"""How an effect ended. The first seven are also the outcomes of a request; the rest are a tool
call's: denied by policy, skipped beside a finishing call, invalid_arguments, not_found (no such
name), unknown (it may or may not have happened)."""


Incomplete = Literal["", "length", "refusal"]
"""Why a model's text is not the whole answer: it was cut at the agent's `max_output_tokens`, or the model
refused; empty when it ended the text by itself."""


class Failure(CheckedWhenMade, frozen=True, gc=False, omit_defaults=True):
    """Why a model call failed. Source: `ModelError`, or `provider` for an adapter's own fault."""

    kind: str
    text: str
    status: int = 0
    """As in HTTP; 0 when there was none."""
    retry_after: float | None = None
    """Seconds that the provider asked to wait."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class Result(Struct, Generic[Out], frozen=True):
    """How a request ended. `str(result)` is its output."""

    output: str
    """The entry agent's output, or the best partial text."""
    outcome: Outcome
    reason: str
    """Of any outcome but `completed`; of that one, that the model was cut off or refused."""
    run_id: str
    call_id: str
    usage: Usage
    """Tokens of the whole call tree."""
    messages: tuple[Message, ...] = ()
    """Every forward and return, in order."""
    attachments: tuple[Attachment, ...] = ()
    """Files: of the tool that ended the work, then those that tools attached (`ToolContext.attach`), in
    order."""
    value: Out | None = None
    """The output as the agent's `output_type`. None without one, and where there is no whole output."""
    incomplete: Incomplete = ""
    """Why the output of a completed request is not the whole answer; `reason` says it in words."""
    task_id: str = ""
    """The thread of the request, as it was posted; of an item of `map`, what it is known by."""

    def __str__(self) -> str:
        return self.output

    def __repr__(self) -> str:
        return f"Result({self.outcome}, {shown(self.output)}, {self.usage.total:,} tokens, run {self.run_id})"

    def _repr_html_(self) -> str:
        """The result as a notebook shows it."""
        # Slow to import, and only needed there.
        from html import escape

        why = f": {escape(visible(self.reason))}" if self.reason else ""
        said = f"{escape(self.outcome)}{why} · {self.usage.total:,} tokens · run {escape(self.run_id)}"
        return f'<pre style="white-space: pre-wrap">{escape(visible(self.output))}</pre><small>{said}</small>'


class ActivationInfo(Struct, frozen=True):
    """One activation as it is now: what it does, what it was told, what it has not read yet."""

    activation: int
    """Its number; the user is 0."""
    agent: str
    phase: str
    """What it waits for; see the phases in docs/architecture.md."""
    turn: int
    messages: tuple[ChatMessage, ...]
    """Its transcript."""
    inbox: tuple[Message, ...]
    """Messages that no turn has taken yet."""
    in_flight: tuple[str, ...]
    """The ids of its open effects."""
    caller: int = 0
    """The number of the activation that called it; 0 for the user."""
    data: Mapping[str, Any] = {}
    """What its hooks and action recorded."""
    message_log: tuple[Message, ...] = ()
    """What an agent with an action has taken and published."""
    unread: Mapping[str, int] = {}
    """How many messages its dormant callees have not read, by agent."""
    call: str = ""
    """The id of the call that it works on; empty when it is dormant."""
    task_id: str = ""
    """The thread of that call."""


class Difference(Struct, frozen=True):
    """One thing of a team that is not as a stored run knows it, and what that means for the run."""

    agent: str
    """Whose; empty for what is the whole run's."""
    what: Literal["agent", "tool", "hook", "model", "prompt", "option", "rules"]
    name: str
    """Of the tool, hook, model or option; of an agent its own name."""
    change: Literal["gone", "new", "changed"]
    means: str
    """What becomes of it when the run is opened so."""
    blocks: bool = False
    """It stands in the way: work in flight fails or is done by other code, a conversation is out of reach,
    or a person has to decide again."""
