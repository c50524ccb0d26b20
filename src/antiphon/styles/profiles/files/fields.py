"""fields: every key that a file may have, what it holds and what it means.

These tables are all there is: the loader reads by them, the JSON Schema for editors is made of them, and the
reference in the documentation is compared with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from antiphon.styles.profiles.files.profile import (
    AddToInbox,
    AwaitUserInput,
    ContinueWithTool,
    EndAgentTurn,
    InboxItem,
    InboxStrategy,
    LoopWithInboxItem,
    Observer,
    Rule,
    Segment,
    Update,
    UpdateState,
)
from antiphon.styles.profiles.files.protocol import Inheritance, ReadEach, ReadFrom

Scalar = Literal[
    "text",
    "reference",
    "flag",
    "whole",
    "number",
    "data",
    "mapping",
    "condition",
    "template",
    "path",
    "target",
    "payload",
    "source",
    "ingestor",
    "toolset",
    "tool",
    "value",
    "parameters",
]
"""Kinds of values that are read by a function of their own; `reading` has them."""


class Choice(Struct, frozen=True):
    """One of these words."""

    of: tuple[str, ...]


class Many(Struct, frozen=True):
    """A list. by: the attribute that names an item; two of one name are an error."""

    of: Kind
    by: str = ""


class Each(Struct, frozen=True):
    """A mapping from names of one's own."""

    of: Kind


class Field(Struct, frozen=True):
    """A key. says: what it means. becomes: its name if it differs. ignored: why nothing is made of it."""

    kind: Kind
    says: str
    required: bool = False
    becomes: str = ""
    ignored: str = ""


class MappingShape(Struct, frozen=True):
    """A mapping with known keys. make: what it becomes, given its place as well; None: a plain dictionary."""

    what: str
    fields: Mapping[str, Field]
    make: Callable[..., Any] | None = None


class Variants(Struct, frozen=True):
    """A mapping that is one of several shapes.

    by: the key whose value names the shape; empty: a shape is named by the key that only it has.
    passed_over: names that belong elsewhere, and do nothing here.
    """

    what: str
    of: Mapping[str, MappingShape]
    by: str = "type"
    passed_over: tuple[str, ...] = ()


Kind = Scalar | Choice | Many | Each | MappingShape | Variants

