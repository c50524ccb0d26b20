"""Work modules, their dispatch to associates, and what comes back."""

import asyncio
import json

import pytest

from antiphon import Limits, open_run
from antiphon.kernel.facts.events import CallEffect
from antiphon.models.script import call
from antiphon.styles.profiles.limits import ProfileLimits
from antiphon.styles.profiles.work.admission import Delegation
from antiphon.styles.profiles.work.modules import ModuleAction, ModuleRejected, manage
from antiphon.testing.clock import VirtualClock
from tests.styles.profiles.profiled import ASSOCIATE, PRINCIPAL, of, script, team
from tests.transcript import recorded, results_shown, shown

A, B = ModuleAction("create", name="A", description="first"), ModuleAction("create", name="B")
DONE = call("finish_flow", summary="all done")


def planned(*names):
    return call("manage_work_modules", actions=[{"action": "create", "name": name} for name in names])


def work(module, agent="Associate", said="do it", **more):
    return {
        "module_id_to_assign": module,
        "agent_profile_logical_name": agent,
        "assignment_specific_instructions": said,
        **more,
    }


def dispatch(*assignments, **more):
    return call("dispatch_submodules", assignments=list(assignments), **more)


def led(folder, lines, associate, profiles=None, **options):
    """A principal with associates: its result, the model, the records."""
    given = {name: options.pop(name) for name in ("limits", "clock") if name in options}
    found = team(folder, profiles or {"Principal": PRINCIPAL, "Associate": ASSOCIATE}, **options)
    model = script(Principal=lines, Associate=associate)
    result, records = recorded(found.entry, "the tides", agents=found.agents(), model=model, **given)
    return result, model, records


def state(records):
    """What the team has recorded at the end."""
    found = {}
    for each in records:
        if each.type == "StateChanged" and not each.activation:
            found.update(each.event.set)
    return found


def called(records):
    """The calls of agents in the order they started: effect and agent."""
    return [(each.event.id, each.event.detail.agent) for each in records
            if each.type == "EffectStarted" and isinstance(each.event.detail, CallEffect)]  # fmt: skip


def reported(model, turn=2):
    """What the principal is told of its dispatch."""
    return json.loads(results_shown(of(model, "Principal")[turn])[-1].removeprefix("Error: "))


def finishing(request):
    return call("finish_flow", summary="found it")


# -- the plan ------------------------------------------------------------------------------------


def test_modules_are_numbered_described_and_pending():
    plan = manage({}, 1, [A, B], 5.0)
    assert plan.said == ("WM_1 created", "WM_2 created")
    assert plan.modules["WM_1"] == {
        "module_id": "WM_1", "name": "A", "description": "first", "status": "pending",
        "created_at": 5.0, "updated_at": 5.0,
    }  # fmt: skip
    assert plan.next_id == 3


def test_modules_are_changed_and_their_status_set():
    plan = manage({}, 1, [A], 1.0)
    actions = [
        ModuleAction("update", "WM_1", description="more"),
        ModuleAction("status_change", "WM_1", status="completed"),
    ]
    changed = manage(plan.modules, plan.next_id, actions, 2.0).modules["WM_1"]
    assert (changed["name"], changed["description"], changed["status"]) == ("A", "more", "completed")
    assert plan.modules["WM_1"]["status"] == "pending"


@pytest.mark.parametrize(
    ("action", "said"),
    [
        (ModuleAction("create"), "a module needs a name"),
        (ModuleAction("update", "WM_9", name="x"), "unknown module 'WM_9'. Known: WM_1"),
        (ModuleAction("update", "WM_1"), "nothing is given that differs; give name or description"),
        (
            ModuleAction("status_change", "WM_1", status="ongoing"),
            "the status 'ongoing' cannot be set; it is one of: pending, completed, deprecated",
        ),
        (ModuleAction("status_change", "WM_1", status="done"), "the status 'done' cannot be set"),
    ],
)
def test_one_wrong_action_and_nothing_is_changed_but_the_number_is_used_up(action, said):
    before = manage({}, 1, [A], 1.0)
    with pytest.raises(ModuleRejected) as refused:
        manage(before.modules, before.next_id, [B, action], 2.0)
    assert str(refused.value).startswith(f"actions[1] ({action.action}): {said}")
    assert str(refused.value).endswith("Nothing was changed")
    assert (list(before.modules), refused.value.next_id) == (["WM_1"], 3)


def test_what_is_being_worked_on_cannot_be_closed():
    modules = {"WM_1": {"name": "A", "status": "in_progress"}}
    with pytest.raises(ModuleRejected, match="WM_1 is being worked on; wait for its end"):
        manage(modules, 2, [ModuleAction("status_change", "WM_1", status="completed")], 1.0)


