"""turns: the records of a run as turns. One pass, in order; nothing else is looked at."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from antiphon import Message, Record, ToolCall
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    MessagePosted,
    RunResumed,
    StateChanged,
    TurnFinished,
    TurnStarted,
)
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
from antiphon.values.model import ChatMessage

_STATUS: Mapping[str, Status] = {
    "completed": "completed",
    "cancelled": "cancelled",
    "skipped": "cancelled",
    "interrupted": "interrupted",
}


def turns_of(records: Iterable[Record], profiles: Mapping[str, Profile] | None = None) -> list[Turn]:
    """The turns of a run's records, from the first on. profiles: for the ids of who took them."""
    reading = _Reading(profiles or {})
    for record in records:
        reading.take(record)
    return reading.turns


class _Told(Struct):
    """What a call tells its callee."""

    message: str = ""
    data: Any = None


class _Agent(Struct):
    """An activation as far as it has been read. last: its last turn; source: what its next one follows."""

    name: str
    call: str = ""
    turn: Turn | None = None
    last: Turn | None = None
    source: str = ""
    head: str = ""
    number: int = 0
    calls: tuple[ToolCall, ...] = ()
    data: dict[str, Any] = field(default_factory=dict)
    mail: dict[str, Message] = field(default_factory=dict)
    first: bool = True


