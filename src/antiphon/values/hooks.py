"""hook: what an agent's own rules are shown, and what they may answer.

Hooks are called once and their answers recorded, so they need not be deterministic; but they must
be free of side effects, and what they are shown is to be read only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from antiphon.values.message import Message, ToolCall
from antiphon.values.model import ChatMessage
from antiphon.values.result import Outcome

REPLACED = "replaced by"
"""What the reason begins with why a call was cancelled that another one took the place of."""


class Ended(Struct, frozen=True):
    """How a call ended. content: its result, or the best partial one. task_id: the call's own.

    A call under which a person is asked is `skipped`: the turn goes on without it.
    """

    agent: str
    outcome: Outcome
    content: str
    why: str
    task_id: str = ""

    @property
    def replaced(self) -> bool:
        """Whether its caller put another call in its place, see `Call.replaces`."""
        return self.outcome == "cancelled" and self.why.startswith(REPLACED)


class Moment(Struct, frozen=True):
    """An activation as its hooks see it.

    turn: of this reaction, 1 the first. at: Unix seconds. taken: the messages of this turn; laps:
    for each, how often each agent has reacted in the chain of messages that led to it. data: what
    the hooks and the action have recorded. ended: the calls of the turn, in order. inbox: messages
    that are not taken yet. unread: resting callees in whose inbox messages wait, and how many.
    returned: calls that a turn went on without, and that have ended since the last turn. said: what the
    model answered in this turn; called: the calls it made, by name. team: what the whole run has recorded.
    messages: the conversation so far. tokens: of the last model call, as billed. running: agents whose
    calls go on in the background; their ends are among `returned`.
    """

    run_id: str
    agent: str
    turn: int
    at: float
    taken: Sequence[Message]
    laps: Sequence[Mapping[str, int]]
    data: Mapping[str, Any]
    ended: Sequence[Ended]
    inbox: Sequence[Message]
    unread: Mapping[str, int]
    returned: Sequence[Ended] = ()
    said: str = ""
    called: Sequence[str] = ()
    team: Mapping[str, Any] = {}
    messages: Sequence[ChatMessage] = ()
    tokens: int = 0
    running: Sequence[str] = ()


class Call(Struct, frozen=True):
    """A call that a plan wants done. take: taken messages that the callee finds in its inbox, by position.

    message: what it is told; none is sent when there is neither text nor data nor calls. until: Unix
    seconds when it must be done. calls: tool calls that the callee does before it asks its model. hold:
    the callee, which rests, finds the messages in its inbox later, and is not called now. background: the
    turn does not wait for it. replaces: calls of that agent that the caller has in the background are
    cancelled first. set, team: as of Do. The last four only where a tool call becomes this.
    """

    agent: str
    message: str = ""
    take: tuple[int, ...] = ()
    task_id: str = ""
    intent: str = ""
    calls: tuple[ToolCall, ...] = ()
    data: Any = None
    until: float | None = None
    hold: bool = False
    background: bool = False
    replaces: bool = False
    set: Mapping[str, Any] = {}
    team: Mapping[str, Any] = {}


class Do(Struct, frozen=True):
    """A turn of these calls. set, team: data of the activation, and of the run, that change with it."""

    calls: Sequence[Call] = ()
    set: Mapping[str, Any] = {}
    team: Mapping[str, Any] = {}


class Shown(Struct, frozen=True):
    """What a model is shown of the messages that a turn took.

    messages: become part of the conversation. tail: text shown in this turn only, after everything
    else. only: tools that are offered in this turn, None for all. set, team: as of Do. post: messages
    to the agent's own inbox, for the next turn.
    """

    messages: Sequence[ChatMessage] = ()
    tail: str = ""
    only: tuple[str, ...] | None = None
    set: Mapping[str, Any] = {}
    team: Mapping[str, Any] = {}
    post: Sequence[Message] = ()


class Answer(Struct, frozen=True):
    """The result of a tool that only changes what is recorded. ends: it ends the agent's task."""

    content: str = ""
    outcome: Outcome = "completed"
    ends: bool = False
    set: Mapping[str, Any] = {}
    team: Mapping[str, Any] = {}


class Continue(Struct, frozen=True):
    """Another turn follows. nudge: said to the model first. post: messages to the agent's own inbox.

    wait: not before there is mail, or a call in the background has ended; at once when none is running.
    """

    nudge: str = ""
    set: Mapping[str, Any] = {}
    team: Mapping[str, Any] = {}
    post: Sequence[Message] = ()
    wait: bool = False


class Return(Struct, frozen=True):
    """An activation's end: the outcome of the call that it is, its value, and why."""

    outcome: Outcome = "completed"
    value: str = ""
    why: str = ""
    set: Mapping[str, Any] = {}
    team: Mapping[str, Any] = {}
