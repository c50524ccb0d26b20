"""launch: a partner starts the principal, looks at what it does and tells it something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from antiphon.hook import Answer, Call
from antiphon.styles.profiles.admission import admit
from antiphon.styles.profiles.handover import hand_over
from antiphon.styles.profiles.ingestors import INGESTORS
from antiphon.styles.profiles.recalled import BRIEFING
from antiphon.styles.profiles.view import View


def launch(view: View, given: Mapping[str, Any]) -> Answer | Call:
    """A call of the principal in the background, or why there is none."""
    name = view.seat.principal
    if not name:
        return Answer("the team has no principal", "failed")
    if name in view.moment.running:
        return Answer(f"{name} is already running; send it a directive, or wait for its end", "failed")
    if not view.team.values.get("work_modules"):
        return Answer("the plan is empty; create work modules with manage_work_modules first", "failed")
    payload = admit(_briefing(view, given), view.seat.bounds.briefing)
    return Call(name, data={"briefing": {"source": BRIEFING, "payload": payload}}, background=True)


def _briefing(view: View, given: Mapping[str, Any]) -> dict[str, Any]:
    """What the principal is told, by the handover protocol if there is one."""
    mode, context = given.get("iteration_mode", "start_fresh"), given.get("context", {})
    protocol = view.seat.protocols.get("LaunchPrincipalExecutionTool")
    data: dict[str, Any] = {"iteration_mode": mode}
    schema: dict[str, Any] = {}
    if protocol is not None:
        handed = hand_over(protocol, view.acting({**given, **context}))["payload"]
        data |= handed["data"]
        schema = handed["schema_for_rendering"]
    else:
        data["question"] = view.team.values.get("question", "")
        data["work_modules"] = INGESTORS["work_modules"].write(None, {}, view)
        data |= context
    if given.get("briefing"):
        data["briefing"] = given["briefing"]
    if mode == "continue_from_previous":
        data["previous_steps"] = INGESTORS["principal_history_summary"].write(None, {}, view)
    return {"data": data, "schema_for_rendering": schema}


def status(view: View) -> Answer:
    """What the principal is doing, in words."""
    name = view.seat.principal
    running = "is running" if name and name in view.moment.running else "is not running"
    parts = [f"{name or 'The principal'} {running}."]
    parts += [INGESTORS[each].write(None, {}, view) for each in ("work_modules", "principal_history_summary")]
    return Answer("\n\n".join(parts))


def directive(view: View, kind: str, content: str) -> Answer:
    """A word for the principal, which reads it before its next step."""
    name = view.seat.principal
    if name not in view.moment.running:
        return Answer(f"{name or 'the principal'} is not running; launch it first", "failed")
    queue = [
        *view.team.values.get("partner_directives_queue", []),
        {"directive_type": kind, "content": content},
    ]
    return Answer("Sent; it is read before the next step.", team={"partner_directives_queue": queue})
