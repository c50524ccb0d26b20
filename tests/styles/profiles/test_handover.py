"""Handover protocols; the partner that launches, watches and directs a principal."""

import asyncio
import json

import pytest

from antiphon import open_run
from antiphon.errors import ConfigError, UnknownName
from antiphon.models.script import Script, call
from antiphon.styles.profiles import load_profiles
from antiphon.styles.profiles.limits import ProfileLimits
from antiphon.styles.profiles.team import ProfileTeam
from tests.styles.profiles.profiled import ASSOCIATE, PARTNER, PRINCIPAL, TEAM, of, script, team
from tests.styles.profiles.test_modules import DONE, dispatch, finishing, planned, state, work
from tests.transcript import Gate, effects, recorded, results_shown, shown, until

LAUNCH = call("LaunchPrincipalExecutionTool", briefing="Be brief.")
STATUS = call("GetPrincipalStatusSummaryTool")


def directive(content):
    return call("SendDirectiveToPrincipalTool", directive_type="ADD_CONTEXT", content=content)


PROTOCOL = """
    protocol_name: principal_to_associate_briefing
    target_inbox_item: {source: AGENT_STARTUP_BRIEFING}
    context_parameters:
      type: object
      properties:
        assignment_specific_instructions: {type: string, x-handover-title: Your orders}
        audience: {type: string, description: Who reads it., x-handover-title: For whom}
      required: [audience]
    inheritance:
    - as_payload_key: details
      x-handover-title: The module
      from_source:
        path: "team.work_modules.{{ id }}.description"
        replace: {id: state.current_action.parameters.module_id_to_assign}
    - as_payload_key: never
      condition: "v['flags.no']"
      from_source: {path: team.question}
    - as_payload_key: unresolved
      from_source:
        path: "team.work_modules.{{ id }}.{{ key }}"
        replace: {id: state.current_action.parameters.module_id_to_assign, key: flags.no}
    - as_payload_key: talk
      from_source: {path: state.messages}
"""
PROTOCOLS = {"handover_protocols/briefing.yaml": PROTOCOL}
PAIR = {"Principal": PRINCIPAL, "Associate": ASSOCIATE}
PLANNED = call("manage_work_modules", actions=[{"action": "create", "name": "A", "description": "the moon"}])


def briefed(folder, assignment, **options):
    """What an associate is told by the protocol."""
    found = team(folder, PAIR, files=PROTOCOLS, **options)
    model = script(Principal=[PLANNED, dispatch(assignment), DONE], Associate=[finishing])
    recorded(found.entry, "the tides", agents=found.agents(), model=model)
    return model


def test_rules_that_do_not_hold_or_lead_nowhere_hand_over_nothing(tmp_path):
    model = briefed(tmp_path, work("WM_1", said="dig", audience="sailors"))
    (told,) = shown(of(model, "Associate")[0])
    assert told.startswith("user: ## Your orders\ndig\n\n## For whom\nsailors\n\n## The module\nthe moon")
    assert "## never" not in told
    assert "## unresolved" not in told


def test_messages_flagged_as_not_for_handover_stay_behind(tmp_path):
    """What the principal itself was briefed with is not handed on."""
    found = team(tmp_path, {**PAIR, "Partner": PARTNER}, files=PROTOCOLS)
    model = script(
        Partner=[PLANNED, LAUNCH, "Wait.", "Done."],
        Principal=[dispatch(work("WM_1", audience="x")), DONE],
        Associate=[finishing],
    )
    recorded(found.entry, "the tides", agents=found.agents(), model=model)
    assert "Be brief." in shown(of(model, "Principal")[0])[0]
    assert "Be brief." not in shown(of(model, "Associate")[0])[0]


def test_other_messages_are_handed_over(tmp_path):
    model = briefed(tmp_path, work("WM_1", audience="x"))
    assert "content: the tides" in shown(of(model, "Associate")[0])[0]


def test_an_unknown_protocol_is_refused_with_the_known(tmp_path):
    """The origin raises ValueError `not found`; here it is an UnknownName that lists what there is."""
    with pytest.raises(UnknownName, match="principal_to_associate_briefing"):
        team(tmp_path, PAIR, files=PROTOCOLS, handovers={"dispatch_submodules": "other"})


def test_an_invalid_protocol_is_reported_and_the_team_stands_without_it(tmp_path):
    team(tmp_path, PAIR)
    (tmp_path / "handover_protocols").mkdir()
    bad = tmp_path / "handover_protocols/principal_to_associate_briefing.yaml"
    bad.write_text("protocol_name: principal_to_associate_briefing\n")
    found = ProfileTeam(tmp_path)
    assert "needs `target_inbox_item`" in str(found.library.findings[0])
    assert [each.name for each in found.agents()] == ["Principal", "Principal/dispatch", "Associate"]
    with pytest.raises(ConfigError, match="needs `target_inbox_item`"):
        ProfileTeam(tmp_path, handovers={"dispatch_submodules": "principal_to_associate_briefing"})