def test_the_model_plans_with_one_call(tmp_path):
    bad = call("manage_work_modules", actions=[{"action": "create", "name": "A"}, {"action": "update"}])
    _result, model, records = led(tmp_path, [bad, planned("B"), DONE], [])
    told = results_shown(of(model, "Principal")[2])
    assert told[0].startswith(
        "Error: actions[1] (update): unknown module ''. Known: WM_1. Nothing was changed"
    )
    assert told[1] == "WM_2 created"
    assert list(state(records)["work_modules"]) == ["WM_2"]


# -- dispatch ------------------------------------------------------------------------------------


def test_associates_work_at_the_same_time_and_their_modules_are_to_be_reviewed(tmp_path):
    lines = [planned("A", "B"), dispatch(work("WM_1"), work("WM_2", said="the other")), DONE]
    result, _model, records = led(tmp_path, lines, [finishing, finishing])
    assert result.output == "all done"
    started = [effect for effect, agent in called(records) if agent == "Associate"]
    ended = [each.event.id for each in records if each.type == "EffectFinished" and each.event.id in started]
    assert started == ended == ["2/1.c1", "2/1.c2"]
    order = [each.event.id for each in records if getattr(each.event, "id", "") in started]
    assert order[:2] == started
    modules = state(records)["work_modules"]
    assert [each["status"] for each in modules.values()] == ["pending_review"] * 2
    statuses = [each.event.set["work_modules"]["WM_1"]["status"] for each in records
                if each.type == "StateChanged" and "work_modules" in each.event.set]  # fmt: skip
    assert statuses == ["pending", "ongoing", "pending_review"]


def test_an_associate_is_briefed_with_its_module_and_what_all_must_know(tmp_path):
    lines = [planned("A"), dispatch(work("WM_1"), shared_context_for_all_assignments="hurry"), DONE]
    _, model, _ = led(tmp_path, lines, [finishing])
    assert shown(of(model, "Associate")[0]) == [
        "user: ## Your work module\n- module_id: WM_1\n- name: A\n- description:\n\n"
        "## What to do\ndo it\n\n## What everybody knows\nhurry"
    ]


def test_of_two_assignments_one_invalid_the_other_runs(tmp_path):
    lines = [planned("A"), dispatch(work("WM_9"), work("WM_1")), DONE]
    _, model, records = led(tmp_path, lines, [finishing])
    found = reported(model)
    assert found["overall_status"] == "PARTIAL_SUCCESS_PREPARATION"
    assert [(each["index"], each["status"]) for each in found["assignment_execution_results"]] == [
        (0, "failed_preparation"), (1, "success"),
    ]  # fmt: skip
    assert "unknown module 'WM_9'. Known: WM_1" in found["assignment_execution_results"][0]["message"]
    assert state(records)["work_modules"]["WM_1"]["status"] == "pending_review"
    assert state(records)["dispatch_history"][0]["overall_status"] == "PARTIAL_SUCCESS_PREPARATION"


@pytest.mark.parametrize(
    ("assignments", "said"),
    [
        ([work("WM_1"), work("WM_1")], "assignments[1]: WM_1 is assigned twice"),
        ([work("WM_2")], "assignments[0]: WM_2 is completed; it must be one of: pending, pending_review"),
        (
            [work("WM_1", "Nobody")],
            "assignments[0]: there is no associate 'Nobody' that may be given work. Known: Associate",
        ),
        ([work("WM_1", "Principal")], "assignments[0]: there is no associate 'Principal'"),
        ([work("WM_1", inherit_messages_from=["WM_7"])], "assignments[0]: unknown module 'WM_7'"),
        ([work("WM_1", inherit_deliverables_from=["WM_7"])], "assignments[0]: unknown module 'WM_7'"),
    ],
)  # fmt: skip
def test_what_cannot_be_assigned_is_said_with_its_place(assignments, said, tmp_path):
    completed = call("manage_work_modules", actions=[
        {"action": "create", "name": "A"}, {"action": "create", "name": "B"},
        {"action": "status_change", "module_id": "WM_2", "status": "completed"},
    ])  # fmt: skip
    _, model, _ = led(tmp_path, [completed, dispatch(*assignments), DONE], [finishing])
    results = reported(model)["assignment_execution_results"]
    assert [each["message"] for each in results if each["message"].startswith(said)]


