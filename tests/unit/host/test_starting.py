"""How a host starts a run: once, durably, in a line."""

import asyncio
from contextlib import aclosing

import pytest

from antiphon import Agent, UserError
from antiphon.host import Host, HostedTeam, StartedRun
from antiphon.host.starting import KeyUsed
from antiphon.journal.listing import Labels
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from tests.unit.host.hosts import answer_of, desk, in_time, pay, until


def test_the_same_key_starts_a_run_once_and_refuses_another_request(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    async def work():
        async with Host(url, {"desk": desk("Hello."), "other": desk("Hello.")}) as host:
            first, second = await asyncio.gather(*[host.start("desk", "Hi", key="k") for _ in range(2)])
            assert first.run_id == second.run_id
            assert [first.created, second.created] == [True, False]
            for team, message in (("desk", "Ho"), ("other", "Hi")):
                with pytest.raises(KeyUsed):
                    await host.start(team, message, key="k")
            # Another owner's key is another key.
            other = await host.start("desk", "Hi", key="k", labels=Labels(owner="ada"))
            assert other.run_id != first.run_id
        async with Host(url, {"desk": desk("Hello.")}) as host:
            assert await host.start("desk", "Hi", key="k") == type(first)(first.run_id, False)

    in_time(work)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"team": "nobody"}, "Unknown team: nobody. Known: desk"),
        ({"entry": "nobody"}, "Unknown agent of team desk: nobody. Known: desk"),
        ({"key": "a\nb"}, "An idempotency key is 1 to 200 visible characters"),
        ({"labels": Labels(owner="a:b")}, "A owner is named by 1 to 40 letters"),
        ({"data": object()}, "it must be what JSON can hold"),
    ],
)
def test_what_cannot_be_started_leaves_nothing(given, said):
    async def work():
        journal = MemoryJournal()
        async with Host(journal, {"desk": desk("Hello.")}) as host:
            with pytest.raises(UserError, match=said.replace(".", r"\.")):
                await host.start(**{"team": "desk", "message": "Hi", **given})
            assert not await journal.runs()
            assert not host.runs

    in_time(work)


@pytest.mark.parametrize("teams", [{"a b": desk("x")}, {"a": 3}, {"a": []}, {"a": HostedTeam((), entry="x")}])
def test_what_is_no_team_is_refused(teams):
    with pytest.raises(UserError):
        Host(MemoryJournal(), teams)


def test_runs_over_the_bound_wait_in_a_line_and_are_durable_there():
    async def work():
        gate, seen = asyncio.Event(), []

        async def held(request):
            seen.append(len(seen))
            await gate.wait()
            return "done"

        team = Agent("desk", model=Script(held))
        async with Host(MemoryJournal(), {"desk": team}, max_runs=2) as host:
            runs = [(await host.start("desk", str(number))).run_id for number in range(4)]
            assert [host.runs[each].state for each in runs] == ["running", "running", "queued", "queued"]
            await until(lambda: len(seen) == 2)
            for each in runs[2:]:
                # Whoever dies now has lost nothing of it.
                assert await host.journal.commands(each)
            gate.set()
            host._idle_seconds = 0
            assert [await answer_of(host, each) for each in runs] == ["done"] * 4

    in_time(work)


def test_a_run_that_rests_gives_its_slot_to_one_that_waits():
    async def work():
        team = desk(call("pay", amount=3), "done", tools=[pay])
        async with Host(MemoryJournal(), {"desk": team}, max_runs=1, clock=VirtualClock()) as host:
            first = (await host.start("desk", "Pay 3")).run_id
            async with host.connect(first) as run, aclosing(run.events()) as events:
                async for _ in events:
                    if await run.open_questions():
                        break
            second = (await host.start("desk", "Pay 3")).run_id
            async with host.connect(second) as run, aclosing(run.events()) as events:
                async for _ in events:
                    if await run.open_questions():
                        break
            assert host.runs[first].state == "resting"

    in_time(work)


def test_whoever_asked_may_leave_and_the_run_is_begun_all_the_same(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    async def work():
        async with Host(url, {"desk": desk("Hello.")}) as host:
            asking = asyncio.ensure_future(host.start("desk", "Hi", key="k"))
            await until(lambda: host.runs)
            asking.cancel()
            await asyncio.wait((asking,))
            (run_id,) = host.runs
            await host.runs[run_id].founded
            assert await answer_of(host, run_id) == "Hello."
            assert await host.start("desk", "Hi", key="k") == StartedRun(run_id, False)

    in_time(work)


def test_a_run_that_waits_in_the_line_begins_nothing_that_would_be_cut_off():
    async def work():
        gate, asked = asyncio.Event(), []

        async def held(request):
            asked.append(request)
            await gate.wait()
            return "done"

        async with Host(MemoryJournal(), {"desk": Agent("desk", model=Script(held))}, max_runs=1) as host:
            runs = [(await host.start("desk", str(number))).run_id for number in range(2)]
            host.runs[runs[0]]._idle_seconds = 0
            await until(lambda: asked)
            for _ in range(100):
                await asyncio.sleep(0)
            assert len(asked) == 1
            gate.set()
            assert await answer_of(host, runs[1]) == "done"
            assert len(asked) == 2

    in_time(work)