class _Reading(Struct):
    """All activations, and the turns so far."""

    profiles: Mapping[str, Profile]
    turns: list[Turn] = field(default_factory=list)
    agents: dict[int, _Agent] = field(default_factory=dict)
    born: int = 0
    opened: dict[str, EffectStarted] = field(default_factory=dict)
    children: dict[str, int] = field(default_factory=dict)
    under: dict[str, list[_Agent]] = field(default_factory=dict)
    tools: dict[str, ToolInteraction] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        """Read the next record."""
        event = record.event
        if isinstance(event, StateChanged) and event.activation:
            self._agent(event.activation).data.update(event.set)
        elif isinstance(event, MessagePosted) and not event.dead:
            self._agent(event.to).mail[event.message.id] = event.message
        elif isinstance(event, TurnStarted):
            self._turn_started(record, event)
        elif isinstance(event, TurnFinished) and event.activation:
            self._turn_finished(record, event)
        elif isinstance(event, EffectStarted):
            self._started(record, event)
        elif isinstance(event, EffectFinished):
            self._finished(record, event)
        elif isinstance(event, RunResumed):
            self._resumed(record)

    def _agent(self, number: int) -> _Agent:
        return self.agents.setdefault(number, _Agent(""))

    def _turn_started(self, record: Record, event: TurnStarted) -> None:
        agent = self._agent(event.activation)
        agent.number += 1
        agent.calls = event.calls or ()
        if not event.activation:
            # The user's turns only do the calls that came with the mail, one mail each.
            agent.calls = agent.mail.pop(next(iter(agent.mail))).calls
            return
        before = agent.source or _turn_of(agent.call)
        info = self._info(agent)
        turn = Turn(
            f"{event.activation}/{agent.number}",
            record.run_id,
            agent.call,
            info,
            "agent" if event.calls is None else "dispatch",
            record.at,
            source_turn_ids=(before,) if before else (),
            source_tool_call_id=agent.call if agent.first and not agent.call.startswith("0/") else "",
        )
        turn.inputs.shown, turn.inputs.tail = list(event.shown or ()), event.tail
        turn.inputs.processed_inbox_items = _processed(agent, event)
        self._user_turns(record, agent, turn)
        agent.first, agent.turn, agent.last, agent.source = False, turn, turn, turn.turn_id
        self.turns.append(turn)

    def _user_turns(self, record: Record, agent: _Agent, turn: Turn) -> None:
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

    def _info(self, agent: _Agent) -> AgentInfo:
        profile = self.profiles.get(agent.name)
        role = str(agent.data.get("assigned_role_name", ""))
        if profile is None:
            return AgentInfo(agent.name, assigned_role_name=role)
        return AgentInfo(agent.name, profile.name, profile.profile_id, role)

    def _turn_finished(self, record: Record, event: TurnFinished) -> None:
        agent = self._agent(event.activation)
        turn, agent.turn = agent.turn, None
        if turn is None:
            return
        turn.end_time = record.at
        turn.status = "error" if turn.error_details else "completed"
        if not turn.outputs.next_action:
            waits = any(
                each.background for each in self.opened.values() if _place(each.id) == event.activation
            )
            turn.outputs.next_action = "loop" if event.more else "wait" if waits else "end"

    def _started(self, record: Record, event: EffectStarted) -> None:
        self.opened[event.id] = event
        agent = self._agent(_place(event.id))
        turn = agent.turn
        if event.kind == "call":
            self._born(event)
        if event.kind == "model" and turn is not None and event.purpose in ("", "final"):
            talk = turn.llm_interaction or LlmInteraction()
            talk.attempts.append(Attempt(event.id))
            talk.model, talk.request_digest = event.name, event.digest
            talk.predicted_usage, turn.llm_interaction = event.hold, talk
            turn.inputs.system_prompt_digest = agent.head = event.head or agent.head
        elif ".c" in event.id and turn is not None and event.purpose != "approval":
            self._called(record.at, agent, turn, event)

    def _born(self, event: EffectStarted) -> None:
        self.born += not event.continues
        number = self.children[event.id] = event.continues or self.born
        agent, caller = self._agent(number), self._agent(_place(event.id))
        agent.name, agent.call, agent.first = event.name, event.id, True
        agent.head = agent.head or event.digest
        index = int(event.id.rpartition(".c")[2]) - 1 if ".c" in event.id else -1
        given = event.arguments or (caller.calls[index].arguments if 0 <= index < len(caller.calls) else "{}")
        told = msgspec.json.decode(given, type=_Told)
        opening = f"{event.id}>"
        agent.mail[opening] = Message(
            "forward", caller.name, agent.name, told.message, data=told.data, id=opening
        )
        self.under.setdefault(_turn_of(event.id), []).append(agent)

    def _called(self, at: float, agent: _Agent, turn: Turn, event: EffectStarted) -> None:
        index = int(event.id.rpartition(".c")[2]) - 1
        if index >= len(agent.calls):
            return
        call = agent.calls[index]
        tool = ToolInteraction(
            call.id, call.name, event.id, at, input_params=event.arguments or call.arguments
        )
        if event.kind == "call":
            tool.input_params = call.arguments
        turn.tool_interactions.append(tool)
        self.tools[event.id] = tool
        turn.outputs.next_action = turn.outputs.next_action or call.name

    def _finished(self, record: Record, event: EffectFinished) -> None:
        started = self.opened.pop(event.id, None)
        agent = self._agent(_place(event.id))
        if started is not None and started.kind == "model" and agent.turn is not None:
            _answered(agent, agent.turn, event)
        elif started is not None and started.kind == "call":
            self._returned(record, started, event)
        if started is None and agent.turn is not None and ".c" in event.id:
            self._called(record.at, agent, agent.turn, EffectStarted(event.id))
        tool = self.tools.pop(event.id, None)
        if tool is not None:
            tool.end_time, tool.status = record.at, _STATUS.get(event.outcome, "error")
            tool.result_payload, tool.error_details = event.content, event.why

    def _returned(self, record: Record, started: EffectStarted, event: EffectFinished) -> None:
        """An agent has returned: its last turn ends as it did; a dispatch is gathered in its own turn."""
        child = self._agent(self.children.pop(event.id))
        last = child.last
        if last is None:
            return
        last.outputs.next_action = last.outputs.next_action or "end"
        if event.outcome != "completed":
            last.status, last.error_details = _STATUS.get(event.outcome, "error"), event.why
        if last.turn_type == "dispatch":
            caller = self._agent(_place(event.id))
            gathered = tuple(each.last.turn_id for each in self.under.get(last.turn_id, ()) if each.last)
            caller.source = f"{event.id}.aggregation"
            self.turns.append(
                Turn(
                    caller.source, record.run_id, caller.call, self._info(caller), "aggregation",
                    record.at, _STATUS.get(event.outcome, "error"), record.at, gathered, event.id,
                    error_details=event.why,
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


def _answered(agent: _Agent, turn: Turn, event: EffectFinished) -> None:
    """The model has answered, or has not."""
    talk, reply = turn.llm_interaction, event.reply
    if talk is None:
        return
    status = _STATUS.get(event.outcome, "error")
    talk.attempts[-1].status, talk.attempts[-1].error = status, event.why
    talk.status = status
    usage = reply.usage if reply is not None else event.usage
    talk.actual_usage = talk.actual_usage + usage if usage is not None else talk.actual_usage
    if reply is None:
        turn.error_details = event.why
        return
    turn.error_details = ""
    agent.calls = reply.calls
    talk.final_response = ChatMessage("assistant", reply.content, reply.calls, reasoning=reply.reasoning)


def _processed(agent: _Agent, event: TurnStarted) -> list[ProcessedItem]:
    """The items that a turn read, with what the model was shown of each."""
    found: list[ProcessedItem] = []
    for each in agent.data.get("_processed", ()):
        message = agent.mail.get(each.get("message_id", ""))
        payload = each.get("payload")
        if message is not None:
            payload = message.data if message.data is not None else {"content": message.content}
        shown = event.shown[each["shown"]].content if event.shown and each["shown"] >= 0 else ""
        found.append(
            ProcessedItem(
                each["item_id"], each["source"], payload, each.get("consumption_policy", "consume_on_read"),
                each.get("triggering_observer_id", ""), shown,
            )
        )  # fmt: skip
    return found


def _place(effect_id: str) -> int:
    return int(effect_id.partition("/")[0])


def _turn_of(effect_id: str) -> str:
    """The turn that an effect belongs to; empty for the user's."""
    return "" if effect_id.startswith("0/") else effect_id.rpartition(".")[0]
