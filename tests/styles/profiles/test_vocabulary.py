"""The arguments that prompts of the documented generation teach, beside those of this style."""

import json

import pytest

from antiphon.errors import UserError
from antiphon.models.script import call
from antiphon.styles.profiles.work.modules import ModuleAction, manage
from antiphon.styles.profiles.work.toolset import TOOLS, dispatch_tool, launch_tool
from antiphon.styles.profiles.world.world import delivered
from antiphon.values.message import ToolCall
from antiphon.values.model import ChatMessage, Reply
from tests.styles.profiles.profiled import ASSOCIATE, PRINCIPAL, TEAM, of, script, team
from tests.styles.profiles.test_handover import LAUNCH, PAIR, partnered
from tests.styles.profiles.test_modules import DONE, dispatch, finishing, led, planned, state, work
from tests.transcript import Gate, recorded, results_shown, shown

ORDERS = """
    protocol_name: principal_to_associate_briefing
    target_inbox_item: {source: AGENT_STARTUP_BRIEFING}
    context_parameters:
      type: object
      properties:
        shared_context_for_all_assignments: {type: string, x-handover-title: Shared}
        assignment_specific_instructions: {type: string, x-handover-title: Orders}
        module_id_to_assign: {type: string}
        audience:
          type: object
          properties: {who: {type: string, enum: [sailors, all]}, number: {type: integer, minimum: 1}}
          required: [who]
      required: [module_id_to_assign, assignment_specific_instructions, shared_context_for_all_assignments]
"""
START = """
    protocol_name: partner_to_principal_initial_briefing
    target_inbox_item: {source: AGENT_STARTUP_BRIEFING}
    context_parameters:
      type: object
      properties:
        initial_briefing_for_principal:
          type: object
          x-handover-title: Project briefing
          properties:
            user_query: {type: string, x-handover-title: What is asked}
            notes_from_partner: {type: string}
          required: [user_query]
      required: [initial_briefing_for_principal]
"""
FILES = {"handover_protocols/orders.yaml": ORDERS, "handover_protocols/start.yaml": START}


def refused(found, name, **arguments):
    """Why a tool of a team refuses these arguments; empty when it takes them."""
    (tool,) = {
        each.name: each for agent in found.agents() for each in agent.tools if each.name == name
    }.values()
    prepared = tool.prepare(json.dumps(arguments))
    return getattr(prepared, "text", "")


# -- the plan --------------------------------------------------------------------------------------


def test_notes_and_a_new_status_are_kept():
    plan = manage({}, 1, [ModuleAction("create", name="A", notes_from_principal="first of all")], 1.0)
    assert plan.modules["WM_1"]["notes_from_principal"] == "first of all"
    change = ModuleAction("status_change", "WM_1", new_status="completed", notes_from_principal="well done")
    plan = manage(plan.modules, plan.next_id, [change], 2.0)
    module = plan.modules["WM_1"]
    assert (module["status"], module["notes_from_principal"]) == ("completed", "well done")
    again = ModuleAction("update", "WM_1", notes_from_principal="look again", new_status="pending")
    plan = manage(plan.modules, plan.next_id, [again], 3.0)
    assert (plan.modules["WM_1"]["status"], plan.modules["WM_1"]["notes_from_principal"]) == (
        "pending",
        "look again",
    )
    assert plan.said == ("WM_1 updated: notes_from_principal, and is pending",)


def test_two_statuses_that_differ_are_refused():
    plan = manage({}, 1, [ModuleAction("create", name="A")], 1.0)
    both = ModuleAction("status_change", "WM_1", new_status="completed", status="pending")
    with pytest.raises(UserError, match="new_status is 'completed' and status 'pending'"):
        manage(plan.modules, plan.next_id, [both], 2.0)


def test_notes_are_shown_with_the_plan_and_to_who_works_on_it(tmp_path):
    plan = call(
        "manage_work_modules", actions=[{"action": "create", "name": "A", "notes_from_principal": "by noon"}]
    )
    _, model, _ = led(tmp_path, [plan, dispatch(work("WM_1")), DONE], [finishing])
    assert "by noon" in shown(of(model, "Associate")[0])[0]


