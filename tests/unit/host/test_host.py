"""Runs of a host: started, let go of, taken up, waited for, left."""

import asyncio
from contextlib import aclosing

import pytest

from antiphon import Agent, Limits, ToolContext, UserError, open_run, tool
from antiphon.errors import RunInUse, UnknownName
from antiphon.host import Host
from antiphon.host.host import HostReadsOnly
from antiphon.journal import open_journal
from antiphon.journal.listing import Labels
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.view import connect
from tests.unit.host.hosts import answer_of, desk, in_time, pay, rested, until


def test_a_run_of_a_team_by_name():
    async def work():
        async with Host(MemoryJournal(), {"desk": desk("Hello.")}) as host:
            started = await host.start("desk", "Hi", labels=Labels(owner="ada", project="one"))
            assert await answer_of(host, started.run_id) == "Hello."
            assert (await host.info(started.run_id)).labels == Labels("one", "ada", "desk")
            assert host.runs[started.run_id].state == "running"

    in_time(work)


def test_a_run_at_rest_is_let_go_and_taken_up_when_something_is_posted():
    clock = VirtualClock(autojump=False)

    async def work():
        async with Host(MemoryJournal(), {"desk": desk("one", "two")}, clock=clock) as host:
            run_id = (await host.start("desk", "first")).run_id
            assert await answer_of(host, run_id) == "one"
            await rested(host, clock, run_id)
            assert not (await host.info(run_id)).owner
            async with host.connect(run_id) as run:
                await run.ask("desk", "second")
            assert await answer_of(host, run_id, 2) in ("one", "two")

    in_time(work)


def test_a_question_outlives_its_owner_and_its_answer_takes_the_run_up():
    clock = VirtualClock(autojump=False)

    async def work():
        team = desk(call("pay", amount=3), "done", tools=[pay])
        async with Host(MemoryJournal(), {"desk": team}, clock=clock) as host:
            run_id = (await host.start("desk", "Pay 3")).run_id
            # It waits for a person, so no slot is kept for it.
            await rested(host, clock, run_id)
            async with host.connect(run_id) as run:
                asked = (await run.open_questions())[0]
                assert (asked.kind, asked.tool) == ("approval", "pay")
                await run.answer(asked.id, "yes", by="ada")
            assert await answer_of(host, run_id) == "done"

    in_time(work)


@pytest.mark.parametrize("contract", [{"effect": "idempotent"}, {"effect": "once", "reconcile": "resume"}])
def test_a_run_whose_tool_asks_in_its_middle_is_let_go_and_the_answer_takes_it_up(contract):
    clock = VirtualClock(autojump=False)

    @tool(**contract)
    async def order(ctx: ToolContext) -> str:
        """Order."""
        return await ctx.ask_user("Which?")

    async def work():
        team = desk(call("order"), "done", tools=[order])
        async with Host(MemoryJournal(), {"desk": team}, clock=clock) as host:
            run_id = (await host.start("desk", "Order")).run_id
            await rested(host, clock, run_id)
            async with host.connect(run_id) as run, aclosing(run.events()) as events:
                (allowed,) = await run.open_questions()
                await run.answer(allowed.id, "yes", by="ada")
                async for _ in events:
                    if any(each.kind == "question" for each in await run.open_questions()):
                        break
            await rested(host, clock, run_id)
            async with host.connect(run_id) as run:
                (asked,) = await run.open_questions()
                await run.answer(asked.id, "tea", by="ada")
            assert await answer_of(host, run_id) == "done"

    in_time(work)


def test_a_deadline_takes_a_run_at_rest_up():
    clock = VirtualClock(autojump=False)

    async def work():
        team = desk(call("pay", amount=3), "done", tools=[pay])
        async with Host(MemoryJournal(), {"desk": team}, clock=clock) as host:
            run_id = (await host.start("desk", "Pay 3", limits=Limits(timeout_seconds=3_600))).run_id
            await rested(host, clock, run_id)
            assert (await host.info(run_id)).owner == ""
            clock.advance(3_600)
            async with host.connect(run_id) as run, aclosing(run.events(deltas=False)) as events:
                # It goes off though the run was let go; the person is still waited for.
                async for _ in events:
                    timers = [each for each in (await run.tree()).effects.values() if each.is_timer]
                    if timers and timers[0].ended_at is not None:
                        break
                assert [each.kind for each in await run.open_questions()] == ["approval"]

    in_time(work)


