"""What is answered over HTTP, as JSON."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from antiphon.host.sources import SourceText
from antiphon.kernel.facts.records import Record
from antiphon.kernel.facts.summary import RunSummary
from antiphon.values.message import Message
from antiphon.values.model import Usage
from antiphon.values.result import Difference
from antiphon.values.tool import ToolKind
from antiphon.view.connection import OpenQuestion
from antiphon.view.frames import Frame


class RunCreated(Struct, frozen=True):
    """A run that was started."""

    run_id: str
    """Its id."""
    created: bool
    """False: the same was asked for under the same key before."""


class CommandReceipt(Struct, frozen=True):
    """What became of something that was posted in a run."""

    command: int
    """Its number."""
    taken: bool
    """Whether the run's owner has taken it in; if not, it waits."""
    id: str = ""
    """What it became: of a request its call, of an answer what it ended."""


class ModuleReceipt(CommandReceipt, frozen=True):
    """What became of a change of the plan."""

    said: str = ""
    """What was changed, where it was taken."""


class RunLine(Struct, frozen=True):
    """A run in a list."""

    run_id: str
    """Its id."""
    state: str
    """`running`, `waiting` (for a person), `queued`, `suspended`, `idle`, `closed`, or its last outcome."""
    name: str
    """What people call it."""
    team: str
    """The team that does it; empty for one that no server has started."""
    owner: str
    """Who has started it."""
    project: str
    """What it is a part of."""
    entry: str
    """Whom the user asked last."""
    title: str
    """The start of what was said."""
    outcome: str
    """Of the request that ended last."""
    reason: str
    """Why it is suspended, where that is known here."""
    records: int
    """The number of the last record."""
    tokens: int
    """Input and output, so far."""
    cost_usd: float
    """What is known of the money, in US dollars."""
    unpriced_calls: int
    """Model calls whose cost is not known."""
    driven_by: str
    """The process that drives it; empty when nobody does."""
    created_at: float
    """Unix seconds."""
    updated_at: float
    """Unix seconds."""
    number: int
    """Its place in the list; it grows with each run, and is what `before` takes."""
    summary: RunSummary
    """As its owner told it last: how it stands, what it asks, its activity."""


class RunPage(Struct, frozen=True):
    """Runs, newest first."""

    runs: list[RunLine]
    """These."""
    next: int
    """Pass it as `before` for the next page; 0 at the end."""


class FramePage(Struct, frozen=True):
    """Frames of a run, oldest first."""

    run_id: str
    """The run's id."""
    frames: list[Frame]
    """These."""
    last: int
    """The number of the run's last record."""


class EffectView(Struct, frozen=True):
    """One effect of a turn: a model call, a tool, an agent's call, a wait."""

    id: str
    """Its id."""
    kind: str
    """`model`, `tool`, `call`, `wait`, `action`, `step` or `instructions`."""
    name: str
    """Of the model, tool, agent or step."""
    purpose: str
    """What it is for, where it is not what its kind says."""
    arguments: str
    """Of a call, JSON."""
    text: str
    """What a person is asked."""
    started_at: float | None
    """Unix seconds; None when it never started."""
    ended_at: float | None
    """Unix seconds; None while it runs."""
    outcome: str
    """How it ended; empty while it runs."""
    reason: str
    """Why it ended so."""
    content: str
    """Its result; of a model the text; of human input the answer."""
    decided_by: str
    """Who allowed or answered it, where a person did."""
    callee: int | None
    """Of an agent's call: the activation that it is."""
    usage: Usage | None
    """Of a model call, as far as it was reported."""
    cost_usd: float
    """Of a model call."""
    labels: list[str]
    """What its result carries, such as `untrusted` and `private`."""


class TurnView(Struct, frozen=True):
    """One turn."""

    number: int
    """From 1, within its activation."""
    started_at: float
    """Unix seconds."""
    ended_at: float | None
    """Unix seconds; None while it goes on."""
    effects: list[EffectView]
    """In the order they began."""


class ActivationView(Struct, frozen=True):
    """One activation at work on one call."""

    number: int
    """0 is the user."""
    agent: str
    """Its agent."""
    caller: int
    """The activation that called it."""
    call: str
    """The id of the call that it is."""
    asked: str
    """What the call asks of it."""
    started_at: float
    """Unix seconds."""
    ended_at: float | None
    """Unix seconds; None while it works."""
    outcome: str
    """How the call ended."""
    reason: str
    """Why it ended so."""
    content: str
    """What it returned."""
    turns: list[TurnView]
    """On this call."""
    model_calls: int
    """Its own."""
    usage: Usage
    """Its own, as far as reported."""
    cost_usd: float
    """Its own."""


class ModelView(Struct, frozen=True):
    """What one model was asked."""

    model: str
    """Its name."""
    calls: int
    """That ended."""
    usage: Usage
    """As far as it was reported."""
    cost_usd: float
    """As far as it is known."""
    unpriced_calls: int
    """Model calls whose cost is not known."""


