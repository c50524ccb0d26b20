"""Tools, done tools, dependencies, permission."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from antiphon import Attachment, ToolContext, ToolResult, tool
from antiphon.models.script import Script, call
from antiphon.styles.loop import (
    AbortError,
    AgentServices,
    Dependency,
    LoopAgent,
    StepCompleteEvent,
    ToolCallEvent,
    ToolPermission,
    ToolResultEvent,
)
from antiphon.testing.clock import VirtualClock
from antiphon.values.model import Reply
from tests.styles.loop.looping import ask, done, echo, kinds, play
from tests.transcript import results_shown

# -- 4. tools -----------------------------------------------------------------------------------


def test_an_unknown_tool_is_an_error_and_the_loop_goes_on() -> None:
    events = play(LoopAgent(llm=Script([call("nope"), "done"]), tools=[echo]))
    result = next(each for each in events if isinstance(each, ToolResultEvent))
    assert result.is_error
    assert result.result.startswith("Error: Unknown tool: nope")
    assert events[-1].content == "done"


def test_arguments_that_are_no_json() -> None:
    """DESIGN section 5: `_raw` shows in events only; a schema tool's model is told what was wrong."""
    taken: list[str] = []

    @tool(raw=True)
    async def anything(text: str) -> str:
        """Take whatever comes."""
        taken.append(text)
        return "taken"

    broken = msgspec.structs.replace(call("anything"), arguments="{bad")
    wrong = msgspec.structs.replace(call("echo"), arguments="[1]")
    events = play(LoopAgent(llm=Script([[broken, wrong], "done"]), tools=[anything, echo]))
    calls = [each for each in events if isinstance(each, ToolCallEvent)]
    results = [each for each in events if isinstance(each, ToolResultEvent)]
    assert (calls[0].args, calls[0].raw_args) == ({"_raw": "{bad"}, "{bad")
    assert taken == ["{bad"]
    assert [each.is_error for each in results] == [False, True]
    assert "echo" in results[1].result


def test_a_tool_that_raises() -> None:
    @tool
    async def boom() -> str:
        """Fail."""
        raise RuntimeError("broken pipe")

    events = play(LoopAgent(llm=Script([call("boom"), "done"]), tools=[boom]))
    result = next(each for each in events if isinstance(each, ToolResultEvent))
    complete = next(each for each in events if isinstance(each, StepCompleteEvent))
    assert (result.is_error, result.result) == (True, "Error: [boom] broken pipe")
    assert complete.status == "error"


def test_durations_are_rounded_and_never_negative() -> None:
    clock = VirtualClock(100.0, autojump=False)

    @tool
    async def good() -> str:
        """Take 4.6 ms."""
        clock.advance(0.0046)
        return "fine"

    @tool
    async def bad() -> str:
        """Turn the clock back."""
        clock._now -= 10
        raise ValueError("late")

    agent = LoopAgent(
        llm=Script([[call("good"), call("bad")], "done"]),
        tools=[good, bad],
        services=AgentServices(clock=clock),
    )
    found = [each for each in play(agent) if isinstance(each, StepCompleteEvent)]
    assert [(each.duration_ms, each.status) for each in found] == [(5, "completed"), (0, "error")]


def test_files_are_named_in_events_and_sent_unchanged() -> None:
    picture = Attachment("image/png", data="AAAA")

    @tool(effect="read")
    async def look() -> list[Any]:
        """Look."""
        return ["ok", picture]

    model = Script([call("look"), "done"])
    events = play(LoopAgent(llm=model, tools=[look]))
    assert next(each for each in events if isinstance(each, ToolResultEvent)).result == "ok[image]"
    assert model.requests[1].messages[-1].attachments == (picture,)


def test_tools_that_read_run_side_by_side_and_are_told_in_order() -> None:
    both = asyncio.Barrier(2)

    @tool(effect="read")
    async def meet(n: int) -> str:
        """Wait for the other one; the first is the slower one."""
        await both.wait()
        for _ in range(5 - n):
            await asyncio.sleep(0)
        return f"met {n}"

    model = Script([[call("meet", n=1), call("meet", n=2)], "done"])
    events = play(LoopAgent(llm=model, tools=[meet]))
    step = ["step_start", "tool_call", "tool_result", "step_complete"]
    assert kinds(events) == [*step, *step, "final"]
    assert results_shown(model.requests[1]) == ["met 1", "met 2"]
    assert [each.result for each in events if isinstance(each, ToolResultEvent)] == ["met 1", "met 2"]


