"""Teams; models from config2.yaml, subscriptions, mixed teams."""

import asyncio
import json
from collections.abc import AsyncGenerator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, RunFailed, Topics, Usage, UserError, open_journal, open_run
from antiphon.errors import ConfigError, UnknownName
from antiphon.journal.memory import MemoryJournal
from antiphon.models.catalog import Prices
from antiphon.models.script import Script, by_agent, call
from antiphon.styles.environment import (
    Action,
    Context,
    Environment,
    Message,
    NoMoneyException,
    Role,
    SubscriptionRunner,
    Team,
)
from antiphon.testing.invariants import check_run
from antiphon.values.model import Reply
from tests.styles.environment.ensemble import Diary, Note, member, play, rounds_of, texts


class Ask(Action):
    """Asks the model about the newest message."""

    async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
        return Message(await self._aask(with_messages[-1].content), cause_by=self.role.key)


def asker(name: str, *watch: Any, **fields: Any) -> Role:
    return Role(name=name, actions=[Ask], watch=watch or None, **fields)


def dear(*said: str) -> Script:
    """A model of which one call costs ten cents, and never more than 41."""
    model = Script([Reply(each, usage=Usage(100, 0)) for each in said], name="dear")
    model.prices = Prices(input=Decimal(1000), output=Decimal(100))  # type: ignore[attr-defined]
    return model


# -- money ----------------------------------------------------------------------------------------------


def test_the_budget_ends_a_run_by_an_outcome_of_its_own(tmp_path: Path) -> None:
    path = f"sqlite:///{tmp_path}/runs.db"

    def team(model: Script, **options: Any) -> Team:
        return Team(
            roles=[asker("A"), asker("B", "A"), asker("C", "B")], model=model, journal=path, **options
        )

    async def spending() -> str:
        crew = team(dear("a", "b", "c"), investment=0.6)
        async with crew.env:
            with pytest.raises(NoMoneyException) as raised:
                await crew.run(n_round=5, idea="x")
        assert raised.value.budget == 0.6
        assert raised.value.amount == pytest.approx(0.1 * len(texts(crew.env.archive())[1:]))
        assert raised.value.result is crew.result
        assert crew.result is not None
        assert crew.result.outcome == "budget"
        assert crew.env.context.cost_manager.total_cost == raised.value.amount
        return crew.env.run_id

    async def going_on(run_id: str) -> list[str]:
        crew = team(dear("b", "c"), investment=2.0, run_id=run_id)
        async with crew.env:
            history = await crew.run(n_round=5)
            assert crew.result is not None
            assert crew.result.outcome == "completed"
            assert crew.env.context.cost_manager.get_costs()[:3] == (300, 0, pytest.approx(0.3))
            return texts(history.get())

    assert asyncio.run(going_on(asyncio.run(spending()))) == ["x", "a", "b", "c"]


def test_investing_more_goes_on_in_the_same_process() -> None:
    crew = Team(roles=[asker("A"), asker("B", "A")], model=dear("a", "b"), investment=0.2)

    async def playing() -> list[str]:
        async with crew.env:
            with pytest.raises(NoMoneyException):
                await crew.run(idea="x")
            crew.invest(5.0)
            return texts((await crew.run()).get())

    assert asyncio.run(playing()) == ["x", "a", "b"]
    assert crew.result is not None
    assert crew.result.outcome == "completed"


def test_what_is_spent_is_not_spent_again() -> None:
    crew = Team(roles=[asker("A")], model=dear("a", "b"), investment=1.0)

    async def playing() -> None:
        async with crew.env:
            await crew.run(idea="x")
            crew.invest(0.1)
            with pytest.raises(NoMoneyException, match=r"0\.1 USD are spent of 0\.1 USD; invest more"):
                await crew.run(idea="y")
            crew.invest(None)
            await crew.run()

    asyncio.run(playing())
    assert texts(crew.env.archive()) == ["x", "a", "y", "b"]


def test_a_team_says_how_its_run_ended() -> None:
    diary: Diary = []

    def fails(news: str) -> str:
        raise ValueError("no")

    crew = Team(roles=[member("A", diary, says=fails)])

    async def playing() -> None:
        async with crew.env:
            with pytest.raises(RunFailed, match="A: ValueError: no"):
                await crew.run(idea="x")

    asyncio.run(playing())
    assert crew.result is not None
    assert crew.result.outcome == "failed"


def test_a_project_may_be_given_to_one() -> None:
    diary: Diary = []
    crew = Team(roles=[member("A", diary), member("B", diary)])

    async def playing() -> None:
        async with crew.env:
            await crew.run(1, "x", send_to="B")

    asyncio.run(playing())
    assert (diary, crew.idea) == (["B: x"], "x")