# -- nested keys -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "part"),
    [
        ("manage_work_modules", {"actions": [{"action": "create", "nmae": "A"}]}, "nmae"),
        ("dispatch_submodules", {"assignments": [{**work("WM_1"), "hurry": True}]}, "hurry"),
        (
            "SendDirectiveToPrincipalTool",
            {"directive_type": "ADD_CONTEXT", "payload": {"messsage": "x"}},
            "messsage",
        ),
    ],
)
def test_unknown_nested_keys_are_refused_as_top_level_ones_are(name, arguments, part):
    refused = TOOLS[name].prepare(json.dumps(arguments)).text
    assert f"unknown field {part!r}" in refused
    assert "allowed: " in refused


def test_a_slip_in_a_nested_key_is_recognised():
    text = TOOLS["manage_work_modules"].prepare('{"actions": [{"action": "create", "nmae": "A"}]}').text
    assert "did you mean 'name'?" in text


# -- what a protocol requires ----------------------------------------------------------------------


def test_what_a_protocol_requires_is_required(tmp_path):
    found = team(tmp_path, TEAM, files=FILES)
    launch = "LaunchPrincipalExecutionTool"
    assert "missing required argument 'initial_briefing_for_principal'" in refused(found, launch)
    assert "user_query" in refused(found, launch, initial_briefing_for_principal={"notes_from_partner": "x"})
    assert "colour" in refused(
        found, launch, initial_briefing_for_principal={"user_query": "x", "colour": "red"}
    )
    assert not refused(found, launch, initial_briefing_for_principal={"user_query": "x"})
    rest = {
        "iteration_mode": "start_fresh",
        "force_terminate_and_relaunch": False,
        "confirmed_associate_profiles_details_list": ["Associate"],
        "new_directives_for_iteration": {"additional_notes": "n"},
    }
    assert not refused(found, launch, initial_briefing_for_principal={"user_query": "x"}, **rest)


@pytest.mark.parametrize(
    ("assignment", "shared", "outcome"),
    [
        (work("WM_1"), "all", ""),
        ({**work("WM_1"), "shared_context_for_all_assignments": "all"}, "", ""),
        (work("WM_1"), "", "shared_context_for_all_assignments is required: give it to the whole call"),
        (work("WM_1", said=""), "all", "assignment_specific_instructions is required: give it, or principal"),
        (
            {**work("WM_1", said=""), "principal_provided_context_for_assignment": "do it"},
            "all",
            "",
        ),
    ],
)
def test_what_may_be_said_in_two_places_is_required_in_one(assignment, shared, outcome, tmp_path):
    found = team(tmp_path, PAIR, files=FILES)
    lines = [planned("A"), dispatch(assignment, shared_context_for_all_assignments=shared), DONE]
    model = script(Principal=lines, Associate=[finishing])
    recorded(found.entry, "the tides", agents=found.agents(), model=model)
    answer = results_shown(of(model, "Principal")[2])[-1]
    if outcome:
        assert outcome in answer
    else:
        assert shown(of(model, "Associate")[0])[0].startswith("user: ## Shared\nall\n\n## Orders\ndo it")


def test_a_protocol_may_not_change_what_the_tool_relies_on(tmp_path):
    odd = ORDERS.replace("module_id_to_assign: {type: string}", "module_id_to_assign: {type: integer}")
    found = team(tmp_path, PAIR, files={"handover_protocols/orders.yaml": odd})
    assert not refused(found, "dispatch_submodules", assignments=[work("WM_1")])


# -- the shared context and the instructions -------------------------------------------------------


def test_what_the_protocol_does_not_ask_for_is_told_all_the_same(tmp_path):
    bare = """
        protocol_name: principal_to_associate_briefing
        target_inbox_item: {source: AGENT_STARTUP_BRIEFING}
    """
    found = team(tmp_path, PAIR, files={"handover_protocols/bare.yaml": bare})
    dispatched = dispatch(work("WM_1", said="dig"), shared_context_for_all_assignments="it rains")
    model = script(Principal=[planned("A"), dispatched, DONE], Associate=[finishing])
    recorded(found.entry, "the tides", agents=found.agents(), model=model)
    assert shown(of(model, "Associate")[0])[0] == (
        "user: ## What to do\ndig\n\n## What everybody knows\nit rains"
    )