def test_a_call_that_the_output_limit_cut_is_an_error_that_the_model_can_answer() -> None:
    cut = msgspec.structs.replace(call("echo"), arguments='{"value": "a long te')
    model = Script([Reply("", (cut,), "length"), call("echo", value="short"), "done"])
    events = play(LoopAgent(llm=model, tools=[echo], max_output=50))
    results = [each for each in events if isinstance(each, ToolResultEvent)]
    assert [each.is_error for each in results] == [True, False]
    assert "its limit of 50 output tokens" in results_shown(model.requests[1])[0]
    assert events[-1].content == "done"


def test_a_tool_of_one_request() -> None:
    @tool(effect="read")
    async def extra() -> str:
        """Only now."""
        return "extra"

    @tool(effect="read", name="echo")
    async def other(value: str) -> str:
        """Another echo."""
        return "other"

    model = Script([[call("extra"), call("echo", value="x")], "one", call("extra"), "two"])
    agent = LoopAgent(llm=model, tools=[echo])
    assert ask(agent, tools=[extra, other]) == "one"
    assert results_shown(model.requests[1]) == ["extra", "ok:x"]
    assert ask(agent) == "two"
    assert [[spec.name for spec in each.tools] for each in model.requests] == [["echo", "extra"]] * 2 + [
        ["echo"]
    ] * 2
    assert results_shown(model.requests[3])[-1].startswith("Error: Unknown tool: extra")


def test_a_done_tool_ends_with_its_message_and_the_history_stays_whole() -> None:
    ran: list[str] = []

    @tool
    async def act(n: int) -> str:
        """Act."""
        ran.append(str(n))
        return "acted"

    calls = [call("act", n=1), call("done", message="finished"), call("act", n=2), call("done", message="no")]
    model = Script([calls, "later"])
    agent = LoopAgent(llm=model, tools=[act, done])
    events = play(agent)
    assert (events[-1].content, ran) == ("finished", ["1"])
    assert kinds(events).count("tool_result") == 2
    assert ask(agent, "more") == "later"
    assert results_shown(model.requests[1]) == [
        "acted",
        "finished",
        "Error: act was skipped: the turn was over before it",
        "Error: done was skipped: the turn was over before it",
    ]


def test_done_without_a_message_is_the_text_beside_it() -> None:
    model = Script([Reply("All is well.", (call("done"),), "calls"), "later"])
    agent = LoopAgent(llm=model, tools=[done])
    events = play(agent)
    assert events[-1].content == "All is well."
    assert next(each for each in events if isinstance(each, ToolResultEvent)).result == "Task complete"
    ask(agent, "more")
    assert results_shown(model.requests[1]) == ["Task complete"]


def test_a_done_signal_as_return_value() -> None:
    @tool
    async def submit(text: str) -> ToolResult:
        """Hand in."""
        return ToolResult(f"handed in: {text}", finishes=True)

    @tool(finishes=True)
    async def stop() -> str:
        """Stop."""
        return "stopped"

    assert ask(LoopAgent(llm=Script([call("submit", text="x")]), tools=[submit])) == "handed in: x"
    assert ask(LoopAgent(llm=Script([[call("stop"), call("stop")]]), tools=[stop])) == "stopped"


def test_a_done_tool_that_fails_ends_nothing() -> None:
    @tool(finishes=True)
    async def stop(now: bool) -> str:
        """Stop."""
        if not now:
            raise ValueError("not yet")
        return "stopped"

    model = Script([[call("stop", now=False), call("echo", value="x")], call("stop", now=True)])
    assert ask(LoopAgent(llm=model, tools=[stop, echo])) == "stopped"
    assert results_shown(model.requests[1]) == ["Error: [stop] not yet", "ok:x"]


