"""Any partner, principal and associates: whatever their models say, users post and people cancel.

The session's own fixture folds the journals and checks every invariant of the kernel. Here it is checked
what a team of profiles promises beyond them.
"""

import asyncio
import random
import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from antiphon import Limits, RunFailed, ToolError, open_run, tool
from antiphon.errors import ModelError, UnknownName
from antiphon.models.script import Script, call
from antiphon.styles.profiles import ProfileLimits, run_context, turns_of
from tests.styles.profiles.profiled import ASSOCIATE, PARTNER, PRINCIPAL, team
from tests.styles.profiles.test_modules import dispatch, planned, work

OWN = "[flow_control_end, flow_control_summary"
PROFILES = {
    "Partner": PARTNER,
    "Principal": PRINCIPAL,
    "Associate": ASSOCIATE.replace(OWN, f"{OWN}, own"),
    "Other": ASSOCIATE,
}
NAMES = ("Associate", "Other", "Nobody")


@tool(effect="read")
async def look(what: str) -> str:
    """Look."""
    if what == "wrong":
        raise ToolError("nothing there")
    return what * 300


def speaks(chance):
    """A model that says whatever its agent may say, and now and then what it may not."""

    def modules():
        return [f"WM_{chance.randint(1, 4)}" for _ in range(chance.randint(1, 3))]

    def plans():
        kind = chance.choice(["create", "create", "update", "status_change"])
        name, status = chance.choice(["A", "B", ""]), chance.choice(["completed", "pending", "ongoing"])
        action = {"action": kind, "module_id": chance.choice(modules()), "name": name, "status": status}
        return call("manage_work_modules", actions=[{"action": "create", "name": "A"}, action])

    def launches():
        return call("LaunchPrincipalExecutionTool", force_terminate_and_relaunch=chance.random() < 0.5)

    def directs():
        return call("SendDirectiveToPrincipalTool", directive_type="ADD_CONTEXT", content="mind this")

    def dispatches():
        return dispatch(*[
            work(each, chance.choice(NAMES), inherit_messages_from=modules() if chance.random() < 0.3 else [])
            for each in modules()
        ])  # fmt: skip

    said = {
        "Partner": [plans, launches, launches, directs, lambda: call("GetPrincipalStatusSummaryTool")],
        "Principal": [plans, dispatches, dispatches, lambda: call("generate_markdown_report")],
        "Associate": [lambda: call("look", what=chance.choice(["x", "wrong"]))],
        "Other": [lambda: call("generate_message_summary")],
    }

    async def reply(request):
        # So that whatever comes in between comes in the middle of something.
        for _ in range(chance.randint(0, 6)):
            await asyncio.sleep(0)
        name = next(each for each in said if f'You are "{each}"' in request.system)
        spoken = sum(each.role == "assistant" for each in request.messages)
        if name == "Partner" and spoken < 2:
            return [planned("A", "B", "C"), launches()][spoken]
        if name == "Principal" and not spoken:
            return dispatches()
        luck = chance.random()
        if luck < 0.03:
            raise ModelError(chance.choice(["refusal", "provider"]), "no luck")
        if luck < 0.35:
            return chance.choice(["", "So be it.", "<tool_call>", "Done."])
        if luck < 0.5 and name != "Partner":
            return call("finish_flow", summary=chance.choice(["found", ""]))
        return [chance.choice(said[name])() for _ in range(chance.randint(1, 2))]

    return reply


async def plays(seed, folder):
    """One life of a team: requests, mail, cancellations; and a last word, when nothing is under way."""
    chance, over = random.Random(seed), []
    bounds = ProfileLimits(steps=8, fan_out=3, loops=2, item_turns=2)
    found = team(folder, PROFILES, tools={"own": [look]}, bounds=bounds)
    speak, limits = speaks(chance), Limits(activations=60, calls=150)

    async def reply(request):
        return "Hello." if over else await speak(request)

    model = Script(reply)
    async with open_run(found.agents(), model=model, limits=limits) as run:
        for _ in range(chance.randint(1, 3)):
            asked = await run.post("Partner", "the tides")
            result = asyncio.ensure_future(run.result(asked))
            for _ in range(chance.randint(0, 4)):
                await disturbs(chance, run, asked, result)
            with suppress(RunFailed):
                await result
        over.append(True)
        await run.result(await run.post("Partner", "Hello?"))
        return await run_context(run, found), await run.records()


async def disturbs(chance, run, asked, result):
    """Something comes in between, some laps later."""
    for _ in range(chance.randint(1, 40)):
        await asyncio.sleep(0)
    if result.done():
        return
    if chance.random() < 0.5:
        with suppress(UnknownName):  # it has ended meanwhile
            await run.post(asked, "and the sun?")
        return
    opened = [effect for view in run.activations() for effect in view.in_flight]
    await run.cancel(chance.choice([asked, *opened]), "enough")


OVERALL = r"SUCCESS|(PARTIAL_SUCCESS|TOTAL_FAILURE)_(PREPARATION|EXECUTION)|TOTAL_FAILURE_TIMEOUT"


@pytest.mark.slow
@settings(max_examples=25)
@given(seed=st.integers(0, 2**32))
def test_a_team_keeps_its_promises(seed, tmp_path_factory):
    judge(*asyncio.run(plays(seed, tmp_path_factory.mktemp("team"))))


@pytest.mark.deep
def test_five_hundred_teams_keep_their_promises(tmp_path):
    for seed in range(500):
        judge(*asyncio.run(plays(seed, tmp_path / str(seed))))


def judge(found, records):
    """What holds of every team once nothing is under way."""
    shared = found.team_state
    assert found.meta.status == "AWAITING_INPUT"
    assert found.partner.state["messages"][-1]["content"] == "Hello."
    assert (found.principal, found.associates) == (None, ())

    # Nothing is called under way that nobody works on.
    modules = shared["work_modules"]
    assert all(re.fullmatch(r"WM_[1-9]\d*", each) for each in modules)
    assert {each["status"] for each in modules.values()} <= {"pending", "pending_review", "completed"}
    assert not shared.get("is_principal_flow_running")
    assert "running" not in [each["status"] for each in shared.get("principal_execution_sessions", ())]

    # Every dispatch has a result for each assignment, and every module that was worked on has its archive.
    for each in shared.get("dispatch_history", ()):
        assert re.fullmatch(OVERALL, each["overall_status"])
        assert all(result["status"] for result in each["results"])

    turns = turns_of(records)
    ids = [each.turn_id for each in turns]
    assert len(ids) == len(set(ids))
    for number, turn in enumerate(turns):
        assert turn.status != "running", turn.turn_id
        assert set(turn.source_turn_ids) <= set(ids[:number] + ids[number + 1 :]), turn.turn_id
        assert all(each.status != "running" for each in turn.tool_interactions), turn.turn_id
