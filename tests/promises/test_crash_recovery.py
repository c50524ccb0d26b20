"""SIGKILL at any point: nothing acknowledged is lost, nothing completed repeated, the talk the same."""

import pytest
from msgspec import structs

from antiphon.kernel.run import actions, runtime
from antiphon.kernel.run import open as opening
from antiphon.kernel.run import perform as performers
from antiphon.kernel.run.actions import ActionExecutor
from antiphon.kernel.run.runtime import Runtime
from antiphon.kernel.run.snapshots import keeping
from antiphon.kernel.run.snapshots.keeping import latest_state
from antiphon.testing.crash import enumerate_crashes, rehearse
from antiphon.testing.points import mark_effects
from antiphon.values.actions import StepOperation, perform
from tests.promises.crash_scenarios import (
    ACTION,
    ALL,
    ASKING,
    CONTRACTS,
    CONVERSATION,
    ENVIRONMENT,
    JOIN,
    LOOP,
    PROFILES,
    SINGLE,
    TOOLSETS,
)
from tests.promises.mcp_scenario import INSTALLED, MCP

MODES = ["at once", "deferred", "when waited for"]


@pytest.mark.slow
def test_a_sample_of_points(tmp_path):
    report = enumerate_crashes(SINGLE, tmp_path, commit="deferred", every=4)
    assert not report.bad, str(report)
    assert set(report.names) == {
        "claim", "claimed", "append", "queued", "durable", "post", "posted", "model", "model done",
        "tool", "tool done", "release", "released",
    }  # fmt: skip


@pytest.mark.slow
def test_a_sample_of_a_loop_with_compaction_approval_retry_and_fallback(tmp_path):
    report = enumerate_crashes(LOOP, tmp_path, commit="deferred", every=11)
    assert not report.bad, str(report)


@pytest.mark.slow
def test_a_sample_of_rounds_with_steps_asks_calls_and_what_they_publish(tmp_path):
    report = enumerate_crashes(ACTION, tmp_path, commit="deferred", every=13)
    assert not report.bad, str(report)
    assert {"step", "step done"} <= set(report.names)


@pytest.mark.slow
@pytest.mark.parametrize("commit", MODES)
def test_a_sample_of_rounds(commit, tmp_path):
    report = enumerate_crashes(ENVIRONMENT, tmp_path, commit=commit, every=47)
    assert not report.bad, str(report)
    assert {"step", "step done"} <= set(report.names)


@pytest.mark.slow
def test_a_sample_of_tools_that_ask_in_their_middle(tmp_path):
    report = enumerate_crashes(ASKING, tmp_path, commit="deferred", every=13)
    assert not report.bad, str(report)
    assert {"step", "step done", "tool", "tool done"} <= set(report.names)


@pytest.mark.slow
@pytest.mark.parametrize("commit", MODES)
def test_a_sample_of_tools_whose_provider_changes_dies_and_comes_back(commit, tmp_path):
    report = enumerate_crashes(TOOLSETS, tmp_path, commit=commit, every=5)
    assert not report.bad, str(report)


@pytest.mark.slow
@pytest.mark.skipif(not INSTALLED, reason="the extra mcp is not installed")
def test_a_sample_of_a_real_mcp_server_whose_tools_are_found_by_a_search(tmp_path):
    report = enumerate_crashes(MCP, tmp_path, commit="at once", every=9)
    assert not report.bad, str(report)


@pytest.mark.deep
@pytest.mark.skipif(not INSTALLED, reason="the extra mcp is not installed")
def test_a_real_mcp_server_whose_client_is_killed_everywhere(tmp_path):
    report = enumerate_crashes(MCP, tmp_path, commit="deferred", every=2)
    assert not report.bad, str(report)
    assert report.points >= 30


@pytest.mark.slow
def test_a_sample_of_a_conversation_whose_requests_wait_for_each_other(tmp_path):
    report = enumerate_crashes(CONVERSATION, tmp_path, commit="deferred", every=9)
    assert not report.bad, str(report)


@pytest.mark.slow
def test_a_sample_of_a_pool_and_a_join(tmp_path):
    report = enumerate_crashes(JOIN, tmp_path, every=13)
    assert not report.bad, str(report)


@pytest.mark.slow
def test_a_sample_of_a_team_of_profiles_with_a_principal_in_the_background(tmp_path):
    report = enumerate_crashes(PROFILES, tmp_path, commit="deferred", every=9)
    assert not report.bad, str(report)


@pytest.mark.slow
@pytest.mark.parametrize("commit", MODES)
@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_every_scenario_is_in_order_without_a_crash(scenario, commit, tmp_path):
    assert rehearse(scenario, tmp_path / "first", commit=commit) == []
    # A run that is over is only judged again.
    assert rehearse(scenario, tmp_path / "first", commit=commit) == []
    assert len((tmp_path / "first" / "lives").read_text().splitlines()) == 2


@pytest.fixture
def kept_after_every_row(monkeypatch):
    """Whoever takes a run up finds a snapshot of it."""
    for room in (keeping, opening):
        monkeypatch.setattr(room, "EVERY", 1)
    monkeypatch.setattr(keeping, "SHARE", 1 << 40)


@pytest.mark.slow
@pytest.mark.usefixtures("kept_after_every_row")
@pytest.mark.parametrize("commit", MODES)
def test_a_sample_of_runs_that_open_from_snapshots(commit, tmp_path):
    for scenario, every in ((LOOP, 13), (CONVERSATION, 11), (ASKING, 23)):
        (tmp_path / scenario.name).mkdir()
        report = enumerate_crashes(scenario, tmp_path / scenario.name, commit=commit, every=every)
        assert not report.bad, str(report)


