"""A run opens with any team: agents removed, renamed and given other tools at every point of its journal."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from antiphon import Agent, AntiphonError, Hooks, LoopOptions, ModelError, ModelOptions, RunFailed, open_run
from antiphon.errors import UnknownName, UserError
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import Row
from antiphon.kernel.facts.events import EffectStarted
from antiphon.kernel.run.open import cancel_run
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.invariants import check_journal
from tests.oracle.play import SCENARIOS
from tests.oracle.stage import PATIENCE, Stage
from tests.oracle.tools import never
from tests.transcript import results_shown

Team = tuple[Agent, ...]
pytestmark = pytest.mark.unwatched


class Played(Stage):
    """A stage that remembers with which team each of its runs was opened first."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.teams: dict[str, Team] = {}

    @asynccontextmanager
    async def open(self, *agents: Agent, **options: Any) -> Any:
        async with super().open(*agents, **options) as run:
            self.teams.setdefault(run.run_id, agents)
            yield run


def without(team: Team) -> Iterator[tuple[str, Team]]:
    """The team without one of its agents."""
    for gone in team:
        if len(team) > 1:
            yield (
                f"without {gone.name}",
                tuple(_knowing(each, gone.name) for each in team if each is not gone),
            )


def renamed(team: Team) -> Iterator[tuple[str, Team]]:
    """The team with one of its agents under another name."""
    for old in team:
        changed = replace(old, name=old.name + "2")
        yield (
            f"{old.name} renamed",
            tuple(changed if each is old else _knowing(each, old.name) for each in team),
        )


def _knowing(agent: Agent, gone: str) -> Agent:
    """An agent that names one that is gone nowhere: its code would be refused wherever it is used."""
    limits = agent.limits
    if limits is not None and limits.breach_target == gone:
        limits = replace(limits, on_breach="stop", breach_target="")
    return replace(agent, can_call=[name for name in agent.can_call if name != gone], limits=limits)


def changed(team: Team) -> Iterator[tuple[str, Team]]:
    """The same names with other tools, hooks, models and ways to end."""
    yield "without tools", tuple(replace(each, tools=()) for each in team)
    yield "without hooks", tuple(replace(each, hooks=Hooks()) for each in team)
    asking, loop = ModelOptions(compaction=None), LoopOptions(max_parallel_calls=1, max_reminders=0)
    yield (
        "otherwise",
        tuple(
            replace(each, asking=asking, loop=loop, completion="finish", context="fresh", model=None)
            for each in team
        ),
    )
    yield "a stranger", (Agent("stranger"),)


CHANGES: Sequence[Callable[[Team], Iterator[tuple[str, Team]]]] = (without, renamed, changed)


async def opened_anew(
    run_id: str, rows: Sequence[Row], blobs: dict[str, bytes], team: Team, clock: VirtualClock, **options: Any
) -> str:
    """Open what is stored so far with a team, tell it something, cancel all of it, close it."""
    journal = MemoryJournal()
    lease = await journal.claim(run_id, create=True)
    for row in rows:
        while lease.epoch < row.epoch:
            await journal.release(lease)
            lease = await journal.claim(run_id)
        journal.append(lease, row, blobs, lambda error: None)
    await journal.release(lease)
    said = Script(lambda request: "as you say")
    try:
        async with asyncio.timeout(PATIENCE):
            options |= {"clock": clock, "env": {}, "model": said}
            async with open_run(team, journal=journal, run_id=run_id, **options) as run:
                request = await run.post(team[0].name, "Are you there?")
                for _ in range(3):
                    await asyncio.sleep(0)
                await run.cancel()
                with suppress(RunFailed):
                    await run.result(request)
                await run.close()
    except AntiphonError as error:
        return f"{type(error).__name__}: {error}"
    await check_journal(journal)
    (entry,) = await journal.runs()
    written = entry.seq - rows[-1].seq
    return f"{written:,} records were written: somebody calls who is gone again and again" * (written > MOST)


async def refused(name: str, folder: Path, *, sparing: bool = False) -> tuple[int, list[str]]:
    """How often the runs of a scenario were opened with a changed team, and what was refused."""
    stage, tried, found = Played(folder), 0, []
    await SCENARIOS[name](stage)
    for run_id, team in stage.teams.items():
        rows = list(await stage.journal.read(run_id))
        blobs = {
            digest: await stage.journal.blob(run_id, digest)
            for row in rows
            for digest in (*row.blobs, *(each for _, each in row.refs))
        }
        for end in range(1, len(rows), 6 if sparing and len(rows) > MANY else 1):
            for change in CHANGES:
                for what, other in change(team):
                    names = {each.name for each in team}
                    new = {each.name[:-1]: each.name for each in other if each.name not in names}
                    mapped = what.endswith("renamed")
                    for options in ({}, {"renamed": new}, {"missing": "drop"}) if mapped else ({},):
                        tried += 1
                        clock = VirtualClock(rows[end - 1].at)
                        why = await opened_anew(run_id, rows[:end], blobs, other, clock, **options)
                        if why and not ("renamed" in options and "of the run in renamed" in why):
                            found.append(f"{name}, row {end}, {what}, {options}: {why}")
    return tried, found


