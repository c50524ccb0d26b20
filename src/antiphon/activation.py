"""Activation: one live instance of an agent, and what is in flight for it. Data only."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

from antiphon.event import EffectFinished, EffectStarted, PermissionDecided
from antiphon.limits import Scope
from antiphon.message import Message, ToolCall, ToolResult
from antiphon.model import Stop, Usage
from antiphon.transcript import Transcript

Phase = Literal["rest", "plan", "model", "failed", "calls", "settled"]
"""Where an activation is in its turn: at rest; about to ask its model; waiting for it, or for a
retry; its call failed; doing calls; all calls done."""


class Open(Struct):
    """An effect in flight. `index`: which call of the turn, -1 for none. `child`: a call's callee.

    lost: a process died while it ran. ended: it is over, whatever still runs. since: when it
    started, Unix seconds.
    """

    effect: EffectStarted
    activation: int
    index: int = -1
    child: int = 0
    lost: bool = False
    ended: bool = False
    since: float = 0.0


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
    request: the user's call that all of this is for.
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
    """

    id: int
    agent: str
    call: str = ""
    caller: int = 0
    request: str = ""
    depth: int = 0
    scopes: tuple[Scope, ...] = ()
    head: str = ""
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
    queued: bool = False
