"""A run as somebody has it who does not drive it: here, elsewhere, parked and closed."""

import asyncio
from contextlib import aclosing

import pytest

from antiphon import Agent, Hooks, Record, ReplyDelta, UserError, open_journal, open_run, tool
from antiphon.errors import UnknownName
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import EffectStarted, RunClosed
from antiphon.models.script import Script, call
from antiphon.values.hooks import DirectResult
from antiphon.values.model import Delta, Reply, Usage
from antiphon.view import connect
from tests.transcript import Gate, until


@tool(requires_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def ending(*replies):
    return Agent("a", model=Script(replies))


def in_time(talk):
    async def bounded():
        async with asyncio.timeout(20):
            return await talk()

    return asyncio.run(bounded())


async def seqs(events):
    async with aclosing(events):
        return [item.seq async for item in events if isinstance(item, Record)]


# -- watching -----------------------------------------------------------------------------------


def test_it_ends_with_the_run_and_shows_every_record_once(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    async def talk():
        async with open_run([ending("one", "two")], journal=url) as run:
            await run.result(await run.post("a", "first"))
            async with connect(url, run.run_id) as seen:
                watching = asyncio.ensure_future(seqs(seen.events()))
                late = asyncio.ensure_future(seqs(seen.events(5)))
                await run.result(await run.post("a", "second"))
                await run.close()
                return await watching, await late, run.seq

    whole, late, last = in_time(talk)
    assert whole == list(range(1, last + 1))
    assert late == list(range(6, last + 1))


def test_a_run_that_this_loop_drives_shows_its_pieces(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    class Writes:
        name = "writes"

        async def complete(self, request, emit):
            for text in ("one ", "two"):
                emit(Delta("text", text))
                await asyncio.sleep(0)
            return Reply("one two", usage=Usage(1, 1))

    async def talk():
        async with (
            open_run([Agent("a", model=Writes())], journal=url) as run,
            connect(url, run.run_id) as seen,
        ):
            said = []

            async def watch():
                async with aclosing(seen.events()) as events:
                    async for item in events:
                        said.append(item.text if isinstance(item, ReplyDelta) else item.type)

            watching = asyncio.ensure_future(watch())
            await until(run, "run started")
            await run.result(await run.post("a", "go"))
            await run.close()
            await watching
            return said

    said = in_time(talk)
    pieces = [each for each in said if each in ("one ", "two", "one two")]
    assert "".join(pieces) == "one two"
    assert said.index(pieces[-1]) < said.index("RunClosed")


def test_a_parked_run_is_waited_for_and_gone_on_with_by_whoever_drives_it():
    journal = MemoryJournal()

    async def talk():
        async with open_run([ending("one")], journal=journal) as run:
            await run.result(await run.post("a", "first"))
        async with connect(journal, run.run_id) as seen:
            watching = asyncio.ensure_future(seqs(seen.events()))
            await asyncio.sleep(0)
            async with open_run([ending("two")], journal=journal, run_id=run.run_id) as again:
                await again.result(await again.post("a", "second"))
            async with open_run([ending()], journal=journal, run_id=run.run_id) as last:
                await last.close()
            return await watching, last.seq

    found, last = in_time(talk)
    assert found == list(range(1, last + 1))


def test_a_closed_run_is_read_to_its_end():
    journal = MemoryJournal()

    async def talk():
        async with open_run([ending("one")], journal=journal) as run:
            await run.result(await run.post("a", "first"))
            await run.close("enough")
        async with connect(journal, run.run_id) as seen:
            assert await seqs(seen.events(run.seq)) == []
            assert await seqs(seen.events(run.seq - 1)) == [run.seq]
            with pytest.raises(UserError, match="is closed"):
                await seen.ask("a", "more")
            return await seen.records()

    assert isinstance(in_time(talk)[-1].event, RunClosed)


def test_the_tree_and_what_an_agent_saw_as_of_a_record():
    journal = MemoryJournal()

    async def talk():
        async with open_run([ending("one")], journal=journal) as run:
            await run.result(await run.post("a", "first"))
        async with connect(journal, run.run_id) as seen:
            asked = next(
                each.seq
                for each in await seen.records()
                if isinstance(each.event, EffectStarted) and each.event.id == "1/1.m1"
            )
            before, after = await seen.tree(asked), await seen.tree()
            view = await seen.view(1, asked)
            with pytest.raises(UnknownName):
                await seen.view(1)
            with pytest.raises(UnknownName):
                await seen.view(1, 1)
            return before, after, view

    before, after, view = in_time(talk)
    assert (before.state, after.state, after.outcome) == ("open", "idle", "completed")
    assert [each.content for each in view.messages] == ["first"]
    assert view.in_flight == ("1/1.m1",)


# -- asking -------------------------------------------------------------------------------------


def test_a_request_from_outside_learns_its_call_and_is_made_once():
    journal = MemoryJournal()

    async def talk():
        async with (
            open_run([ending("one", "two")], journal=journal) as run,
            connect(journal, run.run_id) as seen,
        ):
            first = await seen.ask("a", "go", key="mine")
            again = await seen.ask("a", "go", key="mine")
            id_of_call = await seen.taken(first)
            result = await run.result(id_of_call)
            unknown = await seen.taken(await seen.ask("nobody", "go"))
            return first == again, id_of_call, result.output, unknown

    assert in_time(talk) == (True, "0/1.c1", "one", "0/2.c1")


def test_approvals_and_questions_are_answered_from_outside():
    journal = MemoryJournal()
    model = Script([[call("pay", amount=3), call("call_agent", agent_name="user", message="Which?")], "done"])

    async def talk():
        agent = Agent("a", model=model, tools=[pay])
        async with (
            open_run([agent], journal=journal, interactive=True) as run,
            connect(journal, run.run_id) as seen,
        ):
            request = await run.post("a", "go")
            await until(run, "1/1.c2 wait question user started")
            asked = await seen.open_questions()
            with pytest.raises(UserError, match="yes, no or always"):
                await seen.answer("1/1.c1?", "perhaps")
            with pytest.raises(UserError, match="not an open question"):
                await seen.answer("1/1.c9", "x")
            yes = await seen.answer("1/1.c1?", "yes", by="ann")
            with pytest.raises(UserError, match="has an answer already"):
                await seen.answer("1/1.c1?", "no")
            blue = await seen.answer("1/1.c2", "blue")
            ended = [await seen.taken(yes), await seen.taken(blue)]
            result = await run.result(request)
            with pytest.raises(UserError, match="not an open question"):
                await seen.answer("1/1.c1?", "no")
            return asked, ended, result.output, await seen.records()

    asked, ended, output, records = in_time(talk)
    first = asked[0]
    assert (first.id, first.kind, first.tool, first.arguments) == (
        "1/1.c1?", "approval", "pay", '{"amount":3}',
    )  # fmt: skip
    assert (asked[1].kind, asked[1].agent, asked[1].text) == ("question", "a", "Which?")
    assert [each.rule for each in asked] == ["policy", ""]
    assert (ended, output) == (["1/1.c1?", "1/1.c2"], "done")
    assert "outsider ann" in [getattr(each.event, "decided_by", "") for each in records]


def test_what_comes_too_late_says_so():
    journal = MemoryJournal()

    async def talk():
        async with open_run([ending("one")], journal=journal) as run, connect(journal, run.run_id) as seen:
            request = await run.post("a", "go")
            await run.result(request)
            with pytest.raises(UserError, match=r"0/1\.c1 is not an open call"):
                await seen.taken(await seen.post(request, "one more thing"))
            assert await seen.taken(await seen.cancel()) == ""

    in_time(talk)


def test_a_run_is_cancelled_from_outside():
    journal, gate = MemoryJournal(), Gate("never")

    async def talk():
        async with open_run([ending(gate)], journal=journal) as run, connect(journal, run.run_id) as seen:
            request = await run.post("a", "go")
            await until(run, "1/1.m1 model started")
            await seen.taken(await seen.cancel(request, "enough"))
            return await run.result(request)

    assert in_time(talk).outcome == "cancelled"


def test_what_nobody_takes_in_waits_for_the_next_owner():
    journal = MemoryJournal()

    async def talk():
        async with open_run([ending("one")], journal=journal) as run:
            await run.result(await run.post("a", "first"))
        async with connect(journal, run.run_id) as seen:
            number = await seen.ask("a", "later")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await seen.taken(number)
            async with open_run([ending("two")], journal=journal, run_id=run.run_id) as again:
                return (await again.result(await seen.taken(number))).output

    assert in_time(talk) == "two"


# -- who may not be there -------------------------------------------------------------------------


def test_an_unknown_run_does_not_name_others(tmp_path):
    url = f"sqlite:///{tmp_path}/runs.db"

    async def talk():
        async with open_run([ending("one")], journal=url, run_id="secret", create=True):
            with pytest.raises(UnknownName) as unknown:
                async with connect(url, "mine"):
                    pass
            return str(unknown.value)

    assert "secret" not in in_time(talk)


def test_a_journal_that_is_not_there_is_not_made(tmp_path):
    async def talk():
        async with connect(f"sqlite:///{tmp_path}/rums.db", "r"):
            pass

    with pytest.raises(UserError, match=r"There is no journal at .*rums\.db"):
        in_time(talk)
    assert list(tmp_path.iterdir()) == []


def test_a_journal_that_was_given_stays_open():
    journal = MemoryJournal()

    async def talk():
        async with open_run([ending("one")], journal=journal) as run:
            async with connect(journal, run.run_id):
                pass
            return (await run.result(await run.post("a", "go"))).output

    assert in_time(talk) == "one"


def test_who_leaves_in_the_middle_leaves_nothing_behind():
    journal = MemoryJournal()

    async def talk():
        async with open_run([ending("one")], journal=journal) as run, connect(journal, run.run_id) as seen:
            async with aclosing(seen.events()) as events:
                async for _ in events:
                    break
            return run._runtime.feed.subscribers

    assert in_time(talk) == []


def test_another_journal_with_a_run_of_that_name_is_another_run(tmp_path):
    two = MemoryJournal()

    async def talk():
        one = open_journal(f"sqlite:///{tmp_path}/one.db")
        async with open_run([ending("one")], journal=one, run_id="r", create=True) as run:
            async with open_run([ending("two")], journal=two, run_id="r", create=True) as other:
                await other.close()
            await run.result(await run.post("a", "go"))
            async with connect(two, "r") as seen:
                found = [each.type for each in await seen.records()]
        await one.close()
        return found

    assert in_time(talk) == ["RunStarted", "RunClosed"]


@pytest.mark.parametrize(
    ("journal", "run_id", "after", "said"),
    [
        (3, "r", 0, r"connect\(journal\) takes a Journal or the URL of one; got 3"),
        (MemoryJournal(), 7, 0, r"connect\(run_id\) takes a text; got 7"),
        (None, "r", "x", r"RunConnection.events\(after\) takes a whole number; got 'x'"),
    ],
)
def test_what_is_of_another_type_is_refused_where_it_is_given(journal, run_id, after, said):
    async def talk():
        own = MemoryJournal()
        asked = connect(own if journal is None else journal, run_id)
        async with open_run([ending()], journal=own, run_id="r", create=True), asked as seen:
            seen.events(after)

    with pytest.raises(UserError, match=said):
        in_time(talk)


def test_a_tool_that_a_hook_answers_is_called_from_outside(tmp_path):
    """On a journal of its own, as another process has it; also while nobody drives the run."""
    url = f"sqlite:///{tmp_path}/runs.db"

    @tool(effect="read")
    async def plan(what: str) -> str:
        "Plan."
        return ""

    def answered(context, name, arguments):
        known = context.run_data.get("plan", [])
        if len(known) == 2:
            return DirectResult("the plan is full", "failed")
        return DirectResult("planned", run_data={"plan": [*known, arguments]})

    agent = Agent("a", model=Script(["done"]), tools=[plan], hooks=Hooks(intercept_call=answered))

    async def main():
        async with open_run([agent], journal=url) as run:
            run_id = run.run_id
            async with connect(url, run_id) as outside:
                first = await outside.taken(await outside.call("a", "plan", {"what": "b"}, by="ann"))
                with pytest.raises(UserError, match="The arguments of plan are not JSON"):
                    await outside.call("a", "plan", {"what": object()})
        async with connect(url, run_id) as outside:
            second = await outside.call("a", "plan", {"what": "c"}, key="once")
            assert await outside.call("a", "plan", {"what": "c"}, key="once") == second
            third = await outside.call("a", "plan", {"what": "d"})
            async with open_run([agent], journal=url, run_id=run_id):
                ended = [first, *[await outside.taken(each) for each in (second, third)]]
                tree = await outside.tree()
        return [tree.effects[each] for each in ended], tree

    effects, tree = asyncio.run(main())
    assert [(each.outcome, each.content or each.reason) for each in effects] == [
        ("completed", "planned"), ("completed", "planned"), ("failed", "the plan is full"),
    ]  # fmt: skip
    assert [each.decision.by for each in effects] == ["outsider ann", "outsider", "outsider"]
    assert tree.data is None
    assert tree.activations[0].data == {"plan": ['{"what":"b"}', '{"what":"c"}']}
