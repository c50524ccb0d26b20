"""A LoopAgent as one of a team, and as what is run."""

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, UserError, open_run, run_sync, stream
from antiphon.models.script import Script, call, finish
from antiphon.styles.loop import LoopAgent
from tests.styles.loop.looping import ask, echo
from tests.transcript import results_shown


def counter(**options: Any) -> LoopAgent:
    model = Script([call("echo", value="7"), "There are 7."])
    return LoopAgent(name="counter", description="Counts.", llm=model, tools=[echo], **options)


def test_it_can_be_run() -> None:
    agent = counter()
    assert run_sync(agent, "How many?").output == "There are 7."
    assert ask(counter(), "How many?") == "There are 7."


def test_it_can_be_streamed_and_asked_in_an_open_run() -> None:
    async def playing() -> None:
        async with stream(counter(), "How many?") as events:
            assert [item async for item in events]
            assert (await events.result()).output == "There are 7."
        agent = counter()
        async with open_run([agent, Agent("other", model=Script([]))]) as opened:
            assert (await opened.result(await opened.post(agent, "How many?"))).output == "There are 7."

    asyncio.run(playing())


def lead(model: Script) -> Agent:
    return Agent("lead", "You lead.", model=model)


def test_others_call_it() -> None:
    model = Script([call("call_agent", agent_name="counter", message="Count."), finish("7")])
    entry = lead(model)
    result = run_sync(entry, "go", agents=[entry, counter()])
    assert result.output == "7"
    assert "- counter: Counts." in model.requests[0].system
    assert results_shown(model.requests[1]) == ["There are 7."]


def test_another_loop_calls_it() -> None:
    model = Script([call("call_agent", agent_name="counter", message="Count."), "It is 7."])
    asking = LoopAgent(llm=model, system_prompt="You ask.", agents=[counter()])
    assert ask(asking) == "It is 7."
    assert run_sync(LoopAgent(llm=Script(["alone"]), agents=[counter()]), "go").output == "alone"
    assert "Available agents:\n- counter: Counts." in model.requests[0].system


def test_whom_it_may_call_is_what_it_was_given() -> None:
    model = Script([call("call_agent", agent_name="stranger", message="x"), "well"])
    asking = LoopAgent(llm=model, agents=[counter()])
    run_sync(asking, "go", agents=[asking, Agent("stranger", model=Script(["never"]))])
    assert results_shown(model.requests[1])[0].startswith("Error: Unknown agent: stranger")


def test_alone_its_prompt_is_its_own() -> None:
    model = Script(["done"])
    ask(LoopAgent(llm=model, system_prompt="Be brief."))
    assert model.requests[0].system == "Be brief."


def test_its_sessions_hold_what_it_asked_colleagues() -> None:
    model = Script([call("call_agent", agent_name="counter", message="Count."), "It is 7.", "As I said."])

    async def playing() -> None:
        asking = LoopAgent(llm=model, agents=[counter()])
        assert await asking.run("How many?") == "It is 7."
        assert await asking.run("Again?") == "As I said."

    asyncio.run(playing())
    assert len(model.requests[2].messages) == 5


def test_an_async_hook_is_refused_where_nobody_waits_for_it() -> None:
    async def hook(tool: Any, arguments: Any) -> str:
        return "allow"

    with pytest.raises(UserError, match="counter: an async can_execute_tool is waited for by"):
        run_sync(counter(can_execute_tool=hook), "How many?")


PROGRAM = """
from antiphon.models.script import Script
from antiphon.styles.loop import LoopAgent

agent = LoopAgent(name="counter", llm=Script(["There are 7.", "Still 7."]))
"""


@pytest.mark.parametrize(
    ("words", "typed", "said"),
    [
        (["run", "mine.py:agent", "How many?"], "", ["There are 7."]),
        (["chat", "mine.py:agent", "--quiet"], "How many?\nAnd now?\n", ["There are 7.", "Still 7."]),
    ],
    ids=["run", "chat"],
)
def test_it_is_a_target_of_the_command_line(
    words: list[str], typed: str, said: list[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "antiphon.cli", *words],
        cwd=tmp_path, input=typed, capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line] == said


def test_it_works_for_a_controller_and_in_an_environment() -> None:
    from antiphon.styles.environment import Environment, Message
    from antiphon.styles.tasks import Controller, StructuredMessage

    controller = Controller(counter().agents())
    message = StructuredMessage("How many?", {"type": "task"})
    message.source_agent, message.target_agent = "user", "counter"

    async def playing() -> str:
        environment = Environment()
        environment.add_roles(counter().agents())
        environment.publish_message(Message("How many?", send_to="counter"))
        await environment.run(2)
        return " ".join(each.content for each in environment.history.get())

    assert "There are 7." in controller.process_structured_message(message).content
    assert "There are 7." in asyncio.run(playing())
