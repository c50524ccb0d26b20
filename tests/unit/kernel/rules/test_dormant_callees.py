"""Agents that continue: they rest between calls, in this process and the next."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, Record, UserError, open_journal, open_run, tool
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run
from tests.transcript import recorded, shown


def ask(name: str, message: str = "m", **more: Any) -> Any:
    return call("call_agent", agent_name=name, message=message, **more)


def test_a_callee_goes_on_where_its_callers_last_call_ended() -> None:
    lead, sage = Agent("lead"), Agent("sage", context="continue")
    model = Script({"lead": [ask("sage", "one"), ask("sage", "two"), "done"], "sage": ["1", "2"]})
    result, records = recorded(lead, "go", agents=[lead, sage], model=model)
    assert result.output == "done"
    assert shown(model.requests[3]) == ["user: one", "assistant: 1", "user: two"]
    assert {each.agent for each in records if each.activation == 2} == {"sage"}


def test_callers_do_not_share_a_resting_callee() -> None:
    sage = Agent("sage", context="continue")
    team = [Agent("lead"), Agent("a"), Agent("b"), sage]
    model = Script(
        {
            "lead": [[ask("a"), ask("b")], "done"],
            "a": [ask("sage", "from a"), "a"],
            "b": [ask("sage", "from b"), "b"],
            "sage": lambda request: f"{len(request.messages)}",
        }
    )
    recorded(team[0], "go", agents=team, model=model)
    assert all(len(each.messages) == 1 for each in model.requests if "sage" in each.system[:12])


def test_two_calls_at_once_and_one_after() -> None:
    """The first to end rests, the other takes its place: nothing is kept twice."""
    sage = Agent("sage", context="continue")
    lead = Agent("lead", context="continue")

    async def playing() -> None:
        journal = open_journal()
        model = Script(
            {
                "lead": [[ask("sage", "x"), ask("sage", "y")], ask("sage", "z"), "done"],
                "sage": ["1", "2", "3"],
            }
        )
        async with open_run([lead, sage], journal=journal, model=model) as run:
            await run.result(await run.post("lead", "go"))
            state = await fold(journal, run.run_id)
            assert sorted(state.activations) == [0, 1, 3]
        await check_run(journal, run.run_id)
        assert shown(model.requests[-2])[-1] == "user: z"

    asyncio.run(playing())


def test_a_conversation_continues_in_the_next_process(tmp_path: Any) -> None:
    async def playing() -> None:
        journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
        run_id, agent = "", Agent("a", context="continue")
        for turn in range(3):
            model = Script([f"reply {turn}"])
            async with open_run([agent], journal=journal, run_id=run_id or None, model=model) as run:
                run_id = run.run_id
                result = await run.result(await run.post("a", f"ask {turn}"))
                assert result.output == f"reply {turn}"
                assert len(run.transcript("a")) == 2 * turn + 2
                names = [each.agent for each in await run.records() if isinstance(each, Record)]
                assert set(names) == {"user", "a"}
        await check_run(journal, run_id)
        await journal.close()

    asyncio.run(playing())


def test_a_run_may_be_given_its_id(tmp_path: Any) -> None:
    async def playing() -> None:
        journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
        for _ in range(2):
            async with open_run(
                [Agent("a")], journal=journal, run_id="mine", create=True, model=Script(["x"])
            ) as run:
                assert run.run_id == "mine"
                await run.result(await run.post("a", "go"))
        await journal.close()

    asyncio.run(playing())


def test_a_call_that_was_cancelled_in_the_middle_leaves_nothing_open() -> None:
    @tool
    async def endless() -> str:
        """Never end."""
        await asyncio.Event().wait()
        return "never"

    async def playing() -> None:
        model = Script([[call("endless"), call("endless")], "well"])
        agent = Agent("a", tools=[endless], context="continue", tool_execution="sequential")
        async with open_run([agent], model=model) as run:
            request = await run.post("a", "go")
            events = run.events(deltas=False)
            async for item in events:
                if getattr(getattr(item.event, "detail", None), "name", "") == "endless":
                    break
            events.close()
            await run.cancel(request)
            assert (await run.result(request)).outcome == "cancelled"
            assert str(await run.result(await run.post("a", "again"))) == "well"
        assert shown(model.requests[-1]) == [
            "user: go",
            "assistant: [endless, endless]",
            "tool: Error: the caller ended; it may or may not have taken effect",
            "tool: Error: cancelled before it was done",
            "user: again",
        ]

    asyncio.run(playing())


@pytest.mark.parametrize("text", ["no json", "[]x", '[{"role":"tool","content":"x","call_id":"1"}]'])
def test_a_history_that_no_provider_would_take_is_refused(text: str) -> None:
    async def playing() -> None:
        model = Script(["one", "two"])
        async with open_run([Agent("a", context="continue")], model=model) as run:
            await run.result(await run.post("a", "go"))
            with pytest.raises(UserError, match="Not a conversation"):
                await run.post("a", text, intent="history")
            assert len(run.transcript("a")) == 2

    asyncio.run(playing())


def test_a_model_cannot_rewrite_a_colleague() -> None:
    """The intents that change a conversation are the user's alone."""
    lead, sage = Agent("lead"), Agent("sage", context="continue")
    model = Script(
        {
            "lead": [
                ask("sage", "one"),
                ask("sage", "[]", intent="history"),
                ask("sage", "x", intent="compact"),
                ".",
            ],
            "sage": ["1", "2", "3"],
        }
    )
    recorded(lead, "go", agents=[lead, sage], model=model)
    assert shown(model.requests[-2])[-1] == "user: x"
    assert shown(model.requests[-2])[0] == "user: one"


def test_tools_of_one_run_are_the_entry_agents() -> None:
    @tool(effect="read")
    async def extra() -> str:
        """Extra."""
        return "x"

    lead, other = Agent("lead"), Agent("other")
    model = Script({"lead": [ask("other"), "done"], "other": ["o"]})
    recorded(lead, "go", agents=[lead, other], tools=[extra], model=model)
    assert [[spec.name for spec in each.tools][:1] for each in model.requests] == [
        ["extra"], ["call_agent"], ["extra"]
    ]  # fmt: skip


def test_a_solo_agent_has_its_tools_and_its_words_alone() -> None:
    model = Script(["x"])
    recorded(Agent("a", "Only this.", standalone=True), "go", model=model)
    assert (model.requests[0].system, model.requests[0].tools) == ("Only this.", ())
