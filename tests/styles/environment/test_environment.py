"""Environments and their rounds."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from antiphon import Agent, Limits, Run, RunFailed, UserError, open_run
from antiphon.errors import DuplicateName
from antiphon.journal.memory import MemoryJournal
from antiphon.styles.environment import Action, Environment, Message, Role, Team
from antiphon.styles.environment.rounds import Routes
from antiphon.testing.invariants import check_run
from antiphon.values.message import Message as KernelMessage
from tests.styles.environment.ensemble import Diary, member, play, rounds_of, texts

# -- who gets what, and when it is over ------------------------------------------------------------------


def test_a_message_makes_its_reader_busy_until_it_is_read() -> None:
    diary: Diary = []
    role = member("B", diary, "work")
    env = Environment(roles=[role, member("C", diary, "play")])

    async def playing() -> None:
        async with env:
            for message in (Message("by tag", send_to="B"), Message("by topic", cause_by="work")):
                assert env.is_idle
                assert role.is_idle
                assert env.publish_message(message).recipients == ("B",)
                assert not env.is_idle
                assert not role.is_idle
                while not env.is_idle:
                    await env.run()

    asyncio.run(playing())
    assert diary == ["B: by tag", "B: by topic"]


def test_a_message_that_waits_for_its_turn_keeps_the_environment_busy() -> None:
    diary: Diary = []
    env = Environment(roles=[member("B", diary, "work")])

    async def playing() -> None:
        async with env:
            await rounds_of(env, Message("1", cause_by="work"), Message("2", cause_by="work"), rounds=1)
            assert diary == ["B: 1"]
            assert not env.is_idle
            assert not env.get_role("B").is_idle
            assert (await env.run()).outcome == "completed"
            assert env.is_idle

    asyncio.run(playing())
    assert diary == ["B: 1", "B: 2"]


def test_a_message_of_one_round_is_seen_in_the_next() -> None:
    diary: Diary = []
    env = Environment(
        roles=[member("A", diary, "go"), member("B", diary, "go", "A"), member("C", diary, "B")]
    )

    async def playing() -> list[Diary]:
        seen = []
        async with env:
            for _ in range(3):
                await rounds_of(env, *([Message("x", cause_by="go")] if not seen else []), rounds=1)
                seen.append(sorted(diary))
                diary.clear()
        return seen

    assert asyncio.run(playing()) == [["A: x", "B: x"], ["B: x", "C: x"], ["C: x"]]


@pytest.mark.parametrize(
    ("send_to", "recipients", "unknown"),
    [
        ("Nobody", (), ("Nobody",)),
        ({"B", "Bbo"}, ("B",), ("Bbo",)),
        ("<none>", (), ()),
        ("<all>", ("B",), ()),
    ],
)
def test_a_receipt_says_who_gets_a_message(
    send_to: Any, recipients: tuple[str, ...], unknown: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    env = Environment(roles=[member("B", []), member("C", [], "other")])
    receipt = env.publish_message(Message("x", id="7", send_to=send_to))
    assert (receipt.message, receipt.recipients, receipt.unknown) == ("7", (*recipients,), unknown)
    assert bool(receipt) == bool(recipients)
    said = [f"environment: nobody has the address {each}. Known: B, C" for each in unknown]
    assert caplog.messages == said
    assert texts(env.archive()) == ["x"]


def test_a_role_is_told_too(caplog: pytest.LogCaptureFixture) -> None:
    receipts: list[Any] = []

    class Shout(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
            receipts.append(self.role.rc.env.publish_message(Message("hey", send_to="Nobody")))
            return Message("done", send_to="<none>")

    result = play(Environment(roles=[Role(name="A", actions=[Shout])]), Message("go"))
    assert result.outcome == "completed"
    assert [receipt.unknown for receipt in receipts] == [("Nobody",)]
    assert caplog.messages == ["environment: nobody has the address Nobody. Known: A"]


def test_two_roles_of_one_name_are_refused() -> None:
    env = Environment(roles=[member("A", [])])
    with pytest.raises(DuplicateName, match="Two roles are named 'A'; names must differ"):
        env.add_role(member("A", []))
    with pytest.raises(DuplicateName, match="'environment'"):
        env.add_role(member("environment", []))
    assert env.role_names() == ["A"]


def test_one_failure_leaves_the_others_alone_and_is_named() -> None:
    diary: Diary = []

    def fails(news: str) -> str:
        raise ValueError(f"cannot {news}")

    env = Environment(
        roles=[
            member("A", diary, "go"),
            member("B", diary, "go", says=fails),
            member("C", diary, "go"),
            member("D", diary, "A", "C"),
        ]
    )

    async def playing() -> None:
        async with env:
            env.publish_message(Message("x", cause_by="go"))
            with pytest.raises(RunFailed, match=r"^B: ValueError: cannot x$") as failed:
                await env.run(5)
            assert failed.value.result.outcome == "failed"
            assert not env.is_idle  # B's message waits for another try

    asyncio.run(playing())
    assert sorted(diary) == ["A: x", "B: x", "C: x", "D: x", "D: x"]


def test_a_failed_role_is_left_alone_until_the_next_run_and_loses_nothing() -> None:
    diary: Diary = []
    failures = ["once"]

    def fails_once(news: str) -> str:
        if failures:
            raise ValueError(failures.pop())
        return news

    env = Environment(roles=[member("B", diary, "go", says=fails_once), member("A", diary, "go")], laps=None)

    async def playing() -> None:
        async with env:
            await rounds_of(env, *(Message(each, cause_by="go") for each in "123"))
            assert sorted(diary) == ["A: 1", "A: 2", "A: 3", "B: 1"]
            result = await rounds_of(env)
            assert (result.outcome, env.is_idle) == ("completed", True)

    asyncio.run(playing())
    assert diary[4:] == ["B: 1", "B: 2", "B: 3"]


def ring(diary: Diary, **options: Any) -> Environment:
    roles = [member("B", diary, "D"), member("C", diary, "B"), member("D", diary, "C")]
    return Environment(roles=roles, **options)


STOPPED = "the limit of 3 laps stopped messages: 1 for B from D"


def test_a_ring_ends_at_the_limit_of_laps_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    diary: Diary = []
    result = play(ring(diary, laps=3), Message("x", cause_by="D", send_to="B"), rounds=None)
    assert [line[0] for line in diary] == list("BCDBCDBCD")
    assert (result.outcome, result.reason) == ("completed", STOPPED)
    assert [each for each in caplog.messages if "laps" in each] == [f"environment: {STOPPED}"]


@pytest.mark.parametrize("laps", [3, None])
def test_rounds_that_are_given_are_the_bound(laps: int | None, caplog: pytest.LogCaptureFixture) -> None:
    diary: Diary = []
    result = play(ring(diary, laps=laps), Message("x", cause_by="D", send_to="B"), rounds=50)
    assert (len(diary), result.outcome) == (50, "limit")
    assert result.reason == "50 rounds are over, and messages are unread"
    assert not [each for each in caplog.messages if "laps" in each and "goes round" not in each]


def test_a_team_does_the_rounds_that_it_is_given_or_all_that_there_are() -> None:
    async def playing(rounds: int | None) -> tuple[list[str], str]:
        diary: Diary = []
        crew = Team(env=ring(diary, laps=2))
        async with crew.env:
            crew.env.publish_message(Message("x", cause_by="D", send_to="B"))
            await crew.run(rounds)
            assert crew.result is not None
            return [line[0] for line in diary], crew.result.outcome

    assert asyncio.run(playing(10)) == (list("BCDBCDBCDB"), "limit")
    assert asyncio.run(playing(None)) == (list("BCDBCD"), "completed")


def test_a_number_of_rounds_and_no_number_are_not_given_together() -> None:
    with pytest.raises(
        UserError, match=r"run\(k=3, until_idle=True\): give a number of rounds or until_idle"
    ):
        asyncio.run(ring([]).run(3, until_idle=True))


def test_laps_are_counted_across_runs() -> None:
    diary: Diary = []
    env = ring(diary, laps=2)

    async def playing() -> int:
        count = 0
        async with env:
            env.publish_message(Message("x", cause_by="D", send_to="B"))
            while not env.is_idle:
                await env.run()
                count += 1
        return count

    assert asyncio.run(playing()) == 7
    assert [line[0] for line in diary] == list("BCDBCD")


def test_a_chain_has_laps_of_its_own() -> None:
    diary: Diary = []
    many = [Message(str(number), cause_by="D", send_to="B") for number in range(4)]
    play(ring(diary, laps=2), *many, rounds=None)
    assert diary.count("B: 0") == diary.count("B: 3") == 2


# -- timing makes no difference -------------------------------------------------------------------------


def slowly(order: tuple[int, ...], place: int) -> Callable[[], Awaitable[None]]:
    async def wait() -> None:
        for _ in range(order[place] * 3):
            await asyncio.sleep(0)

    return wait


class Late(Action):
    """Publishes before, between and after it lets others go first."""

    wait: Any = None

    async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
        key, news = self.role.key, self.role.rc.news[-1].content
        self.role.rc.env.publish_message(Message(f"{news}{key}1", cause_by=key))
        await self.wait()
        self.role.rc.env.publish_message(Message(f"{news}{key}2", cause_by=key))
        await self.wait()
        return Message(f"{news}{key}3", cause_by=key)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_the_trace_is_the_same_whoever_is_slow(order: tuple[int, ...]) -> None:
    def history(times: tuple[int, ...]) -> list[str]:
        watch = {"A": ["go"], "B": ["go", "A"], "C": ["A", "B"]}
        roles = [
            Role(name=name, actions=[Late(wait=slowly(times, place))], watch=topics)
            for place, (name, topics) in enumerate(watch.items())
        ]
        env = Environment(roles=roles, laps=1)
        play(env, Message("", cause_by="go"), rounds=100)
        return texts(env.archive())

    found = history(order)
    assert found == history((0, 0, 0))
    assert found[:8] == ["", "A1", "A2", "A3", "B1", "B2", "B3", "A1B1"]


def test_waits_for_people_hold_no_round() -> None:
    diary: Diary = []
    answer = asyncio.Event()

    class Ask(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
            said = await self.ctx.ask_user("May I?")
            diary.append(f"H: {said}")
            return Message(said, cause_by="H")

    async def on_input(message: KernelMessage) -> str:
        await answer.wait()
        return "you may"

    def last(news: str) -> str:
        if news == "xABC":
            answer.set()
        return news

    roles = [
        Role(name="H", actions=[Ask], watch=["go"]),
        member("A", diary, "go", says=lambda news: news + "A"),
        member("B", diary, "A", "H", says=lambda news: news + "B"),
        member("C", diary, "B", says=lambda news: last(news + "C")),
    ]
    env = Environment(roles=roles, on_input=on_input)
    result = play(env, Message("x", cause_by="go"))
    assert result.outcome == "completed"
    assert diary == ["A: x", "B: xA", "C: xAB", "H: you may", "B: you may", "C: you mayB"]


# -- what is refused, and what is not lost by it ---------------------------------------------------------


def test_roles_are_added_before_the_first_run() -> None:
    diary: Diary = []
    env = Environment(roles=[member("A", diary, "go")])

    async def playing() -> None:
        async with env:
            await rounds_of(env, Message("x", cause_by="go"))
            with pytest.raises(
                UserError, match="Roles are added before the first run; close the environment"
            ):
                env.add_role(member("B", diary, "go"))
            assert (await rounds_of(env, Message("y", cause_by="go"))).outcome == "completed"

    asyncio.run(playing())
    assert diary == ["A: x", "A: y"]


def test_another_event_loop_is_refused() -> None:
    diary: Diary = []
    env = Environment(roles=[member("A", diary, "go")])
    with asyncio.Runner() as first:
        first.run(rounds_of(env, Message("x", cause_by="go")))
        env.publish_message(Message("y", cause_by="go"))
        with (
            asyncio.Runner() as second,
            pytest.raises(UserError, match="run in another event loop; close it there"),
        ):
            second.run(env.run())
        first.run(env.run())
        first.run(env.close())
    assert diary == ["A: x", "A: y"]


def test_a_message_that_is_not_json_is_refused_where_it_is_made() -> None:
    with pytest.raises(
        UserError, match=r"written as JSON at instruct_content\['deep'\]\[1\]\['deeper'\]: .*object"
    ):
        Message("x", instruct_content={"deep": [1, {"deeper": object()}]})
    with pytest.raises(UserError, match=r"written as JSON at metadata\['a'\]: "):
        Message("x", metadata={"a": object()})


def test_a_message_made_unwritable_later_fails_its_publisher_alone() -> None:
    class Spoil(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
            message = Message("x")
            message.metadata["bad"] = object()
            return message

    diary: Diary = []
    env = Environment(roles=[Role(name="S", actions=[Spoil]), member("A", diary, "UserRequirement")])
    env.set_addresses(env.get_role("A"), {"A"})
    result = play(env, Message("go", send_to={"S", "A"}))
    assert result.outcome == "failed"
    assert result.reason.startswith("S: UserError: Message ")
    assert "cannot be written as JSON" in result.reason
    assert diary == ["A: go"]


def test_more_messages_than_an_inbox_takes_are_said_to_be_dead() -> None:
    journal = MemoryJournal()

    class Flood(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
            for number in range(20):
                self.role.rc.env.publish_message(Message(str(number), cause_by="flood"))
            return Message("done", send_to="<none>")

    diary: Diary = []
    env = Environment(
        roles=[Role(name="F", actions=[Flood]), member("A", diary, "flood")],
        limits=Limits(inbox=5),
        journal=journal,
    )

    async def playing() -> None:
        async with env:
            result = await rounds_of(env, Message("go"))
            assert result.outcome == "completed"
            dead = [
                record.event
                for record in await (await env.open()).records()
                if getattr(record.event, "dead_letter", "")
            ]
            assert [each.message.content for each in dead] == [*map(str, range(5, 20)), "done"]
            assert {each.dead_letter for each in dead} == {
                "the inbox of environment is full (5 unread messages)"
            }
        await check_run(journal, env.run_id)

    asyncio.run(playing())
    assert diary == [f"A: {number}" for number in range(5)]


def test_data_that_is_not_its_own_goes_to_all_who_watch() -> None:
    diary: Diary = []
    env = Environment(roles=[member("A", diary)])

    async def playing() -> None:
        async with open_run(env.agents()) as opened:
            asked = await opened.post("environment", "x", data={"send_to": 7})
            assert (await opened.result(asked)).outcome == "completed"

    asyncio.run(playing())
    assert diary == ["A: x"]


@pytest.mark.impure("what is broken while it runs is whole again when it is replayed")
def test_a_rule_of_the_environment_that_raises_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    diary: Diary = []
    env = Environment(roles=[member("A", diary)])

    async def playing() -> None:
        async with env:
            with monkeypatch.context() as broken:
                broken.setattr(Routes, "concern", lambda *given: 1 / 0)
                result = await rounds_of(env, Message("x"))
            assert result.outcome == "failed"
            assert (
                result.reason
                == "the hook plan_turn of environment failed: ZeroDivisionError: division by zero"
            )
            assert (await env.run()).outcome == "completed"

    asyncio.run(playing())
    assert diary == ["A: x"]  # what could not be distributed was not lost


@pytest.mark.impure("where a role sits is kept in the environment, which has moved it for good")
def test_a_role_that_changes_its_topics_is_reached_by_the_new_ones_after_a_crash_too() -> None:
    class Turn(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
            self.role._watch({"second"})
            return Message("turned", send_to="<none>")

    diary: Diary = []
    journal = MemoryJournal()

    def team() -> list[Agent]:
        return Environment(
            roles=[Role(name="T", actions=[Turn], watch=["first"]), member("O", diary, "first")]
        ).agents()

    async def told(opened: Run, topic: str) -> list[str]:
        mail = [KernelMessage("forward", "user", "environment", topic, topic=topic)]
        await opened.result(await opened.post("environment", intent="rounds", inbox=mail))
        turns = [record.agent for record in await opened.records() if record.type == "TurnStarted"]
        return [name for name in turns if name in "TO"]

    async def playing() -> None:
        async with open_run(team(), journal=journal) as opened:
            run_id = opened.run_id
            assert sorted(await told(opened, "first")) == ["O", "T"]
        async with open_run(team(), journal=journal, run_id=run_id) as opened:
            assert sorted(await told(opened, "first")) == ["O", "O", "T"]
        async with open_run(team(), journal=journal, run_id=run_id) as opened:
            assert sorted(await told(opened, "second")) == ["O", "O", "T", "T"]

    asyncio.run(playing())


def test_the_journal_of_an_environment_is_in_order() -> None:
    journal = MemoryJournal()
    diary: Diary = []

    def odd(news: str) -> str:
        if news == "2":
            raise ValueError("two")
        return news

    env = Environment(
        roles=[member("A", diary, "go", says=odd), member("B", diary, "A", "B", consume="all")],
        journal=journal,
    )

    async def playing() -> None:
        async with env:
            await rounds_of(env, *(Message(str(number), cause_by="go") for number in range(4)))
            await rounds_of(env, rounds=1)
        await check_run(journal, env.run_id)

    asyncio.run(playing())
    assert diary[0] == "A: 0"
