"""Retries, sessions, usage, schemas, typed answers."""

import asyncio
from typing import Any, Optional

import msgspec
import pytest

from antiphon import ModelError, RetryPolicy, RunFailed, Usage, open_run, tool
from antiphon.models.script import Script, call
from antiphon.styles.loop import (
    AgentServices,
    LlmRetryEvent,
    LoopAgent,
    ModelUsage,
)
from antiphon.styles.loop.options import AgentOptions, agent_of, retry_policy
from antiphon.testing.clock import VirtualClock
from antiphon.values.model import Reply
from tests.styles.loop.looping import ask, done, echo, kinds, play, waiting
from tests.transcript import results_shown, shown

# -- 5. retries ---------------------------------------------------------------------------------


def test_a_hint_is_waited_for_and_told() -> None:
    services, clock = waiting()
    model = Script([ModelError("rate_limit", "slow down", retry_after=2.0, status=429), "done"])
    events = play(LoopAgent(llm=model, services=services))
    retry = events[0]
    assert isinstance(retry, LlmRetryEvent)
    assert (retry.failure_kind, retry.next_attempt, retry.max_attempts) == ("rate_limit", 2, 3)
    assert (retry.delay_ms, retry.delay_source, retry.status, retry.provider) == (
        2_000,
        "provider",
        429,
        "script",
    )
    assert (kinds(events), clock.jumps) == (["llm.retry", "final"], [1_002.0])


def test_backoff_doubles_with_jitter_and_stays_under_its_ceiling() -> None:
    services, _ = waiting()
    model = Script([*[ModelError("overloaded", "busy", status=503)] * 4, "done"])
    agent = LoopAgent(llm=model, services=services, llm_max_retries=4, llm_retry_max_delay_ms=3_000)
    delays = [each.delay_ms for each in play(agent) if isinstance(each, LlmRetryEvent)]
    for delay, most in zip(delays, (1_000, 2_000, 3_000, 3_000), strict=True):
        assert most / 2 <= delay <= most


@pytest.mark.parametrize(
    ("failures", "asked", "waits"),
    [
        ([ModelError("rate_limit", "s", retry_after=86 * 60.0)], 1, 0),
        ([ModelError("overloaded", "s")] * 3, 2, 1),
        ([ModelError("quota", "no money left")], 1, 0),
        ([ModelError("auth", "who are you")], 1, 0),
    ],
    ids=["hint of 86 minutes", "exhausted", "quota", "auth"],
)
def test_when_it_is_not_tried_again(failures: list[Any], asked: int, waits: int) -> None:
    services, clock = waiting()
    model = Script([*failures, "never"])
    with pytest.raises(RunFailed) as caught:
        ask(LoopAgent(llm=model, services=services, llm_max_retries=1))
    assert (model.asked, len(clock.jumps)) == (asked, waits)
    assert caught.value.result.reason.startswith(failures[0].kind)


@pytest.mark.parametrize("kind", ["overloaded", ""])
def test_the_window_forbids_another_attempt_and_nothing_else(kind: Any) -> None:
    clock = VirtualClock(1_000.0, autojump=False)

    async def late(request: Any) -> Any:
        clock.advance(5.0)
        return ModelError(kind, "slow") if kind else "in the end"

    model = Script([late, "never"])
    agent = LoopAgent(llm=model, services=AgentServices(clock=clock), llm_retry_window_ms=4_000)
    if not kind:
        assert ask(agent) == "in the end"
        return
    with pytest.raises(RunFailed, match="are over"):
        ask(agent)
    assert model.asked == 1


def test_numbers_that_make_no_sense_are_the_defaults() -> None:
    nan = float("nan")
    found = retry_policy(
        AgentOptions(
            llm="x", llm_max_retries=4.9, llm_retry_base_delay_ms=-1, llm_retry_max_delay_ms=nan,
            llm_max_retry_after_ms=12345.9, llm_retry_window_ms=0,
        )
    )  # fmt: skip
    assert found == RetryPolicy(5, 1.0, 60.0, max_retry_after=12.345, max_elapsed=1200.0)