_ALWAYS_IGNORED = "it has never had an effect"
_ITEM = MappingShape(
    "an inbox item",
    {
        "source": Field("source", "What kind of item it is; decides its priority and how it is shown.", True),
        "payload": Field(
            "payload",
            "What it says: any data; `{{ path }}` alone for the value there; "
            "`{content_key: …}` for a text definition.",
        ),
        "consumption_policy": Field(
            Choice(("consume_on_read", "persistent_until_consumed")),
            "Whether it leaves the inbox when it has been shown. Default: `consume_on_read`.",
        ),
        "ingestor_id": Field("data", "Use `inbox_handling_strategies`.", ignored=_ALWAYS_IGNORED),
        "ingestor_params": Field("data", "Use `inbox_handling_strategies`.", ignored=_ALWAYS_IGNORED),
        "metadata": Field("data", "Say it in the payload.", ignored=_ALWAYS_IGNORED),
    },
    InboxItem,
)
_UPDATE = MappingShape(
    "an update",
    {
        "operation": Field(
            Choice(("set", "increment")), "`set` puts `value` there; `increment` adds 1.", True
        ),
        "path": Field("target", "Where, below `state`: keys and dots.", True),
        "value": Field("data", "What `set` puts there; null when it is not given."),
    },
    Update,
)
_TYPE = Field("text", "Which of these actions it is.", True)
OBSERVER_ACTIONS = Variants(
    "an observer's action",
    {
        "add_to_inbox": MappingShape(
            "add_to_inbox",
            {
                "type": _TYPE,
                "target_agent_id": Field(Choice(("self",)), "Whose inbox; only `self`, the default."),
                "inbox_item": Field(_ITEM, "What is put there.", True),
            },
            AddToInbox,
        ),
        "update_state": MappingShape(
            "update_state",
            {"type": _TYPE, "updates": Field(Many(_UPDATE), "Changes, made in order.", True)},
            UpdateState,
        ),
    },
    passed_over=("continue_with_tool", "end_agent_turn", "loop_with_inbox_item", "await_user_input"),
)
RULE_ACTIONS = Variants(
    "a rule's action",
    {
        "continue_with_tool": MappingShape("continue_with_tool", {"type": _TYPE}, ContinueWithTool),
        "end_agent_turn": MappingShape(
            "end_agent_turn",
            {
                "type": _TYPE,
                "outcome": Field(Choice(("success", "error")), "How the agent ends. Default: `error`."),
                "error_message": Field("text", "Why it ended."),
            },
            EndAgentTurn,
        ),
        "loop_with_inbox_item": MappingShape(
            "loop_with_inbox_item",
            {
                "type": _TYPE,
                "payload": Field(
                    MappingShape(
                        "a payload",
                        {"content_key": Field("text", "The text definition that is said.", True)},
                    ),
                    "What the next turn is told.",
                    True,
                ),
            },
            lambda place, payload: LoopWithInboxItem(payload["content_key"], place),
        ),
        "await_user_input": MappingShape("await_user_input", {"type": _TYPE}, AwaitUserInput),
    },
)
SEGMENT = MappingShape(
    "a segment",
    {
        "id": Field("text", "Its name; a segment of the base with the same id is replaced as a whole.", True),
        "type": Field(
            Choice(("static_text", "state_value", "tool_description", "tool_contributed_context")),
            "What it says; `tool_contributed_context` says nothing.",
        ),
        "content": Field("template", "The text of `static_text`; `{{ path }}` in it is filled in."),
        "content_key": Field("text", "The text definition it says instead of `content`."),
        "source_state_path": Field("path", "Where the value of `state_value` stands."),
        "ingestor_id": Field("ingestor", "What makes the value a text."),
        "ingestor_params": Field("mapping", "What the ingestor is told, such as `title`."),
        "condition": Field("condition", "When it is said. Default: always."),
        "order": Field("number", "Its place in the prompt: the lowest first. Default: 99."),
        "wrapper_tags": Field("data", "Write the tags into the text.", ignored=_ALWAYS_IGNORED),
    },
    Segment,
)
OBSERVER = MappingShape(
    "an observer",
    {
        "id": Field("text", "Its name; an observer of the base with the same id is replaced.", True),
        "type": Field(Choice(("declarative",)), "The only type, and the default."),
        "condition": Field("condition", "When it acts. Default: always."),
        "action": Field(OBSERVER_ACTIONS, "What it does.", True),
    },
    Observer,
)
RULE = MappingShape(
    "a rule",
    {
        "id": Field(
            "text", "Its name; a rule of the base with the same id is replaced where it stands.", True
        ),
        "condition": Field("condition", "When it counts; the first rule whose condition holds does.", True),
        "action": Field(RULE_ACTIONS, "What follows the turn.", True),
    },
    Rule,
)
STRATEGY = MappingShape(
    "an inbox strategy",
    {
        "source": Field(
            "source", "The items it is for; the strategy of the base for them is replaced.", True
        ),
        "ingestor": Field("ingestor", "What makes the payload a text. Default: `markdown_formatter`."),
        "injection_mode": Field(
            Choice(("append_as_new_message", "prepend_to_role")),
            "A message of its own, or before the last one of the same role. Default: the former.",
        ),
        "params": Field(
            "mapping",
            "What the ingestor is told; `role` of the message; `is_persistent_in_memory`: whether it stays.",
        ),
    },
    InboxStrategy,
)
_PROMPT = MappingShape(
    "the system prompt",
    {
        "system_prompt_segments": Field(
            Many(SEGMENT, "id"), "The parts, joined by blank lines.", becomes="segments"
        ),
        "segments": Field(Many(SEGMENT, "id"), "The same, in the words of the seed."),
        "default_cli_associate_profile_names": Field("data", "Leave it out.", ignored="nothing reads it"),
    },
)
_TOOLS = MappingShape(
    "tool access",
    {
        "allowed_toolsets": Field(
            Many("toolset"), "All tools of these sets; those of the base are added, not replaced."
        ),
        "allowed_individual_tools": Field(Many("tool"), "These tools; those of the base are added."),
    },
)
PROFILE = MappingShape(
    "a profile",
    {
        "name": Field("text", "The logical name. Default: the file's name without its ending."),
        "type": Field(
            Choice(("base", "partner", "principal", "associate")),
            "The role; a `base` only serves others. Needed, here or in a base.",
        ),
        "profile_id": Field("text", "The id of this revision. Default: `name@rev`."),
        "rev": Field("whole", "Of several active profiles of one name the highest counts. Default: 1."),
        "is_active": Field("flag", "Whether it may be used. Default: true."),
        "is_deleted": Field("flag", "Whether it counts as gone. Default: false."),
        "timestamp": Field("text", "When it was written, for people."),
        "available_for_staffing": Field("flag", "Whether a principal may give it work. Default: false."),
        "description_for_human": Field("text", "What people and other agents are told of it."),
        "base_profile": Field("reference", "The profile it begins from; see Inheritance."),
        "llm_config_ref": Field("reference", "The LLM config it thinks with. Default: the run's model."),
        "system_prompt_construction": Field(_PROMPT, "What its system prompt is made of."),
        "pre_turn_observers": Field(Many(OBSERVER, "id"), "Rules before each turn, in order."),
        "post_turn_observers": Field(Many(OBSERVER, "id"), "Rules after the model has answered, in order."),
        "flow_decider": Field(Many(RULE, "id"), "What follows a turn; no rule that holds: another turn."),
        "tool_access_policy": Field(_TOOLS, "Which tools it has."),
        "text_definitions": Field(Each("template"), "Texts by name; `{{ path }}` in them is filled in."),
        "inbox_handling_strategies": Field(
            Many(STRATEGY, "source"), "How items are shown, where that differs from the usual."
        ),
        "exposable_as_tool": Field("data", "Say who may call it in code.", ignored=_ALWAYS_IGNORED),
    },
)
LLM_CONFIG = MappingShape(
    "an LLM config",
    {
        "name": Field("text", "The logical name. Default: the file's name without its ending."),
        "type": Field(Choice(("llm_config",)), "The only type, and the default."),
        "llm_config_id": Field("text", "The id of this revision, for people."),
        "rev": Field("whole", "Of several active configs of one name the highest counts. Default: 1."),
        "is_active": Field("flag", "Whether it may be used. Default: true."),
        "is_deleted": Field("flag", "Whether it counts as gone. Default: false."),
        "timestamp": Field("text", "When it was written, for people."),
        "description_for_human": Field("text", "What it is for."),
        "base_llm_config": Field("reference", "The config it begins from; its values are merged in."),
        "config": Field(Each("value"), "What the model is asked with: `model`, `temperature`, …"),
    },
)
FROM_SOURCE = Variants(
    "from_source",
    {
        "path": MappingShape(
            "from_source with path",
            {
                "path": Field("template", "Where it stands; `{{ name }}` in it is replaced.", True),
                "replace": Field(Each("path"), "For each such name, where what replaces it stands."),
            },
            ReadFrom,
        ),
        "path_to_iterate": MappingShape(
            "from_source with path_to_iterate",
            {
                "path_to_iterate": Field(
                    "template", "Where each stands; `{{ name }}` in it is replaced.", True
                ),
                "iterate_on": Field(
                    Each("path"), "For that name, where the list of its values stands.", True
                ),
            },
            ReadEach,
        ),
    },
    by="",
)
INHERITANCE = MappingShape(
    "an inheritance rule",
    {
        "from_source": Field(FROM_SOURCE, "Where it is read.", True),
        "as_payload_key": Field("text", "What it is called in the payload.", True),
        "x-handover-title": Field("text", "What it is called in the briefing.", becomes="title"),
        "condition": Field("condition", "When it is handed over. Default: always."),
        "schema": Field("mapping", "JSON Schema that says how it is shown."),
    },
    Inheritance,
)
PROTOCOL = MappingShape(
    "a handover protocol",
    {
        "protocol_name": Field("text", "The name that tools use.", True),
        "version": Field("text", "For people."),
        "description": Field("text", "For people."),
        "context_parameters": Field(
            "parameters", "JSON Schema of what the model says itself; joins the tool's parameters."
        ),
        "inheritance": Field(Many(INHERITANCE), "What is read from the world of the one who hands over."),
        "target_inbox_item": Field(
            MappingShape(
                "an inbox item", {"source": Field("source", "What kind of item comes of it.", True)}
            ),
            "The inbox item of the one who is started.",
            True,
        ),
        "context_inheritance": Field(
            "data", "Call it `inheritance`.", ignored="the documented generation does not read it"
        ),
    },
)
SHAPES: Mapping[str, MappingShape] = {
    "profile": PROFILE,
    "llm_config": LLM_CONFIG,
    "handover_protocol": PROTOCOL,
}
"""The three kinds of files."""
