"""turn: what an agent did from one look into its inbox to its decision, read from a run's records.

    for turn in turns_of(await conversation.records()):
        print(turn.turn_id, turn.agent_info.agent_id, turn.status, turn.outputs.next_action)

Nothing of a turn is stored: it is what the records say. Times are Unix seconds. An agent's turn is named
`activation/turn`; its first call's effect id is `activation/turn.c1`.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct, field

from antiphon.values.model import ChatMessage, Usage

TurnType = Literal["agent", "user", "dispatch", "aggregation", "restart_delimiter"]
Status = Literal["running", "completed", "error", "cancelled", "interrupted"]


class AgentInfo(Struct, frozen=True):
    """Whose turn it was."""

    agent_id: str
    profile_logical_name: str = ""
    profile_instance_id: str = ""
    assigned_role_name: str = ""


class ProcessedItem(Struct):
    """An inbox item that was read, and what the model was shown of it; transient items stand in the tail."""

    item_id: str
    source: str
    payload: Any = None
    consumption_policy: str = "consume_on_read"
    triggering_observer_id: str = ""
    formatted: str = ""


class Inputs(Struct):
    """What the model was shown. tail: what stood after the conversation, in this turn only.

    processed_inbox_items: tool results first; then what else was in the inbox, in the order it was read.
    system_prompt_digest: of the instructions and tools; their text is in the journal under it.
    """

    processed_inbox_items: list[ProcessedItem] = field(default_factory=list)
    shown: list[ChatMessage] = field(default_factory=list)
    tail: str = ""
    system_prompt_digest: str = ""


class Outputs(Struct):
    """What was decided: a tool's name, `loop`, `await_user_input`, `wait`, or `end`.

    rule_id: the rule of the flow decider that said so, rule_action: what its action is called; empty when
    none was asked.
    """

    next_action: str = ""
    rule_id: str = ""
    rule_action: str = ""


class Attempt(Struct):
    """One call of the model. stream_id: its effect."""

    stream_id: str
    status: Status = "running"
    error: str = ""


class LlmInteraction(Struct):
    """The talk with the model. request_digest: of exactly what was asked. predicted_usage: tokens held.

    final_request: the messages of the last attempt as they were sent, its tail the last of them; the system
    prompt and the tools stand under `Inputs.system_prompt_digest`. Empty for records that do not begin with
    the run.
    """

    status: Status = "running"
    attempts: list[Attempt] = field(default_factory=list)
    model: str = ""
    request_digest: str = ""
    final_request: list[ChatMessage] = field(default_factory=list)
    final_response: ChatMessage | None = None
    predicted_usage: int = 0
    actual_usage: Usage = field(default_factory=Usage)


class ToolInteraction(Struct):
    """A call of a tool. effect_id: where it stands in the run."""

    tool_call_id: str
    tool_name: str
    effect_id: str
    start_time: float
    end_time: float = 0.0
    status: Status = "running"
    input_params: str = ""
    result_payload: str = ""
    error_details: str = ""


class Turn(Struct):
    """One turn.

    flow_id: the call that all of it is for, from its start to its return. source_turn_ids: the turns that led
    to it. source_tool_call_id: the effect of the call that started the agent, in its first turn.
    """

    turn_id: str
    run_id: str
    flow_id: str
    agent_info: AgentInfo
    turn_type: TurnType
    start_time: float
    status: Status = "running"
    end_time: float = 0.0
    source_turn_ids: tuple[str, ...] = ()
    source_tool_call_id: str = ""
    inputs: Inputs = field(default_factory=Inputs)
    outputs: Outputs = field(default_factory=Outputs)
    llm_interaction: LlmInteraction | None = None
    tool_interactions: list[ToolInteraction] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    error_details: str = ""
