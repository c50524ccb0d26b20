"""The messages of the WebSocket, each a Struct: `type` names it, `request_id` ties a reply to its request."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from antiphon.kernel.facts.records import Record
from antiphon.server.changes import (
    ChangeRunReply,
    ChangeRunRequest,
    ManageWorkModules,
    ManageWorkModulesReply,
)
from antiphon.server.problems import Problem
from antiphon.server.routes.bodies import CommandReceipt, OptionsBody, RunLine, TeamView, ToolView
from antiphon.server.routes.bodies.asked import GivenGrant
from antiphon.styles.profiles import RunContext
from antiphon.values.limits import Limits
from antiphon.values.model import ChatMessage, Usage
from antiphon.values.policy import Preset, Scope
from antiphon.values.progress import FileDiff, FileLocation
from antiphon.view.connection import OpenQuestion

# -- from the client ---------------------------------------------------------------------------------


class Hello(Struct, frozen=True, tag="hello", tag_field="type", forbid_unknown_fields=True):
    """The first frame: who it is. Without a valid token or ticket the connection is closed with 1008."""

    request_id: str = ""
    """Repeated in the reply."""
    token: str = ""
    """The server's token."""
    ticket: str = ""
    """What POST /session gave; good once."""


class Subscribe(Struct, frozen=True, tag="subscribe", tag_field="type", forbid_unknown_fields=True):
    """Follow a run from a record on; once more on one connection begins anew."""

    request_id: str
    """Repeated in the reply."""
    run_id: str
    """The run."""
    after: int = 0
    """The last record that is known."""
    view: Literal["all", "records", "turns"] = "all"
    """`records`: no pieces of replies, and nothing that is derived. `turns`: what is derived, without records
    and pieces."""


class Unsubscribe(Struct, frozen=True, tag="unsubscribe", tag_field="type", forbid_unknown_fields=True):
    """Follow a run no longer. The run goes on."""

    request_id: str
    """Repeated in the reply."""
    run_id: str
    """The run."""


class StartRun(Struct, frozen=True, tag="start_run", tag_field="type", forbid_unknown_fields=True):
    """Start a run; `run_ready` is the reply. As POST /runs."""

    request_id: str
    """Repeated in the reply."""
    team: str
    """What is asked."""
    message: str
    """The request."""
    entry: str = ""
    """Which agent is asked."""
    data: Any = None
    """JSON for the agent's own hooks and action."""
    limits: Limits | None = None
    """Of the request."""
    name: str = ""
    """What people call the run."""
    project: str = ""
    """What it is a part of; the team may be the project's own then."""
    files: tuple[str, ...] = ()
    """Files of the project that go with the request."""
    model: str = ""
    """Of GET /models, for every agent."""
    policy: Preset | None = None
    """What tools may do; not more than the team's."""
    history: tuple[ChatMessage, ...] = ()
    """What was said before, with which the agent's conversation begins."""
    conversation: bool = False
    """Whether the agent that is asked remembers, at each further request, what was said before."""
    traceparent: str = ""
    """The W3C trace that the request is a part of; another text than one is none."""
    options: OptionsBody | None = None
    """Of the request: what holds for it alone."""
    key: str = ""
    """Starts it once, however often it is sent: an idempotency key."""


class SendToRun(Struct, frozen=True, tag="send_to_run", tag_field="type", forbid_unknown_fields=True):
    """Ask an agent of a run, or tell the one that works on an open call something more."""

    request_id: str
    """Repeated in the reply."""
    run_id: str
    """The run."""
    message: str
    """What is said."""
    agent: str = ""
    """Who is asked. Default: whom the user asked last."""
    call_id: str = ""
    """An open call whose agent is told instead; it takes the message alone."""
    history: tuple[ChatMessage, ...] = ()
    """What was said before, with which the agent's conversation begins."""
    intent: str = ""
    """A label of the request; `compact` has a continued conversation compacted, and asks nothing."""
    limits: Limits | None = None
    """Of the request."""
    data: Any = None
    """JSON for the agent's own hooks and action."""
    traceparent: str = ""
    """The W3C trace that the request is a part of; another text than one is none."""
    key: str = ""
    """Asks once, however often it is sent: an idempotency key."""
    options: OptionsBody | None = None
    """Of a request: what holds for it alone."""


class AnswerQuestion(Struct, frozen=True, tag="answer", tag_field="type", forbid_unknown_fields=True):
    """Answer a question, or decide on an approval. As POST /runs/{id}/answers."""

    request_id: str
    """Repeated in the reply."""
    run_id: str
    """The run."""
    question: str
    """The question's id."""
    content: str
    """The answer; to an approval or a limit `yes`, `no` or `always`."""
    arguments: str = ""
    """Of an approval: JSON that replaces the arguments asked for."""
    grant: GivenGrant | None = None
    """How far `always` reaches."""
    scope: Scope = "run"
    """Where `always` to a tool holds."""
    reason: str = ""
    """Of a `no`: why, told to the model."""
    ends_turn: bool = False
    """With the `no` the agent's turn ends too."""


