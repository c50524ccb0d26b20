"""turns: the records of a run as turns. One pass, in order; nothing else is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct, field

from antiphon import Message, Record
from antiphon.errors import JournalCorrupt
from antiphon.kernel.facts import ids
from antiphon.kernel.facts.fold.apply import apply
from antiphon.kernel.facts.state import RunState
from antiphon.styles.profiles.files.profile import Profile
from antiphon.styles.profiles.history.turn import (
    AgentInfo,
    Attempt,
    LlmInteraction,
    ProcessedItem,
    Status,
    ToolInteraction,
    Turn,
)
from antiphon.values.message import USER
from antiphon.values.model import ChatMessage, Usage
from antiphon.view import RunTree
from antiphon.view.changes import EffectEnd, EffectStart, MessageArrival, RunResume, TurnEnd, TurnStart
from antiphon.view.nodes import ActivationNode, EffectNode, ModelUse, TurnNode

_REPLIES = ("", "final")
"""Purposes of model calls that are the agent's own talk; to compact is none."""
_STATUS: Mapping[str, Status] = {
    "completed": "completed",
    "cancelled": "cancelled",
    "skipped": "cancelled",
    "interrupted": "interrupted",
}


def turns_of(records: Iterable[Record], profiles: Mapping[str, Profile] | None = None) -> list[Turn]:
    """The turns of a run's records, from the first on. profiles: for the ids of who took them."""
    reading = _TurnCollector(profiles or {})
    for record in records:
        reading.take(record)
    return reading.turns


class _TurnChain(Struct):
    """What links the turns of an activation. last: its last turn; source: what its next one follows."""

    turn: Turn | None = None
    last: Turn | None = None
    source: str = ""
    mail: dict[str, Message] = field(default_factory=dict)
    first: bool = True


