"""Roles. And what roles refuse."""

import asyncio
from typing import Any

import pytest

from antiphon import RunFailed, UserError
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import QuestionEffect
from antiphon.models.script import Script
from antiphon.styles.environment import (
    Action,
    Environment,
    Message,
    Role,
    RoleReactMode,
    UserRequirement,
)
from antiphon.values.message import Message as KernelMessage
from tests.styles.environment.ensemble import Diary, member, play, rounds_of, texts

REQUIREMENT = "antiphon.styles.environment.roles.action.UserRequirement"


class Writer(Role):
    """A role whose addresses are its own."""


WRITER = f"{__name__}.Writer"


class Did(Action):
    """Notes that it was done; fails when a failure is left."""

    done: list[str]
    failures: int = 0

    async def run(self, with_messages: Any = None, **kwargs: Any) -> str:
        self.done.append(self.name)
        if self.failures:
            self.failures -= 1
            raise ValueError("no paper")
        return f"{self.name} of {len(with_messages)}"


class A1(Did):
    pass


class A2(Did):
    pass


def two(done: list[str], **fields: Any) -> Role:
    return Role(name="Two", actions=[A1(done=done), A2(done=done)], **fields)


# -- who it is ---------------------------------------------------------------------------------------


def test_addresses_are_the_class_and_the_name() -> None:
    assert Writer().addresses == {WRITER}
    assert Writer(name="Ann").addresses == {WRITER, "Ann"}
    assert Writer().rc.watch == {REQUIREMENT}
    assert Writer(watch=[A1, "news"]).rc.watch == {f"{__name__}.A1", "news"}


def test_a_role_without_a_name_goes_by_its_class() -> None:
    env = Environment(roles=[Writer()])
    assert env.role_names() == ["Writer"]
    assert isinstance(env.get_role("Writer"), Writer)
    assert env.get_role("Painter") is None


def test_addresses_may_be_set() -> None:
    diary: Diary = []
    role = member("Ann", diary, "nothing")
    env = Environment(roles=[role])
    env.set_addresses(role, {"poets"})
    assert env.get_addresses(role) == {"poets"}
    play(env, Message("to poets", send_to="poets"))
    assert diary == ["Ann: to poets"]


# -- what it reacts to --------------------------------------------------------------------------------


def test_without_news_it_does_nothing() -> None:
    done: list[str] = []
    assert asyncio.run(two(done).run()) is None
    result = play(Environment(roles=[two(done)]))
    assert (result.outcome, done) == ("completed", [])


def test_nothing_is_no_message() -> None:
    done: list[str] = []
    role = two(done)
    role.put_message(None)
    role.publish_message(None)
    env = Environment(roles=[role])
    assert not env.publish_message(None)
    role.put_message(None)
    role.publish_message(None)
    assert play(env).outcome == "completed"
    assert (done, env.archive()) == ([], [])


