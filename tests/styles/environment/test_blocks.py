"""Its examples with only their import lines changed, its placeholders defined.

The document's requirement is that B does ten subtasks, and that three steps happen three to four times: so
B reacts to every one of the ten, and the ring ends at the limit of laps: all is done, and the log says so.
"""

# ruff: noqa: E501, RUF013, UP006, UP035 - the blocks are the design document's own

import asyncio
from typing import List

import pytest

from antiphon.models.script import Script
from antiphon.styles.environment import (
    MESSAGE_ROUTE_TO_ALL,
    MESSAGE_ROUTE_TO_NONE,
    Action,
    Context,
    Environment,
    Message,
    Role,
    UserRequirement,
)

SUBTASKS = [f"subtask {number}" for number in range(1, 11)]


def split_10_subtask(requirement: str) -> List[str]:
    assert requirement == "New user requirements"
    return list(SUBTASKS)


# fmt: off
class AgentAAction(Action):
    async def run(self, with_messages: List[Message] = None, **kwargs) -> List[str]:
        subtasks: List[str] = split_10_subtask(with_messages[0].content)
        return subtasks


class AgentA(Role):
    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        # Initialize actions specific to the Architect role
        self.set_actions([AgentAAction]) # Since the agent has only one action, there's no need to modify the `Role._think` function.

        # Subscribe to messages
        self._watch({UserRequirement}) # `UserRequirement` is the default value for the `cause_by` attribute in `Message`.

    async def _act(self) -> Message:
        subtasks = await self.rc.todo.run(self.rc.history)
        for i in subtasks:
           self.rc.env.publish_message(Message(content=i, cause_by=AgentAAction)) # Send 10 messages of this type; Agent B subscribes to this type of message
        return Message(content="dummy message", send_to=MESSAGE_ROUTE_TO_NONE) # Since the messages have been sent, returning an empty message is sufficient.


class AgentDAction(Action):
    async def run(self, with_messages: List[Message] = None, **kwargs) -> Message:
        return await reaction(self, "reviewed", with_messages) # Fill the results into the `Message`.


class AgentBAction(Action):
    async def run(self, with_messages: List[Message] = None, **kwargs) -> Message:
        return await reaction(self, "done", with_messages) # Fill the results into the `Message`.


class AgentB(Role):
    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        # Initialize actions specific to the Architect role
        self.set_actions([AgentBAction]) # Since the agent only has one type of action, there is no need to modify the `Role._think` function.

        # Subscribe to messages
        self._watch({AgentAAction, AgentDAction})


class AgentCAction(Action):
    async def run(self, with_messages: List[Message] = None, **kwargs) -> Message:
        return await reaction(self, "compiled", with_messages) # Fill the results into the `Message`.


class AgentC(Role):
    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        # Initialize actions specific to the Architect role
        self.set_actions([AgentCAction]) # Since the agent only has one type of action, there is no need to modify the `Role._think` function.

        # Subscribe to messages
        self._watch({AgentBAction})


class AgentD(Role):
    def __init__(self, **kwargs) -> None:
        super().__init__(**kwargs)
        # Initialize actions specific to the Architect role
        self.set_actions([AgentDAction]) # Since the agent only has one type of action, there is no need to modify the `Role._think` function.

        # Subscribe to messages
        self._watch({AgentCAction})


# fmt: on
# -- what stands for the document's `...` ------------------------------------------------------------

heard: list[str] = []
ask_a_model = False


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    heard.clear()
    monkeypatch.setattr(f"{__name__}.ask_a_model", False, raising=False)
    # Context() reads config2.yaml from here.
    monkeypatch.chdir(tmp_path_factory.mktemp("here"))


async def reaction(action: Action, did: str, messages: List[Message]) -> Message:
    news = messages[-1].content
    heard.append(f"{type(action.role).__name__}: {news}")
    said = await action._aask(news) if ask_a_model else f"{did} ({news})"
    return Message(content=said)


def heard_by(name: str) -> list[str]:
    return [line.partition(": ")[2] for line in heard if line.startswith(name)]


# -- the blocks -----------------------------------------------------------------------------------


