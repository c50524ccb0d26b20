"""Every turn with all that went into it and came of it, read from the records."""

import asyncio

import pytest
from msgspec import structs

from antiphon import ModelError, RunFailed, open_run
from antiphon.kernel.facts.events import RunResumed
from antiphon.models.script import call
from antiphon.styles.profiles import ProfileTeam, turns_of
from antiphon.testing.clock import VirtualClock
from antiphon.view import RunTree
from tests.styles.profiles.profiled import ASSOCIATE, TEAM, one, script, team
from tests.styles.profiles.profiles_in_code import library
from tests.styles.profiles.test_modules import DONE, dispatch, finishing, planned, work
from tests.transcript import Gate, lines, recorded, shown, until

LAUNCH = call("LaunchPrincipalExecutionTool")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A whole team's run as turns, by their ids; two requests of the user."""
    found = team(tmp_path_factory.mktemp("team"), TEAM)
    model = script(
        Partner=[planned("A", "B"), LAUNCH, "Wait.", "Done.", "You are welcome."],
        Principal=[dispatch(work("WM_1", assigned_role_name="Digger"), work("WM_2")), DONE],
        Associate=[finishing, finishing],
    )

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            for said in ("the tides", "thanks"):
                await run.result(await run.post("Partner", said))
            return await run.records()

    turns = turns_of(asyncio.run(talk()), found.library.profiles)
    return {each.turn_id: each for each in turns}


def test_every_kind_of_turn_is_there(whole):
    found = {
        name: (each.turn_type, each.agent_info.agent_id, each.outputs.next_action)
        for name, each in whole.items()
    }
    assert found == {
        "1/1.user": ("user", "user", ""),
        "1/1": ("agent", "Partner", "manage_work_modules"),
        "1/2": ("agent", "Partner", "LaunchPrincipalExecutionTool"),
        "1/3": ("agent", "Partner", "await_user_input"),
        "2/1": ("agent", "Principal", "dispatch_submodules"),
        "3/1": ("dispatch", "Principal/dispatch", "call_agent"),
        "4/1": ("agent", "Associate", "finish_flow"),
        "5/1": ("agent", "Associate", "finish_flow"),
        "2/1.c1.aggregation": ("aggregation", "Principal", ""),
        "2/2": ("agent", "Principal", "finish_flow"),
        "1/4": ("agent", "Partner", "await_user_input"),
        "1/5.user": ("user", "user", ""),
        "1/5": ("agent", "Partner", "await_user_input"),
    }  # fmt: skip
    assert {each.status for each in whole.values()} == {"completed"}
    assert all(each.start_time <= each.end_time for each in whole.values())


def test_turns_are_linked_to_what_led_to_them(whole):
    assert {name: each.source_turn_ids for name, each in whole.items()} == {
        "1/1.user": (), "1/1": ("1/1.user",), "1/2": ("1/1",), "1/3": ("1/2",), "2/1": ("1/2",),
        "3/1": ("2/1",), "4/1": ("3/1",), "5/1": ("3/1",), "2/1.c1.aggregation": ("4/1", "5/1"),
        "2/2": ("2/1.c1.aggregation",), "1/4": ("1/3",), "1/5.user": ("1/4",), "1/5": ("1/5.user",),
    }  # fmt: skip
    assert {name: each.source_tool_call_id for name, each in whole.items() if each.source_tool_call_id} == {
        "2/1": "1/2.c1", "3/1": "2/1.c1", "4/1": "3/1.c1", "5/1": "3/1.c2", "2/1.c1.aggregation": "2/1.c1",
    }  # fmt: skip


def test_a_user_turn_is_of_the_same_flow_as_what_it_sets_off(whole):
    """A flow is a call from its start to its return; each request of the user is one."""
    assert (whole["1/1.user"].flow_id, whole["1/1"].flow_id, whole["1/4"].flow_id) == ("0/1.c1",) * 3
    assert (whole["1/5.user"].flow_id, whole["1/5"].flow_id) == ("0/2.c1",) * 2
    assert whole["2/2"].flow_id == "1/2.c1"
    (item,) = whole["1/5.user"].inputs.processed_inbox_items
    assert (item.source, item.payload, item.formatted) == ("USER_PROMPT", {"content": "thanks"}, "thanks")


def test_two_prompts_in_one_turn_are_two_turns_of_the_user(tmp_path):
    gate = Gate("One context.")
    found, model = one(tmp_path, ASSOCIATE, [gate, call("finish_flow", summary="x")])

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            asked = await run.post("Associate", "go")
            await until(run, "1/1.m1 model started")
            for said in ("and the sun?", "and the wind?"):
                await run.post(asked, said)
            gate.open.set()
            await run.result(asked)
            return turns_of(await run.records())

    turns = asyncio.run(talk())
    assert [each.turn_id for each in turns] == ["1/1.user", "1/1", "1/2.user", "1/2.user2", "1/2"]
    assert turns[4].source_turn_ids == ("1/2.user", "1/2.user2")
    assert [each.source_turn_ids for each in turns[2:4]] == [("1/1",)] * 2


def test_a_turn_says_who_took_it(whole):
    info = whole["4/1"].agent_info
    assert (info.profile_logical_name, info.profile_instance_id) == ("Associate", "Associate@1")
    assert info.assigned_role_name == "Digger"
    assert whole["3/1"].agent_info.profile_logical_name == ""