def test_the_name_of_the_tool_among_the_arguments_does_no_harm():
    given = {"tool_name": "dispatch_submodules", "assignments": [work("WM_1")]}
    assert not hasattr(dispatch_tool().prepare(json.dumps(given)), "text")
    assert "tool_name" in dispatch_tool().prepare(json.dumps({**given, "tool_name": "other"})).text


# -- the partner's tools ---------------------------------------------------------------------------


def test_a_launch_hands_over_the_initial_briefing_with_or_without_a_protocol(tmp_path):
    brief = {"user_query": "How do tides work?", "notes_from_partner": "Ask a sailor."}
    for folder, files in (("with", FILES), ("without", {})):
        launch = call("LaunchPrincipalExecutionTool", initial_briefing_for_principal=brief)
        (tmp_path / folder).mkdir()
        _, model, _ = partnered(
            tmp_path / folder, [planned("A"), launch, "Wait.", "Done."], [DONE], files=files
        )
        told = shown(of(model, "Principal")[0])[0]
        assert "How do tides work?" in told
        assert "Ask a sailor." in told


def test_the_confirmed_associates_are_those_that_the_team_names(tmp_path):
    seen = """
        pre_turn_observers:
        - id: staff
          action:
            type: add_to_inbox
            inbox_item: {source: STAFF, payload: "{{ team.profiles_list_instance_ids }}"}
        inbox_handling_strategies: [{source: STAFF, ingestor: available_associates}]
    """
    profiles = {**TEAM, "Principal": [PRINCIPAL, seen], "Second": ASSOCIATE}
    name = "confirmed_associate_profiles_details_list"
    wrong = call("LaunchPrincipalExecutionTool", **{name: ["Nobody"]})
    right = call("LaunchPrincipalExecutionTool", **{name: ["Second"]})
    _, model, _ = partnered(
        tmp_path, [planned("A"), wrong, right, "Wait.", "Done."], [DONE], profiles=profiles
    )
    assert (
        "there is no associate 'Nobody'. Known: Associate, Second"
        in results_shown(of(model, "Partner")[2])[-1]
    )
    told = "\n".join(shown(of(model, "Principal")[0]))
    assert ("- Second:" in told, "- Associate:" in told) == (True, False)


def test_new_directives_change_the_question(tmp_path):
    more = {"user_query_adjustment": "And the wind?", "additional_notes": "Hurry."}
    again = call(
        "LaunchPrincipalExecutionTool",
        iteration_mode="continue_from_previous",
        new_directives_for_iteration=more,
    )
    _, model, records = partnered(
        tmp_path, [planned("A"), LAUNCH, "Wait.", again, "Wait.", "Done."], [DONE, DONE]
    )
    told = shown(of(model, "Principal")[1])[0]
    assert "And the wind?" in told
    assert "Hurry." in told
    assert state(records)["question"] == "And the wind?"


@pytest.mark.parametrize("key", ["user_facing_message_for_principal", "user_facing_message"])
def test_a_directive_says_what_its_payload_says(key, tmp_path):
    gate = Gate(planned("B"))
    payload = {
        key: "Look at the sun.",
        "target_task_id": "WM_1",
        "internal_notes_for_principal_llm": "It matters.",
    }
    say = call("SendDirectiveToPrincipalTool", directive_type="ADD_CONTEXT", payload=payload)
    nothing = call("SendDirectiveToPrincipalTool", directive_type="ADD_CONTEXT", payload={})

    def opened(request):
        gate.open.set()
        return "Wait."

    _, model, _ = partnered(tmp_path, [planned("A"), LAUNCH, nothing, say, opened, "Done."], [gate, DONE])
    told = shown(of(model, "Principal")[1])
    assert "user: Look at the sun.\nAbout: WM_1\nNotes for you alone: It matters." in told
    assert (
        "says nothing; give payload.user_facing_message_for_principal"
        in results_shown(of(model, "Partner")[3])[-1]
    )