class RunView(Struct, frozen=True):
    """A run as of one record: activations, turns, effects."""

    run_id: str
    """Its id."""
    seq: int
    """The record it is of."""
    at: float
    """When that was, Unix seconds."""
    started_at: float
    """Unix seconds."""
    closed: bool
    """Nothing can follow."""
    outcome: str
    """Of the request that ended last."""
    reason: str
    """Why it was closed."""
    requests: list[str]
    """The user's requests that are open."""
    activations: list[ActivationView]
    """Each at its latest call."""
    models: list[ModelView]
    """By model."""
    questions: list[OpenQuestion]
    """What people are asked."""
    messages: list[Message]
    """Between agents, in order."""


class RecordPage(Struct, frozen=True):
    """Records of a run, oldest first."""

    run_id: str
    """Its id."""
    records: list[Record]
    """These."""
    next: int
    """Pass it as `after` for the next page."""
    more: bool
    """Whether there are more now."""


class TeamCheck(Struct, frozen=True):
    """What taking a run up with a team would meet."""

    known: bool
    """Whether the run has named a team; else there is nothing to compare."""
    differences: list[Difference]
    """From the team that it was last opened with."""


class InboxItemView(Struct, frozen=True):
    """A question of some run."""

    run_id: str
    """The run that asks."""
    name: str
    """What people call it."""
    team: str
    """The team that does it."""
    question: OpenQuestion
    """What is asked."""


class Inbox(Struct, frozen=True):
    """What all runs ask people, oldest first."""

    items: list[InboxItemView]
    """These."""


class ToolView(Struct, frozen=True):
    """A tool of an agent."""

    name: str
    """As the model calls it."""
    description: str
    """What the model is told."""
    effect: str
    """`read`, `idempotent` or `once`."""
    parameters: dict[str, Any]
    """JSON Schema."""
    rulings: dict[str, str]
    """`allow`, `ask`, `deny`, by preset and `` for the team's policy; hooks and rules may say otherwise."""
    kind: ToolKind
    """What it is for, as the developer said."""
    title: str
    """What people are shown in place of the name, one line."""


class ToolsetView(Struct, frozen=True):
    """A toolset of an agent: tools whose provider lives and dies."""

    name: str
    """Its name."""
    required: bool
    """A run does not start without it."""
    tools: list[ToolView] | None
    """What it offers now, or offered last; None: no run of this server has had it opened."""
    reason: str
    """Why its provider cannot be reached; empty: it can, or nobody has tried."""


class AgentView(Struct, frozen=True):
    """An agent of a team."""

    name: str
    """Its name."""
    description: str
    """What its colleagues are told."""
    model: str
    """As it is named; empty for the default."""
    tools: list[ToolView]
    """What it can use."""
    can_call: list[str] | None
    """Whom it may call; None: everybody."""
    usd_per_token: float | None
    """What a token of its models costs at most; None where a price is unknown."""
    toolsets: list[ToolsetView]
    """What it can use beside its tools."""


class TeamLine(Struct, frozen=True):
    """A team in the list."""

    name: str
    """Its name."""
    entry: str
    """Who is asked."""
    agents: list[str]
    """Their names."""
    findings: list[str]
    """What is wrong with its files."""


class TeamView(Struct, frozen=True):
    """A team."""

    name: str
    """Its name."""
    entry: str
    """Who is asked."""
    agents: list[AgentView]
    """All of them."""
    edges: list[tuple[str, str]]
    """Who reaches whom."""
    findings: list[str]
    """What is wrong with its files, and what looks wrong in its graph."""
    policy: str
    """The preset of its rules on tools."""
    tokens: int | None
    """That a request may use; None: there is no limit, or cached tokens count less for it than they cost."""
    usd: float | None
    """That a request may cost; None: there is no limit."""
    on_breach: Literal["stop", "ask", "degrade", "handoff"]
    """What these limits say of a request that has used them up, see `Limits`."""
    breach_target: str
    """The model or the agent that goes on then; empty for none."""


class TeamSourceView(Struct, frozen=True):
    """Where a team is written."""

    place: str
    """As it was named when it was served, and of one in code the line; empty where that is not known."""
    files: list[SourceText]
    """Its files, by name; none for a team that is made in code alone."""
    left_out: int
    """Files that are not among them: a team's first 200 are shown, and 2 MB of text."""


class Teams(Struct, frozen=True):
    """What can be started."""

    teams: list[TeamLine]
    """By name."""


class Ticket(Struct, frozen=True):
    """For the first frame of one WebSocket."""

    ticket: str
    """Good once."""
    expires_in: float
    """Seconds."""


class SessionView(Struct, frozen=True):
    """Who asks, and what they may do here."""

    subject: str
    """Who it is."""
    scopes: list[str]
    """`read`, `write`."""
    version: str
    """Of Antiphon."""
    drives: bool
    """False: a read-only look at a journal; nobody can change anything here."""
    commands: dict[str, str]
    """Of such a look: the command lines that go on, by what they do; `{run}` stands for a run's id."""


class PageOpening(Struct, frozen=True, forbid_unknown_fields=True):
    """What a browser was opened with."""

    opening: str
    """Good once."""


class PageToken(Struct, frozen=True):
    """The token for a page that was opened."""

    token: str
    """Sent with each request from now on."""


class Health(Struct, frozen=True):
    """Whether the server lives, or is ready."""

    status: Literal["ok", "draining"]
    """`draining`: it is being left."""
    version: str = ""
    """Of Antiphon, for those with a token."""
    runs: dict[str, int] = field(default_factory=dict)
    """Runs of this server by state, for those with a token."""