def test_a_turn_has_what_went_in(whole):
    inputs = whole["1/4"].inputs
    (item,) = inputs.processed_inbox_items
    assert (item.source, item.formatted) == (
        "PRINCIPAL_COMPLETED",
        "Principal has ended (completed).\nall done",
    )
    assert item.payload["outcome"] == "completed"
    assert [each.content for each in inputs.shown] == [item.formatted]
    assert len(inputs.system_prompt_digest) == 64
    assert inputs.system_prompt_digest == whole["1/1"].inputs.system_prompt_digest


def test_a_turn_has_its_talk_with_the_model(whole):
    talk = whole["1/3"].llm_interaction
    assert (talk.status, talk.final_response.content) == ("completed", "Wait.")
    assert [(each.stream_id, each.status) for each in talk.attempts] == [("1/3.m1", "completed")]
    assert talk.predicted_usage > 0
    assert talk.request_digest
    assert whole["3/1"].llm_interaction is None


def test_a_turn_has_its_calls_of_tools(whole):
    (tool,) = whole["2/1"].tool_interactions
    assert (tool.tool_name, tool.effect_id, tool.status) == ("dispatch_submodules", "2/1.c1", "completed")
    assert tool.tool_call_id
    assert '"module_id_to_assign":"WM_1"' in tool.input_params
    assert '"overall_status":"SUCCESS"' in tool.result_payload
    assert tool.start_time <= tool.end_time


def turns(found, model, message="go"):
    _result, records = recorded(found.entry, message, agents=found.agents(), model=model)
    return {each.turn_id: each for each in turns_of(records)}


def test_attempts_that_failed_are_there_with_their_errors(tmp_path):
    found, model = one(tmp_path, ASSOCIATE, [ModelError("auth", "no key")])
    turn = turns(found, model)["1/1"]
    assert (turn.status, turn.error_details) == ("error", "auth: no key")
    assert [(each.status, each.error) for each in turn.llm_interaction.attempts] == [
        ("error", "auth: no key")
    ]


def test_a_call_that_failed_or_never_started_is_there_with_the_reason(tmp_path):
    found, model = one(tmp_path, ASSOCIATE, [call("nothing"), call("finish_flow", summary="x")])
    (tool,) = turns(found, model)["1/1"].tool_interactions
    assert (tool.tool_name, tool.status) == ("nothing", "error")
    assert tool.error_details.startswith("Unknown tool: nothing")


def test_an_agent_that_failed_has_a_last_turn_that_did(tmp_path):
    found, model = one(tmp_path, ASSOCIATE, ["1", "2", "3"])
    found = turns(found, model)
    assert [each.status for each in found.values()] == ["completed", "completed", "completed", "error"]
    assert [each.outputs.next_action for each in found.values()] == ["", "loop", "loop", "end"]
    assert found["1/3"].error_details == "no tool was called three times"


def test_what_is_under_way_is_running(tmp_path):
    found, model = one(tmp_path, ASSOCIATE, ["1", "2", "3"])
    _, records = recorded(found.entry, "go", agents=found.agents(), model=model)
    half = [each for each in records if each.seq < records[-1].seq // 2]
    assert turns_of(half)[-1].status == "running"


def test_a_run_that_is_resumed_marks_what_was_interrupted(tmp_path):
    """The origin gives running turns up; here they go on, and the delimiter names them."""
    found, model = one(tmp_path, ASSOCIATE, [call("finish_flow", summary="x")])
    _, records = recorded(found.entry, "go", agents=found.agents(), model=model)
    place = next(
        number for number, each in enumerate(records) if each.type == "EffectStarted" and each.activation
    )
    resumed = structs.replace(records[place], event=RunResumed(), activation=0, agent="user")
    found = turns_of([*records[: place + 1], resumed, *records[place + 1 :]])
    assert [each.turn_type for each in found] == ["user", "agent", "restart_delimiter"]
    assert found[2].source_turn_ids == ("1/1",)
    assert (found[1].status, found[1].metadata) == ("completed", {"interrupted_at": resumed.at})


def test_the_same_team_in_yaml_and_in_code_says_and_does_the_same(tmp_path):
    def told(found):
        model = script(
            Partner=[planned("A", "B"), LAUNCH, "Wait.", "Done."],
            Principal=[dispatch(work("WM_1"), work("WM_2")), DONE],
            Associate=["I look.", "I look on.", finishing, finishing],
        )
        result, records = recorded(
            found.entry, "the tides", agents=found.agents(), model=model, clock=VirtualClock()
        )
        said = [each.replace(result.run_id, "RUN") for each in lines(records)]
        return said, [shown(each) for each in model.requests], [each.system for each in model.requests]

    yaml, code = told(team(tmp_path, TEAM)), told(ProfileTeam(library()))
    assert yaml == code
    assert len(yaml[0]) > 60


def test_the_records_say_which_observers_and_rules_fired_and_where_they_stand(tmp_path):
    found = team(tmp_path, {"Associate": ASSOCIATE})
    model = script(Associate=["One.", "Two.", "Three."])

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            with pytest.raises(RunFailed):
                await run.result(await run.post("Associate", "go"))
            return RunTree.of(await run.records())

    tree = asyncio.run(talk())
    file = next(tmp_path.rglob("Associate*.yaml"))
    text = file.read_text("utf-8").splitlines()
    fired = [each.rules for each in tree.activations[1].turns]
    assert [[rule.split(" ")[0] for rule in each] for each in fired] == [
        ["silent"],
        ["silent"],
        ["silent", "strikes"],
    ]
    for rule in fired[-1]:
        name, _, place = rule.partition(" ")
        assert "Associate" in place
        assert f"id: {name}" in text[int(place[:-1].rpartition(":")[2]) - 1]
    assert {each.begun_by for each in tree.activations[1].turns} == {"prepare_input"}
    assert {each.ended_by for each in tree.activations[1].turns} == {"end_turn"}