@pytest.mark.deep
@pytest.mark.usefixtures("kept_after_every_row")
@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_every_point_of_runs_that_open_from_snapshots(scenario, tmp_path):
    report = enumerate_crashes(scenario, tmp_path, commit="deferred")
    assert not report.bad, str(report)


def test_what_is_wrong_is_said(tmp_path):
    assert rehearse(SINGLE, tmp_path) == []
    with (tmp_path / "world").open("a") as world:
        world.write((tmp_path / "world").read_text())
        world.write('{"effect_id":"9/9.c9","key":"k","attempt":1,"pid":1}\n')
    with (tmp_path / "acknowledged").open("a") as acknowledged:
        acknowledged.write("3 00\n")
    wrong = "\n".join(rehearse(SINGLE, tmp_path))
    assert "row 3 00 was acknowledged and is lost" in wrong
    assert "1/1.c1 (pay, once) ran 2 times" in wrong
    assert "9/9.c9 ran though its start is not on record" in wrong


def test_points_stand_around_models_and_tools_of_every_kind(tmp_path, monkeypatch):
    for module, name in ((runtime, "ask_model"), (performers, "use_tool"), (actions, "perform")):
        # As it is, to be put back afterwards.
        monkeypatch.setattr(module, name, getattr(module, name))
    seen = []
    mark_effects(seen.append)
    assert rehearse(LOOP, tmp_path) == []
    assert {"model", "model done", "tool", "tool done"} <= set(seen)


def test_a_scenario_that_does_not_work_is_refused(tmp_path):
    broken = structs.replace(SINGLE, agents=lambda world: [])
    with pytest.raises(RuntimeError, match="does not work without a crash"):
        enumerate_crashes(broken, tmp_path)


@pytest.mark.deep
@pytest.mark.parametrize("commit", MODES)
@pytest.mark.parametrize("scenario", ALL, ids=lambda scenario: scenario.name)
def test_every_point(scenario, commit, tmp_path):
    report = enumerate_crashes(scenario, tmp_path, commit=commit)
    assert report.points == sum(report.names.values()) >= 24
    assert not report.bad, str(report)


@pytest.mark.deep
def test_every_point_with_the_disk_waited_for(tmp_path):
    report = enumerate_crashes(SINGLE, tmp_path, durability="power")
    assert not report.bad, str(report)


@pytest.mark.deep
def test_control_without_the_barrier_acts_are_repeated(tmp_path, monkeypatch):
    async def at_once(self):
        return

    monkeypatch.setattr(Runtime, "until_durable", at_once)
    report = enumerate_crashes(SINGLE, tmp_path, commit="deferred")
    assert any("ran 2 times" in text for bad in report.bad for text in bad.wrong), str(report)


@pytest.mark.deep
def test_control_a_once_tool_run_again_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(performers, "use_tool", _forgetful(performers.use_tool))
    report = enumerate_crashes(CONTRACTS, tmp_path)
    assert any("once) ran 2 times" in text for bad in report.bad for text in bad.wrong), str(report)


@pytest.mark.deep
def test_control_a_role_that_forgets_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("antiphon.styles.environment.roles.record.RoleSnapshot.restore", lambda *given: None)
    report = enumerate_crashes(ENVIRONMENT, tmp_path, every=29)
    assert any("on record is" in text for bad in report.bad for text in bad.wrong), str(report)


@pytest.mark.deep
def test_control_a_step_done_again_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("antiphon.kernel.run.actions.ActionExecutor.execute", _again(ActionExecutor.execute))
    report = enumerate_crashes(ENVIRONMENT, tmp_path)
    assert any("had ended and ran again" in text for bad in report.bad for text in bad.wrong), str(report)


@pytest.mark.deep
def test_control_a_lost_tool_that_is_not_taken_up_again_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("antiphon.testing.crash.PATIENCE_S", 1)
    monkeypatch.setattr(Runtime, "_resume", lambda self: None)
    report = enumerate_crashes(SINGLE, tmp_path, every=2)
    assert any("hung" in text for bad in report.bad for text in bad.wrong), str(report)


@pytest.mark.deep
def test_control_mail_that_is_taken_in_twice_is_found(tmp_path, monkeypatch):
    async def forgets_its_mail(journal, run_id):
        found = await latest_state(journal, run_id)
        found.state.command = 0
        return found

    monkeypatch.setattr("antiphon.kernel.run.open.latest_state", forgets_its_mail)
    report = enumerate_crashes(SINGLE, tmp_path, every=3)
    assert any("command 1 after command 1" in text for bad in report.bad for text in bad.wrong), str(report)


@pytest.mark.deep
def test_control_an_action_that_forgets_its_steps_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(actions.ActionExecutor, "execute", _by_heart(actions.ActionExecutor.execute))
    report = enumerate_crashes(ACTION, tmp_path)
    assert any("had ended and ran again" in text for bad in report.bad for text in bad.wrong), str(report)


def _by_heart(execute):
    """As if steps were done and not looked up."""

    async def executing(self, effect_id, operation):
        if isinstance(operation, StepOperation) and effect_id in self._finished:
            return operation.function(*operation.args)
        return await execute(self, effect_id, operation)

    return executing


def _again(execute):
    """As if an action that is run again did not know what it had done."""

    async def executing(executor, effect_id, operation):
        if effect_id in executor._finished and isinstance(operation, StepOperation):
            await perform(operation)
        return await execute(executor, effect_id, operation)

    return executing


def _forgetful(use_tool):
    """As if no crash had been noticed."""

    async def using(tool, arguments, opened, *rest, **named):
        opened.crashes = 0
        return await use_tool(tool, arguments, opened, *rest, **named)

    return using
