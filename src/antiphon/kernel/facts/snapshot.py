"""Snapshot: a folded run as bytes, to go on folding from there.

A cache of what the records add up to: whoever has none folds them all and gets the same. Nothing in it is
code or a type name. What the fold shares between activations is shared again when it is read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from antiphon.kernel.context.transcript import Transcript
from antiphon.kernel.facts.activation import Activation
from antiphon.kernel.facts.ledger import LedgerScope
from antiphon.kernel.facts.records import ActivationIndex
from antiphon.kernel.facts.state import RunState
from antiphon.values.model import ChatMessage


class _Flat(Struct, array_like=True):
    """A run in which nothing is held twice: ledger scopes go by their number in `scopes`, effects by id.

    activations: each with the numbers of its scopes. of_run: the numbers of the run's own. waiting: see
    RunState.
    """

    run: RunState
    activations: list[tuple[Activation, list[int]]]
    scopes: list[LedgerScope]
    of_run: list[int]
    waiting: dict[str, list[str]]
    index: ActivationIndex


def encode(run: RunState, index: ActivationIndex) -> bytes:
    """A run and who is who in it. Raises TypeError, ValueError, OverflowError, RecursionError for one that
    holds what no bytes do."""
    numbers: dict[int, int] = {}
    scopes: list[LedgerScope] = []

    def numbered(held: Iterable[LedgerScope]) -> list[int]:
        for scope in held:
            if id(scope) not in numbers:
                numbers[id(scope)] = len(scopes)
                scopes.append(scope)
        return [numbers[id(scope)] for scope in held]

    activations = [
        (replace(each, scopes=(), open={}, queued=False), numbered(each.scopes))
        for each in run.activations.values()
    ]
    of_run = numbered(run.totals.scopes)
    waiting = {request: [each.id for each in line] for request, line in run.waiting.items()}
    bare = replace(
        run, activations={}, waiting={}, ready=deque(), freed={}, totals=replace(run.totals, scopes=())
    )
    return _encoder.encode(_Flat(bare, activations, scopes, of_run, waiting, index))


def decode(data: bytes) -> tuple[RunState, ActivationIndex]:
    """What `encode` was given, its work lists empty. Raises MsgspecError, LookupError for other bytes."""
    found = _decoder.decode(data)
    run, scopes = found.run, found.scopes
    run.totals.scopes = tuple([scopes[number] for number in found.of_run])
    for activation, numbers in found.activations:
        activation.scopes = tuple([scopes[number] for number in numbers])
        run.activations[activation.id] = activation
        if activation.conversation.toolsets == run.owner.toolsets:
            activation.conversation.toolsets = run.owner.toolsets
    for opened in run.open.values():
        run.activations[opened.activation].open[opened.id] = opened
    run.waiting = {request: deque([run.open[key] for key in line]) for request, line in found.waiting.items()}
    return run, found.index


def _plain(value: Any) -> Any:
    """What stands for a value that the codec does not know."""
    if type(value) is Transcript:
        # As bytes of their own: read back, they are made messages at once.
        return _encoder.encode((value.messages, value.origins))
    if type(value) is deque:
        return list(value)
    raise TypeError(f"{type(value).__name__} is no part of a run")


def _read(kind: Any, value: Any) -> Any:
    if kind is Transcript:
        return Transcript(*_transcript(value))
    if get_origin(kind) is deque:
        return deque(value)
    raise TypeError(f"{kind} is no part of a run")


_encoder = msgspec.msgpack.Encoder(enc_hook=_plain)
_transcript = msgspec.msgpack.Decoder(tuple[list[ChatMessage], list[str]]).decode
_decoder = msgspec.msgpack.Decoder(_Flat, dec_hook=_read)
