"""Who reacts, and when: agents as they are, roles that wait for several messages, pools."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Hooks, Topics, UserError
from antiphon.errors import DuplicateName
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script
from antiphon.styles.environment import Action, Environment, Message, Role
from antiphon.testing.invariants import check_run
from antiphon.values.actions import ActionContext
from antiphon.values.hooks import PlannedCall, Return, TurnContext, TurnPlan
from tests.styles.environment.ensemble import Diary, Note, member, play, rounds_of, texts


def ten() -> list[Message]:
    return [Message(str(number), cause_by="work") for number in range(1, 11)]


# -- agents ------------------------------------------------------------------------------------


async def count(ctx: ActionContext) -> str:
    ctx.set("count", ctx.data.get("count", 0) + 1)
    return f"{ctx.data.get('count', 0) + 1}: {ctx.new_messages[0].content}"


def test_a_hired_agent_keeps_its_own_coroutine() -> None:
    counter = Agent("counter", hooks=Hooks(act=count), topics=Topics(watch=["work"]))
    diary: Diary = []
    env = Environment(roles=[counter, member("R", diary, "counter")])
    result = play(env, Message("a", cause_by="work"), Message("b", cause_by="work"))
    assert result.outcome == "completed"
    assert diary == ["R: 1: a", "R: 2: b"]
    assert [each.sent_from for each in env.archive()[2:4]] == ["counter", "counter"]


@pytest.mark.parametrize(("found", "said"), [(None, []), ({"a": [1]}, [{"a": [1]}]), (7, [7])])
def test_what_its_coroutine_returns_is_published(found: Any, said: list[Any]) -> None:
    async def act(ctx: ActionContext) -> Any:
        return found

    env = Environment(roles=[Agent("giver", hooks=Hooks(act=act), topics=Topics(watch=["work"]))])
    play(env, Message("a", cause_by="work"))
    assert [each.instruct_content for each in env.archive()[1:]] == said


def test_a_coroutine_may_ask_the_agents_model() -> None:
    async def twice(ctx: ActionContext) -> str:
        return f"{await ctx.ask_model('one')} and {await ctx.ask_model('two')}"

    asker = Agent("asker", hooks=Hooks(act=twice), topics=Topics(watch=["work"]))
    env = Environment(roles=[asker], model=Script(["first", "second"]))
    play(env, Message("a", cause_by="work"))
    assert texts(env.archive()) == ["a", "first and second"]


def test_a_hired_agent_keeps_its_own_plans_and_their_laps() -> None:
    def plan(context: TurnContext) -> TurnPlan:
        return TurnPlan([PlannedCall("expert", f"check {context.new_messages[0].content}")])

    def end(context: TurnContext) -> Return:
        return Return(output=f"checked: {context.results[0].content}")

    def stage(diary: Diary, journal: MemoryJournal) -> Environment:
        checker = Agent("checker", hooks=Hooks(plan_turn=plan, end_turn=end), topics=Topics(watch=["R"]))
        expert = Agent("expert", model=Script(lambda request: f"yes, {request.messages[-1].content}"))
        roles = [checker, member("R", diary, "checker", "go")]
        return Environment(roles=roles, agents=[expert], journal=journal, laps=2)

    async def playing(diary: Diary, journal: MemoryJournal) -> None:
        async with stage(diary, journal) as env:
            result = await rounds_of(env, Message("a", cause_by="go"), rounds=None)
            said = "the limit of 2 laps stopped messages: 1 for R from checker"
            assert (result.outcome, result.reason) == ("completed", said)
            assert [each.sent_from for each in env.archive()] == ["", "R", "checker", "R", "checker"]
        await check_run(journal, env.run_id)

    diary: Diary = []
    asyncio.run(playing(diary, MemoryJournal()))
    assert diary == ["R: a", "R: checked: yes, check a"]


def test_a_hired_agent_that_plans_answers_a_colleague_who_calls_it() -> None:
    def plan(context: TurnContext) -> TurnPlan:
        return TurnPlan()

    def end(context: TurnContext) -> Return:
        return Return(output="planned")

    class Consult(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> str:
            return f"it says: {await self.ctx.call('planner', 'well?')}"

    planner = Agent("planner", hooks=Hooks(plan_turn=plan, end_turn=end), topics=Topics(watch=["plan"]))
    env = Environment(roles=[planner, Role(name="R", actions=[Consult])])
    play(env, Message("a"))
    assert texts(env.archive()) == ["a", "it says: planned"]


# -- when all are there ------------------------------------------------------------------------


def test_a_role_that_joins_reacts_when_all_are_there() -> None:
    diary: Diary = []
    env = Environment(
        roles=[member("B", diary, "work"), member("C", diary, "B", join=10)],
        journal=(journal := MemoryJournal()),
    )

    async def playing() -> None:
        async with env:
            result = await rounds_of(env, *ten())
            assert (result.outcome, result.reason, env.is_idle) == ("completed", "", True)
        await check_run(journal, env.run_id)

    asyncio.run(playing())
    assert diary[10:] == ["C: " + " + ".join(map(str, range(1, 11)))]


def test_what_it_still_waits_for_is_said(caplog: pytest.LogCaptureFixture) -> None:
    diary: Diary = []
    env = Environment(roles=[member("B", diary, "work"), member("C", diary, "B", join=10)])
    said = "C has 7 of the 10 messages that it waits for"

    async def playing() -> None:
        async with env:
            result = await rounds_of(env, *ten()[:7], rounds=None)
            assert (result.outcome, result.reason, env.is_idle) == ("completed", said, True)
            assert [each for each in caplog.messages if "waits" in each] == [f"environment: {said}"]
            assert len(diary) == 7
            result = await rounds_of(env, *ten()[7:], rounds=None)
            assert (result.outcome, result.reason) == ("completed", "")

    asyncio.run(playing())
    assert diary[-1] == "C: " + " + ".join(map(str, range(1, 11)))


def test_nothing_is_said_of_what_it_waits_for_while_others_work(caplog: pytest.LogCaptureFixture) -> None:
    diary: Diary = []
    env = Environment(roles=[member("B", diary, "work"), member("C", diary, "B", join=10)])

    async def playing() -> None:
        async with env:
            for message in ten():
                env.publish_message(message)
            while not env.is_idle:
                await env.run()

    asyncio.run(playing())
    assert len(diary) == 11
    assert not [each for each in caplog.messages if "waits" in each]


def test_what_waits_is_there_in_another_process() -> None:
    journal = MemoryJournal()

    async def playing(diary: Diary, *messages: Message, **options: Any) -> str:
        env = Environment(roles=[member("C", diary, "work", join=10)], journal=journal, **options)
        async with env:
            await rounds_of(env, *messages, rounds=None)
        await check_run(journal, env.run_id)
        return env.run_id

    first: Diary = []
    run_id = asyncio.run(playing(first, *ten()[:4]))
    second: Diary = []
    asyncio.run(playing(second, *ten()[4:], run_id=run_id))
    assert (first, second) == ([], ["C: " + " + ".join(map(str, range(1, 11)))])


# -- several at once ---------------------------------------------------------------------------


class Together(Action):
    """Notes how many of it are at work at the same time."""

    busy: dict[str, int]

    async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
        self.busy["now"] += 1
        self.busy["most"] = max(self.busy["most"], self.busy["now"])
        for _ in range(20 - int(with_messages[-1].content)):
            await asyncio.sleep(0)
        self.busy["now"] -= 1
        return Message(f"{with_messages[-1].content} of {len(with_messages)}", cause_by="done")


def test_ten_messages_are_done_five_at_once() -> None:
    busy, diary = {"now": 0, "most": 0}, []
    pool = Role(name="B", actions=[Together(busy=busy)], watch=["work"], pool=5)
    env = Environment(roles=[pool, member("C", diary, "done", join=10)], journal=(journal := MemoryJournal()))

    async def playing() -> None:
        async with env:
            assert (await rounds_of(env, *ten(), rounds=2)).outcome == "limit"
            assert env.archive()[-1].sent_from == "B"
            assert (await rounds_of(env)).outcome == "completed"
        await check_run(journal, env.run_id)

    asyncio.run(playing())
    assert busy == {"now": 0, "most": 5}
    # Each has a memory of its own: the second message, after the first one and what was said to it.
    done = [f"{number} of 1" for number in range(1, 6)] + [f"{number} of 3" for number in range(6, 11)]
    assert diary == ["C: " + " + ".join(done)]


def test_a_pool_has_the_laps_of_one_role() -> None:
    diary: Diary = []
    env = Environment(roles=[member("B", diary, "C", pool=3), member("C", diary, "B")], laps=2)
    assert play(env, Message("x", cause_by="C", send_to="B"), rounds=None).outcome == "completed"
    assert [line[0] for line in diary] == list("BCBC")


def test_a_pool_goes_on_in_another_process_and_from_a_file(tmp_path: Any) -> None:
    journal, path = MemoryJournal(), tmp_path / "environment.json"

    def stage(diary: Diary, **options: Any) -> Environment:
        return Environment(roles=[member("B", diary, "work", pool=2)], **options)

    async def playing() -> list[Diary]:
        first: Diary = []
        second: Diary = []
        third: Diary = []
        env = stage(first, journal=journal)
        async with env:
            await rounds_of(env, *ten()[:6], rounds=1)
            env.serialize(path)
        async with stage(second, journal=journal, run_id=env.run_id) as again:
            await again.open()
            assert not again.get_role("B").is_idle
            await again.run(until_idle=True)
        restored = Environment.deserialize(path, roles=[Role], actions=[Note])
        for each in restored._casts.values():
            each.role.actions[0].diary = third
        async with restored:
            await restored.run(until_idle=True)
        return [first, second, third]

    found = [sorted(each) for each in asyncio.run(playing())]
    assert found == [["B: 1", "B: 2"], *[[f"B: {number}" for number in range(3, 7)]] * 2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"join": 0}, r"B: Role\(join=...\) is at least 1; got 0"),
        ({"pool": "5"}, r"Role\(pool=...\) takes a whole number; got '5'"),
        ({"join": 2, "pool": 2}, "B either waits for 2 messages or is a pool of 2"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(UserError, match=said):
        Environment(roles=[member("B", [], **options)])


def test_a_name_in_a_pool_is_taken() -> None:
    with pytest.raises(DuplicateName, match="'B#2'"):
        Environment(roles=[member("B#2", []), member("B", [], pool=2)])