class _TurnCollector:
    """All activations, and the turns so far."""

    def __init__(self, profiles: Mapping[str, Profile]) -> None:
        self.turns: list[Turn] = []
        self._profiles, self._tree = profiles, RunTree(recent=True)
        self._agents: dict[int, _TurnChain] = {}
        self._under: dict[str, list[_TurnChain]] = {}
        self._tools: dict[str, ToolInteraction] = {}
        self._state: RunState | None = RunState()

    def take(self, record: Record) -> None:
        """Read the next record."""
        self._fold(record)
        for change in self._tree.add(record):
            match change:
                case MessageArrival(activation, message):
                    self._agent(activation).mail[message.id] = message
                case TurnStart(activation, turn) if activation.id:
                    self._turn_started(record, activation, turn)
                case TurnEnd(activation, turn) if activation.id:
                    self._turn_ended(record, activation, turn)
                case EffectStart(activation, effect):
                    self._started(activation, effect)
                case EffectEnd(activation, effect):
                    self._ended(record, activation, effect)
                case RunResume():
                    self._resumed(record)

    def _fold(self, record: Record) -> None:
        """Follow the conversations, from which requests are read; given up when records are missing."""
        if self._state is None:
            return
        self._state.at = record.at
        try:
            apply(self._state, record.event)
        except JournalCorrupt:
            self._state = None

    def _asked(self, activation: ActivationNode, turn: Turn) -> list[ChatMessage]:
        """What a model call that begins now is asked."""
        known = self._state.activations.get(activation.id) if self._state is not None else None
        if known is None:
            return []
        tail = [ChatMessage("user", turn.inputs.tail)] if turn.inputs.tail else []
        return [*known.conversation.transcript.messages, *tail]

    def _agent(self, activation: ActivationNode) -> _TurnChain:
        return self._agents.setdefault(activation.id, _TurnChain())

    def _turn_started(self, record: Record, activation: ActivationNode, node: TurnNode) -> None:
        agent, call = self._agent(activation), activation.call
        before = agent.source or _turn_of(call)
        turn = Turn(
            ids.turn_id(activation.id, node.number),
            record.run_id,
            call,
            self._info(activation),
            "dispatch" if node.planned else "agent",
            node.started_at,
            source_turn_ids=(before,) if before else (),
            source_tool_call_id=call if agent.first and activation.caller else "",
        )
        turn.inputs.shown, turn.inputs.tail = list(node.shown or ()), node.suffix
        before_it = agent.last.tool_interactions if agent.last is not None else []
        turn.inputs.processed_inbox_items = _processed(agent, activation, node, before_it)
        self._user_turns(record, turn)
        agent.first, agent.turn, agent.last, agent.source = False, turn, turn, turn.turn_id
        self.turns.append(turn)

    def _user_turns(self, record: Record, turn: Turn) -> None:
        """What the user said is a turn of its own, linked to what came before and of the same flow."""
        items = [each for each in turn.inputs.processed_inbox_items if each.source == "USER_PROMPT"]
        before = turn.source_turn_ids
        for number, item in enumerate(items, 1):
            said = Turn(
                f"{turn.turn_id}.user{number if number > 1 else ''}", record.run_id, turn.flow_id,
                AgentInfo(USER), "user", record.at, "completed", record.at, before,
            )  # fmt: skip
            said.inputs.processed_inbox_items = [item]
            turn.source_turn_ids = (said.turn_id,) if number == 1 else (*turn.source_turn_ids, said.turn_id)
            self.turns.append(said)

    def _info(self, activation: ActivationNode) -> AgentInfo:
        profile, name = self._profiles.get(activation.agent), activation.agent
        role = str(activation.data.get("assigned_role_name", ""))
        if profile is None:
            return AgentInfo(name, assigned_role_name=role)
        return AgentInfo(name, profile.name, profile.profile_id, role)

    def _turn_ended(self, record: Record, activation: ActivationNode, node: TurnNode) -> None:
        agent = self._agent(activation)
        turn, agent.turn = agent.turn, None
        if turn is None:
            return
        turn.end_time = record.at
        turn.status = "error" if turn.error_details else "completed"
        if not turn.outputs.next_action:
            waits = any(
                each.background and ids.activation_of(each.id) == activation.id
                for each in self._tree.effects.values()
            )
            turn.outputs.next_action = "loop" if node.another_turn else "wait" if waits else "end"
            _decided(turn, activation.data.get("_decision") or ())

    def _started(self, activation: ActivationNode, effect: EffectNode) -> None:
        agent = self._agent(activation)
        if effect.callee is not None:
            self._called(effect, effect.callee)
        turn, use = agent.turn, effect.model
        if turn is None:
            return
        if use is not None and effect.purpose in _REPLIES:
            talk = turn.llm_interaction or LlmInteraction()
            talk.attempts.append(Attempt(effect.id))
            talk.model, talk.request_digest = effect.name, use.digest
            talk.predicted_usage, turn.llm_interaction = use.held_tokens, talk
            talk.final_request = self._asked(activation, turn)
            turn.inputs.system_prompt_digest = use.prefix
        elif effect.is_call:
            self._took_up(turn, effect)

    def _called(self, effect: EffectNode, callee: ActivationNode) -> None:
        agent = self._agent(callee)
        agent.first = True
        if callee.opening is not None:
            agent.mail[callee.opening.id] = callee.opening
        self._under.setdefault(_turn_of(effect.id), []).append(agent)

    def _took_up(self, turn: Turn, effect: EffectNode) -> None:
        call = effect.call
        if call is None:
            return
        params = call.arguments if effect.callee is not None else effect.arguments
        tool = ToolInteraction(call.id, call.name, effect.id, effect.began_at, input_params=params)
        turn.tool_interactions.append(tool)
        self._tools[effect.id] = tool
        turn.outputs.next_action = turn.outputs.next_action or call.name

    def _ended(self, record: Record, activation: ActivationNode, effect: EffectNode) -> None:
        turn = self._agent(activation).turn
        if effect.model is not None and effect.purpose in _REPLIES and turn is not None:
            _answered(turn, effect, effect.model)
        elif effect.callee is not None:
            self._returned(record, activation, effect, effect.callee)
        elif effect.started_at is None and effect.is_call and turn is not None:
            self._took_up(turn, effect)
        tool = self._tools.pop(effect.id, None)
        if tool is not None:
            tool.end_time, tool.status = record.at, _STATUS.get(effect.outcome, "error")
            tool.result_payload, tool.error_details = effect.content, effect.reason

    def _returned(
        self, record: Record, caller: ActivationNode, effect: EffectNode, callee: ActivationNode
    ) -> None:
        """An agent has returned: its last turn ends as it did; a dispatch is gathered in its own turn."""
        last, status = self._agent(callee).last, _STATUS.get(effect.outcome, "error")
        if last is None:
            return
        last.outputs.next_action = last.outputs.next_action or "end"
        if effect.outcome != "completed":
            last.status, last.error_details = status, effect.reason
        if last.turn_type == "dispatch":
            agent = self._agent(caller)
            gathered = tuple(each.last.turn_id for each in self._under.get(last.turn_id, ()) if each.last)
            agent.source = f"{effect.id}.aggregation"
            self.turns.append(
                Turn(
                    agent.source, record.run_id, caller.call, self._info(caller), "aggregation",
                    record.at, status, record.at, gathered, effect.id, error_details=effect.reason,
                )
            )  # fmt: skip

    def _resumed(self, record: Record) -> None:
        """Whatever was under way when a process died was interrupted; the turns go on in the next one."""
        running = [each for each in self.turns if each.status == "running"]
        for turn in running:
            turn.metadata["interrupted_at"] = record.at
        self.turns.append(
            Turn(
                f"restart/{record.seq}", record.run_id, "", AgentInfo(USER), "restart_delimiter", record.at,
                "completed", record.at, tuple(each.turn_id for each in running),
            )
        )  # fmt: skip


