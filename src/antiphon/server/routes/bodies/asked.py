"""What is asked for over HTTP, as JSON."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from antiphon.values.agent import RequestOptions
from antiphon.values.limits import Limits
from antiphon.values.message import Attachment
from antiphon.values.model import ChatMessage
from antiphon.values.policy import Grant, Preset, Scope


class OptionsBody(RequestOptions, frozen=True, forbid_unknown_fields=True):
    """What holds for one request alone; see docs/delegation.md."""


class CreateRun(Struct, frozen=True, forbid_unknown_fields=True):
    """A new run, and the first request in it."""

    team: str
    """What is asked; see GET /teams."""
    message: str
    """The request."""
    entry: str = ""
    """Which agent is asked. Default: the team's first."""
    attachments: tuple[Attachment, ...] = ()
    """Files beside the message."""
    data: Any = None
    """JSON for the agent's own hooks and action."""
    limits: Limits | None = None
    """Of the request."""
    name: str = ""
    """What people call the run."""
    project: str = ""
    """What it is a part of; the team may be the project's own then."""
    files: tuple[str, ...] = ()
    """Files of the project that go with the request, 10 and 8 MB at most."""
    model: str = ""
    """Of GET /models, for every agent as long as the run lives. Default: each agent's own."""
    policy: Preset | None = None
    """What tools may do, as long as the run lives; not more than the team's. Default: the team's."""
    history: tuple[ChatMessage, ...] = ()
    """What was said before, with which the agent's conversation begins."""
    conversation: bool = False
    """Whether the agent that is asked remembers, at each further request, what was said before."""
    options: OptionsBody | None = None
    """What holds for the first request alone."""


class AskBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Another request in a run."""

    agent: str
    """Who is asked."""
    message: str
    """The request."""
    attachments: tuple[Attachment, ...] = ()
    """Files beside the message."""
    data: Any = None
    """JSON for the agent's own hooks and action."""
    limits: Limits | None = None
    """Of the request."""
    history: tuple[ChatMessage, ...] = ()
    """What was said before, with which the agent's conversation begins."""
    intent: str = ""
    """A label of the request; `compact` has a continued conversation compacted, and asks nothing."""
    options: OptionsBody | None = None
    """What holds for this request alone: tools, settings, output, instructions, a stricter policy."""


class TellBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Something more for the agent that works on an open call."""

    call_id: str
    """The call."""
    message: str
    """What it is told."""
    attachments: tuple[Attachment, ...] = ()
    """Files beside the message."""


class GivenGrant(Grant, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """How far a rule or an approval that is remembered reaches; what is misspelled would widen it."""


class AnswerBody(Struct, frozen=True, forbid_unknown_fields=True):
    """An answer to an open question. Who answers is the token's subject, whatever the body says."""

    question: str
    """The question's id."""
    content: str
    """The answer; to an approval or a limit `yes`, `no` or `always`; to the call of an outside tool its
    result."""
    arguments: str = ""
    """Of an approval: JSON that replaces the arguments asked for."""
    grant: GivenGrant | None = None
    """How far `always` reaches."""
    scope: Scope = "run"
    """Where `always` to a tool holds: in this run, or also in those of its project or owner that are opened
    from now on."""
    reason: str = ""
    """Of a `no`: why, told to the model. Of the call of an outside tool, with an empty `content`: why it
    failed."""
    ends_turn: bool = False
    """With the `no` the agent's turn ends too."""


class CancelBody(Struct, frozen=True, forbid_unknown_fields=True):
    """A stop."""

    target: str = ""
    """The call or tool that is stopped, with all under it. Default: every request."""
    reason: str = ""
    """Why; recorded."""


class ResumeBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Take up a run that nobody drives."""

    team: str = ""
    """Whose it is, where no server has started it and several teams would do."""


class ForkBody(Struct, frozen=True, forbid_unknown_fields=True):
    """Begin another run as this one did."""

    at: int | None = None
    """The number of the last record to take over. Default: as far as the run goes."""


class ChangeRun(Struct, frozen=True, forbid_unknown_fields=True):
    """What may be changed of a run that is there."""

    name: str | None = None
    """What people call it; empty takes the name away. Default: as it is."""
    project: str | None = None
    """What it is a part of from now on; empty: of nothing. Default: as it is."""


class WorkModuleChange(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One change of the plan, as the agents' own tool `manage_work_modules` takes it."""

    action: Literal["create", "update", "status_change"]
    """`create` needs a name, `update` a module_id and what differs, `status_change` a module_id and the new
    status."""
    module_id: str = ""
    """Such as WM_1."""
    name: str = ""
    """What the module is called."""
    description: str = ""
    """What is to be done."""
    new_status: str = ""
    """`pending`, `pending_review`, `completed` or `deprecated`."""
    status: str = ""
    """Another name of new_status."""
    notes_from_principal: str = ""
    """What else is to be known of it."""