# -- dependencies -------------------------------------------------------------------------------


def test_dependencies_are_made_once_in_a_call_and_can_be_overridden() -> None:
    made: list[str] = []

    def connect(ctx: ToolContext) -> str:
        made.append(ctx.effect_id)
        return f"real {ctx.deps['host']}"

    database = Dependency("database", connect)

    @tool
    async def ask_it(ctx: ToolContext) -> str:
        """Ask."""
        assert ctx.resolve(database) is ctx.resolve(database)
        return str(ctx.resolve(database))

    script = [[call("ask_it"), call("ask_it")], "done"]
    real = Script(script)
    ask(LoopAgent(llm=real, tools=[ask_it], deps={"host": "h"}))
    assert results_shown(real.requests[1]) == ["real h", "real h"]
    assert made == ["1/1.c1", "1/1.c2"]
    for key in (database, "database"):
        fake = Script(script)
        ask(LoopAgent(llm=fake, tools=[ask_it], dependency_overrides={key: lambda ctx: "fake"}))
        assert results_shown(fake.requests[1]) == ["fake", "fake"]
    assert len(made) == 2


# -- permission ---------------------------------------------------------------------------------


def ruled(hook: Callable[..., Any], *script: Any, **options: Any) -> tuple[list[Any], list[str], Script]:
    ran: list[str] = []

    @tool
    async def act(n: int = 0) -> str:
        """Act."""
        ran.append(f"act {n}")
        return "acted"

    model = Script(list(script))
    agent = LoopAgent(llm=model, tools=[act], can_execute_tool=hook)
    return play(agent, **options), ran, model


def test_permission_deny_and_stop() -> None:
    def hook(tool: Any, arguments: Any) -> ToolPermission:
        return ToolPermission("deny", "not on Sundays", stop_turn=True)

    events, ran, model = ruled(hook, [call("act"), call("act")], "never")
    assert (ran, model.asked) == ([], 1)
    assert "stopped" in events[-1].content
    assert "not on Sundays" in events[-1].content
    assert kinds(events).count("tool_result") == 1


def test_permission_deny_without_stop() -> None:
    def hook(tool: Any, arguments: Any) -> ToolPermission:
        return ToolPermission("deny" if arguments["n"] > 1 else "allow", "too many")

    events, ran, model = ruled(hook, [call("act", n=1), call("act", n=2)], "continued")
    assert (ran, events[-1].content) == (["act 1"], "continued")
    assert results_shown(model.requests[1]) == ["acted", "Error: permission denied: too many"]


@pytest.mark.parametrize(
    "hook",
    [
        lambda tool, arguments: 1 / 0,
        lambda tool, arguments: "perhaps",
        lambda tool, arguments: None,
        lambda tool, arguments: True,
    ],
    ids=["raises", "says something else", "says nothing", "says True"],
)
def test_permission_a_hook_that_fails_denies(hook: Any) -> None:
    events, ran, model = ruled(hook, call("act"), "went on")
    assert (ran, events[-1].content) == ([], "went on")
    assert results_shown(model.requests[1])[0].startswith(
        "Error: permission denied: the permission check failed"
    )


def asynchronous(hook: Callable[..., Any]) -> Callable[..., Any]:
    """The same rule, which waits for something."""

    async def waiting(tool: Any, arguments: Any) -> Any:
        await asyncio.sleep(0)
        return hook(tool, arguments)

    return waiting


def test_permission_an_async_hook_is_waited_for() -> None:
    def hook(tool: Any, arguments: Any) -> Any:
        return "allow" if arguments["n"] < 2 else ToolPermission("deny", "too many")

    events, ran, model = ruled(asynchronous(hook), [call("act", n=1), call("act", n=2)], "continued")
    assert (ran, events[-1].content) == (["act 1"], "continued")
    assert results_shown(model.requests[1]) == ["acted", "Error: permission denied: too many"]


def test_permission_an_async_hook_may_stop_the_turn() -> None:
    hook = asynchronous(lambda tool, arguments: ToolPermission("deny", "not on Sundays", stop_turn=True))
    events, ran, model = ruled(hook, [call("act"), call("act")], "never")
    assert (ran, model.asked) == ([], 1)
    assert "stopped" in events[-1].content
    assert "not on Sundays" in events[-1].content