def test_all_failures_in_preparation_and_no_assignments(tmp_path):
    _, model, _ = led(tmp_path, [dispatch(work("WM_1")), dispatch(), DONE], [])
    assert reported(model, 1)["overall_status"] == "TOTAL_FAILURE_PREPARATION"
    assert reported(model, 2) == {
        "overall_status": "NO_ASSIGNMENTS_REQUESTED", "assignment_execution_results": [],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("ends", "overall", "each"),
    [
        (["good", "good"], "SUCCESS", ["success", "success"]),
        (["good", "bad"], "PARTIAL_SUCCESS_EXECUTION", ["success", "failed"]),
        (["bad", "bad"], "TOTAL_FAILURE_EXECUTION", ["failed", "failed"]),
    ],
)
def test_how_a_dispatch_ended(ends, overall, each, tmp_path):
    def ending(request):
        if "bad" in request.messages[0].content:
            return "I am stuck."
        return finishing(request)

    work_items = [work(f"WM_{number}", said=said) for number, said in enumerate(ends, 1)]
    _, model, _ = led(tmp_path, [planned("A", "B"), dispatch(*work_items), DONE], ending)
    found = reported(model)
    assert found["overall_status"] == overall
    assert [result["status"] for result in found["assignment_execution_results"]] == each


def test_a_partial_result_is_handed_back_with_the_failure(tmp_path):
    lines = [planned("A"), dispatch(work("WM_1")), DONE]
    _, model, _ = led(tmp_path, lines, ["Half of it.", "More of it.", "Nearly all."])
    (found,) = reported(model)["assignment_execution_results"]
    assert (found["status"], found["message"]) == ("failed", "no tool was called three times")
    assert found["deliverables"] == {"primary_summary": "Nearly all."}


def test_an_associate_that_ends_without_a_result_is_told_apart(tmp_path):
    """4.12: associates finished with nothing to show; the principal is told so."""
    lines = [planned("A"), dispatch(work("WM_1")), DONE]
    _, model, _ = led(tmp_path, lines, [""])
    (found,) = reported(model)["assignment_execution_results"]
    assert (found["message"], found["deliverables"]) == ("it ended without a result", {})


def test_work_that_misses_its_deadline_is_a_timeout_and_the_principal_goes_on(tmp_path):
    async def never(request):
        await asyncio.Event().wait()

    lines = [planned("A"), dispatch(work("WM_1")), DONE]
    result, model, _ = led(tmp_path, lines, ["Half of it.", never], clock=VirtualClock())
    found = reported(model)
    assert found["overall_status"] == "TOTAL_FAILURE_TIMEOUT"
    (each,) = found["assignment_execution_results"]
    assert (each["status"], each["message"]) == ("timeout", "the limit of 900 s is used up")
    assert each["deliverables"] == {"primary_summary": "Half of it."}
    assert result.output == "all done"