STYLES = [
    *("killed_environment", "killed_profiles", "killed_tasks", "killed_loop", "killed_fan_out"),
    *("killed_action", "killed_approval", "a_callee_goes_on_where_it_was", "more_is_said_to_some"),
]
MOST = 500
"""Records that follow when a run is opened, told something and cancelled; far more than any needs."""
MANY = 60
"""Rows of a scenario of which only every sixth is tried unless there is time."""


@pytest.mark.slow
@pytest.mark.parametrize("name", STYLES)
def test_a_run_of_any_style_opens_with_any_team(name: str, tmp_path: Path) -> None:
    tried, found = asyncio.run(refused(name, tmp_path, sparing=True))
    assert tried > 50
    assert not found, f"{len(found)} of {tried}:\n" + "\n".join(found[:10])


@pytest.mark.deep
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_run_opens_with_any_team_at_every_point(name: str, tmp_path: Path) -> None:
    tried, found = asyncio.run(refused(name, tmp_path))
    assert not found, f"{len(found)} of {tried}:\n" + "\n".join(found[:10])


def kept(name: str, model: Any) -> Agent:
    return Agent(name, model=model, context="continue")


@pytest.mark.parametrize(
    "after",
    [["a"], ["a", "b2"], ["b"], ["stranger"]],
    ids=["removed", "renamed", "the caller removed", "everyone removed"],
)
def test_what_rests_stays_at_rest_when_its_agent_is_gone(after: list[str]) -> None:
    journal = MemoryJournal()
    asks = call("call_agent", agent_name="b", message="remember 7")

    async def play() -> None:
        first = [kept("a", Script([asks, "asked"])), kept("b", Script(["noted"]))]
        async with open_run(first, journal=journal) as run:
            await run.result(await run.post("a", "go"))
        team = [kept(name, Script(["here"])) for name in after]
        async with open_run(team, journal=journal, run_id=run.run_id) as run:
            assert (await run.result(await run.post(after[0], "there?"))).output == "here"
            gone = next(name for name in ("a", "b") if name not in after)
            with pytest.raises(UnknownName, match=f"Unknown agent: {gone}"):
                await run.result(await run.post(gone, "and you?"))
        again = Script(lambda request: " ".join(each.content for each in request.messages))
        async with open_run([kept("a", again), kept("b", again)], journal=journal, run_id=run.run_id) as run:
            assert "go" in (await run.result(await run.post("a", "once more"))).output
        await check_journal(journal)

    asyncio.run(play())


def at_rest(journal: MemoryJournal) -> str:
    """A run in which b rests for a, and both for the user."""
    asks = call("call_agent", agent_name="b", message="remember 7")

    async def play() -> str:
        first = [kept("a", Script([asks, "asked"])), kept("b", Script(["noted"]))]
        async with open_run(first, journal=journal) as run:
            await run.result(await run.post("a", "go"))
        return run.run_id

    return asyncio.run(play())


def again(journal: MemoryJournal, run_id: str, **options: Any) -> list[str]:
    """What an agent `scribe` that a calls is shown, once the run was opened with these options."""
    asks, scribe = call("call_agent", agent_name="scribe", message="what was it?"), Script(["it was 7"])

    async def play() -> None:
        team = [kept("a", Script([asks, "done"])), kept("scribe", scribe)]
        async with open_run(team, journal=journal, run_id=run_id, **options) as run:
            await run.result(await run.post("a", "go on"))
            if "renamed" in options:
                assert [each.agent for each in await run.records() if each.activation == 2][-1] == "scribe"
        await check_journal(journal)

    asyncio.run(play())
    return [each.content for each in scribe.requests[0].messages]


def test_an_agent_goes_on_under_another_name() -> None:
    journal = MemoryJournal()
    run_id = at_rest(journal)
    assert again(journal, run_id, renamed={"b": "scribe"}) == ["remember 7", "noted", "what was it?"]


def test_what_rests_can_be_forgotten() -> None:
    journal = MemoryJournal()
    run_id = at_rest(journal)

    async def forgotten() -> int:
        async with open_run([kept("a", Script([]))], journal=journal, run_id=run_id, missing="drop"):
            pass
        await check_journal(journal)
        state = await fold(journal, run_id)
        return len(state.dormant)

    assert asyncio.run(forgotten()) == 1