def _answered(turn: Turn, effect: EffectNode, use: ModelUse) -> None:
    """The model has answered, or has not."""
    talk, reply = turn.llm_interaction, use.reply
    if talk is None:
        return
    talk.status = _STATUS.get(effect.outcome, "error")
    talk.attempts[-1].status, talk.attempts[-1].error = talk.status, effect.reason
    talk.actual_usage = talk.actual_usage + (use.usage or Usage())
    if reply is None:
        turn.error_details = effect.reason
        return
    turn.error_details = ""
    talk.final_response = ChatMessage("assistant", reply.content, reply.calls, reasoning=reply.reasoning)


def _decided(turn: Turn, decision: Sequence[str]) -> None:
    """Note the rule that made the decision of a turn without a call."""
    if len(decision) == 2:
        turn.outputs.rule_action, turn.outputs.rule_id = decision
        if turn.outputs.rule_action == "await_user_input":
            turn.outputs.next_action = "await_user_input"


def _results(before: Sequence[ToolInteraction]) -> dict[str, ProcessedItem]:
    """The results of the last turn, by their effects, as the items that the next one reads."""
    return {
        each.effect_id: ProcessedItem(
            each.effect_id,
            "TOOL_RESULT",
            {
                "tool_name": each.tool_name,
                "tool_call_id": each.tool_call_id,
                "is_error": each.status != "completed",
                "content": each.result_payload or each.error_details,
            },
            formatted=each.result_payload or each.error_details,
        )
        for each in before
        if each.status != "running"
    }


def _processed(
    agent: _TurnChain, activation: ActivationNode, turn: TurnNode, before: Sequence[ToolInteraction]
) -> list[ProcessedItem]:
    """The items that a turn read, with what the model was shown of each; results first."""
    results = {} if turn.planned else _results(before)
    found: list[ProcessedItem] = list(results.values())
    for each in activation.data.get("_processed", ()):
        if each["item_id"] in results and each["source"] == "TOOL_RESULT":
            if turn.shown and each["shown"] >= 0:
                results[each["item_id"]].formatted = turn.shown[each["shown"]].content
            continue
        message = agent.mail.get(each.get("message_id", ""))
        payload = each.get("payload")
        if message is not None:
            payload = message.data if message.data is not None else {"content": message.content}
        shown = turn.shown[each["shown"]].content if turn.shown and each["shown"] >= 0 else ""
        found.append(
            ProcessedItem(
                each["item_id"], each["source"], payload, each.get("consumption_policy", "consume_on_read"),
                each.get("triggering_observer_id", ""), shown,
            )
        )  # fmt: skip
    return found


def _turn_of(effect_id: str) -> str:
    """The turn that an effect belongs to; empty for the user's."""
    return ids.turn_id_of(effect_id) if effect_id and ids.activation_of(effect_id) else ""