def test_retryable_status_codes_are_the_callers_choice() -> None:
    services, _ = waiting()
    failures = [ModelError("validation", "teapot", status=418), ModelError("overloaded", "busy", status=503)]
    model = Script([*failures, "never"])
    with pytest.raises(RunFailed, match="overloaded"):
        ask(LoopAgent(llm=model, services=services, llm_retryable_status_codes=[418]))
    assert model.asked == 2


# -- sessions, usage, schemas -------------------------------------------------------------------


def test_the_session_is_the_providers_key_too() -> None:
    model = Script(["a", "b", "c"])
    agent = LoopAgent(llm=model)
    ask(agent, session="s")
    ask(agent)
    ask(agent)
    keys = [each.session for each in model.requests]
    assert keys[0] == "s"
    assert keys[1] == keys[2] != "s"


def test_sessions_do_not_mix_and_continue() -> None:
    model = Script(["1", "2", "3"])
    agent = LoopAgent(llm=model)
    ask(agent, "one", session="s")
    ask(agent, "other", session="t")
    ask(agent, "two", session="s")
    assert shown(model.requests[2]) == ["user: one", "assistant: 1", "user: two"]


def test_a_session_continues_in_another_process(tmp_path: Any) -> None:
    journal = f"sqlite:///{tmp_path}/runs.db"
    first = LoopAgent(llm=Script([Reply("1", usage=Usage(60, 40), model="m")]), journal=journal)
    ask(first, "one", session="s")
    model = Script([Reply("2", usage=Usage(5, 5), model="m")])
    second = LoopAgent(llm=model, journal=journal)
    assert ask(second, "two", session="s") == "2"
    assert shown(model.requests[0]) == ["user: one", "assistant: 1", "user: two"]
    assert second.get_usage_summary("s").by_model == {"m": ModelUsage(2, 110)}


def test_a_request_that_a_stopped_process_left_is_gone_on_with(tmp_path: Any) -> None:
    journal = f"sqlite:///{tmp_path}/runs.db"
    script = [call("echo", value="x"), "done", "next"]

    async def stopped() -> None:
        """A process that dies while the model is asked for the second time."""

        async def never(request: Any) -> str:
            await asyncio.Event().wait()
            return "late"

        agent = agent_of(AgentOptions(llm=Script([script[0], never]), tools=[echo]))
        async with open_run([agent], journal=journal, run_id="s", create=True) as run:
            await run.post("agent", "go")
            async for item in run.events(deltas=False):
                if getattr(item.event, "id", "") == "1/2.m1":
                    break

    asyncio.run(stopped())
    agent = LoopAgent(llm=Script(script[1:]), tools=[echo], journal=journal)
    assert kinds(play(agent, None, session="s")) == ["final"]
    assert play(agent, None, session="s") == []
    assert ask(agent, "more", session="s") == "next"
    assert len(asyncio.run(agent.get_history_messages("s"))) == 6


def test_inside_async_with_sessions_stay_open() -> None:
    async def playing() -> list[str]:
        @tool(effect="read")
        async def extra() -> str:
            """Extra."""
            return "x"

        model = Script(["1", "2", call("extra"), "3", "4"])
        async with LoopAgent(llm=model) as agent:
            found = [await agent.run("a"), await agent.run("b")]
            found.append(await agent.run("c", tools=[extra]))
            found.append(await agent.run("d"))
        assert [text for text in shown(model.requests[-1]) if text.startswith("user")] == [
            f"user: {each}" for each in "abcd"
        ]
        return found

    assert asyncio.run(playing()) == ["1", "2", "3", "4"]


def test_replace_history_messages_heals_what_is_open() -> None:
    from antiphon.values.model import ChatMessage

    model = Script(["ok", "next"])
    agent = LoopAgent(llm=model, system_prompt="P")
    ask(agent, "first")
    given = [
        ChatMessage("system", "another prompt"),
        ChatMessage("user", "earlier"),
        ChatMessage("assistant", "", (msgspec.structs.replace(call("echo", value="x"), id="c1"),)),
        ChatMessage("user", "again"),
    ]
    asyncio.run(agent.replace_history_messages(given))
    ask(agent, "now")
    assert shown(model.requests[1]) == [
        "user: earlier", "assistant: [echo]", "tool: Error: interrupted", "user: again", "user: now"
    ]  # fmt: skip
    assert model.requests[1].system == "P"