# -- reports and ends ------------------------------------------------------------------------------


def test_the_synthesis_and_the_findings_come_back_with_the_instructions(tmp_path):
    report = call("generate_markdown_report", principal_final_synthesis="The moon does it.")
    _, model, _ = led(tmp_path, [report, "# Tides", DONE], [])
    assert results_shown(of(model, "Principal")[1])[-1].endswith("The moon does it.")
    summary = call("generate_message_summary", current_associate_findings="Found a moon.")
    lines = [planned("A"), dispatch(work("WM_1")), DONE]
    (tmp_path / "b").mkdir()
    _, model, _ = led(tmp_path / "b", lines, [summary, "Summed up.", call("finish_flow", reason="over")])
    assert results_shown(of(model, "Associate")[1])[-1].endswith("Found a moon.")


def test_an_agent_that_finishes_with_a_reason_hands_back_its_report(tmp_path):
    rules = """
        flow_decider:
        - {id: tool, condition: "v['state.current_action']", action: {type: continue_with_tool}}
    """
    profiles = {"Principal": [PRINCIPAL, rules], "Associate": ASSOCIATE}
    report = call("generate_markdown_report", principal_final_synthesis="The moon does it.")
    done = Reply("I come to the end.", (ToolCall("c9", "finish_flow", '{"reason": "All done."}'),))
    result, model, _ = led(tmp_path, [report, "# Tides\n\nThe moon.", done], [], profiles)
    assert len(model.requests) == 3
    assert result.output == "# Tides\n\nThe moon."


def test_a_reason_is_the_result_when_nothing_was_said(tmp_path):
    result, _, _ = led(tmp_path, [call("finish_flow", reason="There was nothing to do.")], [])
    assert result.output == "There was nothing to do."


def says(text, *calls):
    return ChatMessage("assistant", text, tuple(ToolCall("c", name, given) for name, given in calls))


REPORT = ("generate_markdown_report", '{"principal_final_synthesis": "gist"}')
FINISH = ("finish_flow", "{}")


@pytest.mark.parametrize(
    ("conversation", "handed_back"),
    [
        ([says("a"), says("b", FINISH)], "b"),
        ([says("a"), says("I write.", REPORT), says("# R"), says("I end.", FINISH)], "# R"),
        ([says("I write.", REPORT), says("# 1"), says("# 2"), says("", FINISH)], "# 2"),
        ([says("old"), says("I write.", REPORT), says("# in passing", FINISH)], "# in passing"),
        ([says("old"), says("I write.", REPORT), says("", FINISH)], "gist"),
        ([says("", ("generate_message_summary", "[]")), says("", FINISH)], ""),
        ([], ""),
    ],
)
def test_what_is_handed_back(conversation, handed_back):
    assert delivered(conversation) == handed_back


def test_every_parameter_of_the_origin_is_offered():
    offered = {name: set(each.parameters["properties"]) for name, each in TOOLS.items()}
    assert offered["finish_flow"] >= {"reason", "summary"}
    assert offered["generate_markdown_report"] >= {"principal_final_synthesis"}
    assert offered["generate_message_summary"] >= {"current_associate_findings"}
    assert offered["SendDirectiveToPrincipalTool"] >= {"directive_type", "payload", "content"}
    assert offered["LaunchPrincipalExecutionTool"] >= {
        "iteration_mode", "force_terminate_and_relaunch", "initial_briefing_for_principal",
        "confirmed_associate_profiles_details_list", "new_directives_for_iteration", "briefing",
    }  # fmt: skip
    assert launch_tool().parameters == TOOLS["LaunchPrincipalExecutionTool"].parameters
    item = TOOLS["dispatch_submodules"].parameters["properties"]["assignments"]["items"]
    assert set(item["properties"]) >= {
        "module_id_to_assign", "agent_profile_logical_name", "assigned_role_name", "inherit_messages_from",
        "assignment_specific_instructions", "inherit_deliverables_from", "shared_context_for_all_assignments",
    }  # fmt: skip
