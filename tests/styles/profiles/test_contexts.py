"""RunContext, TeamState and SubContext, read from a run as it is."""

import asyncio

from antiphon import open_run, tool
from antiphon.models.script import call
from antiphon.styles.profiles import run_context, turns_of
from tests.styles.profiles.profiled import ASSOCIATE, TEAM, script, team
from tests.styles.profiles.test_handover import LAUNCH
from tests.styles.profiles.test_modules import DONE, dispatch, finishing, planned, work
from tests.transcript import Gate, until


def test_a_run_is_seen_whole_while_it_works_and_when_it_rests(tmp_path):
    found, gate = team(tmp_path, TEAM), Gate(call("finish_flow", summary="found it"))
    model = script(
        Partner=[planned("A", "B"), LAUNCH, "Wait.", "That too.", "Done."],
        Principal=[dispatch(work("WM_1"), work("WM_2")), DONE],
        Associate=[gate, gate],
    )

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            yield await run_context(run, found)
            asked = await run.post(found.entry, "the tides")
            await until(run, "5/1.m1 model started")
            await until(run, "1/3.m1 completed: Wait.")
            await run.post(asked, "and the sun?")
            await until(run, "1/4.m1 completed: That too.")
            yield await run_context(run, found)
            gate.open.set()
            await run.result(asked)
            yield await run_context(run, found)
            await run.close()
            yield await run_context(run, found)

    async def collected():
        return [each async for each in talk()]

    fresh, working, resting, closed = asyncio.run(collected())
    assert [each.meta.status for each in (fresh, working, resting, closed)] == [
        "CREATED", "RUNNING", "AWAITING_INPUT", "COMPLETED",
    ]  # fmt: skip
    assert (fresh.partner, fresh.associates) == (None, ())
    assert working.team_state["question"] == "the tides"
    assert {each["status"] for each in working.team_state["work_modules"].values()} == {"ongoing"}
    assert [each.at("meta.module_id") for each in working.associates] == ["WM_1", "WM_2"]
    assert working.associates[0].at("state.initial_parameters.instructions") == "do it"
    assert working.associates[0].at("state.current_turn_id") == "4/1"
    assert working.principal.at("state.messages[-1].tool_calls[0].function.name") == "dispatch_submodules"
    assert working.partner.at("team.is_principal_flow_running") is True
    assert working.partner.at("nothing", "else") == "else"
    assert working.partner.state["messages"][-2]["content"] == "and the sun?"
    assert set(working.config["agent_profiles"]) == {"Partner", "Principal", "Associate"}
    assert (resting.principal, resting.associates) == (None, ())
    assert resting.partner.state["messages"][-1]["content"] == "Done."
    assert resting.team_state["work_modules"]["WM_1"]["context_archive"]


def test_a_run_that_asks_its_user_awaits_input(tmp_path):
    @tool(requires_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    profile = ASSOCIATE.replace("[flow_control_end,", "[flow_control_end, own,")
    found = team(tmp_path, {"Associate": profile}, tools={"own": [pay]})
    model = script(Associate=[call("pay"), finishing])

    async def talk():
        async with open_run(found.agents(), model=model, interactive=True) as run:
            asked = await run.post(found.entry, "go")
            await until(run, "1/1.c1? wait approval pay started")
            waiting = await run_context(run, found)
            await run.answer("1/1.c1?", "yes")
            await run.result(asked)
            return waiting.meta.status

    assert asyncio.run(talk()) == "AWAITING_INPUT"


def test_a_stored_run_that_is_resumed_goes_on_where_it_was_and_then_awaits_input(tmp_path):
    """Where the origin gives the running turn up, only its cut model call is: it is asked again."""
    found, never, later = team(tmp_path / "team", TEAM), Gate("never"), Gate("Which tides?")
    journal = f"sqlite:///{tmp_path}/runs.db"

    async def talk():
        async with open_run(found.agents(), model=script(Partner=[never]), journal=journal) as first:
            asked = await first.post(found.entry, "the tides")
            await until(first, "1/1.m1 model started")
            run_id = first.run_id
        model = script(Partner=[later])
        async with open_run(found.agents(), model=model, journal=journal, run_id=run_id) as second:
            went_on = await run_context(second, found)
            later.open.set()
            await second.result(asked)
            return went_on, await run_context(second, found), turns_of(await second.records())

    went_on, rested, turns = asyncio.run(talk())
    assert (went_on.meta.status, rested.meta.status) == ("RUNNING", "AWAITING_INPUT")
    assert [each.turn_type for each in turns] == ["user", "agent", "restart_delimiter"]
    assert [each.status for each in turns[1].llm_interaction.attempts] == ["interrupted", "completed"]
    assert turns[1].metadata["interrupted_at"] == turns[2].start_time
    assert turns[2].source_turn_ids == ("1/1",)