def test_context_left() -> None:
    class Known:
        input_limit = 200

    class Registry:
        def find(self, model: str) -> Any:
            return Known() if model.startswith("m") else None

    agent = LoopAgent(
        llm=Script([Reply("x", usage=Usage(70, 30), model="m-2024-01-01")], name="m"),
        model_registry=Registry(),
    )
    assert agent.get_context_left_percent() is None
    ask(agent)
    assert agent.get_context_left_percent() == 50
    unknown = LoopAgent(llm=Script([Reply("x", usage=Usage(70, 30))]))
    ask(unknown)
    assert unknown.get_context_left_percent() is None


def test_usage_by_model() -> None:
    replies = [
        Reply("a", usage=Usage(10, 5, cache_read_tokens=4, reasoning_tokens=2), model="m1"),
        Reply("b", usage=Usage(20, 5), model="m1"),
        Reply("c", model="m1"),
        Reply("d", usage=Usage(1, 1)),
    ]
    agent = LoopAgent(llm=Script(replies))
    left: list[int | None] = []
    for _ in replies:
        ask(agent)
        left.append(agent._session(None).used)
    found = agent.get_usage_summary()
    assert (found.total_calls, found.total_tokens, found.input, found.output) == (3, 42, 31, 11)
    assert (found.cached_input, found.reasoning) == (4, 2)
    assert found.by_model == {"m1": ModelUsage(2, 40), "unknown": ModelUsage(1, 2)}
    assert left == [15, 25, None, 2]


def test_usage_tracking_can_be_off() -> None:
    agent = LoopAgent(llm=Script([Reply("a", usage=Usage(10, 5))]), enable_usage_tracking=False)
    ask(agent)
    assert agent.get_usage_summary().total_calls == 0


def test_optional_default_and_nullable() -> None:
    @tool
    async def f(must: int, nullable: Optional[int], short: int = 3, maybe: Optional[str] = None) -> str:  # noqa: UP045
        """F."""
        return f"{must} {nullable} {short} {maybe}"

    assert f.parameters["required"] == ["must", "nullable"]
    model = Script([call("f", must=1, nullable=None), "done"])
    ask(LoopAgent(llm=model, tools=[f]))
    assert results_shown(model.requests[1]) == ["1 None 3 None"]


def test_a_union_of_objects_keeps_its_branches_under_an_object() -> None:
    class Circle(msgspec.Struct):
        radius: float

    class Box(msgspec.Struct):
        side: float

    @tool
    async def draw(shape: Circle | Box) -> str:
        """Draw."""
        return type(shape).__name__

    assert draw.parameters["type"] == "object"
    assert len(draw.parameters["properties"]["shape"]["anyOf"]) == 2
    model = Script([call("draw", shape={"side": 1}), "done"])
    ask(LoopAgent(llm=model, tools=[draw]))
    assert results_shown(model.requests[1]) == ["Box"]


# -- structured output --------------------------------------------------------------------------


class Person(msgspec.Struct):
    name: str
    age: int


def test_output_type_is_asked_for_and_given_back() -> None:
    model = Script(['```json\n{"name": "Ada", "age": 36}\n```'])
    assert ask(LoopAgent(llm=model, output_type=Person)) == Person("Ada", 36)
    schema = model.requests[0].output_schema
    assert schema is not None
    assert set(schema["properties"]) == {"name", "age"}


def test_output_type_the_model_is_told_what_was_wrong() -> None:
    model = Script(["Ada, 36", '{"name": "Ada"}', '{"name": "Ada", "age": 36}'])
    assert ask(LoopAgent(llm=model, output_type=Person)) == Person("Ada", 36)
    told = [text for text in shown(model.requests[2]) if text.startswith("user: [system]")]
    assert len(told) == 2
    assert "age" in told[1]


def test_output_type_repair_is_bounded() -> None:
    model = Script(["no"] * 10)
    assert "[no_progress]" in ask(LoopAgent(llm=model, output_type=Person, max_reminders=2))
    assert model.asked == 3


def test_output_type_binds_a_done_tool_too() -> None:
    script = [call("done", message="nonsense"), call("done", message='{"name":"Bo","age":1}')]
    assert ask(LoopAgent(llm=Script(script), tools=[done], output_type=Person)) == Person("Bo", 1)
