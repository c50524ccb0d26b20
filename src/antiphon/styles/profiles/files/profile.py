"""profile: what a profile file says, as values. Frozen, checked, with its bases merged in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from antiphon.styles.profiles.conditions.expression import Expression
from antiphon.styles.profiles.files.diagnostics import SourceLocation
from antiphon.styles.profiles.files.template import Template

Role = Literal["base", "partner", "principal", "associate"]


class Segment(Struct, frozen=True):
    """A part of the system prompt.

    static_text says `content`, or the text definition that `content_key` names; state_value the value at
    `source_state_path`, as text by `ingestor_id`; tool_description the agent's tools. The other two add
    nothing. condition: None holds always. order: the lowest comes first.
    """

    id: str
    place: SourceLocation
    type: Literal["static_text", "state_value", "tool_description", "tool_contributed_context", ""] = ""
    content: Template | None = None
    content_key: str = ""
    source_state_path: str = ""
    ingestor_id: str = ""
    ingestor_params: Mapping[str, Any] = {}
    condition: Expression | None = None
    order: float = 99


class InboxItem(Struct, frozen=True):
    """What an observer puts into the inbox. payload: data; a Template is one path, whose value it is."""

    source: str
    place: SourceLocation
    payload: Any = None
    consumption_policy: Literal["consume_on_read", "persistent_until_consumed"] = "consume_on_read"


class AddToInbox(Struct, frozen=True):
    """The action `add_to_inbox`."""

    inbox_item: InboxItem
    place: SourceLocation
    target_agent_id: str = "self"


class Update(Struct, frozen=True):
    """A change of the agent's state. path: below `state`. increment adds 1 to what is there, or to 0."""

    operation: Literal["set", "increment"]
    path: str
    place: SourceLocation
    value: Any = None


class UpdateState(Struct, frozen=True):
    """The action `update_state`."""

    updates: tuple[Update, ...]
    place: SourceLocation


class PassedOver(Struct, frozen=True):
    """An action of the rules that stands in an observer, and does nothing there."""

    place: SourceLocation


class Observer(Struct, frozen=True):
    """A rule before or after each turn. condition: None holds always."""

    id: str
    place: SourceLocation
    action: AddToInbox | UpdateState | PassedOver
    type: Literal["declarative"] = "declarative"
    condition: Expression | None = None


class ContinueWithTool(Struct, frozen=True):
    """The action `continue_with_tool`: what the model called is done, and another turn follows."""

    place: SourceLocation


class EndAgentTurn(Struct, frozen=True):
    """The action `end_agent_turn`: the agent returns."""

    place: SourceLocation
    outcome: Literal["success", "error"] = "error"
    error_message: str = ""


class LoopWithInboxItem(Struct, frozen=True):
    """The action `loop_with_inbox_item`: another turn follows, with a text definition in the inbox."""

    content_key: str
    place: SourceLocation


class AwaitUserInput(Struct, frozen=True):
    """The action `await_user_input`: the agent rests until somebody writes to it."""

    place: SourceLocation


class Rule(Struct, frozen=True):
    """A rule of the flow decider; the first whose condition holds counts."""

    id: str
    condition: Expression
    action: ContinueWithTool | EndAgentTurn | LoopWithInboxItem | AwaitUserInput
    place: SourceLocation


class ToolAccess(Struct, frozen=True):
    """Which tools an agent has: all of these toolsets, and these."""

    allowed_toolsets: tuple[str, ...] = ()
    allowed_individual_tools: tuple[str, ...] = ()


class InboxStrategy(Struct, frozen=True):
    """How items of one source are shown to the model. params: of the ingestor, and `role`, and
    `is_persistent_in_memory`: whether what is shown stays in the conversation.
    """

    source: str
    place: SourceLocation
    ingestor: str = "markdown_formatter"
    injection_mode: Literal["append_as_new_message", "prepend_to_role"] = "append_as_new_message"
    params: Mapping[str, Any] = {}


class Profile(Struct, frozen=True):
    """An agent as its file and the files it is based on describe it.

    profile_id: of this revision; without one in the file `name@rev`. segments: in their order.
    bases: names of the profiles it is based on, the nearest first.
    """

    name: str
    type: Role
    profile_id: str
    place: SourceLocation
    rev: int = 1
    is_active: bool = True
    is_deleted: bool = False
    timestamp: str = ""
    available_for_staffing: bool = False
    description_for_human: str = ""
    bases: tuple[str, ...] = ()
    llm_config_ref: str = ""
    segments: tuple[Segment, ...] = ()
    pre_turn_observers: tuple[Observer, ...] = ()
    post_turn_observers: tuple[Observer, ...] = ()
    flow_decider: tuple[Rule, ...] = ()
    tool_access_policy: ToolAccess = ToolAccess()
    text_definitions: Mapping[str, Template] = {}
    inbox_handling_strategies: tuple[InboxStrategy, ...] = ()
