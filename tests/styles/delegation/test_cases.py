"""The loop, calls between agents, errors a model sees, prompts."""

import asyncio
from typing import Any

import pytest

from antiphon import Agent, LoopOptions, RunFailed, ToolCall, UserError, run_sync, tool
from antiphon.kernel.context.prompt import REMINDER
from antiphon.kernel.facts.events import TurnFinished
from antiphon.models.script import Script, call, finish
from antiphon.styles.delegation import format_trace, trace
from tests.transcript import effects, recorded, recorded_run, results_shown, sent, shown


def ask(name: str, message: str = "m") -> ToolCall:
    return call("call_agent", agent_name=name, message=message)


@tool(effect="read")
async def search(query: str) -> str:
    """Search for a text."""
    return f"found {query}"


# -- the end of a loop --------------------------------------------------------------------------


def test_text_ends() -> None:
    model = Script(["hi"])
    result, _ = recorded(Agent("a"), "go", model=model)
    assert (result.output, result.outcome, model.asked) == ("hi", "completed", 1)


def test_text_does_not_end_where_finish_is_mandatory() -> None:
    model = Script(["almost", finish("hi")])
    result, _ = recorded(Agent("a", completion="finish"), "go", model=model)
    assert (result.output, model.asked) == ("hi", 2)
    assert shown(model.requests[1]) == ["user: go", "assistant: almost", f"user: {REMINDER}"]


def test_finish_ends_without_a_tool_message() -> None:
    model = Script([finish("x")])
    result, records = recorded(Agent("a"), "go", model=model)
    assert (result.output, model.asked) == ("x", 1)
    assert [each for each in effects(records) if "tool" in each] == []


def test_five_texts_five_reminders() -> None:
    """With max_reminders=5; DESIGN section 5 bounds the reminders, 3 unless the agent says otherwise."""
    model = Script(["1", "2", "3", "4", "5", finish("done")])
    result, records = recorded(
        Agent("a", completion="finish", loop=LoopOptions(max_reminders=5)), "go", model=model
    )
    assert (result.output, model.asked) == ("done", 6)
    assert shown(model.requests[-1]).count(f"user: {REMINDER}") == 5
    turns = [record.event for record in records if isinstance(record.event, TurnFinished)]
    assert [turn.reminder for turn in turns if turn.reminder] == [REMINDER] * 5


def test_three_reminders_by_default_then_no_progress() -> None:
    """DESIGN section 5: reminders are bounded. The best partial output is kept, and nothing raises."""
    model = Script(["1", "2", "3", "4", "never said"])
    result = run_sync(Agent("a", completion="finish"), "go", model=model)
    assert (result.outcome, result.output, model.asked) == ("no_progress", "4", 4)
    assert result.reason == "3 reminders to finish were not followed"


def test_a_turn_with_calls_is_progress() -> None:
    replies = ["1", call("search", query="x"), "2", "3", "4", finish("done")]
    result = run_sync(Agent("a", tools=[search], completion="finish"), "go", model=Script(replies))
    assert result.output == "done"


def test_finish_without_a_message() -> None:
    result, _ = recorded(Agent("a"), "go", model=Script([finish()]))
    assert (result.output, result.outcome) == ("", "completed")


def test_finish_wins_and_its_siblings_are_seen_to_be_skipped() -> None:
    """DESIGN section 5: in delegation finish wins and siblings get a `skipped` result, never silence."""
    done: list[str] = []

    @tool
    async def side() -> None:
        """Do something."""
        done.append("side")

    result, records = recorded(
        Agent("a", tools=[side]), "go", model=Script([[call("side"), finish("d"), finish("e")]])
    )
    assert (result.output, done) == ("d", [])
    assert effects(records, "c")[1:-1] == [
        "1/1.c1 skipped: side was skipped: finish ends the task in the same reply",
        "1/1.c2 completed: d",
        "1/1.c3 skipped: finish was skipped: finish ends the task in the same reply",
    ]


# -- tools --------------------------------------------------------------------------------------


def test_a_tool_is_called_once_and_its_result_is_shown() -> None:
    asked: list[str] = []

    @tool(effect="read", name="search")
    async def counted(q: str) -> str:
        """Search."""
        asked.append(q)
        return f"about {q}"

    model = Script([call("search", q="tea"), finish("done")])
    recorded(Agent("a", tools=[counted]), "go", model=model)
    assert asked == ["tea"]
    assert shown(model.requests[1])[1:] == ["assistant: [search]", "tool: about tea"]


