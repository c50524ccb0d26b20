"""launch: a partner starts the principal, looks at what it does and tells it something."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from antiphon.errors import UserError
from antiphon.styles.profiles.limits import REMEMBERED
from antiphon.styles.profiles.turns.ingestors import INGESTORS
from antiphon.styles.profiles.turns.observers import add
from antiphon.styles.profiles.work.admission import admit
from antiphon.styles.profiles.work.dispatch import broker_name, left_behind
from antiphon.styles.profiles.work.handover import hand_over
from antiphon.styles.profiles.work.toolset import BRIEFING as BRIEFED
from antiphon.styles.profiles.work.toolset import CONFIRMED, DIRECTIVES
from antiphon.styles.profiles.world.transcript_data import BRIEFING
from antiphon.styles.profiles.world.world import RuleContext
from antiphon.values.hooks import DirectResult, PlannedCall

TITLE = 200
"""Characters of the question that people who look on are shown."""
ANSWERED = "_question_answered"
"""Where the team keeps that its principal has ended with its question."""
SESSIONS = "principal_execution_sessions"
"""Where the team keeps how often its principal was launched, and what came of it."""
_TITLES: Mapping[str, str] = {
    "briefing": "briefing",
    BRIEFED: "Briefing",
    CONFIRMED: "Associates",
    DIRECTIVES: "New directives",
}
"""What a launch may say, and its title in the briefing."""
_MESSAGES = ("user_facing_message_for_principal", "user_facing_message")
_NOTES: Mapping[str, str] = {
    "target_task_id": "About",
    "internal_notes_for_principal_llm": "Notes for you alone",
}


def launch(view: RuleContext, given: Mapping[str, Any]) -> DirectResult | PlannedCall:
    """A call of the principal in the background, or why there is none."""
    name = view.seat.principal
    if not name:
        return DirectResult("the team has no principal", "failed")
    anew = bool(given.get("force_terminate_and_relaunch"))
    if name in view.context.background_agents and not anew:
        said = "send it a directive, wait for its end, or set force_terminate_and_relaunch"
        return DirectResult(f"{name} is already running; {said}", "failed")
    if not view.team.values.get("work_modules"):
        return DirectResult("the plan is empty; create work modules with manage_work_modules first", "failed")
    _confirmed(view, given.get(CONFIRMED) or ())
    changes = given.get(DIRECTIVES)
    if isinstance(changes, dict) and changes.get("user_query_adjustment"):
        view.team.put("question", str(changes["user_query_adjustment"]))
    if anew:
        left_behind(view, broker_name(name))
    payload = admit(_briefing(view, given), view.seat.bounds.briefing)
    briefing = {"source": BRIEFING, "payload": payload}
    # One that ended in this very turn is told of before the next one begins.
    returned(view)
    session = {"mode": payload["data"]["iteration_mode"], "started_at": view.context.at, "status": "running"}
    view.team.put(SESSIONS, [*_over(view, "cancelled"), session][-REMEMBERED:])
    view.team.put("is_principal_flow_running", True)
    return PlannedCall(
        name, str(view.team.values.get("question", ""))[:TITLE], data={"briefing": briefing},
        background=True, cancel_previous=anew,
        activation_data=view.private.changed, run_data=view.team.changed,
    )  # fmt: skip


def _confirmed(view: RuleContext, names: Sequence[str]) -> None:
    """The team shows the principal these associates. Raises UserError for one that there is not."""
    known = view.seat.associates
    for name in names:
        if name not in known:
            listed = ", ".join(known) or "(none)"
            raise UserError(f"{CONFIRMED}: there is no associate {name!r}. Known: {listed}")
    if names:
        view.team.put("profiles_list_instance_ids", [known[name].profile_id for name in names])


def returned(view: RuleContext) -> bool:
    """What was launched has ended: the one who launched it finds that in its inbox, once. Whether it did.

    Of one that gave way to another one it knows already; of one that was cancelled with its request nobody
    is left to be told.
    """
    sessions = view.team.values.get(SESSIONS, [])
    name, context = view.seat.principal, view.context
    if not name or not sessions or sessions[-1]["status"] != "running" or name in context.background_agents:
        return False
    ends = [each for each in context.background_results if each.agent == name and not each.replaced]
    if ends:
        end = ends[-1]
        said = [f"{end.agent} has ended ({end.outcome}).", end.reason, end.content]
        payload = {"content": "\n".join(filter(None, said)), "outcome": end.outcome}
        add(view, "PRINCIPAL_COMPLETED", payload)
        view.team.put(ANSWERED, True)
    view.team.put(SESSIONS, _over(view, ends[-1].outcome if ends else "cancelled"))
    view.team.put("is_principal_flow_running", False)
    return bool(ends)


def _over(view: RuleContext, status: str) -> list[dict[str, Any]]:
    """The principal's sessions, those that still run ended so."""
    ended = {"status": status, "ended_at": view.context.at}
    sessions: list[dict[str, Any]] = view.team.values.get(SESSIONS, [])
    return [{**each, **ended} if each["status"] == "running" else each for each in sessions]


def _briefing(view: RuleContext, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the principal is told, by the handover protocol if there is one."""
    mode = given.get("iteration_mode", "start_fresh")
    protocol = view.seat.protocols.get("LaunchPrincipalExecutionTool")
    data: dict[str, Any] = {"iteration_mode": mode}
    shape: dict[str, Any] = {"type": "object", "properties": {}}
    if protocol is not None:
        handed = hand_over(protocol, view.acting(given))["payload"]
        data |= handed["data"]
        shape = handed["schema_for_rendering"]
    else:
        data["question"] = view.team.values.get("question", "")
        data["work_modules"] = INGESTORS["work_modules"].write(None, {}, view)
    # What was said and no protocol asks for is told all the same.
    more = {key: given[key] for key in _TITLES if given.get(key) and key not in data}
    data |= more
    properties = {**{key: {"x-handover-title": _TITLES[key]} for key in more}, **shape["properties"]}
    if mode == "continue_from_previous":
        data["previous_steps"] = INGESTORS["principal_history_summary"].write(None, {}, view)
    return {
        "data": data,
        "schema_for_rendering": {**shape, "properties": properties} if properties else {},
    }


def status(view: RuleContext) -> DirectResult:
    """What the principal is doing, in words."""
    name = view.seat.principal
    running = "is running" if name and name in view.context.background_agents else "is not running"
    parts = [f"{name or 'The principal'} {running}."]
    parts += [INGESTORS[each].write(None, {}, view) for each in ("work_modules", "principal_history_summary")]
    return DirectResult("\n\n".join(parts))


def directive(view: RuleContext, kind: str, content: str, payload: Mapping[str, Any]) -> DirectResult:
    """A word for the principal, which reads it before its next step."""
    name = view.seat.principal
    told = [content, *(payload.get(key, "") for key in _MESSAGES)]
    told += [f"{title}: {payload[key]}" for key, title in _NOTES.items() if payload.get(key)]
    content = "\n".join(filter(None, told))
    if not content:
        said = "give payload.user_facing_message_for_principal, or content"
        return DirectResult(f"the directive says nothing; {said}", "invalid_arguments")
    if name not in view.context.background_agents:
        return DirectResult(f"{name or 'the principal'} is not running; launch it first", "failed")
    queue = [
        *view.team.values.get("partner_directives_queue", []),
        {"directive_type": kind, "content": content, **({"payload": payload} if payload else {})},
    ]
    return DirectResult(
        "Sent; it is read before the next step.", run_data={"partner_directives_queue": queue}
    )