def test_an_agent_at_work_goes_on_under_another_name() -> None:
    journal = MemoryJournal()
    asks = call("call_agent", agent_name="b", message="slowly")

    async def play() -> str:
        team = [Agent("a", model=Script([asks])), Agent("b", model=Script([never]))]
        async with open_run(team, journal=journal) as run:
            request = await run.post("a", "go")
            async for record in run.events(deltas=False):
                if isinstance(record.event, EffectStarted) and record.event.id == "2/1.m1":
                    break
        seen = Script(lambda request: request.messages[-1].content)
        after = [Agent("a", model=seen), Agent("scribe", model=Script(["written"]))]
        async with open_run(after, journal=journal, run_id=run.run_id, renamed={"b": "scribe"}) as run:
            found = (await run.result(request)).output
        await check_journal(journal)
        return found

    assert asyncio.run(play()) == "written"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"missing": "refuse"}, "has agents that the team lacks: b. Map them with renamed"),
        ({"missing": "forget"}, "is 'rest', 'drop' or 'refuse'"),
        ({"renamed": {"c": "scribe"}}, "Unknown agent of the run in renamed: c"),
        ({"renamed": {"b": "clerk"}}, "Unknown agent of the team in renamed: clerk"),
        ({"renamed": {"b": "a"}}, "b cannot become a"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_the_run_as_it_was(options: Any, said: str) -> None:
    journal = MemoryJournal()
    run_id = at_rest(journal)
    before = list(asyncio.run(journal.read(run_id)))
    with pytest.raises(UserError, match=said):
        again(journal, run_id, **options)
    assert list(asyncio.run(journal.read(run_id))) == before
    assert again(journal, run_id, missing="rest") == ["what was it?"]


def test_a_model_that_calls_who_is_gone_is_told() -> None:
    journal, asks = MemoryJournal(), call("call_agent", agent_name="b", message="remember 7")

    async def play() -> None:
        first = [kept("a", Script([asks, "asked"])), kept("b", Script(["noted"]))]
        async with open_run(first, journal=journal) as run:
            await run.result(await run.post("a", "go"))
        model = Script([asks, "alone"])
        team = [kept("a", model), Agent("c", model=model)]
        async with open_run(team, journal=journal, run_id=run.run_id) as run:
            await run.result(await run.post("a", "go on"))
        said = "Error: the team has no agent b any more. Available agents: c"
        assert results_shown(model.requests[-1])[-1] == said

    asyncio.run(play())


def test_who_waits_for_a_call_in_the_background_is_told_that_its_agent_is_gone() -> None:
    journal = MemoryJournal()
    asks = call("call_agent", agent_name="b", message="slowly", background=True)
    waits = call("get_result", call_id="1/1.c1")

    async def play() -> None:
        team = [Agent("a", model=Script([asks, waits])), Agent("b", model=Script([never]))]
        async with open_run(team, journal=journal, background=True) as run:
            request = await run.post("a", "go")
            async for record in run.events(deltas=False):
                if isinstance(record.event, EffectStarted) and record.event.id == "1/2.c1":
                    break
        left = Script(["on my own then"])
        async with open_run([Agent("a", model=left)], journal=journal, run_id=run.run_id) as run:
            assert (await run.result(request)).output == "on my own then"
        assert "the team has no agent b any more" in results_shown(left.requests[0])[-1]

    asyncio.run(play())


def test_a_run_at_rest_is_cancelled_without_its_team() -> None:
    journal = MemoryJournal()
    asks = call("call_agent", agent_name="b", message="remember 7")

    async def play() -> None:
        first = [kept("a", Script([asks, "asked"])), kept("b", Script(["noted"]))]
        async with open_run(first, journal=journal) as run:
            await run.result(await run.post("a", "go"))
        await cancel_run(journal, run.run_id, "enough")
        await check_journal(journal)

    asyncio.run(play())


def test_a_model_that_took_over_and_is_gone_leaves_the_last_one() -> None:
    journal, down = MemoryJournal(), ModelError("auth", "no")

    async def play() -> str:
        spare = Script([never], name="spare")
        agent = Agent("a", model=Script([down]), asking=ModelOptions(fallback_models=[spare]))
        async with open_run([agent], journal=journal) as run:
            request = await run.post("a", "go")
            async for record in run.events(deltas=False):
                if isinstance(record.event, EffectStarted) and record.event.id == "1/1.m2":
                    break
        only = Agent("a", model=Script(["alone"]))
        async with open_run([only], journal=journal, run_id=run.run_id) as run:
            return (await run.result(request)).output

    assert asyncio.run(play()) == "alone"


@pytest.mark.parametrize(
    ("options", "said"),
    [({"missing": "dropp"}, "'rest', 'drop' or 'refuse'"), ({"renamed": {"b": "a"}}, "renamed")],
)
def test_what_a_new_run_cannot_be_opened_with_is_refused(options: Any, said: str) -> None:
    async def opening() -> None:
        async with open_run([Agent("a", model=Script(["hi"]))], **options):
            raise AssertionError("it was opened")

    with pytest.raises(AntiphonError, match=said):
        asyncio.run(opening())