def test_message_structure() -> None:
    message = Message("text")
    assert message.id
    assert message.instruct_content is None
    assert message.role == "user"
    assert (message.cause_by, message.sent_from) == (
        "antiphon.styles.environment.roles.action.UserRequirement",
        "",
    )
    assert message.send_to == {MESSAGE_ROUTE_TO_ALL}


# fmt: off
async def the_environment() -> Environment:
    context = Context() # Load config2.yaml
    env = Environment(context=context)
    env.add_roles([AgentA(), AgentB(), AgentC(), AgentD()])
    env.publish_message(Message(content='New user requirements', send_to=AgentA)) # Send the user's message to Agent A to start the process.
    while not env.is_idle: # `env.is_idle` becomes True only when all agents have no new messages to process.
        await env.run()
    return env
# fmt: on


def test_every_subtask_is_done_three_times_and_then_it_is_over() -> None:
    async def playing() -> None:
        async with await the_environment() as env:
            said = [message.content for message in env.history.get()]
        assert said[0] == "New user requirements"
        assert len(said) == 1 + 10 + 1 + 90

    asyncio.run(playing())
    assert heard_by("AgentB")[:10] == SUBTASKS
    assert heard_by("AgentC")[:10] == [f"done ({each})" for each in SUBTASKS]
    assert heard_by("AgentD")[:10] == [f"compiled (done ({each}))" for each in SUBTASKS]
    assert heard_by("AgentB")[10:20] == [f"reviewed (compiled (done ({each})))" for each in SUBTASKS]
    assert [len(heard_by(name)) for name in ("AgentB", "AgentC", "AgentD")] == [30, 30, 30]


def test_all_at_once_it_is_completed_and_the_log_says_who_was_stopped(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def playing() -> None:
        async with Environment(context=Context(), roles=[AgentA(), AgentB(), AgentC(), AgentD()]) as env:
            env.publish_message(Message(content="New user requirements", send_to=AgentA))
            result = await env.run(until_idle=True)
            assert env.is_idle
        said = "the limit of 3 laps stopped messages: 10 for AgentB from AgentD"
        assert (result.outcome, result.reason) == ("completed", said)
        assert caplog.messages == [f"environment: {said}"]

    asyncio.run(playing())
    assert len(heard_by("AgentB")) == 30


@pytest.mark.parametrize("laps", [1, 2, 4])
def test_how_often_they_happen_is_said_by_laps(laps: int) -> None:
    async def playing() -> None:
        async with Environment(roles=[AgentA(), AgentB(), AgentC(), AgentD()], laps=laps) as env:
            env.publish_message(Message(content="New user requirements", send_to=AgentA))
            await env.run(until_idle=True)

    asyncio.run(playing())
    assert [len(heard_by(f"Agent{name}")) for name in "BCD"] == [10 * laps] * 3


def test_the_same_with_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{__name__}.ask_a_model", True)
    model = Script(
        {
            "AgentB": lambda request: f"done ({request.messages[-1].content})",
            "AgentC": lambda request: f"compiled ({request.messages[-1].content})",
            "AgentD": lambda request: f"reviewed ({request.messages[-1].content})",
        },
        agent=lambda request: request.system.partition("named ")[2].partition(",")[0].rstrip("."),
    )

    async def playing() -> None:
        roles = [AgentA(), AgentB(), AgentC(), AgentD()]
        async with Environment(roles=roles, model=model) as env:
            env.publish_message(Message(content="New user requirements", send_to=AgentA))
            result = await env.run(until_idle=True)
        assert result.outcome == "completed"

    asyncio.run(playing())
    assert model.asked == 90
    assert heard_by("AgentB")[:10] == SUBTASKS
    assert heard_by("AgentB")[10] == "reviewed (compiled (done (subtask 1)))"


def test_a_batch_is_one_reaction_where_that_is_wanted() -> None:
    async def playing() -> None:
        roles = [AgentA(), AgentB(consume="all"), AgentC(), AgentD()]
        async with Environment(roles=roles, laps=1) as env:
            env.publish_message(Message(content="New user requirements", send_to=AgentA))
            await env.run(until_idle=True)

    asyncio.run(playing())
    assert [len(heard_by(f"Agent{name}")) for name in "BCD"] == [1, 1, 1]