def test_more_assignments_than_may_run_at_once_are_refused_with_the_counts(tmp_path):
    lines = [planned(*"ABCDEFGHI"), dispatch(*[work(f"WM_{number}") for number in range(1, 10)]), DONE]
    _, model, records = led(tmp_path, lines, [finishing])
    assert results_shown(of(model, "Principal")[2])[-1] == (
        "Error: 9 assignments, and at most 8 at once; dispatch them in parts"
    )
    assert not called(records)[1:]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"assignments": 3}, "assignments"),
        ({"assignments": [{"module_id_to_assign": "WM_1"}]}, "agent_profile_logical_name"),
        ({}, "assignments"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_their_path(arguments, said, tmp_path):
    """Where the case keeps `_raw`, the design's error result stands: path, expected, got."""
    _, model, _ = led(tmp_path, [call("dispatch_submodules", **arguments), DONE], [])
    told = results_shown(of(model, "Principal")[1])[0]
    assert told.startswith("Error: ")
    assert said in told


# -- who may be given work ------------------------------------------------------------------------

STAFF = {
    "Principal": PRINCIPAL,
    "Reader": ASSOCIATE,
    "Writer": ASSOCIATE,
    "Hidden": ASSOCIATE.replace("available_for_staffing: true", ""),
}


@pytest.mark.parametrize(
    ("policy", "staffed"),
    [
        (None, ["Reader", "Writer"]),
        (Delegation(), ["Reader", "Writer"]),
        (Delegation(names=()), []),
        (Delegation(names=("Writer", "Hidden")), ["Writer"]),
        (Delegation(tags=()), []),
        (Delegation(tags=("prose", "verse")), ["Writer"]),
        (Delegation(tags=("prose",), names=("Reader",)), []),
    ],
)
def test_who_may_be_given_work(policy, staffed, tmp_path):
    """A profile that is not `available_for_staffing` is nobody's: that is the denial without a policy."""
    given = {"Principal": policy} if policy is not None else {}
    found = team(tmp_path, STAFF, delegation=given, tags={"Writer": ("prose",)})
    brokers = [each for each in found.agents() if each.name == "Principal/dispatch"]
    assert [name for each in brokers for name in each.can_call] == staffed


def test_an_agent_beyond_the_depth_is_refused(tmp_path):
    """The code is the kernel's outcome `denied`; the reason names the limit."""
    lines = [planned("A"), dispatch(work("WM_1")), DONE]
    _, model, _records = led(tmp_path, lines, [finishing], bounds=ProfileLimits(depth=1))
    (found,) = reported(model)["assignment_execution_results"]
    said = "the depth limit of 1 nested calls is reached; do the work yourself"
    assert (found["status"], found["message"]) == ("failed", said)


# -- with how much an associate begins -----------------------------------------------------------


def archived(tmp_path, bounds, said="x" * 8_000):
    """A second associate inherits the conversation of the first, which said much."""
    heir = work("WM_2", inherit_messages_from=["WM_1"])
    lines = [planned("A", "B"), dispatch(work("WM_1")), dispatch(heir), DONE]
    return led(tmp_path, lines, [said + "1", said + "2", finishing, finishing], bounds=bounds)


def test_inherited_messages_are_handed_over_without_the_briefing(tmp_path):
    _, model, _ = archived(tmp_path, ProfileLimits(), "said ")
    (briefing,) = of(model, "Associate")[3].messages
    assert "said 1" in briefing.content
    assert "said 2" in briefing.content
    assert briefing.content.count("## Your work module") == 1


def test_results_of_other_modules_are_handed_over_and_nothing_else_of_them(tmp_path):
    heir = work("WM_2", inherit_deliverables_from=["WM_1"])
    lines = [planned("A", "B"), dispatch(work("WM_1")), dispatch(heir), DONE]
    _, model, _ = led(tmp_path, lines, ["I ponder.", finishing, finishing])
    (briefing,) = of(model, "Associate")[2].messages
    assert briefing.content.endswith("## What has been found\n- WM_1:\n  - primary_summary: found it")
    assert "I ponder." not in briefing.content


def test_no_associate_is_born_with_more_than_its_briefing_may_hold(tmp_path):
    """4.12: an associate was born at 171,947 tokens; here the oldest messages give way."""
    _, model, _ = archived(tmp_path, ProfileLimits(briefing=3_000))
    (briefing,) = of(model, "Associate")[3].messages
    assert len(briefing.content) < 3_000 * 4
    assert "x1" not in briefing.content
    assert "x2" in briefing.content


def test_a_briefing_that_is_too_large_by_itself_is_refused(tmp_path):
    lines = [planned("A"), dispatch(work("WM_1", said="x" * 5_000)), DONE]
    _, model, _ = led(tmp_path, lines, [], bounds=ProfileLimits(briefing=1_000))
    (found,) = reported(model)["assignment_execution_results"]
    assert found["message"].startswith("assignments[0]: its briefing takes 1,3")
    assert found["message"].endswith("and at most 1,000 are allowed")


def test_an_archive_keeps_the_last_messages_only(tmp_path):
    lines = [planned("A"), dispatch(work("WM_1")), DONE]
    more = [call("generate_message_summary")] * 5
    _, _, records = led(tmp_path, lines, [*more, finishing], bounds=ProfileLimits(archived=3))
    (entry,) = state(records)["context_archive.WM_1"]
    assert len(entry["messages"]) == 3
    assert entry["deliverables"] == {"primary_summary": "found it"}


def test_the_plan_does_not_grow_with_what_was_said(tmp_path):
    """4.12: full archives of 121,000 characters were shown with the plan; here they stand apart."""
    _, _, records = archived(tmp_path, ProfileLimits())
    assert len(json.dumps(state(records)["work_modules"])) < 2_000


# -- calls that are no calls -----------------------------------------------------------------------


def test_a_stop_ends_everything_once_with_what_there_is(tmp_path):
    found = team(tmp_path, {"Principal": PRINCIPAL, "Associate": ASSOCIATE})
    begun = asyncio.Event()

    async def hang(request):
        begun.set()
        await asyncio.Event().wait()

    model = script(Principal=[planned("A"), dispatch(work("WM_1"))], Associate=["So far.", hang])

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            asked = await run.post("Principal", "go")
            await begun.wait()
            await run.cancel(asked, "enough")
            return await run.result(asked), await run.records()

    result, records = asyncio.run(talk())
    assert (result.outcome, result.reason) == ("cancelled", "enough")
    ends = [each.event for each in records if each.type == "EffectFinished" and each.event.id == "2/1.c1"]
    assert [(each.outcome, each.content) for each in ends] == [("cancelled", "So far.")]


def test_limits_of_the_run_hold_for_all_of_it(tmp_path):
    lines = [planned("A", "B"), dispatch(work("WM_1"), work("WM_2")), DONE]
    _result, model, _ = led(tmp_path, lines, [finishing] * 2, limits=Limits(activations=3))
    found = reported(model)
    assert found["overall_status"] == "PARTIAL_SUCCESS_EXECUTION"