def test_the_tool_asks_for_what_the_protocol_wants_without_the_keys_for_rendering(tmp_path):
    model = briefed(tmp_path, work("WM_1", audience="x"))
    (spec,) = [each for each in model.requests[0].tools if each.name == "dispatch_submodules"]
    assert "x-handover" not in json.dumps(spec.parameters)
    (item,) = [each for each in walk(spec.parameters) if "audience" in each.get("properties", {})]
    assert item["properties"]["audience"] == {"type": "string", "description": "Who reads it."}
    assert item["required"] == ["module_id_to_assign", "agent_profile_logical_name", "audience"]
    assert item["additionalProperties"] is False


def test_without_a_protocol_nothing_more_is_asked_for(tmp_path):
    found = team(tmp_path, PAIR)
    (tool,) = [each for each in found.entry.tools if each.name == "dispatch_submodules"]
    assert '"audience"' not in json.dumps(tool.spec.parameters)


def walk(schema):
    """Every mapping in a schema."""
    if isinstance(schema, dict):
        yield schema
        for each in schema.values():
            yield from walk(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from walk(each)


# -- the partner -----------------------------------------------------------------------------------


def partnered(folder, partner, principal, associate=(finishing,), profiles=TEAM, **options):
    """A whole team, asked by a user: its result, the model, the records."""
    found = team(folder, profiles, **options)
    model = script(Partner=partner, Principal=principal, Associate=list(associate))
    result, records = recorded(found.entry, "the tides", agents=found.agents(), model=model)
    return result, model, records


def test_a_partner_plans_launches_waits_and_tells_the_user(tmp_path):
    principal = [dispatch(work("WM_1")), DONE]
    result, model, records = partnered(
        tmp_path, [planned("A"), LAUNCH, "Wait.", "It is the moon."], principal
    )
    assert result.output == "It is the moon."
    assert results_shown(of(model, "Partner")[2])[-1] == "Started in the background as 1/2.c1"
    assert shown(of(model, "Partner")[3])[-1] == "user: Principal has ended (completed).\nall done"
    assert shown(of(model, "Principal")[0]) == [
        "user: ## iteration_mode\nstart_fresh\n\n## question\nthe tides\n\n"
        "## work_modules\n## Work modules\n- WM_1 [pending] A\n\n## briefing\nBe brief."
    ]
    (session,) = state(records)["principal_execution_sessions"]
    assert (session["mode"], session["status"]) == ("start_fresh", "completed")
    assert state(records)["is_principal_flow_running"] is False


def test_the_first_prompt_after_the_principals_end_is_the_next_question(tmp_path):
    """What is said while it works, or before anything was launched, is no new question."""
    found = team(tmp_path, TEAM)
    model = script(
        Partner=["Which?", planned("A"), LAUNCH, "Wait.", "Done.", LAUNCH, "Wait.", "Done again."],
        Principal=[DONE, DONE],
    )

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            for said in ("the tides", "all of them", "and the wind?"):
                await run.result(await run.post("Partner", said))

    asyncio.run(talk())
    asked = [
        shown(each)[0].partition("## question\n")[2].partition("\n")[0] for each in of(model, "Principal")
    ]
    assert asked == ["the tides", "and the wind?"]


def test_while_the_principal_works_the_user_may_talk_to_the_partner(tmp_path):
    gate = Gate(DONE)
    found = team(tmp_path, TEAM)
    model = script(Partner=[planned("A"), LAUNCH, "Wait.", "Patience.", "Done."], Principal=[gate])

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            asked = await run.post("Partner", "the tides")
            await until(run, "1/3.m1 completed: Wait.")
            await run.post(asked, "How far is it?")
            await until(run, "1/4.m1 completed: Patience.")
            gate.open.set()
            return await run.result(asked)

    assert asyncio.run(talk()).output == "Done."
    assert shown(of(model, "Partner")[3])[-2:] == ["assistant: Wait.", "user: How far is it?"]


def test_the_status_names_the_modules_and_the_last_steps(tmp_path):
    begun, gate = asyncio.Event(), Gate(call("finish_flow", summary="found it"))

    def associate(request):
        begun.set()
        return gate

    async def status(request):
        await begun.wait()
        return STATUS

    async def direct(request):
        return directive("Mind the moon.")

    def wait(request):
        gate.open.set()
        return "Wait."

    _, model, records = partnered(
        tmp_path,
        [planned("A", "B"), LAUNCH, status, direct, wait, "Done."],
        [dispatch(work("WM_1")), DONE],
        [associate],
    )
    seen = results_shown(of(model, "Partner")[3])[-1]
    plan = "## Work modules\n- WM_1 [ongoing] A\n- WM_2 [pending] B"
    assert seen.startswith(f"Principal is running.\n\n{plan}\n\n## The principal's last steps\n")
    assert results_shown(of(model, "Partner")[4])[-1] == "Sent; it is read before the next step."
    assert shown(of(model, "Principal")[1])[-1] == "user: Mind the moon."
    assert state(records)["partner_directives_queue"] == []


def test_what_a_partner_cannot_do_is_said(tmp_path):
    twice = [LAUNCH, LAUNCH]
    gate = Gate(DONE)

    def last(request):
        gate.open.set()
        return "Wait."

    _, model, _ = partnered(tmp_path, [LAUNCH, directive("x"), planned("A"), twice, last, "Done."], [gate])
    told = results_shown(of(model, "Partner")[4])
    assert told[0] == "Error: the plan is empty; create work modules with manage_work_modules first"
    assert told[1] == "Error: Principal is not running; launch it first"
    assert told[4] == (
        "Error: Principal is already running; send it a directive, wait for its end, or set"
        " force_terminate_and_relaunch"
    )


RELAUNCH = call("LaunchPrincipalExecutionTool", force_terminate_and_relaunch=True)


def test_a_principal_that_works_is_stopped_and_launched_anew(tmp_path):
    begun, never = asyncio.Event(), Gate(DONE)

    async def working(request):
        begun.set()
        return never

    async def relaunch(request):
        await begun.wait()
        return RELAUNCH

    result, model, records = partnered(
        tmp_path,
        [planned("A"), LAUNCH, relaunch, "Wait.", "The second did it."],
        [dispatch(work("WM_1")), dispatch(work("WM_1")), DONE],
        [working, call("finish_flow", summary="found it")],
    )
    assert result.output == "The second did it."
    assert "1/2.c1 cancelled: replaced by 1/3.c1" in effects(records, "c")
    assert sum("has ended" in text for text in shown(of(model, "Partner")[-1])) == 1
    assert [each["status"] for each in state(records)["principal_execution_sessions"]] == [
        "cancelled", "completed",
    ]  # fmt: skip
    # What the first had given out is free again, and the second may give it out.
    assert shown(of(model, "Principal")[1])[0].endswith("- WM_1 [pending_review] A")
    assert '"overall_status":"SUCCESS"' in results_shown(of(model, "Principal")[2])[-1]
    assert state(records)["work_modules"]["WM_1"]["status"] == "pending_review"


def test_with_none_at_work_a_relaunch_is_a_launch(tmp_path):
    partner = [planned("A"), RELAUNCH, "Wait.", "Done."]
    result, _, records = partnered(tmp_path, partner, [DONE])
    assert result.output == "Done."
    assert [each["status"] for each in state(records)["principal_execution_sessions"]] == ["completed"]


def test_two_launches_in_one_reply_are_two_sessions(tmp_path):
    partner = [planned("A"), [LAUNCH, RELAUNCH], "Wait.", "Done."]
    result, model, records = partnered(tmp_path, partner, [DONE, DONE])
    assert result.output == "Done."
    assert [each["status"] for each in state(records)["principal_execution_sessions"]] == [
        "cancelled", "completed",
    ]  # fmt: skip
    assert state(records)["is_principal_flow_running"] is False
    assert sum("has ended" in text for text in shown(of(model, "Partner")[-1])) == 1


def test_a_principal_of_a_request_that_was_cancelled_is_no_obstacle_to_the_next(tmp_path):
    begun, never = asyncio.Event(), Gate(DONE)
    found = team(tmp_path, TEAM)
    model = script(
        Partner=[planned("A"), LAUNCH, "Wait.", LAUNCH, "Wait.", "Done."],
        Principal=[lambda request: (begun.set(), never)[1], DONE],
    )

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            asked = await run.post("Partner", "the tides")
            await begun.wait()
            await run.cancel(asked)
            await run.result(asked)
            again = await run.result(await run.post("Partner", "once more"))
            return again, await run.records()

    result, records = asyncio.run(talk())
    assert result.output == "Done."
    assert [each["status"] for each in state(records)["principal_execution_sessions"]] == [
        "cancelled", "completed",
    ]  # fmt: skip


def test_an_end_that_comes_with_the_next_launch_is_told(tmp_path):
    gate = Gate(LAUNCH)
    partner = [planned("A"), LAUNCH, gate, "Wait.", "Both are done."]
    _, model, records = partnered(tmp_path, partner, [lambda request: (gate.open.set(), DONE)[1], DONE])
    assert sum("has ended" in text for text in shown(of(model, "Partner")[-1])) == 2
    assert [each["status"] for each in state(records)["principal_execution_sessions"]] == ["completed"] * 2


def test_work_of_a_dispatch_that_was_stopped_may_be_given_out_again(tmp_path):
    """Stopped by hand, or by a deadline: nothing stays `ongoing` that nobody works on."""
    begun, never = asyncio.Event(), Gate(DONE)
    found = team(tmp_path, {"Principal": PRINCIPAL, "Associate": ASSOCIATE})
    model = script(
        Principal=[planned("A"), dispatch(work("WM_1")), dispatch(work("WM_1")), DONE],
        Associate=[lambda request: (begun.set(), never)[1], call("finish_flow", summary="found it")],
    )

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            asked = await run.post("Principal", "the tides")
            await begun.wait()
            await run.cancel("1/2.c1")
            return await run.result(asked)

    assert asyncio.run(talk()).outcome == "completed"
    told = results_shown(of(model, "Principal")[3])
    assert '"overall_status":"SUCCESS"' in told[-1]


def test_a_principal_that_is_launched_again_may_know_what_it_did(tmp_path):
    again = call("LaunchPrincipalExecutionTool", iteration_mode="continue_from_previous")
    _, model, records = partnered(
        tmp_path,
        [planned("A"), LAUNCH, "Wait.", again, "Wait.", "Done."],
        [call("generate_markdown_report"), DONE, DONE],
    )
    assert "## previous_steps\n## The principal's last steps\n- user: " in shown(of(model, "Principal")[2])[0]
    assert [each["mode"] for each in state(records)["principal_execution_sessions"]] == [
        "start_fresh", "continue_from_previous",
    ]  # fmt: skip


def test_a_principal_that_fails_is_reported_with_the_reason(tmp_path):
    rules = """
    flow_decider: [{id: n, condition: "v['flags.x']", action: {type: end_agent_turn}}]
    """
    profiles = {**TEAM, "Principal": PRINCIPAL + rules.strip("\n") + "\n"}
    partner = [planned("A"), LAUNCH, "Wait.", "It did not work."]
    result, model, _ = partnered(tmp_path, partner, ["1", "2", "3", "4"], profiles=profiles)
    assert result.output == "It did not work."
    assert shown(of(model, "Partner")[3])[-1] == (
        "user: Principal has ended (no_progress).\n3 turns without a call in a row\n4"
    )


def test_the_end_of_a_principal_is_seen_once(tmp_path):
    """Results are effects of the journal: each ends once, early or late, and an end for nobody cannot be."""
    gate = Gate(planned("B"))
    _, model, records = partnered(
        tmp_path, [planned("A"), LAUNCH, gate, "Done."], [lambda request: (gate.open.set(), DONE)[1]],
        bounds=ProfileLimits(),
    )  # fmt: skip
    assert sum("has ended" in text for text in shown(of(model, "Partner")[-1])) == 1
    ends = [each.event.id for each in records if each.type == "EffectFinished"]
    assert len(ends) == len(set(ends))


def test_the_documented_team_works(tmp_path):
    """Files of the documented generation, unchanged: partner, principal and a searcher."""
    library = load_profiles("tests/styles/profiles/documented")

    def who(request):
        names = [each.name for each in request.tools]
        return (
            "Partner"
            if "LaunchPrincipalExecutionTool" in names
            else "Principal"
            if "dispatch_submodules" in names
            else "A"
        )

    assignment = work("WM_1", "Associate_WebSearcher", "search")
    model = Script(
        {
            "Partner": [
                planned("A"),
                call(
                    "LaunchPrincipalExecutionTool",
                    initial_briefing_for_principal={"user_query": "tides"},
                ),
                "Wait.",
                "Here you are.",
            ],
            "Principal": [dispatch(assignment, shared_context_for_all_assignments="all"), "hm", DONE],
            "A": [call("finish_flow", summary="found it")],
        },
        agent=who,
    )
    found = ProfileTeam(library, models=dict.fromkeys(library.profiles, model))
    result, _ = recorded(found.entry, "tides", agents=found.agents())
    assert result.output == "Here you are."
    requests = [shown(each) for each in model.requests]
    assert requests[4][0].startswith("user: ## Shared context\nall\n\n## Instructions\nsearch\n\n")
    assert requests[6][-2:-1] == ["user: [system] Look at the plan, then call a tool."]
    assert requests[7][-3:-1] == [
        "user: Principal has ended (completed).\nall done",
        "user: [system] The Principal is done. Tell the user how it went.",
    ]
    assert requests[7][-1].endswith(
        "### Who can be staffed\n- Associate_WebSearcher: Searches the web.\n\n"
        "## Work modules\n- WM_1 [pending_review] A (1 archived)"
    )