class StopRun(Struct, frozen=True, tag="stop_run", tag_field="type", forbid_unknown_fields=True):
    """Stop every request of a run, or one call or tool and all under it."""

    request_id: str
    """Repeated in the reply."""
    run_id: str
    """The run."""
    target: str = ""
    """The call or tool. Default: every request."""
    reason: str = ""
    """Why; recorded."""


class RequestRunContext(
    Struct, frozen=True, tag="request_run_context", tag_field="type", forbid_unknown_fields=True
):
    """The RunContext of a run of a team of profiles; `run_context_response` is the reply."""

    request_id: str
    """Repeated in the reply."""
    run_id: str
    """The run."""


class RequestRunProfiles(
    Struct, frozen=True, tag="request_run_profiles", tag_field="type", forbid_unknown_fields=True
):
    """The agents of a run's team; `run_profiles_response` is the reply."""

    request_id: str
    """Repeated in the reply."""
    run_id: str
    """The run."""


class RequestAvailableToolsets(
    Struct, frozen=True, tag="request_available_toolsets", tag_field="type", forbid_unknown_fields=True
):
    """The tools of a team, by agent; `available_toolsets_response` is the reply."""

    request_id: str
    """Repeated in the reply."""
    team: str
    """The team."""
    project: str = ""
    """Where it can be started, of a project's own team."""


ClientRequest = (
    Hello | Subscribe | Unsubscribe | StartRun | SendToRun | AnswerQuestion | StopRun | ChangeRunRequest
    | RequestRunContext | RequestRunProfiles | RequestAvailableToolsets | ManageWorkModules
)  # fmt: skip
"""What a client may send."""

# -- from the server: replies --------------------------------------------------------------------------


class HelloReply(Struct, frozen=True, tag="hello_response", tag_field="type"):
    """The connection is let in."""

    request_id: str
    """Of the request."""
    subject: str
    """Who it is."""
    scopes: tuple[str, ...]
    """What it may do."""
    version: str
    """Of Antiphon."""


class SubscribeReply(Struct, frozen=True, tag="subscribe_response", tag_field="type"):
    """The run is followed from here on: its records after `after` come next."""

    request_id: str
    """Of the request."""
    run_id: str
    """The run."""
    after: int
    """The record that it begins after."""
    run: RunLine
    """The run as it is now."""
    questions: tuple[OpenQuestion, ...]
    """What was open as of `after`."""


class UnsubscribeReply(Struct, frozen=True, tag="unsubscribe_response", tag_field="type"):
    """The run is followed no longer."""

    request_id: str
    """Of the request."""
    run_id: str
    """The run."""


class RunReady(Struct, frozen=True, tag="run_ready", tag_field="type"):
    """The run is there, and durable; subscribe to follow it."""

    request_id: str
    """Of the request."""
    run_id: str
    """The run."""
    created: bool
    """False: the same was asked for under the same key before."""


class SendReply(Struct, frozen=True, tag="send_to_run_response", tag_field="type"):
    """What was said is posted."""

    request_id: str
    """Of the request."""
    run_id: str
    """The run."""
    receipt: CommandReceipt
    """What became of it."""


class AnswerReply(Struct, frozen=True, tag="answer_response", tag_field="type"):
    """The answer is posted."""

    request_id: str
    """Of the request."""
    run_id: str
    """The run."""
    receipt: CommandReceipt
    """What became of it."""


class StopReply(Struct, frozen=True, tag="stop_run_response", tag_field="type"):
    """The stop is posted."""

    request_id: str
    """Of the request."""
    run_id: str
    """The run."""
    receipt: CommandReceipt
    """What became of it."""


class RunContextReply(Struct, frozen=True, tag="run_context_response", tag_field="type"):
    """A RunContext."""

    request_id: str
    """Of the request."""
    run_id: str
    """The run."""
    context: RunContext
    """Team state, partner, principal, associates."""


class RunProfilesReply(Struct, frozen=True, tag="run_profiles_response", tag_field="type"):
    """The agents of a run's team."""

    request_id: str
    """Of the request."""
    run_id: str
    """The run."""
    team: TeamView
    """The team."""


class ToolsetsReply(Struct, frozen=True, tag="available_toolsets_response", tag_field="type"):
    """The tools of a team."""

    request_id: str
    """Of the request."""
    team: str
    """The team."""
    toolsets: dict[str, list[ToolView]]
    """By agent."""


