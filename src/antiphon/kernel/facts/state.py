"""State: a run, folded; and the work lists that the fold keeps beside it.

Everything is a fact that an event stated, but for two work lists: `ready` (activations that the
last events touched) and `parked` (those whose hold must wait). Losing them costs one scan.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from msgspec import Struct, field

from antiphon.kernel.facts.activation import Activation, Logged, Open
from antiphon.kernel.facts.events import Options
from antiphon.kernel.facts.transcript_edits import Removed, conclude
from antiphon.values.message import Message, ToolCall
from antiphon.values.model import Usage
from antiphon.values.policy import Grant

WOKEN = 8
"""Parked activations that are asked again whenever there may be room; each that starts wakes more."""
LOGGED = 10_000
"""Messages of the log; when there are more, the older half is forgotten."""


class State(Struct):
    """A run, folded. `at`: the time of the last row, Unix seconds. `mail`: the last mail taken.

    remembered: approvals, by the digest of the tool. cancelling: effects to stop, and why.
    usage: tokens by model. open: every effect in flight. log: messages between agents. resting:
    callees to be continued, by caller and name. outputs: tool results that were cut, by handle. spent:
    nano-USD; unpriced: calls of unknown price. failures: of each model, how many in a row, and when.
    """

    run_id: str = ""
    at: float = 0.0
    mail: int = 0
    options: Options = Options()
    data: Any = None
    activations: dict[int, Activation] = field(default_factory=dict)
    born: int = 0
    open: dict[str, Open] = field(default_factory=dict)
    remembered: dict[str, tuple[Grant, ...]] = field(default_factory=dict)
    cancelling: dict[str, str] = field(default_factory=dict)
    usage: dict[str, Usage] = field(default_factory=dict)
    log: list[Logged] = field(default_factory=list)
    resting: dict[tuple[int, str], int] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    stored: int = 0
    spent: int = 0
    unpriced: int = 0
    failures: dict[str, tuple[int, float]] = field(default_factory=dict)
    closed: bool = False
    ready: deque[Activation] = field(default_factory=deque)
    parked: list[Activation] = field(default_factory=list)

    def find(self, effect_id: str) -> Open | None:
        """The open effect of that id, if it is in flight."""
        return self.open.get(effect_id)


def touch(state: State, activation: Activation) -> None:
    """Let `step` look at the activation."""
    if not activation.queued:
        activation.queued = True
        state.ready.append(activation)


def wake(state: State) -> None:
    """Let parked activations ask for room again."""
    for parked in state.parked[:WOKEN]:
        touch(state, parked)
    del state.parked[:WOKEN]


def log(state: State, request: str, message: Message) -> None:
    """Keep a message between agents."""
    state.log.append(Logged(request, message))
    if len(state.log) > LOGGED:
        del state.log[: LOGGED // 2]


def take_up(activation: Activation, calls: tuple[ToolCall, ...]) -> None:
    """Begin the calls of a turn."""
    activation.calls, activation.cursor = calls, 0
    activation.results = [None] * len(calls)
    activation.phase = "calls" if calls else "settled"


def settle_turn(state: State, activation: Activation) -> None:
    """When every call of the turn has its result, add them to the conversation in call order."""
    touch(state, activation)
    if activation.waiting or activation.pending or activation.cursor < len(activation.calls):
        return
    activation.phase = "settled"
    if not activation.id or activation.planned:
        return
    store(state, conclude(activation, state.options.outputs.message))


def store(state: State, removed: Removed) -> None:
    """Keep results for reading by their handles; the oldest go when there are too many bytes."""
    for ref, text in removed:
        if ref not in state.outputs:
            state.outputs[ref] = text
            state.stored += len(text)
    while state.stored > state.options.outputs.kept and len(state.outputs) > 1:
        state.stored -= len(state.outputs.pop(next(iter(state.outputs))))
