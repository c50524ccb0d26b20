"""flow: what follows a turn. Observers, then the rules of the flow decider, the first that holds."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from antiphon.styles.profiles.conditions.expression import holds
from antiphon.styles.profiles.conditions.grammar import ExpressionError
from antiphon.styles.profiles.files.profile import (
    AwaitUserInput,
    ContinueWithTool,
    EndAgentTurn,
    LoopWithInboxItem,
    Rule,
)
from antiphon.styles.profiles.turns.ingestors import cut
from antiphon.styles.profiles.turns.observers import add, named, observe
from antiphon.styles.profiles.work.launch import returned
from antiphon.styles.profiles.world.binding import ProfileBinding
from antiphon.styles.profiles.world.shape import ARCHIVE, shown_state
from antiphon.styles.profiles.world.transcript_data import messages
from antiphon.styles.profiles.world.world import RuleContext, last_said
from antiphon.values.hooks import Continue, Return, TurnContext

SEEN = 20
"""Messages of an agent that the others see, the last ones, each cut short."""
DECISION = "_decision"
"""Where it is kept what the last rule that counted said, and which it was."""
_ACTIONS: Mapping[type, str] = {
    EndAgentTurn: "end_agent_turn",
    AwaitUserInput: "await_user_input",
    LoopWithInboxItem: "loop_with_inbox_item",
    ContinueWithTool: "continue_with_tool",
}
LOOPS = "_loops"
"""Where it is kept how many turns in a row made no call."""
TOLD = "_markup_told"
"""Where it is kept that the agent was told to call tools, and not to write calls."""
MARKUP = re.compile(r"<\|?(?:tool_calls?|function_calls?)\b|<function=\w|\[TOOL_CALLS\]")
"""What models write that mean to call a tool and do not."""
NO_CALL = "Your last reply holds the text of a tool call, which calls nothing. If you mean it, call the tool."


def decide(seat: ProfileBinding, context: TurnContext) -> Continue | Return:
    """What follows a turn: another one, the end, or a wait. A profile without rules ends with its text."""
    called = context.called_tools[0] if context.called_tools else ""
    view = RuleContext(seat, context, {"type": called, "tool_name": called} if called else None)
    news = returned(view)
    observe(seat.profile.post_turn_observers, view)
    if seat.monitored or seat.shown:
        _show(view)
    steps = seat.bounds.steps
    if steps is not None and context.turn >= steps and (context.called_tools or context.inbox or news):
        _unruled(view)
        return _end(
            view, Return("limit", last_said(context.messages), f"the budget of {steps} steps is used up")
        )
    if context.called_tools or context.inbox or news:
        _reset(view)
        _unruled(view)
        return _go_on(view)
    if not seat.profile.flow_decider:
        return _end(view, Return("completed", context.reply))
    return _ruled(view)


def _unruled(view: RuleContext) -> None:
    """No rule decides on this turn; one with a call has no need to say so."""
    if view.private.values.get(DECISION) and not view.context.called_tools:
        view.private.put(DECISION, [])


def _show(view: RuleContext) -> None:
    """The others see what this agent has said last and, when a rule asks for it, its state."""
    role = view.seat.profile.type
    last = messages(view.context.messages[-SEEN:])
    view.team.put(f"{role}_activity", [{**each, "content": cut(each["content"])} for each in last])
    if view.seat.shown:
        view.team.put(f"{role}_state", shown_state(view.private.values))


def _ruled(view: RuleContext) -> Continue | Return:
    """What the first rule says that holds; without one, another turn."""
    if MARKUP.search(view.context.reply) and not view.private.values.get(TOLD):
        view.private.put(TOLD, True)
        _unruled(view)
        add(view, "INTERNAL_DIRECTIVE", {"content": NO_CALL})
        return _go_on(view)
    rule = _first(view)
    action = rule.action if rule is not None else None
    if rule is None:
        _unruled(view)
    else:
        view.private.put(DECISION, [_ACTIONS[type(rule.action)], rule.id])
    if isinstance(action, EndAgentTurn):
        said = last_said(view.context.messages)
        if action.outcome == "success":
            return _end(view, Return("completed", said))
        return _end(
            view,
            Return("failed", said, action.error_message or f"the rule {rule.id if rule else ''} ended it"),
        )
    if isinstance(action, AwaitUserInput):
        _reset(view)
        if view.context.background_agents:
            return replace(_go_on(view), wait_for_messages=True)
        return _end(view, Return("completed", last_said(view.context.messages)))
    loops = int(view.private.values.get(LOOPS, 0)) + 1
    view.private.put(LOOPS, loops)
    if loops > view.seat.bounds.loops:
        why = f"{view.seat.bounds.loops} turns without a call in a row"
        return _end(view, Return("no_progress", last_said(view.context.messages), why))
    if isinstance(action, LoopWithInboxItem):
        add(view, "SELF_REFLECTION_PROMPT", {"content_key": action.content_key}, rule.id if rule else "")
        return _go_on(view)
    if isinstance(action, ContinueWithTool):
        return _go_on(view)
    add(view, "INTERNAL_DIRECTIVE", {"content": "You called no tool, and no rule says what follows. Go on."})
    return _go_on(view)


def _first(view: RuleContext) -> Rule | None:
    """The first rule that holds. One that fails does not, and the agent finds that in its inbox."""
    for rule in view.seat.profile.flow_decider:
        try:
            if holds(rule.condition, view.world):
                view.fired.append(named(rule))
                return rule
        except ExpressionError as error:
            add(
                view,
                "OBSERVER_FAILURE",
                {"observer_id": rule.id, "place": str(rule.place), "error": str(error)},
            )
    return None


def _reset(view: RuleContext) -> None:
    """Forget what was counted of turns without a call."""
    for key, nothing in ((LOOPS, 0), (TOLD, False)):
        if view.private.values.get(key):
            view.private.put(key, nothing)


def _go_on(view: RuleContext) -> Continue:
    return Continue(activation_data=view.private.changed, run_data=view.team.changed, rules=tuple(view.fired))


def _end(view: RuleContext, ending: Return) -> Return:
    """The end, with what the agent leaves to the team."""
    _reset(view)
    leave(view, ending.output)
    return Return(
        ending.outcome, ending.output, ending.reason, view.private.changed, view.team.changed,
        rules=tuple(view.fired),
    )  # fmt: skip


def leave(view: RuleContext, said: str) -> None:
    """What an agent that ends leaves: its deliverables, and what it did to the archive of its module."""
    deliverables: dict[str, Any] = {**view.private.values.get("deliverables", {})}
    if said:
        deliverables["primary_summary"] = said
        view.private.put("deliverables", deliverables)
    module = view.private.values.get("module_id")
    if module:
        last = messages(view.context.messages[-view.seat.bounds.archived :])
        entry = {"agent_id": view.context.agent, "deliverables": deliverables, "messages": last}
        view.team.put(ARCHIVE + module, [*view.team.values.get(ARCHIVE + module, []), entry])