def test_parallel_tools_start_together_and_are_told_in_call_order() -> None:
    """The first can only end after the second has; `stream` and `run` tell the same."""
    order: list[str] = []

    def team() -> tuple[Agent, Script]:
        second_ended = asyncio.Event()

        @tool(effect="read")
        async def slow(n: int) -> str:
            """Wait for the other."""
            order.append(f"slow {n} starts")
            await second_ended.wait()
            return f"slow {n}"

        @tool(effect="read")
        async def fast(n: int) -> str:
            """Be first to end."""
            order.append(f"fast {n} starts")
            second_ended.set()
            return f"fast {n}"

        return Agent("a", tools=[slow, fast]), Script([[call("slow", n=1), call("fast", n=2)], "done"])

    agent, model = team()
    run_sync(agent, "go", model=model)
    streamed_agent, streamed = team()
    _, records = recorded(streamed_agent, "go", model=streamed)
    assert order == ["slow 1 starts", "fast 2 starts"] * 2
    assert results_shown(model.requests[-1]) == results_shown(streamed.requests[-1]) == ["slow 1", "fast 2"]
    assert effects(records, "c")[1:-1] == [
        "1/1.c1 tool slow started",
        "1/1.c2 tool fast started",
        "1/1.c2 completed: fast 2",
        "1/1.c1 completed: slow 1",
    ]


def test_a_tool_that_raises_is_a_result() -> None:
    @tool(effect="read")
    async def boom() -> str:
        """Fail."""
        raise RuntimeError("out of steam")

    model = Script([[call("search", query="x"), call("boom")], "went on"])
    result, _ = recorded(Agent("a", tools=[search, boom]), "go", model=model)
    assert results_shown(model.requests[-1]) == ["found x", "Error: [boom] out of steam"]
    assert result.output == "went on"


# -- calls between agents -----------------------------------------------------------------------

PAIR = (Agent("a", "You lead."), Agent("b", "You write."))


def pair_script() -> Script:
    return Script({"a": [ask("b", "m"), finish("done")], "b": [finish("r")]})


def test_a_call_has_a_context_of_its_own() -> None:
    model = pair_script()
    result, _ = recorded(PAIR[0], "go", agents=PAIR, model=model)
    assert (result.output, model.asked) == ("done", 3)
    assert shown(model.requests[1]) == ["user: m"]
    assert "r" in results_shown(model.requests[2])[0]


def test_the_message_log() -> None:
    result, _ = recorded(PAIR[0], "go", agents=PAIR, model=pair_script())
    assert sent(result) == ["forward user>a: go", "forward a>b: m", "return b>a: r", "return a>user: done"]
    outer, inner, inner_end, outer_end = result.messages
    assert (outer.call_id, inner.call_id) == (outer_end.call_id, inner_end.call_id) == ("0/1.c1", "1/1.c1")
    assert len({each.id for each in result.messages}) == 4
    assert (inner_end.in_reply_to, outer_end.in_reply_to) == (inner.id, outer.id)


def test_two_calls_of_one_agent_in_one_reply() -> None:
    model = Script({"a": [[ask("b", "1"), ask("b", "2")], "end"], "b": [finish("x"), finish("y")]})
    _, records = recorded(PAIR[0], "go", agents=PAIR, model=model)
    (root,) = trace(records)
    assert [(span.call_id, span.parent_call_id) for span in root.children] == [
        ("1/1.c1", "0/1.c1"),
        ("1/1.c2", "0/1.c1"),
    ]
    assert "b 1/1.c2" in format_trace((root,))


def test_an_agent_that_calls_itself() -> None:
    model = Script([ask("a", "1"), ask("a", "2"), finish("in"), finish("mid"), finish("out")])
    result, _ = recorded(PAIR[0], "0", agents=PAIR, model=model)
    assert result.output == "out"
    assert [shown(request)[0] for request in model.requests] == [
        "user: 0", "user: 1", "user: 2", "user: 1", "user: 0",
    ]  # fmt: skip
    assert [len(request.messages) for request in model.requests] == [1, 1, 1, 3, 3]