# -- as a file --------------------------------------------------------------------------------------------


class Polish(Action):
    shine: int = 0

    async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
        self.role.polished += 1
        self.role.seen.add(with_messages[-1].content)
        return Message(f"{with_messages[-1].content}, polished {self.shine} times", cause_by="polish")


class Polisher(Role):
    polished: int = 0
    seen: set[str] = set()  # noqa: RUF012 - each role gets its own

    def __init__(self, **fields: Any) -> None:
        super().__init__(**fields)
        self.set_actions([Polish(shine=3)])
        self._watch({"rough"})


KNOWN: dict[str, Any] = {"roles": [Role, Polisher], "actions": [Polish, Note]}


def workshop(diary: Diary, **options: Any) -> Team:
    polisher = Polisher(name="P", profile="polisher", goal="shine")
    polisher.actions[0].shine = 7
    context = Context(kwargs={"lamp": {"oil": 2}})
    reader = member("R", diary, "polish", says=lambda news: "")
    return Team(context, roles=[polisher, reader], investment=4.5, **options)


async def saved(path: Path, rounds: int) -> None:
    crew = workshop([])
    async with crew.env:
        for text in ("a", "b"):
            crew.env.publish_message(Message(text, cause_by="rough"))
        crew.idea = "polish everything"
        await crew.run(rounds)
        crew.env.context.cost_manager.add(1000, 100, 1.25)
        crew.serialize(path)


def test_a_team_is_saved_and_restored(tmp_path: Path) -> None:
    path = tmp_path / "team.json"
    asyncio.run(saved(path, rounds=10))
    crew = Team.deserialize(path, **KNOWN)
    assert (crew.idea, crew.investment, crew.env.context.kwargs.lamp) == (
        "polish everything",
        4.5,
        {"oil": 2},
    )
    assert crew.env.context.cost_manager.get_costs()[:3] == (1000, 100, 1.25)
    assert crew.env.context.cost_manager.max_budget == 4.5
    polisher, reader = crew.env.get_role("P"), crew.env.get_role("R")
    assert (type(polisher), type(reader)) == (Polisher, Role)
    assert (polisher.profile, polisher.goal, polisher.polished, polisher.seen) == (
        "polisher",
        "shine",
        2,
        {"a", "b"},
    )
    assert (polisher.rc.watch, reader.rc.watch) == ({"rough"}, {"polish"})
    assert texts(polisher.rc.memory.get()) == ["a", "a, polished 7 times", "b", "b, polished 7 times"]
    assert texts(crew.env.archive()) == ["a", "b", "a, polished 7 times", "b, polished 7 times", "", ""]


def test_a_restored_team_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "team.json"
    asyncio.run(saved(path, rounds=1))
    diary: Diary = []
    crew = Team.deserialize(path, **KNOWN)
    crew.env.get_role("R").actions[0].diary = diary
    assert not crew.env.is_idle

    async def playing() -> list[str]:
        async with crew.env:
            crew.env.publish_message(Message("c", cause_by="rough"))
            return texts((await crew.run(10)).get_by_action("polish"))

    assert asyncio.run(playing()) == [f"{each}, polished 7 times" for each in "abc"]
    assert diary == [f"R: {each}, polished 7 times" for each in "abc"]
    polisher = crew.env.get_role("P")
    assert texts(polisher.rc.memory.get())[:3] == ["a", "a, polished 7 times", "b"]


def test_a_restored_team_survives_a_crash_as_any_other(tmp_path: Path) -> None:
    path, journal = tmp_path / "team.json", f"sqlite:///{tmp_path}/runs.db"
    asyncio.run(saved(path, rounds=10))

    async def playing(**options: Any) -> tuple[str, list[str], set[str]]:
        crew = Team.deserialize(path, **KNOWN, journal=journal, **options)
        async with crew.env:
            if not options:
                crew.env.publish_message(Message("c", cause_by="rough"))
            await crew.run(10)
            polisher = crew.env.get_role("P")
            return crew.env.run_id, texts(polisher.rc.memory.get()), polisher.seen

    run_id, remembered, seen = asyncio.run(playing())
    assert len(remembered) == 6
    assert asyncio.run(playing(run_id=run_id)) == (run_id, remembered, seen)
    assert seen == {"a", "b", "c"}


