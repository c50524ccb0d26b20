"""Small programs as users of the origin write them, with only the import line that is ours.

They are our own, after what its documentation says such programs do: a team that builds, one agent that
builds and runs, a debate with roles of one's own, and one without any class.
"""

import asyncio
import logging
import re
from typing import Any

import pytest

from antiphon.models.script import Script
from antiphon.styles.environment import (
    Action,
    Context,
    Environment,
    Message,
    Role,
    RoleReactMode,
    Team,
    UserRequirement,
    logger,
)


@pytest.fixture(autouse=True)
def _log(caplog: pytest.LogCaptureFixture, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # Context() reads config2.yaml from here
    caplog.set_level(logging.INFO, "antiphon.styles.environment")


def fenced(said: str) -> str:
    found = re.search(r"```python(.*?)```", said, re.DOTALL)
    return found[1].strip() if found else said


# -- a team that builds ------------------------------------------------------------------------


class WriteCode(Action):
    PROMPT: str = "Write a Python function for this: {instruction}\nReturn ```python your_code```."
    name: str = "WriteCode"

    async def run(self, instruction: str):
        return fenced(await self._aask(self.PROMPT.format(instruction=instruction)))


class Coder(Role):
    name: str = "Alice"
    profile: str = "Coder"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self._watch([UserRequirement])
        self.set_actions([WriteCode])


class WriteTest(Action):
    PROMPT: str = "Context: {context}\nWrite {k} tests for the function."
    name: str = "WriteTest"

    async def run(self, context: str, k: int = 3):
        return fenced(await self._aask(self.PROMPT.format(context=context, k=k)))


class Review(Action):
    name: str = "Review"

    async def run(self, context: str):
        return await self._aask(f"Context: {context}\nReview the tests.")


class QualityCheck(Role):
    name: str = "Bob"
    profile: str = "Tester"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.set_actions([WriteTest])
        self._watch([WriteCode, Review])

    async def _act(self) -> Message:
        logger.info(f"{self._setting}: to do {self.rc.todo}({self.rc.todo.name})")
        todo = self.rc.todo
        context = self.get_memories()
        code_text = await todo.run(context, k=5)
        return Message(content=code_text, role=self.profile, cause_by=type(todo))


class Reviewer(Role):
    name: str = "Charlie"
    profile: str = "Reviewer"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.set_actions([Review])
        self._watch([WriteTest])


def test_a_team_builds_for_as_many_rounds_as_it_is_given(caplog: pytest.LogCaptureFixture) -> None:
    model = Script(
        [
            "```python\ndef product(a): ...\n```",
            "```python\ndef test_1(): ...\n```",
            "Test the empty list too.",
            "```python\ndef test_2(): ...\n```",
            "Good.",
        ]
    )

    async def main(idea: str, investment: float = 3.0, n_round: int = 5) -> None:
        logger.info(idea)
        team = Team(model=model)
        team.hire([Coder(), QualityCheck(), Reviewer(is_human=False)])
        team.invest(investment=investment)
        team.run_project(idea)
        history = await team.run(n_round=n_round)
        assert [str(each) for each in history.get()] == [
            "user: a product of a list",
            "assistant: def product(a): ...",
            "Tester: def test_1(): ...",
            "assistant: Test the empty list too.",
            "Tester: def test_2(): ...",
            "assistant: Good.",
        ]
        await team.env.close()

    asyncio.run(main("a product of a list"))
    assert caplog.messages == [
        "a product of a list",
        "Alice(Coder): to do WriteCode",
        "Bob(Tester): to do WriteTest(WriteTest)",
        "Charlie(Reviewer): to do Review",
        "Bob(Tester): to do WriteTest(WriteTest)",
        "Charlie(Reviewer): to do Review",
    ]
    asked = [request.messages[-1].content for request in model.requests]
    # Messages in a prompt read as who said what, without ids.
    assert asked[0].startswith("Write a Python function for this: [user: a product of a list]\n")
    assert asked[3] == (
        "Context: [assistant: def product(a): ..., assistant: Test the empty list too.]\n"
        "Write 5 tests for the function."
    )


def test_a_line_of_the_log_says_which_run_agent_and_effect_it_is_of(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> str:
        team = Team(roles=[Coder()], model=Script(["x"]))
        async with team.env:
            await team.run(idea="a loop")
            return team.env.run_id

    run_id = asyncio.run(main())
    (line,) = caplog.records
    assert (line.run_id, line.agent, line.effect_id) == (run_id, "Alice", "2/1.x")  # type: ignore[attr-defined]


# -- one agent that builds and runs ------------------------------------------------------------


class RunCode(Action):
    name: str = "RunCode"

    async def run(self, code_text: str):
        code_result = f"ran {code_text}"
        logger.info(f"{code_result=}")
        return code_result


class RunnableCoder(Role):
    name: str = "Alice"
    profile: str = "RunnableCoder"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.set_actions([WriteCode, RunCode])
        self._set_react_mode(react_mode=RoleReactMode.BY_ORDER.value)

    async def _act(self) -> Message:
        logger.info(f"{self._setting}: to do {self.rc.todo}({self.rc.todo.name})")
        todo = self.rc.todo
        msg = self.get_memories(k=1)[0]
        result = await todo.run(msg.content)
        msg = Message(content=result, role=self.profile, cause_by=type(todo))
        self.rc.memory.add(msg)
        return msg


CONFIG = "llm: {api_type: script, model: replies.yaml}\n"


def test_one_agent_builds_and_runs_with_the_model_of_its_settings(
    caplog: pytest.LogCaptureFixture, tmp_path: Any
) -> None:
    (tmp_path / "config2.yaml").write_text(CONFIG)
    (tmp_path / "replies.yaml").write_text("- print(7)\n")

    async def main() -> str:
        role = RunnableCoder(context=Context())
        msg = "write a function that calculates the product of a list and run it"
        logger.info(msg)
        result = await role.run(msg)
        logger.info(result)
        return str(result)

    assert asyncio.run(main()) == "RunnableCoder: ran print(7)"
    assert caplog.messages[1:] == [
        "Alice(RunnableCoder): to do WriteCode(WriteCode)",
        "Alice(RunnableCoder): to do RunCode(RunCode)",
        "code_result='ran print(7)'",
        "RunnableCoder: ran print(7)",
    ]


def test_a_role_thinks_and_acts_step_by_step() -> None:
    async def main() -> list[str]:
        role = RunnableCoder(llm=Script(["print(7)"]))
        role.put_message(Message("seven"))
        steps = []
        while await role.think():
            steps.append(f"{role.todo}: {(await role.act()).content}")
        assert role.todo is None
        return steps

    assert asyncio.run(main()) == ["WriteCode: print(7)", "RunCode: ran print(7)"]


# -- a debate ----------------------------------------------------------------------------------


class SpeakAloud(Action):
    PROMPT: str = "You are {name}; {opponent_name} is against you.\n{context}\nSpeak:"
    name: str = "SpeakAloud"

    async def run(self, context: str, name: str, opponent_name: str):
        prompt = self.PROMPT.format(context=context, name=name, opponent_name=opponent_name)
        return await self._aask(prompt)


class Debater(Role):
    name: str = ""
    profile: str = ""
    opponent_name: str = ""

    def __init__(self, **data: Any):
        super().__init__(**data)
        self.set_actions([SpeakAloud])
        self._watch([UserRequirement, SpeakAloud])

    async def _observe(self) -> int:
        await super()._observe()
        self.rc.news = [msg for msg in self.rc.news if msg.send_to == {self.name}]
        return len(self.rc.news)

    async def _act(self) -> Message:
        logger.info(f"{self._setting}: to do {self.rc.todo}({self.rc.todo.name})")
        todo = self.rc.todo
        context = "\n".join(f"{msg.sent_from}: {msg.content}" for msg in self.get_memories())
        rsp = await todo.run(context=context, name=self.name, opponent_name=self.opponent_name)
        msg = Message(
            content=rsp,
            role=self.profile,
            cause_by=type(todo),
            sent_from=self.name,
            send_to=self.opponent_name,
        )
        self.rc.memory.add(msg)
        return msg


def test_a_debate_of_ten_rounds_has_ten_speeches(caplog: pytest.LogCaptureFixture) -> None:
    model = Script([f"speech {number}" for number in range(1, 11)])

    async def debate(idea: str, investment: float = 3.0, n_round: int = 10) -> list[str]:
        team = Team(model=model)
        ann = Debater(name="Ann", profile="Red", opponent_name="Ben")
        team.hire([ann, Debater(name="Ben", profile="Blue", opponent_name="Ann")])
        team.invest(investment)
        team.run_project(idea, send_to="Ann")
        history = await team.run(n_round=n_round)
        await team.env.close()
        return [f"{each.sent_from}: {each.content}" for each in history.get()[1:]]

    said = asyncio.run(debate("the climate"))
    assert said == [f"{('Ben', 'Ann')[number % 2]}: speech {number}" for number in range(1, 11)]
    assert len(caplog.messages) == 10
    assert "Ann: speech 1\nBen: speech 2\nSpeak:" in model.requests[2].messages[-1].content


def test_a_debate_needs_no_class() -> None:
    model = Script([f"speech {number}" for number in range(1, 6)])
    says_ann = Action(name="AnnSay", instruction="Express your opinion, and do not repeat it")
    says_ben = Action(name="BenSay", instruction="Express your opinion, and do not repeat it")
    ann = Role(name="Ann", profile="Red", goal="win", actions=[says_ann], watch=[says_ben])
    ben = Role(name="Ben", profile="Blue", goal="win", actions=[says_ben], watch=[says_ann])
    env = Environment(desc="live on air", model=model)
    team = Team(investment=10.0, env=env, roles=[ann, ben])

    async def main() -> list[str]:
        history = await team.run(idea="Topic: the climate.", send_to="Ann", n_round=5)
        await env.close()
        return [f"{each.sent_from}: {each.content}" for each in history.get()[1:]]

    said = asyncio.run(main())
    assert said == [f"{('Ben', 'Ann')[number % 2]}: speech {number}" for number in range(1, 6)]
    assert model.requests[1].messages[-1].content == (
        "Ann: speech 1\n\nExpress your opinion, and do not repeat it"
    )


def test_a_debate_without_classes_is_saved_and_goes_on(tmp_path: Any) -> None:
    def crew() -> list[Role]:
        says = [Action(name=f"{name}Say", instruction="Speak") for name in ("Ann", "Ben")]
        return [
            Role(name=name, actions=[says[number]], watch=[says[1 - number]])
            for number, name in enumerate(("Ann", "Ben"))
        ]

    async def main() -> list[str]:
        team = Team(roles=crew(), model=Script(["1"]))
        async with team.env:
            await team.run(1, "go", send_to="Ann")
            team.serialize(tmp_path / "team.json")
        again = Team.deserialize(tmp_path / "team.json", actions=[Action], model=Script(["2", "3"]))
        async with again.env:
            return [each.content for each in (await again.run(2)).get()]

    assert asyncio.run(main()) == ["go", "1", "2", "3"]