class ErrorMessage(Struct, frozen=True, tag="error", tag_field="type"):
    """A request was refused; the connection lives."""

    request_id: str
    """Of the request; empty where it could not be read."""
    code: str
    """A word that programs tell refusals apart by; the end of the problem's `type`."""
    problem: Problem
    """What is wrong, and what to do."""


# -- from the server: of a run that is followed ----------------------------------------------------------


class RecordMessage(Struct, frozen=True, tag="record", tag_field="type"):
    """A record, once, in order."""

    run_id: str
    """The run."""
    record: Record
    """The record."""


class ReplyChunk(Struct, frozen=True, tag="llm_chunk", tag_field="type"):
    """A piece of a reply that is being written; a record will hold all of it.

    One that was cut off is written anew under another effect id: drop what the one before said.
    """

    run_id: str
    """The run."""
    effect_id: str
    """The model call."""
    attempt: int
    """Which attempt of its turn it is, from 1; 0 where that is not known."""
    activation: int
    """Whose call."""
    agent: str
    """Its agent."""
    kind: Literal["content", "reasoning_content", "tool_name", "tool_args"]
    """What it is a piece of."""
    text: str
    """The piece."""
    index: int
    """Which call of the reply, of the last two kinds."""


class ProgressMessage(Struct, frozen=True, tag="progress", tag_field="type"):
    """How far a tool says that it has come, or a model call's place in the line."""

    run_id: str
    """The run."""
    effect_id: str
    """The tool, or the model call."""
    agent: str
    """Its agent."""
    kind: Literal["tool", "queued"]
    """`queued`: `text` is how many calls are before it."""
    text: str
    """What is said."""
    locations: tuple[FileLocation, ...]
    """Where a tool works."""
    diffs: tuple[FileDiff, ...]
    """What it changes in files."""


class TurnCompleted(Struct, frozen=True, tag="turn_completed", tag_field="type"):
    """A turn has ended."""

    run_id: str
    """The run."""
    seq: int
    """The record that says so."""
    activation: int
    """Whose turn."""
    agent: str
    """Its agent."""
    turn: int
    """Its number, from 1."""


class WorkModuleUpdated(Struct, frozen=True, tag="work_module_updated", tag_field="type"):
    """A work module is new, changed, or gone."""

    run_id: str
    """The run."""
    seq: int
    """The record that says so."""
    module_id: str
    """Such as WM_1."""
    module: dict[str, Any] | None
    """As it is now; None when it is gone."""


class TokenUsageUpdate(Struct, frozen=True, tag="token_usage_update", tag_field="type"):
    """A model call has ended."""

    run_id: str
    """The run."""
    seq: int
    """The record that says so."""
    effect_id: str
    """The model call."""
    agent: str
    """Its agent."""
    model: str
    """The model's name."""
    usage: Usage | None
    """Of this call; None: the provider did not say it."""
    cost_usd: float
    """Of this call, as far as it is known."""
    total_tokens: int
    """Of the run so far, input and output."""
    total_cost_usd: float
    """Of the run so far."""


class QuestionMessage(Struct, frozen=True, tag="question", tag_field="type"):
    """A person is asked something."""

    run_id: str
    """The run."""
    seq: int
    """The record that says so."""
    question: OpenQuestion
    """What is asked."""


class QuestionSettled(Struct, frozen=True, tag="question_settled", tag_field="type"):
    """A question is open no longer."""

    run_id: str
    """The run."""
    seq: int
    """The record that says so."""
    question_id: str
    """The question."""
    outcome: str
    """How it ended."""
    content: str
    """The answer."""
    by: str
    """Who answered; empty when nobody did."""


class StreamEnded(Struct, frozen=True, tag="stream_ended", tag_field="type"):
    """No more comes of a run."""

    run_id: str
    """The run."""
    reason: Literal["closed", "server_left", "failed"]
    """`server_left`: subscribe again from the last record, once it is back. `failed`: see the problem."""
    problem: Problem | None = None
    """Why it failed."""


ServerReply = (
    HelloReply | SubscribeReply | UnsubscribeReply | RunReady | SendReply | AnswerReply | StopReply
    | ChangeRunReply | RunContextReply | RunProfilesReply | ToolsetsReply | ManageWorkModulesReply
    | ErrorMessage
)  # fmt: skip
"""What answers a request."""
RunUpdate = (
    RecordMessage | ReplyChunk | ProgressMessage | TurnCompleted | WorkModuleUpdated | TokenUsageUpdate
    | QuestionMessage | QuestionSettled | StreamEnded
)  # fmt: skip
"""What comes of a run that is followed."""
