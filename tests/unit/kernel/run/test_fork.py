"""A fork begins as another run did, where nothing is at work, and goes on by itself."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from antiphon import Agent, Limits, ModelError, Policy, RunLimits, Usage, UserError, open_run, tool
from antiphon.errors import RunInUse, UnknownName
from antiphon.journal import Journal, Labels, MemoryJournal
from antiphon.journal.sqlite import SqliteJournal
from antiphon.kernel.facts import summary
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.testing.invariants import check_journal
from antiphon.values.policy import Grant, StandingRule
from antiphon.view import ForkedRun, RunTree, connect, fork, keep_rule, standing_rules
from tests.transcript import Gate, line, until

DAY = 86_400.0


@tool(requires_approval=True)
def pay(who: str) -> str:
    """Pay somebody."""
    return f"paid {who}"


def talker(**options: Any) -> Agent:
    return Agent("a", "You talk.", context="continue", **options)


async def told(journal: Journal, *lines: str, run_id: str = "first", **options: Any) -> list[str]:
    """A conversation in which each line is answered by what was said so far."""
    answers = []
    model = Script(lambda request: "/".join(each.content for each in request.messages if each.role == "user"))
    async with open_run(
        [talker()], journal=journal, run_id=run_id, create=True, model=model, **options
    ) as run:
        for each in lines:
            answers.append((await run.result(await run.post("a", each))).output)
    return answers


async def seqs_of(journal: Journal, run_id: str, said: str) -> list[int]:
    async with connect(journal, run_id) as run:
        return [each.seq for each in await run.records() if line(each) == said]


async def lines_of(journal: Journal, run_id: str) -> list[str]:
    async with connect(journal, run_id) as run:
        return [line(each) for each in await run.records()]


def in_both(scene: Callable[[Journal], Awaitable[None]], tmp_path: Any) -> None:
    """Play a scene in memory and in a file; every run of it keeps the invariants."""

    async def main() -> None:
        for journal in (MemoryJournal(), SqliteJournal(tmp_path / "runs.db")):
            await scene(journal)
            await check_journal(journal)
            await journal.close()

    asyncio.run(main())


def test_a_conversation_goes_another_way_from_its_second_turn(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        assert await told(journal, "one", "two", "three") == ["one", "one/two", "one/two/three"]
        (end,) = await seqs_of(journal, "first", "0/2.c1 completed: one/two")
        before = await lines_of(journal, "first")
        made = await fork(journal, "first", end)
        assert made == ForkedRun(made.run_id, "first", end)
        assert await told(journal, "four", run_id=made.run_id) == ["one/two/four"]
        # The other branch is as it was, and goes on too.
        assert await lines_of(journal, "first") == before
        assert await told(journal, "five") == ["one/two/three/five"]
        async with connect(journal, made.run_id) as run:
            tree = await run.tree()
        assert (tree.run_id, tree.fork and tree.fork.origin, tree.fork and tree.fork.seq) == (
            made.run_id,
            "first",
            end,
        )
        # Blobs are shared: the other run may go.
        await journal.delete("first")
        assert await told(journal, "six", run_id=made.run_id) == ["one/two/four/six"]

    in_both(scene, tmp_path)


def test_a_fork_of_a_fork_knows_both(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        await told(journal, "one")
        second = await fork(journal, "first")
        await told(journal, "two", run_id=second.run_id)
        third = await fork(journal, second.run_id)
        assert await told(journal, "three", run_id=third.run_id) == ["one/two/three"]
        assert (await journal.info(third.run_id)).origin == "first"
        async with connect(journal, third.run_id) as run:
            assert (await run.tree()).fork.origin == second.run_id
        # Equal beginnings have equal digests.
        rows = [await journal.read(each) for each in ("first", second.run_id, third.run_id)]
        taken = sum(row.seq <= second.seq for row in rows[0])
        assert rows[0][:taken] == rows[1][:taken] == rows[2][:taken]

    in_both(scene, tmp_path)


def test_a_record_at_which_something_is_at_work_gives_the_last_one_before(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        await told(journal, "one", "two")
        (asked,) = await seqs_of(journal, "first", "1/2.m1 model started")
        (before,) = await seqs_of(journal, "first", "0/1.c1 completed: one")
        made = await fork(journal, "first", asked)
        assert (made.seq, made.at_work) == (before, ("1/2.m1",))
        # A record that ends no row is in the middle of something too.
        assert (await fork(journal, "first", before - 1)).seq < before - 1
        assert await told(journal, "other", run_id=made.run_id) == ["one/other"]

    in_both(scene, tmp_path)


def test_a_run_that_somebody_drives_is_forked_and_not_disturbed(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        gate = Gate("late")
        async with open_run([talker()], journal=journal, model=Script(["soon", gate], by="turn")) as run:
            await run.result(await run.post("a", "one"))
            request = await run.post("a", "two")
            await until(run, "1/2.m1 model started")
            await run.until_durable()
            made = await fork(journal, run.run_id)
            assert (made.seq < run.seq, made.at_work) == (True, ("1/2.m1",))
            assert await told(journal, "three", run_id=made.run_id) == ["one/three"]
            gate.open.set()
            assert (await run.result(request)).output == "late"

    in_both(scene, tmp_path)


def test_what_people_are_asked_is_answered_in_another_way(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        model = Script([call("pay", who="ann"), "done"], by="turn")

        async def answered(run_id: str, answer: str, create: bool = False) -> list[str]:
            options: Any = {"journal": journal, "run_id": run_id, "create": create, "model": model}
            async with open_run([Agent("a", tools=[pay])], **options) as run:
                if create:
                    await run.post("a", "go")
                    await until(run, "1/1.c1? wait approval pay started")
                if answer:
                    await run.answer("1/1.c1?", answer)
                    await run.result("0/1.c1")
                await run.until_durable()
            return await lines_of(journal, run_id)

        await answered("asks", "", create=True)
        made = await fork(journal, "asks")
        assert made.at_work == ()
        listed = summary.decode((await journal.info(made.run_id)).summary)
        assert (listed.state, [each.id for each in listed.questions]) == ("waiting", ["1/1.c1?"])
        assert "1/1.c1 completed: paid ann" in await answered("asks", "yes")
        assert "1/1.c1 completed: paid ann" not in await answered(made.run_id, "no")

    in_both(scene, tmp_path)


def test_a_closed_run_goes_on_in_a_fork(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        async with open_run(
            [talker()], journal=journal, run_id="first", create=True, model=Script(["1"])
        ) as run:
            await run.result(await run.post("a", "one"))
            await run.close()
        made = await fork(journal, "first")
        assert (made.seq, made.at_work) == ((await journal.info("first")).seq - 1, ())
        assert await told(journal, "two", run_id=made.run_id) == ["one/two"]

    in_both(scene, tmp_path)


def test_a_drained_run_is_forked_before_it_was(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        async with open_run(
            [talker()], journal=journal, run_id="first", create=True, model=Script(["1"])
        ) as run:
            await run.result(await run.post("a", "one"))
            await run.drain(0)
        made = await fork(journal, "first")
        assert made.seq == (await journal.info("first")).seq - 1
        assert await told(journal, "two", run_id=made.run_id) == ["one/two"]

    in_both(scene, tmp_path)


def test_time_stands_still_between_a_run_and_its_fork(tmp_path: Any) -> None:
    """What may take a minute, and rested for a day, has the rest of that minute."""

    async def scene(journal: Journal) -> None:
        failing = Script([ModelError("rate_limit", "busy", retry_after=30.0), "late"], by="turn")
        options: Any = {"journal": journal, "limits": Limits(timeout_seconds=60)}
        clock = VirtualClock(autojump=False)
        async with open_run(
            [talker()], run_id="first", create=True, model=failing, clock=clock, **options
        ) as run:
            request = await run.post("a", "one")
            await until(run, "1/1.w1 wait retry started")
            await run.until_durable()
        clock.advance(DAY)
        made = await fork(journal, "first", clock=clock)
        assert made.at_work == ()
        later = VirtualClock(clock.now())
        async with open_run(
            [talker()], run_id=made.run_id, model=Script(["late"]), clock=later, **options
        ) as run:
            assert str(await run.result(request)) == "late"
        assert later.now() - clock.now() == pytest.approx(30.0, abs=1.0)

    in_both(scene, tmp_path)


def test_what_was_allowed_spent_and_ruled_holds_in_the_fork(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        lines = [call("pay", who="ann"), "one", call("pay", who="bob"), "two"]
        model = Script(lines, by="turn", usage=Usage(10, 1))
        options: Any = {"journal": journal, "run_limits": RunLimits(tokens=100_000), "model": model}
        agent = talker(tools=[pay])
        async with open_run([agent], run_id="first", create=True, **options) as run:
            request = await run.post("a", "one")
            await until(run, "1/1.c1? wait approval pay started")
            await run.answer("1/1.c1?", "always")
            await run.result(request)
            assert run.usage["script"].total == 22
        rule = StandingRule("r1", "run", "first", "rm", "deny", Grant(), "ann", 1.0)
        assert await keep_rule(journal, rule)
        made = await fork(journal, "first")
        async with open_run([agent], run_id=made.run_id, **options) as run:
            assert run.usage["script"].total == 22
            assert (await run.result(await run.post("a", "two"))).output == "two"
        assert not await seqs_of(journal, made.run_id, "1/2.c1? wait approval pay started")
        (kept,) = await standing_rules(journal, run=made.run_id)
        assert (kept.tool, kept.verdict, kept.author) == ("rm", "deny", "ann")
        assert kept.id != "r1"
        assert [each.id for each in await standing_rules(journal, run="first")] == ["r1"]
        for each in await journal.rules():
            await journal.drop_rule(each.id)

    in_both(scene, tmp_path)


def test_a_fork_has_no_name_no_commands_and_labels_as_wanted(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        await told(journal, "one", labels=Labels("tides", "ann", "shore"))
        await journal.rename("first", "the first")
        await journal.post("first", "k", b"not a command of the fork")
        info = await journal.info((await fork(journal, "first")).run_id)
        assert (info.name, info.labels, info.posted) == ("", Labels("tides", "ann", "shore"), False)
        assert await journal.commands(info.run_id) == []
        other = await fork(journal, "first", labels=Labels("tides", "bob", "shore"))
        assert (await journal.info(other.run_id)).labels.owner == "bob"
        with pytest.raises(UserError, match="label owner"):
            await fork(journal, "first", labels=Labels("tides", "two\nlines", "shore"))

    in_both(scene, tmp_path)


def test_policy_of_the_last_owner_is_that_of_nobody_else(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        await told(journal, "one")
        await told(journal, "two", policy=Policy("guarded"))
        made = await fork(journal, "first")
        async with connect(journal, made.run_id) as run:
            (*_, last) = await run.records()
        assert last.event.policy == Policy("guarded")
        assert last.event.manifest

    in_both(scene, tmp_path)


def test_what_cannot_be_forked_says_so_and_leaves_nothing(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        await told(journal, "one")
        last = (await journal.info("first")).seq
        for at in (0, -1, last + 1):
            with pytest.raises(UserError, match=f"has the records 1 to {last}; got"):
                await fork(journal, "first", at)
        for at in ("3", 1.5, 1 << 70):
            with pytest.raises(UserError, match=r"fork\(at\)"):
                await fork(journal, "first", at)  # type: ignore[arg-type]
        with pytest.raises(UnknownName):
            await fork(journal, "nobody")
        lease = await journal.claim("empty", create=True)
        with pytest.raises(UserError, match="no record yet"):
            await fork(journal, "empty")
        await journal.release(lease)
        assert [each.run_id for each in await journal.runs()] == ["empty", "first"]

    in_both(scene, tmp_path)


def test_a_fork_has_one_owner_like_any_run(tmp_path: Any) -> None:
    async def scene(journal: Journal) -> None:
        await told(journal, "one")
        made = await fork(journal, "first")
        async with open_run([talker()], journal=journal, run_id=made.run_id, model=Script(["x"])):
            with pytest.raises(RunInUse):
                await told(journal, "two", run_id=made.run_id)
        # A run at rest that is forked twice at once has two forks.
        found = await asyncio.gather(*(fork(journal, "first") for _ in range(5)))
        assert len({each.run_id for each in found}) == 5

    in_both(scene, tmp_path)


def test_a_fork_reads_as_one_run() -> None:
    async def main() -> None:
        journal = MemoryJournal()
        await told(journal, "one")
        made = await fork(journal, "first")
        await told(journal, "two", run_id=made.run_id)
        async with connect(journal, made.run_id) as run:
            tree = RunTree.of(await run.records())
        assert [turn.number for turn in tree.user.turns][:2] == [1, 2]
        assert [each.outcome for each in tree.effects.values()] == ["completed"] * 4

    asyncio.run(main())
