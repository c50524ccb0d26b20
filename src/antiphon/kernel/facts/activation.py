"""Activation: one live instance of an agent, and what is in flight for it. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct, field

from antiphon.kernel.context.transcript import Transcript
from antiphon.kernel.facts.events import EffectFinished, EffectStarted, PermissionDecided
from antiphon.kernel.facts.ledger import Scope
from antiphon.values.message import Message, ToolCall, ToolResult
from antiphon.values.model import Stop, Usage

Phase = Literal["rest", "plan", "model", "failed", "calls", "act", "settled"]
"""Where an activation is in its turn: at rest; about to ask its model, or to act; waiting for its model,
a retry or an answer; its call failed; doing calls; acting; all done."""


class _Nothing(dict[Any, Any]):
    """A dictionary that stays empty and is the only one of its kind, also when it is copied."""

    def __setitem__(self, key: Any, value: Any) -> None:
        raise TypeError("nothing is put into NONE; replace it by a dictionary first")

    def __deepcopy__(self, memo: dict[int, Any]) -> _Nothing:
        return self


NONE: Any = _Nothing()
"""In place of dictionaries that most activations never need."""


class Open(Struct):
    """An effect in flight. `index`: which call of the turn, -1 for none. `child`: a call's callee.

    lost: how many processes died while it ran. ended: it is over, whatever still runs. since: when it
    started, Unix seconds. detached: what a call asks for that its turn no longer waits for, since a
    person is asked.
    """

    effect: EffectStarted
    activation: int
    index: int = -1
    child: int = 0
    lost: int = 0
    ended: bool = False
    since: float = 0.0
    detached: ToolCall | None = None


class Ended(Struct, frozen=True):
    """How a background call ended, with the tokens its whole tree used."""

    event: EffectFinished
    usage: Usage


class Logged(Struct, frozen=True):
    """A message between agents, with the user's request that it belongs to."""

    request: str
    message: Message


class Activation(Struct):
    """One live instance of an agent: a call that has not returned.

    call: the effect it is; empty for the user. caller: the activation that called, 0 the user.
    request: the user's call that all of this is for. task_id: the thread it works in.
    scopes: the books it is on, innermost first. head: digest of what its model is told before the
    conversation. more: another turn follows at once.
    calls, results: of this turn; cursor: the first call not taken up yet; waiting: how many effects
    the turn waits for; pending: calls whose approval was answered or ruled on, by index.
    done: background calls that ended. failure: the model call that failed last. finish: a finishing
    call's end. exhausted: the limit that refused a call. said: the last text, the best output yet; stop: why
    the model stopped there.

    asking_since: when the turn's first model call began, Unix seconds.
    tries: calls of the model now in use, which is number `fallback` of the agent's. window_used:
    tokens of the last model call. shown: tokens of tool results in the conversation. answer: what
    the model said when asked to compact. forced: somebody asked to compact, and nothing else.
    overdue: its deadline has passed; deadlines: timers set for it.
    before: turns of earlier calls, of an activation that was continued.

    taken: messages of this turn; laps: for those in the inbox or taken, by id, how often each agent
    has reacted in the chain that led to them. planned: the agent's own plan has this turn do its calls;
    ends: how they ended, by index. asks: it only asks the model for an action of its caller. data: what
    hooks and actions recorded. past: what an acting agent has taken and published. memo: ends of
    effects inside the action; acted: how the action ended. unread: resting callees with mail, and how
    much. reply: what the model answered in this turn. tail, only: see TurnStarted. returned: ends of
    calls that a turn went on without. squeezed: its conversation was compacted in this turn. declined:
    a limit is not to be raised; raised: how often that was asked.
    """

    id: int
    agent: str
    call: str = ""
    caller: int = 0
    request: str = ""
    depth: int = 0
    scopes: tuple[Scope, ...] = ()
    head: str = ""
    task_id: str = ""
    phase: Phase = "rest"
    more: bool = False
    turn: int = 0
    attempt: int = 0
    asking_since: float = 0.0
    nudges: int = 0
    inbox: list[Message] = field(default_factory=list)
    transcript: Transcript = field(default_factory=Transcript)
    calls: tuple[ToolCall, ...] = ()
    results: list[ToolResult | None] = field(default_factory=list)
    cursor: int = 0
    waiting: int = 0
    pending: dict[int, EffectFinished | PermissionDecided] = field(default_factory=dict)
    open: dict[str, Open] = field(default_factory=dict)
    done: dict[str, Ended] = field(default_factory=dict)
    failure: EffectFinished | None = None
    finish: EffectFinished | None = None
    exhausted: str = ""
    said: str = ""
    stop: Stop = "stop"
    tries: int = 0
    fallback: int = 0
    window_used: int = 0
    shown: int = 0
    answer: str | None = None
    forced: Literal["", "asked", "done"] = ""
    overdue: bool = False
    deadlines: int = 0
    before: int = 0
    taken: tuple[Message, ...] = ()
    laps: dict[str, Mapping[str, int]] = NONE
    planned: bool = False
    asks: bool = False
    data: dict[str, Any] = NONE
    past: list[Message] | None = None
    memo: dict[str, EffectFinished] = NONE
    ends: dict[int, EffectFinished] = NONE
    acted: EffectFinished | None = None
    unread: dict[str, int] = NONE
    returned: tuple[tuple[ToolCall, EffectFinished], ...] = ()
    declined: bool = False
    raised: int = 0
    squeezed: bool = False
    reply: str = ""
    tail: str = ""
    only: tuple[str, ...] | None = None
    queued: bool = False