def test_what_a_host_left_open_the_next_one_takes_up(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    async def work():
        gate, reached = asyncio.Event(), asyncio.Event()

        @tool(effect="read")
        async def look() -> str:
            """Look."""
            reached.set()
            await gate.wait()
            return "seen"

        replies = [call("look"), "done"]
        async with Host(url, {"desk": desk(*replies, tools=[look])}, drain_seconds=0) as host:
            run_id = (await host.start("desk", "Go")).run_id
            await reached.wait()
        assert host.runs[run_id].is_done
        gate.set()
        async with Host(url, {"desk": desk(*replies, tools=[look])}) as host:
            assert await answer_of(host, run_id) == "done"

    in_time(work)


# -- what others left, and what others drive ----------------------------------------------------------


def test_a_host_takes_up_what_another_one_leaves(tmp_path):
    url, clock = f"sqlite:///{tmp_path}/runs.db", VirtualClock(autojump=False)

    async def work():
        asked = asyncio.Event()

        async def hangs(request):
            asked.set()
            await asyncio.Event().wait()

        async with Host(url, {"desk": desk("Hello.")}, clock=clock) as second:
            async with Host(url, {"desk": Agent("desk", model=Script(hangs))}, drain_seconds=0) as first:
                run_id = (await first.start("desk", "Hi")).run_id
                await asked.wait()
                clock.advance(15)
                for _ in range(100):
                    await asyncio.sleep(0)
                assert run_id not in second.runs, "it is driven"

            async def ended(run):
                async with aclosing(run.events()) as events:
                    async for _ in events:
                        if (await run.tree()).outcome:
                            break

            # By its own survey: nobody asks the host for this run.
            async with connect(url, run_id) as run:
                reading = asyncio.create_task(ended(run))
                while not reading.done():
                    # The survey that is under way now, if one is, does not find it yet.
                    clock.advance(15)
                    await asyncio.sleep(0)
                await reading
                assert (await run.tree()).activations[1].content == "Hello."

    in_time(work)


def test_what_cannot_be_driven_is_not_tried_again_and_again(tmp_path):
    url, clock = f"sqlite:///{tmp_path}/runs.db", VirtualClock(autojump=False)

    async def work():
        asked = asyncio.Event()

        async def hangs(request):
            asked.set()
            await asyncio.Event().wait()

        async with Host(url, {"old": Agent("desk", model=Script(hangs))}, drain_seconds=0) as host:
            run_id = (await host.start("old", "Hi")).run_id
            await asked.wait()
        async with Host(url, {"desk": desk("Hello.")}, clock=clock) as host:
            before = host.runs[run_id]
            async with host.connect(run_id):
                clock.advance(40)
                run = (await host.start("desk", "Hi")).run_id
                assert await answer_of(host, run) == "Hello."
            assert host.runs[run_id] is before

    in_time(work)


def test_a_run_of_a_team_that_is_gone_stays_suspended_and_says_why(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    async def work():
        asked = asyncio.Event()

        async def hangs(request):
            asked.set()
            await asyncio.Event().wait()

        async with Host(url, {"old": Agent("desk", model=Script(hangs))}, drain_seconds=0) as host:
            run_id = (await host.start("old", "Hi")).run_id
            await asked.wait()
        async with Host(url, {"new": desk("Hello.")}) as host:
            hosted = host.runs[run_id]
            assert (hosted.state, hosted.run) == ("suspended", None)
            assert hosted.reason == "It is a run of the team old, which is not here. Here: new"
            await host.resume(run_id, "new")
            assert await answer_of(host, run_id) == "Hello."

    in_time(work)


def test_a_run_that_no_host_has_started_is_left_alone_until_somebody_resumes_it(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    async def work():
        asked = asyncio.Event()

        async def hangs(request):
            asked.set()
            await asyncio.Event().wait()

        async with open_run([Agent("desk", model=Script(hangs))], journal=url) as run:
            await run.post("desk", "Hi")
            await asked.wait()
            run_id = run.run_id
        teams = {"desk": desk("Hello."), "two": [desk("x"), Agent("other", model=Script(["y"]))]}
        async with Host(url, teams) as host:
            assert run_id not in host.runs
            with pytest.raises(UserError, match="2 teams have the agents"):
                await host.resume(run_id)
            await host.resume(run_id, "desk")
            assert await answer_of(host, run_id) == "Hello."
            await host.close(run_id, "enough")
            with pytest.raises(UserError, match="is closed; nothing can follow"):
                await host.resume(run_id)

    in_time(work)


def test_a_run_that_somebody_else_drives_is_watched_answered_and_not_taken(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    async def work():
        other = open_journal(url)
        async with Host(url, {"desk": desk("x")}) as host:
            team = [desk(call("pay", amount=3), "done", tools=[pay])]
            async with open_run(team, journal=other, policy="guarded") as run:
                call_id = await run.post("desk", "Pay 3")
                async with host.connect(run.run_id) as seen, aclosing(seen.events()) as events:
                    async for _ in events:
                        if asked := await seen.open_questions():
                            break
                    await seen.answer(asked[0].id, "yes")
                assert (await run.result(call_id)).output == "done"
                with pytest.raises(RunInUse):
                    await host.resume(run.run_id)
                with pytest.raises(RunInUse):
                    await host.delete(run.run_id)
                assert run.run_id not in host.runs
        await other.close()

    in_time(work)


def test_what_another_process_posts_takes_up_a_run_at_rest(tmp_path):
    url, clock = f"sqlite:///{tmp_path}/runs.db", VirtualClock(autojump=False)

    async def work():
        async with Host(url, {"desk": desk("one", "two")}, clock=clock) as host:
            run_id = (await host.start("desk", "first")).run_id
            assert await answer_of(host, run_id) == "one"
            await rested(host, clock, run_id)
            async with connect(url, run_id) as outside:
                number = await outside.ask("desk", "second")
                assert await outside.taken(number) == "0/2.c1"

    in_time(work)


# -- the end --------------------------------------------------------------------------------------------


def test_a_run_is_closed_and_deleted():
    async def work():
        journal = MemoryJournal()
        async with Host(journal, {"desk": desk("Hello.")}) as host:
            run_id = (await host.start("desk", "Hi")).run_id
            assert await answer_of(host, run_id) == "Hello."
            await host.close(run_id, "enough")
            async with host.connect(run_id) as run:
                assert (await run.tree()).reason == "enough"
            await host.delete(run_id)
            assert not await journal.runs()
            assert not host.runs
            with pytest.raises(UnknownName):
                await host.delete(run_id)

    in_time(work)


def test_a_run_at_work_is_not_deleted():
    async def work():
        asked = asyncio.Event()

        async def hangs(request):
            asked.set()
            await asyncio.Event().wait()

        async with Host(
            MemoryJournal(), {"desk": Agent("desk", model=Script(hangs))}, drain_seconds=0
        ) as host:
            run_id = (await host.start("desk", "Hi")).run_id
            await asked.wait()
            with pytest.raises(RunInUse):
                await host.delete(run_id)
            await host.close(run_id)
            await host.delete(run_id)

    in_time(work)


def test_a_drain_waits_for_what_is_in_flight_and_names_what_it_cut_off(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    async def work():
        gate, asked = asyncio.Event(), []

        async def held(request):
            asked.append(request)
            await gate.wait()
            return "done"

        async with Host(url, {"desk": Agent("desk", model=Script(held))}) as host:
            quick = (await host.start("desk", "Hi")).run_id
            await until(lambda: asked)
            draining = asyncio.ensure_future(host.drain(5))
            for _ in range(20):
                await asyncio.sleep(0)
            with pytest.raises(UserError, match="being left"):
                await host.start("desk", "More")
            gate.set()
            assert await draining == ()
            async with connect(url, quick) as run:
                records = await run.records()
        types = [each.type for each in records]
        assert "EffectFinished" in types[types.index("DrainStarted") :], "the reply that was on its way"
        gate.clear()
        async with Host(url, {"desk": Agent("desk", model=Script(held))}) as host:
            slow = (await host.start("desk", "Hi")).run_id
            await until(lambda: len(asked) == 2)
            assert await host.drain(0) == (slow,)

    in_time(work)


def test_a_fault_in_a_team_is_the_reason_of_its_run_alone():
    async def work():
        class Broken:
            name = "broken"

            async def complete(self, request, emit):
                return "never asked"

            @property
            def window(self):
                raise ZeroDivisionError("no window")

        teams = {"desk": desk("Hello."), "bad": Agent("b", model=Broken())}
        async with Host(MemoryJournal(), teams) as host:
            with pytest.raises(ZeroDivisionError):
                await host.start("bad", "Hi")
            run_id = (await host.start("desk", "Hi")).run_id
            assert await answer_of(host, run_id) == "Hello."

    in_time(work)


def test_a_fork_is_driven_once_something_is_posted_in_it():
    async def work():
        journal = MemoryJournal()
        async with Host(journal, {"desk": desk("one", "two")}) as host:
            run_id = (await host.start("desk", "first", labels=Labels(owner="ada", project="p"))).run_id
            await answer_of(host, run_id)
            made = await host.fork(run_id, labels=Labels("p", "bob", "desk"))
            assert (await host.info(made.run_id)).labels == Labels("p", "bob", "desk")
            async with host.connect(made.run_id) as run:
                await run.ask("desk", "second")
            assert await answer_of(host, made.run_id, 2) in ("one", "two")
        # The next host watches both, as it does any run.
        async with Host(journal, {"desk": desk("three")}) as host:
            async with host.connect(made.run_id) as run:
                await run.ask("desk", "third")
            assert await answer_of(host, made.run_id, 3) == "three"
        async with Host(journal, {"desk": desk("x")}, drives=False) as host:
            with pytest.raises(HostReadsOnly):
                await host.fork(run_id)

    in_time(work)
