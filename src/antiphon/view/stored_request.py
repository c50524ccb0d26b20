"""What a model was asked, from the records of its run: whoever drove it, whatever its team is today.

    stored = await request_of(journal, run_id, "1/3.m1")
    print(stored.request.system, stored.request.messages[stored.shared:], stored.verified)

A request is the prompt prefix, which is stored once as a blob, and the conversation, which the records
fold into; its digest was recorded before the model was asked.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import aclosing

import msgspec
from msgspec import Struct

from antiphon.errors import JournalCorrupt, UnknownName
from antiphon.journal import Journal
from antiphon.kernel.context.prompt import StoredPrefix, read_prefix
from antiphon.kernel.context.request import request_digest, side_messages
from antiphon.kernel.context.tool_search import shown_in_turn
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.events import EffectStarted, Event, ModelEffect
from antiphon.kernel.rules.team.compiled import model_seed
from antiphon.kernel.run.rows import states_of
from antiphon.values.fields import fit
from antiphon.values.model import ChatMessage, ModelRequest
from antiphon.view.effects import node_of

LISTED = 12
"""Ids that an error lists: the latest model calls of the run."""


class StoredRequest(Struct, frozen=True):
    """One model call's request, as of the record by which the call began."""

    effect_id: str
    """The model call."""
    seq: int
    """The number of that record."""
    at: float
    """When it was asked, Unix seconds."""
    agent: str
    """Whose model was asked."""
    purpose: str
    """`compact` for a summary of the conversation, `final` for a last word at a limit; empty for a reply."""
    request: ModelRequest
    """System text, messages, tools, tail, settings: what the model's adapter was given."""
    shared: int
    """How many messages, from the first on, it has in common with the previous request of its activation; 0
    when there was none."""
    previous: str
    """The model call whose request that was; empty for the first of an activation."""
    removed: Sequence[ChatMessage]
    """Messages of the previous request that this one has no longer: compaction took them away, or shortened
    them."""
    digest: str
    """The digest that was recorded, of exactly what is asked."""
    verified: bool
    """What is shown here has that digest. If not, something of it is not what was asked: the run is of an
    older format, or its records were changed."""


async def request_of(journal: Journal, run_id: str, effect_id: str) -> StoredRequest:
    """What a model was asked in a model call, of a run that goes on or has ended.

    effect_id: the call's, as `RunTree.effects` has it. Reads the run up to there. Raises UnknownName for a
    run that is not there and for an id that is no model call of it; JournalError when it cannot be read.
    """
    effect_id = fit(effect_id, str, "request_of(effect_id)")
    previous: dict[int, tuple[str, list[ChatMessage]]] = {}
    latest: deque[str] = deque(maxlen=LISTED)
    async with aclosing(states_of(journal, run_id)) as states:
        async for seq, event, state in states:
            found = _asked(event)
            if found is None:
                continue
            asked, detail = found
            number = state.open[asked].activation
            activation = state.activations[number]
            messages = _messages(activation, detail)
            if asked == effect_id:
                prefix = await _prefix(journal, run_id, seq, activation.conversation.prefix)
                before, had = previous.get(number, ("", []))
                shared = _shared(had, messages)
                return StoredRequest(
                    effect_id, seq, state.at, activation.agent, node_of(effect_id, detail, None).purpose,
                    _request(prefix, activation, detail, messages, effect_id, run_id),
                    shared, before, _removed(had[shared:], messages[shared:]), detail.digest,
                    _digest(activation, detail) == detail.digest,
                )  # fmt: skip
            previous[number] = asked, messages
            latest.append(asked)
    raise UnknownName(
        "model call of that run", effect_id, [*latest, "…"] if len(latest) == LISTED else latest
    )


def _asked(event: Event) -> tuple[str, ModelEffect] | None:
    """The id and the detail of a model call that begins."""
    if type(event) is EffectStarted and type(event.detail) is ModelEffect:
        return event.id, event.detail
    return None


def _messages(activation: Activation, detail: ModelEffect) -> list[ChatMessage]:
    messages = activation.conversation.transcript.messages
    if detail.question:
        return side_messages(messages, detail.purpose, detail.question, detail.oldest)
    return list(messages)


async def _prefix(journal: Journal, run_id: str, seq: int, digest: str) -> StoredPrefix:
    """The prompt prefix of that digest, which the journal compares with the blob."""
    data = await journal.blob(run_id, digest)
    try:
        return read_prefix(data)
    except msgspec.MsgspecError as error:
        raise JournalCorrupt(run_id, seq, f"its prompt prefix cannot be read ({error})") from error


def _request(
    prefix: StoredPrefix, activation: Activation, detail: ModelEffect, messages: list[ChatMessage],
    effect_id: str, run_id: str,
) -> ModelRequest:  # fmt: skip
    if detail.question:
        return ModelRequest(
            detail.model, prefix.system, messages, tool_choice="none", max_output=prefix.max_output,
            settings=prefix.settings, effect_id=effect_id, session=run_id,
        )  # fmt: skip
    turn = activation.turn
    offered = turn.offered_tools
    return ModelRequest(
        detail.model,
        prefix.system,
        messages,
        prefix.tools if offered is None else shown_in_turn(prefix.tools, offered),
        tool_choice=prefix.tool_choice,
        tail=turn.suffix,
        max_output=prefix.max_output,
        output_schema=prefix.output_schema,
        settings=prefix.settings,
        examples=prefix.examples,
        effect_id=effect_id,
        session=run_id,
    )


def _digest(activation: Activation, detail: ModelEffect) -> str:
    """The digest of what the records say was asked."""
    conversation, turn = activation.conversation, activation.turn
    try:
        prefix = bytes.fromhex(conversation.prefix)
    except ValueError:
        return ""
    return request_digest(
        model_seed(detail.model), prefix, conversation.transcript.measure()[1], detail.purpose,
        detail.question or turn.suffix, None if detail.question else turn.offered_tools, detail.oldest,
    )  # fmt: skip


def _shared(before: list[ChatMessage], messages: list[ChatMessage]) -> int:
    """How many messages both begin with."""
    for place, (was, now) in enumerate(zip(before, messages, strict=False)):
        if was is not now and was != now:
            return place
    return min(len(before), len(messages))


def _removed(before: list[ChatMessage], messages: list[ChatMessage]) -> list[ChatMessage]:
    """The messages of the one that the other has not, wherever they stand there."""
    kept = {id(each) for each in messages}
    return [each for each in before if id(each) not in kept and each not in messages]