@pytest.mark.parametrize(
    "hook", [lambda *_: 1 / 0, lambda *_: "perhaps", lambda *_: None], ids=["raises", "else", "nothing"]
)
def test_permission_an_async_hook_that_fails_denies(hook: Any) -> None:
    events, ran, model = ruled(asynchronous(hook), call("act"), "went on")
    assert (ran, events[-1].content) == ([], "went on")
    assert results_shown(model.requests[1])[0].startswith(
        "Error: permission denied: the permission check failed"
    )


@pytest.mark.parametrize(("answer", "ran"), [("yes", ["act 7"]), ("no", []), (None, [])])
def test_permission_an_async_hook_may_ask_a_person(answer: str | None, ran: list[str]) -> None:
    seen: list[Any] = []

    async def person(message: Any) -> str | None:
        seen.append(message.data)
        return answer

    options = {} if answer is None else {"on_input": person}
    _, did, model = ruled(asynchronous(lambda *_: "ask"), call("act", n=7), "done", **options)
    assert did == ran
    assert seen == ([] if answer is None else [{"tool": "act", "arguments": '{"n":7}'}])
    assert ("nobody is there to ask" in results_shown(model.requests[1])[0]) is (answer is None)


def test_permission_an_async_method_is_a_hook_too() -> None:
    class Rule:
        async def __call__(self, tool: Any, arguments: Any) -> str:
            return "deny"

    _, ran, _ = ruled(Rule(), call("act"), "went on")
    assert ran == []


@pytest.mark.parametrize(("answer", "ran"), [("yes", ["act 7"]), ("no", []), ("what?", [])])
def test_permission_ask_is_shown_to_a_person(answer: str, ran: list[str]) -> None:
    seen: list[Any] = []

    async def person(message: Any) -> str:
        seen.append((message.intent, message.data))
        return answer

    events, did, _ = ruled(lambda tool, arguments: "ask", call("act", n=7), "done", on_input=person)
    assert did == ran
    assert seen == [("approval", {"tool": "act", "arguments": '{"n":7}'})]
    assert kinds(events)[:4] == ["step_start", "tool_call", "permission.preview", "permission.ready"]
    assert events[-1].content == "done"


@pytest.mark.parametrize(("waits", "times"), [(False, 1), (True, 2)], ids=["plain", "async"])
def test_permission_always_is_asked_once_unless_a_hook_is_waited_for(waits: bool, times: int) -> None:
    seen: list[Any] = []

    async def person(message: Any) -> str:
        seen.append(message.data["arguments"])
        return "always"

    def hook(tool: Any, arguments: Any) -> str:
        return "deny" if arguments["n"] == 3 else "ask"

    calls = [call("act", n=n) for n in (1, 2, 3)]
    _, did, _ = ruled(asynchronous(hook) if waits else hook, calls, "done", on_input=person)
    assert did == ["act 1", "act 2"]
    assert len(seen) == times


def test_permission_ask_with_nobody_there_is_no() -> None:
    _, ran, model = ruled(lambda tool, arguments: "ask", call("act"), "done")
    assert ran == []
    assert "nobody is there to ask" in results_shown(model.requests[1])[0]


def test_permission_a_person_who_fails_refuses() -> None:
    async def person(message: Any) -> str:
        raise OSError("the line is dead")

    events, ran, _ = ruled(lambda tool, arguments: "ask", call("act"), "done", on_input=person)
    assert (ran, events[-1].content) == ([], "done")


def test_permission_abort_while_a_person_thinks() -> None:
    async def playing() -> None:
        signal = asyncio.Event()

        async def person(message: Any) -> str:
            signal.set()
            await asyncio.Event().wait()
            return "yes"

        agent = LoopAgent(
            llm=Script([call("echo", value="x")]), tools=[echo], can_execute_tool=lambda *_: "ask"
        )
        with pytest.raises(AbortError):
            await agent.run("go", signal=signal, on_input=person)

    asyncio.run(playing())