def test_an_environment_alone_and_an_agent_in_it(tmp_path: Path) -> None:
    path = tmp_path / "environment.json"
    poet = Agent("poet", "You rhyme.", topics=Topics(watch=["verse"]))
    env = Environment("a stage", roles=[Polisher(), poet], laps=2)
    env.publish_message(Message("x", cause_by="verse"))
    env.serialize(path)
    restored = Environment.deserialize(
        path, roles=[Polisher, poet], actions=[Polish], model=Script(["rhymed"])
    )
    assert (restored.desc, restored.laps, restored.role_names()) == ("a stage", 2, ["Polisher", "poet"])
    play(restored)
    assert texts(restored.archive()) == ["x", "rhymed"]


def test_classes_come_from_the_readers_list_alone(tmp_path: Path) -> None:
    path = tmp_path / "team.json"
    asyncio.run(saved(path, rounds=1))
    with pytest.raises(UnknownName, match=rf"Unknown role class: {__name__}.Polisher. Known: .*role.Role$"):
        Team.deserialize(path, roles=[Role], actions=[Polish, Note])
    with pytest.raises(UnknownName, match=rf"Unknown action class: {__name__}.Polish. Known: .*Note$"):
        Team.deserialize(path, roles=[Role, Polisher], actions=[Note])
    hostile = json.loads(path.read_text())
    hostile["environment"]["roles"][0]["kind"] = "os.system"
    path.write_text(json.dumps(hostile))
    with pytest.raises(UnknownName, match=r"Unknown role class: os\.system"):
        Team.deserialize(path, **KNOWN)


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda data: "{", "holds no team: .*truncated"),
        (
            lambda data: json.dumps({**data, "idea": 7}),
            r"holds no team: Expected `str`, got `int` - at `\$.idea`",
        ),
        (
            lambda data: json.dumps({**data, "environment": {**data["environment"], "format": 9}}),
            "has format 9",
        ),
    ],
)
def test_a_file_that_is_no_team_says_where(tmp_path: Path, spoil: Any, said: str) -> None:
    path = tmp_path / "team.json"
    with pytest.raises(FileNotFoundError):
        Team.deserialize(path, **KNOWN)
    asyncio.run(saved(path, rounds=1))
    path.write_text(spoil(json.loads(path.read_text())))
    with pytest.raises(UserError, match=said):
        Team.deserialize(path, **KNOWN)


def test_what_cannot_be_saved_is_said(tmp_path: Path) -> None:
    class Needy(Role):
        def __init__(self, tool: str) -> None:
            super().__init__()

    env = Environment(context=Context(kwargs={"socket": object()}))
    with pytest.raises(UserError, match=r"context\.kwargs\.socket cannot be written as JSON"):
        env.serialize(tmp_path / "environment.json")
    path = tmp_path / "needy.json"
    Environment(roles=[Needy("hammer")]).serialize(path)
    with pytest.raises(UserError, match="Needy cannot be made without arguments; give them defaults"):
        Environment.deserialize(path, roles=[Needy])


def test_a_team_at_work_is_not_saved(tmp_path: Path) -> None:
    env = Environment(roles=[])

    class Save(Action):
        async def run(self, with_messages: Any = None, **kwargs: Any) -> str:
            env.serialize(tmp_path / "environment.json")
            return ""

    env.add_role(Role(name="S", actions=[Save]))
    result = play(env, Message("go"))
    assert result.reason == "S: UserError: environment is at work; serialize it between two runs"
    assert not (tmp_path / "environment.json").exists()


def test_an_action_keeps_its_class_and_its_extra_fields(tmp_path: Path) -> None:
    class Client:
        """What JSON cannot hold."""

    path = tmp_path / "environment.json"
    action = Polish(shine=9, label={"deep": [1]}, client=Client(), llm_name_or_type="small")
    Environment(roles=[Role(name="R", actions=[action])]).serialize(path)
    (restored,) = Environment.deserialize(path, actions=[Polish]).get_role("R").actions
    assert type(restored) is Polish
    assert (restored.shine, restored.label, restored.llm_name_or_type) == (9, {"deep": [1]}, "small")
    assert (restored.name, restored.role.key, hasattr(restored, "client")) == ("Polish", "R", False)


# -- a model per role ---------------------------------------------------------------------------------------


CONFIG = """\
llm: {api_type: script, model: %(folder)s/everyone.yaml}
models:
  small: {model: "script:%(folder)s/small.yaml"}
roles:
  - {role: Reviewer, llm: small}
"""


class Reviewer(Role):
    pass


