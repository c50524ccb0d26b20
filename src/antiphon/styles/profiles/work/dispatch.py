"""dispatch: modules to associates, all at once, and what comes of it.

A broker without a model stands between: its plan calls every associate, its decision waits for all of them.

    Principal ── Principal/dispatch ─┬─ Researcher   WM_1
                                     └─ Researcher   WM_2
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from antiphon import Agent, Hooks, UserError
from antiphon.styles.profiles.conditions.grammar import ExpressionError
from antiphon.styles.profiles.limits import REMEMBERED, ProfileLimits
from antiphon.styles.profiles.work.admission import INHERITED, admit
from antiphon.styles.profiles.work.handover import hand_over
from antiphon.styles.profiles.work.modules import DISPATCHABLE, find, status_of
from antiphon.styles.profiles.work.toolset import EITHER, INSTRUCTIONS, SHARED, Assignment
from antiphon.styles.profiles.world.transcript_data import BRIEFING
from antiphon.styles.profiles.world.world import RuleContext
from antiphon.values.hooks import CallResult, DirectResult, PlannedCall, Return, TurnContext, TurnPlan

STATES: Mapping[str, str] = {"completed": "success", "limit": "timeout"}
"""How an associate's end is called; anything else is `failed`."""

ALIAS = "principal_provided_context_for_assignment"
"""Another name of the instructions of an assignment."""
RESULTS = "inherited_deliverables"
_TITLES: Mapping[str, str] = {
    "module": "Your work module",
    "instructions": "What to do",
    "shared_context": "What everybody knows",
    RESULTS: "What has been found",
    INHERITED: "What was said before",
}
_SAID: Mapping[str, str] = {"instructions": INSTRUCTIONS, "shared_context": SHARED}
"""What an associate is told beside its module, and what a dispatch calls it."""


def broker_name(principal: str) -> str:
    """The name of the agent that dispatches for a principal."""
    return f"{principal}/dispatch"


def assign(view: RuleContext, given: Sequence[Mapping[str, Any]], shared: Any) -> DirectResult | PlannedCall:
    """What a dispatch becomes: a call of the broker with what can be done, or an answer why nothing can.

    given: the assignments as the model said them. shared: what it said to all of them.
    """
    most = view.seat.bounds.fan_out
    if most is not None and len(given) > most:
        return DirectResult(
            f"{len(given)} assignments, and at most {most} at once; dispatch them in parts", "failed"
        )
    prepared: list[dict[str, Any]] = []
    refused: list[dict[str, Any]] = []
    taken: set[str] = set()
    for index, each in enumerate(given):
        assignment = msgspec.convert(each, Assignment)
        try:
            prepared.append(
                {"index": index, **_prepare(view, assignment, _said(each, assignment, shared), taken)}
            )
            taken.add(assignment.module_id_to_assign)
        except (UserError, ExpressionError) as error:
            found = _result(index, assignment.module_id_to_assign, assignment.agent_profile_logical_name)
            refused.append(
                {**found, "status": "failed_preparation", "message": f"assignments[{index}]: {error}"}
            )
    if not prepared:
        status = "TOTAL_FAILURE_PREPARATION" if given else "NO_ASSIGNMENTS_REQUESTED"
        return DirectResult(_report(status, refused), "failed" if given else "completed")
    # The text is for people who look on; what is done stands in the data.
    said = ", ".join(f"{each['module_id']} to {each['agent']}" for each in prepared)
    return PlannedCall(view.seat.broker, said, data={"assignments": prepared, "refused": refused})


def _said(given: Mapping[str, Any], assignment: Assignment, shared: Any) -> dict[str, Any]:
    """An assignment as protocols read it: what may be said in two places stands in one."""
    said = {key: each for key, each in given.items() if key != ALIAS}
    spoken = [each for each in (given.get(INSTRUCTIONS), given.get(ALIAS)) if each]
    if spoken:
        said[INSTRUCTIONS] = spoken[0] if len(spoken) == 1 else "\n\n".join(map(str, spoken))
    if found := assignment.shared_context_for_all_assignments or shared:
        said[SHARED] = found
    return said