@pytest.mark.parametrize("send_to", ["Ann", "the class"])
def test_what_is_sent_to_it_is_handled_whatever_it_watches(send_to: str) -> None:
    heard: list[str] = []

    class Hear(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> str:
            heard.extend(texts(with_messages))
            return ""

    role = Writer(name="Ann", actions=[Hear], watch=["something else"])
    env = Environment(roles=[role])
    address = Writer if send_to == "the class" else send_to
    receipt = env.publish_message(Message("for you", send_to=address, cause_by="unheard of"))
    assert receipt.recipients == ("Ann",)
    play(env)
    assert heard == ["for you"]


def test_a_message_to_oneself_comes_back() -> None:
    said: list[str] = []

    class Again(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
            said.append(with_messages[-1].content)
            return Message(f"{with_messages[-1].content}'", send_to="<self>" if len(said) < 3 else "<none>")

    play(Environment(roles=[Writer(actions=[Again])]), Message("x", send_to=Writer))
    assert said == ["x", "x'", "x''"]


@pytest.mark.parametrize(
    ("consume", "reactions"),
    [
        ("one", [f"B: {number}" for number in range(1, 11)]),
        ("all", ["B: " + " + ".join(map(str, range(1, 11)))]),
    ],
)
def test_ten_messages_are_ten_reactions_or_one(consume: str, reactions: list[str]) -> None:
    diary: Diary = []
    env = Environment(roles=[member("B", diary, "work", consume=consume)])
    play(env, *(Message(str(number), cause_by="work") for number in range(1, 11)))
    assert diary == reactions


def test_an_equal_message_is_news_once() -> None:
    diary: Diary = []
    message = Message("x", id="1", cause_by="work")
    role = member("B", diary, "work")
    play(Environment(roles=[role]), message, message)
    assert diary == ["B: x"]
    assert texts(role.rc.memory.get()) == ["x", "x"]  # what it heard, and what it said


def test_one_that_listens_to_everything_remembers_it_and_reacts_to_its_own() -> None:
    diary: Diary = []
    role = member("B", diary, "work", observe_all_msg_from_buffer=True, consume="all")
    play(Environment(roles=[role]), Message("talk", cause_by="talk"), Message("do", cause_by="work"))
    assert diary == ["B: do"]
    assert texts(role.rc.memory.get())[:2] == ["talk", "do"]


# -- what it does, and in what order --------------------------------------------------------------------


def test_a_recovered_role_begins_with_the_state_it_was_in() -> None:
    done: list[str] = []
    model = Script(["0", "-1"])
    role = two(done, llm=model, recovered=True)
    role._set_react_mode("react", max_react_loop=2)
    role._set_state(1)
    play(Environment(roles=[role]), Message("go"))
    assert done == ["A2", "A1"]
    assert (model.asked, role.recovered, role.rc.state) == (1, False, -1)


@pytest.mark.parametrize("failing", [0, 1])
def test_after_a_failure_the_same_action_is_done_for_the_same_message(failing: int) -> None:
    done: list[str] = []
    role = two(done)
    role._set_react_mode("by_order")
    role.actions[failing].failures = 1

    async def playing() -> None:
        async with Environment(roles=[role]) as env:
            env.publish_message(Message("go"))
            with pytest.raises(RunFailed, match=r"^Two: ValueError: no paper$"):
                await env.run(5)
            assert role.rc.state == failing
            assert not env.is_idle
            assert "go" not in texts(role.rc.memory.get())
            result = await env.run(5)
            assert (result.outcome, env.is_idle, role.rc.state) == ("completed", True, -1)

    asyncio.run(playing())
    assert done == (["A1", "A1", "A2"] if failing == 0 else ["A1", "A2", "A2"])
    assert "go" in texts(role.rc.memory.get())


def test_what_a_failed_reaction_published_is_not_said() -> None:
    journal, failures = MemoryJournal(), ["once"]

    class Talk(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> str:
            first = Message(f"said before, {len(failures)} failures left", send_to="<none>")
            self.role.rc.memory.add(first)
            self.role.rc.env.publish_message(first)
            if failures:
                raise ValueError(failures.pop())
            return "said at last"

    async def playing(**options: Any) -> tuple[list[str], list[str], str]:
        role = Role(name="T", actions=[Talk])
        async with Environment(roles=[role], journal=journal, **options) as env:
            result = await rounds_of(env, *([] if options else [Message("go")]))
            return texts(env.archive()), texts(role.rc.memory.get()), result.run_id

    async def both() -> None:
        said, kept, run_id = await playing()
        assert (said, kept) == (["go"], ["said before, 1 failures left"])
        said, kept, _ = await playing(run_id=run_id)
        assert said == ["go", "said before, 0 failures left", "said at last"]
        assert kept == ["said before, 1 failures left", *said]

    asyncio.run(both())


def test_what_it_remembered_from_the_start_outlives_a_reaction_that_was_cut_off() -> None:
    cuts = ["once"]

    class Stop(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> str:
            if cuts:
                await (await env.open()).cancel(self.ctx.effect_id, cuts.pop())
                await asyncio.Event().wait()
            return " + ".join(texts(with_messages))

    role = Role(name="S", actions=[Stop])
    role.rc.memory.add(Message("from the start"))
    env = Environment(roles=[role])

    async def playing() -> None:
        async with env:
            assert (await rounds_of(env, Message("go"))).outcome == "cancelled"
            assert (await env.run()).outcome == "completed"

    asyncio.run(playing())
    assert env.archive()[-1].content == "from the start + go"


def test_by_order_does_each_once() -> None:
    done: list[str] = []
    role = two(done)
    role._set_react_mode("by_order")
    env = Environment(roles=[role])
    play(env, Message("go"))
    assert done == ["A1", "A2"]
    assert role.rc.state == -1
    assert texts(role.rc.memory.get()) == ["go", "A1 of 1", "A2 of 2"]
    assert texts(env.archive()) == ["go", "A2 of 2"]


@pytest.mark.parametrize("said", ["-1", "I am done.", "7", ""])
def test_a_model_that_names_no_action_ends_it(said: str) -> None:
    done: list[str] = []
    env = Environment(roles=[two(done)], model=Script([said]))
    result = play(env, Message("go"))
    assert (result.outcome, done) == ("completed", [])
    assert texts(env.archive()) == ["go"]


def test_a_model_chooses_up_to_the_limit() -> None:
    done: list[str] = []
    model = Script(["0", "I choose 1.", "1", "0"])
    role = two(done, llm=model)
    role._set_react_mode("react", max_react_loop=3)
    play(Environment(roles=[role]), Message("go"))
    assert done == ["A1", "A2", "A2"]
    first, second, _ = (request.messages[-1].content for request in model.requests)
    assert "0. A1\n1. A2" in first
    assert "None was done yet." in first
    assert "The last one done was 0." in second
    assert "go" in first


def test_an_unknown_react_mode_lists_the_three() -> None:
    with pytest.raises(UserError, match="react mode is one of react, by_order, plan_and_act; got 'dream'"):
        Role()._set_react_mode("dream")
    assert RoleReactMode.values() == ["react", "by_order", "plan_and_act"]


def test_a_role_that_plans_works_through_its_plan() -> None:
    dig = '{"task_id": "1", "instruction": "dig"}'
    plant = '{"task_id": "2", "dependent_task_ids": ["1"], "instruction": "plant"}'

    class Gardener(Role):
        async def _act_on_task(self, current_task: Any) -> Any:
            from antiphon.styles.environment import TaskResult

            return TaskResult(result=f"{current_task.instruction}: done", is_success=True)

    model = Script(["no plan at all", f"Here it is: [{dig}, {plant}]"])
    role = Gardener(name="G")
    role._set_react_mode("plan_and_act")
    env = Environment(roles=[role], model=model)
    play(env, Message("a tree"))
    assert env.archive()[-1].content == "dig\ndig: done\n\nplant\nplant: done"
    assert "could not be used: it holds no JSON list" in model.requests[1].messages[-1].content


# -- what comes of an action ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "content", "structured"),
    [("text", "text", None), (None, "", None), ({"a": [1]}, "", {"a": [1]}), (Message("m"), "m", None)],
)
def test_what_an_action_returns_becomes_a_message(found: Any, content: str, structured: Any) -> None:
    class Give(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> Any:
            return found

    env = Environment(roles=[Role(name="G", actions=[Give])])
    play(env, Message("go"))
    said = env.archive()[-1]
    assert (said.content, said.instruct_content) == (content, structured)
    assert said.sent_from == "G"
    assert said.cause_by.endswith(".Give")


def test_a_returned_message_keeps_what_it_says_caused_it() -> None:
    class Give(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> Any:
            return Message("m", cause_by=UserRequirement)

    env = Environment(roles=[Role(name="G", actions=[Give], watch=["start"])])
    play(env, Message("go", cause_by="start"))
    assert env.archive()[-1].cause_by == REQUIREMENT


# -- people -------------------------------------------------------------------------------------------


class Consult(Action):
    async def run(self, with_messages: Any = None, **kwargs: Any) -> str:
        return await self._aask(f"What about {with_messages[-1].content}?", ["Be brief."])


def test_a_human_role_is_asked_in_place_of_a_model() -> None:
    asked: list[str] = []

    async def on_input(message: KernelMessage) -> str:
        asked.append(f"{message.sender}: {message.content}")
        return "a person says so"

    model = Script([])
    role = Role(name="H", actions=[Consult], is_human=True)
    env = Environment(roles=[role], model=model, on_input=on_input)
    play(env, Message("tea"))
    assert asked == ["H: Be brief.\n\nWhat about tea?"]
    assert env.archive()[-1].content == "a person says so"
    assert model.asked == 0


def test_who_holds_the_run_may_answer_too() -> None:
    env = Environment(roles=[Role(name="H", actions=[Consult], is_human=True)], interactive=True)

    async def answering() -> None:
        opened = await env.open()
        async for record in opened.events(deltas=False):
            if isinstance(getattr(record.event, "detail", None), QuestionEffect):
                await opened.answer(record.event.id, "from the conversation")
                return

    async def playing() -> None:
        async with env:
            await env.open()
            async with asyncio.TaskGroup() as group:
                group.create_task(answering())
                await rounds_of(env, Message("tea"))

    asyncio.run(playing())
    assert env.archive()[-1].content == "from the conversation"


def test_nobody_there_to_answer_fails_the_role_that_asks() -> None:
    env = Environment(roles=[Role(name="H", actions=[Consult], is_human=True)])
    result = play(env, Message("tea"))
    assert (result.outcome, result.reason) == ("failed", "H: nobody is there to answer")


def test_an_action_may_ask_a_model_of_its_own() -> None:
    own, roles = Script(["from its own"]), Script([])
    role = Role(name="R", actions=[Consult(llm_name_or_type=own)], llm=roles)
    env = Environment(roles=[role])
    play(env, Message("tea"))
    assert env.archive()[-1].content == "from its own"
    assert roles.asked == 0


# -- what it refuses ------------------------------------------------------------------------------------


def test_what_makes_no_role_is_refused() -> None:
    class Undone(Action):
        pass

    with pytest.raises(UserError, match="R: the action Undone has no `run`; write one"):
        Role(name="R", actions=[Undone])
    with pytest.raises(UserError, match="an action is an Action or a subclass of it; got 'A1'"):
        Role(name="R", actions=["A1"])
    with pytest.raises(UserError, match=r"R: a topic is an Action's class or a text; got 7"):
        Role(name="R", watch=[7])
    with pytest.raises(UserError, match=r"a topic is an Action's class or a text; got .*Role"):
        Role(name="R", watch=[Role])
    with pytest.raises(UserError, match="R is not reacting to anything now"):
        _ = Role(name="R").ctx
    with pytest.raises(UserError, match="A1 belongs to no role"):
        asyncio.run(A1()._aask("?"))


def test_run_by_hand_it_reacts_once_on_its_own() -> None:
    done: list[str] = []
    role = Role(name="R", actions=[A1(done=done)])
    assert str(asyncio.run(role.run("one"))) == "assistant: A1 of 1"
    assert str(asyncio.run(role.run(["two", "lines"]))) == "assistant: A1 of 3"
    assert texts(role.rc.memory.get()) == ["one", "A1 of 1", "two\nlines", "A1 of 3"]
    role.put_message(Message("left for it"))
    assert not role.is_idle
    assert str(asyncio.run(role.run())) == "assistant: A1 of 5"
    assert role.is_idle


def test_run_by_hand_a_failure_loses_no_message() -> None:
    done: list[str] = []
    role = Role(name="R", actions=[A1(done=done, failures=1)])
    with pytest.raises(RunFailed, match="no paper"):
        asyncio.run(role.run("one"))
    assert str(asyncio.run(role.run())) == "assistant: A1 of 1"
    assert texts(role.rc.memory.get()) == ["one", "A1 of 1"]