def test_config2_gives_each_role_its_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config2.yaml").write_text(CONFIG % {"folder": tmp_path})
    (tmp_path / "everyone.yaml").write_text("- from everyone's model\n")
    (tmp_path / "small.yaml").write_text("- from the small model\n- from the small model, by name\n")
    small = Action.__new__(Ask)
    small.__init__(llm_name_or_type="small")  # type: ignore[misc]
    env = Environment(
        context=Context(),
        roles=[
            asker("Writer"),
            Reviewer(name="Rita", actions=[Ask], watch=["Writer"]),
            Role(name="Third", actions=[small], watch=["Rita"]),
        ],
    )
    play(env, Message("x"))
    assert texts(env.archive()) == [
        "x",
        "from everyone's model",
        "from the small model",
        "from the small model",
    ]


def test_config2_that_is_wrong_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config2.yaml").write_text("roles:\n  - {role: R, llm: tiny}\n")
    with pytest.raises(ConfigError, match=r"config2\.yaml:2:.*`models` has no 'tiny'; it has: \(none\)"):
        Context()


# -- subscriptions -------------------------------------------------------------------------------------------


def test_roles_answer_what_happens_outside() -> None:
    diary: Diary = []
    heard: list[str] = []

    async def mornings() -> AsyncGenerator[Message, None]:
        for number in range(3):
            yield Message(f"morning {number}")

    async def callback(answer: Message | None) -> None:
        heard.append(answer.content if answer is not None else "nothing")

    async def playing() -> Role:
        runner, role = SubscriptionRunner(), member("R", diary, says=lambda news: f"good {news}")
        await runner.subscribe(role, mornings(), callback)
        await runner.run()
        return role

    role = asyncio.run(playing())
    assert heard == ["good morning 0", "good morning 1", "good morning 2"]
    assert len(role.rc.memory.get()) == 6


# -- mixed teams -------------------------------------------------------------------------------------------


class Consult(Action):
    """Has a colleague outside of the environment look at it."""

    async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
        said = await self.ctx.call("expert", f"What of {with_messages[-1].content}?")
        return Message(said, cause_by="opinion")


def stage(**options: Any) -> Environment:
    roles = [
        Role(name="Host", actions=[Consult]),
        Agent("poet", "You rhyme.", topics=Topics(watch=["opinion"])),
        asker("Critic", "poet"),
    ]
    return Environment(
        "a stage where questions are discussed", roles=roles, agents=[Agent("expert")], **options
    )


LINES = {
    "expert": ["It is good."],
    "poet": ["It is good, and so it should."],
    "Critic": ["A fine rhyme."],
    "chief": [call("call_agent", agent_name="environment", message="tea"), "The stage says: see above."],
}


def who(request: Any) -> str:
    return by_agent(request) or request.system.partition("named ")[2].rstrip(".") or "poet"


def test_roles_agents_and_whom_they_call_work_together() -> None:
    journal = MemoryJournal()
    env = stage(model=Script(LINES, agent=who), journal=journal)

    async def playing() -> None:
        async with env:
            await rounds_of(env, Message("tea"))
        await check_run(journal, env.run_id)

    asyncio.run(playing())
    assert texts(env.archive()) == ["tea", "It is good.", "It is good, and so it should.", "A fine rhyme."]
    assert [each.sent_from for each in env.archive()] == ["", "Host", "poet", "Critic"]


def test_an_agent_with_topics_reacts_to_one_message_after_the_other() -> None:
    poet = Agent("poet", "You rhyme.", topics=Topics(watch=["verse"]))
    env = Environment(roles=[poet], model=Script(lambda request: f"{request.messages[-1].content}!"))
    assert play(env, Message("a", cause_by="verse"), Message("b", cause_by="verse")).outcome == "completed"
    assert texts(env.archive()) == ["a", "b", "a!", "b!"]
    assert [each.cause_by for each in env.archive()[2:]] == ["poet", "poet"]


def test_an_agent_calls_the_environment_as_it_calls_anybody() -> None:
    env = stage()

    async def playing() -> list[str]:
        journal = open_journal()
        chief = Agent("chief", "You let the stage discuss.")
        team = [chief, *env.agents()]
        async with open_run(team, journal=journal, model=Script(LINES, agent=who)) as opened:
            result = await opened.result(await opened.post("chief", "What of tea?"))
            assert result.output == "The stage says: see above."
            records = await opened.records()
        await check_run(journal, opened.run_id)
        return [record.agent for record in records if record.type == "TurnStarted"]

    turns = asyncio.run(playing())
    assert list(dict.fromkeys(turns)) == ["user", "chief", "environment", "Host", "expert", "poet", "Critic"]
    assert texts(env.archive())[-1] == "A fine rhyme."