def _prepare(
    view: RuleContext, assignment: Assignment, said: Mapping[str, Any], taken: set[str]
) -> dict[str, Any]:
    """An assignment with its briefing. Raises UserError: unknown, not free, twice, too large, incomplete."""
    module_id, name = assignment.module_id_to_assign, assignment.agent_profile_logical_name
    modules = view.team.values.get("work_modules", {})
    module = find(modules, module_id)
    if module_id in taken:
        raise UserError(f"{module_id} is assigned twice")
    if status_of(module) not in DISPATCHABLE:
        raise UserError(f"{module_id} is {status_of(module)}; it must be one of: {', '.join(DISPATCHABLE)}")
    if name not in view.seat.associates:
        known = ", ".join(view.seat.associates) or "(none)"
        raise UserError(f"there is no associate {name!r} that may be given work. Known: {known}")
    payload = admit(_briefing(view, assignment, module, said), view.seat.bounds.briefing)
    return {
        "agent": name,
        "module_id": module_id,
        "assigned_role_name": assignment.assigned_role_name or name,
        "briefing": {"source": BRIEFING, "payload": payload},
    }


def _briefing(
    view: RuleContext, assignment: Assignment, module: Mapping[str, Any], said: Mapping[str, Any]
) -> dict[str, Any]:
    """What an associate is told, by the handover protocol if there is one. Raises UserError."""
    protocol = view.seat.protocols.get("dispatch_submodules")
    archives = _archives(view, assignment.inherit_messages_from)
    inherited = [each for entry in archives for each in _spoken(entry)]
    handed = _handed(view, assignment.inherit_deliverables_from)
    own = {key: said.get(name) or "" for key, name in _SAID.items()}
    if protocol is not None:
        for key, advice in EITHER.items():
            if key in protocol.context_parameters.get("required", ()) and not said.get(key):
                raise UserError(f"{key} is required: {advice}")
        found: dict[str, Any] = hand_over(protocol, view.acting(said))["payload"]
        declared = protocol.context_parameters.get("properties", {})
        # What was said and the protocol does not ask for is told all the same.
        more = {key: own[key] for key, name in _SAID.items() if own[key] and name not in declared}
        data = {**handed, **({INHERITED: inherited} if inherited else {}), **more, **found["data"]}
        titles = {key: {"x-handover-title": _TITLES[key]} for key in more}
        shape = found["schema_for_rendering"]
        return {
            "data": data,
            "schema_for_rendering": {**shape, "properties": {**titles, **shape["properties"]}},
        }
    data = {
        "module": {key: module.get(key, "") for key in ("module_id", "name", "description")},
        **own,
        **handed,
    }
    if notes := module.get("notes_from_principal"):
        data["module"]["notes_from_principal"] = notes
    if inherited:
        data[INHERITED] = inherited
    properties = {name: {"x-handover-title": title} for name, title in _TITLES.items() if name in data}
    return {"data": data, "schema_for_rendering": {"type": "object", "properties": properties}}


def _archives(view: RuleContext, module_ids: Sequence[str]) -> list[Mapping[str, Any]]:
    """What agents did for these modules, one entry for each. Raises UserError for an unknown module."""
    modules = view.at("team.work_modules") or {}
    return [entry for each in module_ids for entry in find(modules, each).get("context_archive", [])]


def _spoken(entry: Mapping[str, Any]) -> list[Any]:
    """The conversation of an archive, without what the agent was briefed with."""
    return [each for each in entry.get("messages", []) if not each.get("_internal")]


def _handed(view: RuleContext, module_ids: Sequence[str]) -> dict[str, Any]:
    """The last results of modules, for those who begin from them."""
    found = {
        each: archives[-1]["deliverables"] for each in module_ids if (archives := _archives(view, [each]))
    }
    return {RESULTS: found} if found else {}


def broker(principal: str, associates: Sequence[str], bounds: ProfileLimits) -> Agent:
    """The agent that dispatches for a principal."""
    return Agent(
        broker_name(principal),
        description=f"gives out the work of {principal}",
        can_call=tuple(associates),
        standalone=True,
        hooks=Hooks(plan_turn=_plan(bounds), end_turn=_decide),
    )