# -- errors a model sees ------------------------------------------------------------------------


def answer_to(asked: ToolCall, **options: Any) -> str:
    """The result of one call of agent `a`, which has a tool `search` and a colleague `b`."""
    agent = Agent("a", tools=[search])
    model = Script({"a": [asked, "went on"], "b": [finish("r")]})
    result, _ = recorded(agent, "go", agents=[agent, PAIR[1]], model=model, **options)
    assert result.output == "went on"
    return results_shown(model.requests[-1])[0]


def test_an_unknown_agent() -> None:
    assert answer_to(ask("nobody")) == "Error: Unknown agent: nobody. Available agents: b"


def test_the_error_is_in_the_stream() -> None:
    _, records = recorded(Agent("a"), "go", model=Script([ask("nobody"), "went on"]))
    assert "1/1.c1 not_found: Unknown agent: nobody. Available agents: (none)" in effects(records)


def test_a_tool_named_as_an_agent() -> None:
    said = answer_to(ask("search"))
    assert said == "Error: search is a tool, not an agent; call it directly as search(...)"


def test_an_agent_named_as_a_tool() -> None:
    said = answer_to(call("b", message="m"))
    assert said == 'Error: b is an agent, not a tool; use call_agent(agent_name="b", message="...")'


def test_an_unknown_tool() -> None:
    """The calls every agent has are tools to a model, so they are listed too."""
    assert answer_to(call("x")) == "Error: Unknown tool: x. Available tools: search, call_agent, finish"


def test_a_missing_argument() -> None:
    said = answer_to(call("search"))
    assert said == "Error: Invalid arguments for tool 'search': missing required argument 'query' (string)"


def test_a_model_that_raises_inside_a_call() -> None:
    model = Script({"a": [ask("b"), "went on"], "b": [RuntimeError("no luck")]})
    result, _ = recorded(PAIR[0], "go", agents=PAIR, model=model)
    (said,) = results_shown(model.requests[-1])
    assert said.startswith("Error: ")
    assert "no luck" in said
    assert (result.output, result.outcome) == ("went on", "completed")


def test_a_model_that_raises_at_the_top() -> None:
    """DESIGN section 5: `run` raises RunFailed with the result; `stream` never raises for an outcome."""
    with pytest.raises(RunFailed, match="no luck") as failed:
        run_sync(Agent("a"), "go", model=Script([RuntimeError("no luck")]))
    assert failed.value.result.outcome == "failed"

    async def streamed() -> list[str]:
        return effects((await recorded_run(Agent("a"), "go", model=Script([RuntimeError("no luck")])))[1])

    assert asyncio.run(streamed())[-1].startswith("0/1.c1 failed: ")


@pytest.mark.parametrize("spec", ["anthropic:claude-x", "acme:model-1", "", "script:nowhere.yaml"])
def test_an_unknown_provider(spec: str) -> None:
    """There is no Provider to register: the model string names it, and an error says which one it was.

    It is raised before anything starts.
    """
    with pytest.raises(UserError) as error:
        run_sync(Agent("a", model=spec), "go", env={})
    assert (spec.removeprefix("script:") or "empty") in str(error.value)


# -- what a model is told -----------------------------------------------------------------------


def test_the_system_prompt() -> None:
    agent = Agent("A", "You lead.", tools=[search])
    model = Script(["end"])
    recorded(agent, "go", agents=[agent, Agent("B", "You write.")], model=model)
    prompt = model.requests[0].system
    assert prompt.startswith('You are "A". You lead.')
    assert "- B: You write." in prompt
    assert "- A" not in prompt
    assert "search" not in prompt.lower()


def test_the_schemas() -> None:
    @tool(effect="read")
    async def zeta() -> None:
        """Last by name, first by place."""

    def names(**options: Any) -> list[str]:
        model = Script(["end"])
        recorded(Agent("a", tools=[zeta, search]), "go", model=model, **options)
        (call_agent,) = [each for each in model.requests[0].tools if each.name == "call_agent"]
        assert ("background" in call_agent.parameters["properties"]) is bool(options)
        return [each.name for each in model.requests[0].tools]

    assert names() == ["zeta", "search", "call_agent", "finish"]
    assert names(background=True) == ["zeta", "search", "call_agent", "finish", "get_result", "send_message"]