def _plan(bounds: ProfileLimits) -> Callable[[TurnContext], TurnPlan]:
    def plan(context: TurnContext) -> TurnPlan:
        asked = context.new_messages[0].data
        modules = dict(context.run_data.get("work_modules", {}))
        until = None if bounds.deadline is None else context.at + bounds.deadline
        calls = [
            PlannedCall(
                each["agent"], _title(each, modules), data=each, task_id=each["module_id"], deadline=until
            )
            for each in asked["assignments"]
        ]
        for each in asked["assignments"]:
            name = each["module_id"]
            given = {"agent": each["agent"], "role": each["assigned_role_name"], "at": context.at}
            history = [*modules[name].get("assignee_history", []), {**given, "by": context.agent}]
            modules[name] = {
                **modules[name],
                "status": "ongoing",
                "updated_at": context.at,
                "assignee_history": history,
            }
        return TurnPlan(calls, activation_data={"asked": asked}, run_data={"work_modules": modules})

    return plan


def _title(assignment: Mapping[str, Any], modules: Mapping[str, Any]) -> str:
    module_id = assignment["module_id"]
    return f"{module_id}: {modules.get(module_id, {}).get('name', '')}"


def _decide(context: TurnContext) -> Return | None:
    """Every module is to be looked at now, whatever came of it."""
    asked = context.data["asked"]
    ends = [each for each in (*context.results, *context.background_results) if each.outcome != "skipped"]
    if len(ends) < len(asked["assignments"]):
        return None
    results = [*asked["refused"], *_results(asked["assignments"], ends)]
    results.sort(key=lambda each: each["index"])
    modules = dict(context.run_data.get("work_modules", {}))
    for each in asked["assignments"]:
        modules[each["module_id"]] = {
            **modules[each["module_id"]], "status": "pending_review", "updated_at": context.at,
        }  # fmt: skip
    status = overall(results)
    brief = [{key: each[key] for key in ("module_id", "agent", "status")} for each in results]
    history = [
        *context.run_data.get("dispatch_history", []),
        {"at": context.at, "overall_status": status, "results": brief},
    ]
    kept = {"work_modules": modules, "dispatch_history": history[-REMEMBERED:]}
    return Return(output=_report(status, results), run_data=kept)


def left_behind(view: RuleContext, broker: str) -> None:
    """Work that this broker gave out and that is not under way any more is to be looked at."""
    modules = view.team.values.get("work_modules", {})
    left = [
        name
        for name, each in modules.items()
        if each["status"] == "ongoing" and each["assignee_history"][-1].get("by") == broker
    ]
    if left:
        at = {"status": "pending_review", "updated_at": view.context.at}
        view.team.put("work_modules", modules | {name: {**modules[name], **at} for name in left})


def _results(assignments: Sequence[Mapping[str, Any]], ends: Sequence[CallResult]) -> list[dict[str, Any]]:
    """What came of each assignment; every module is assigned once, so its thread tells the ends apart."""
    by_module = {each.task_id: each for each in ends}
    return [
        {
            **_result(each["index"], each["module_id"], each["agent"]),
            "status": STATES.get(end.outcome, "failed"),
            "message": end.reason or ("" if end.content else "it ended without a result"),
            "deliverables": {"primary_summary": end.content} if end.content else {},
        }
        for each in assignments
        for end in (by_module[each["module_id"]],)
    ]


def _result(index: int, module_id: str, agent: str) -> dict[str, Any]:
    return {"index": index, "module_id": module_id, "agent": agent, "deliverables": {}}


def overall(results: Sequence[Mapping[str, Any]]) -> str:
    """One word for all ends: a success, a failure, or a success in part and where it failed."""
    states = [each["status"] for each in results]
    where = "PREPARATION" if "failed_preparation" in states else "EXECUTION"
    if all(state == "success" for state in states):
        return "SUCCESS"
    if "success" in states:
        return f"PARTIAL_SUCCESS_{where}"
    if all(state == "timeout" for state in states):
        return "TOTAL_FAILURE_TIMEOUT"
    return f"TOTAL_FAILURE_{where}"


def _report(status: str, results: Sequence[Mapping[str, Any]]) -> str:
    return msgspec.json.encode({"overall_status": status, "assignment_execution_results": results}).decode()
