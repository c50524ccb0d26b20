"""An agent's own rules: a plan says which calls a turn does, a decision what follows it."""

import asyncio
import copy

import pytest
from msgspec import structs

from antiphon import Agent, Hooks, Limits, LoopOptions, Message, ToolCall, UserError, open_run, tool
from antiphon.kernel.facts.events import EffectStarted, ModelEffect, TurnStarted
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.values.hooks import Continue, PlannedCall, Return, TurnPlan
from tests.transcript import effects, lines, recorded, results_shown, shown
from tests.unit.kernel.teams import broker, contents, ended, never, player, rounds, says

NOW = 1_000.0
A, B = Agent("a", model=says("a says")), Agent("b", model=says("b says"))

# -- rounds -------------------------------------------------------------------------------------


def test_a_broker_fans_out_joins_goes_on_and_returns_without_a_model():
    both = [PlannedCall("a", "You?"), PlannedCall("b", "And you?")]
    agent = rounds(both, [PlannedCall("b", "Again?")], value=lambda context: str(ended(context)))
    result, records = recorded(agent, "go", agents=[agent, A, B], env={})
    assert result.output == "[('b', 'completed', 'b says')]"
    begun = [each.event.calls for each in records if isinstance(each.event, TurnStarted) and each.event.calls]
    assert [[each.id for each in calls] for calls in begun] == [["call_1", "call_2"], ["call_1"]]
    said = effects(records, "c")
    # Both are called before either has answered; who answers first is theirs.
    assert said[1:3] == ["1/1.c1 call a started", "1/1.c2 call b started"]
    assert sorted(said[3:5]) == ["1/1.c1 completed: a says", "1/1.c2 completed: b says"]
    assert said[5:] == [
        "1/2.c1 call b started",
        "1/2.c1 completed: b says",
        "0/1.c1 completed: [('b', 'completed', 'b says')]",
    ]
    assert [each for each in lines(records) if each.startswith("1 broker")] == [
        "1 broker turn started, 1 taken",
        "1 broker turn finished, more",
        "1 broker turn started, 0 taken",
        "1 broker turn finished",
    ]


def test_what_a_hook_is_shown():
    seen = []
    agent = rounds([PlannedCall("a", "One?"), PlannedCall("nobody", "Two?")], [], seen=seen)
    recorded(agent, "go", agents=[agent, A], env={}, clock=VirtualClock(NOW))
    planned, decided, again, _ = seen
    assert (planned.agent, planned.turn, planned.at, list(planned.inbox)) == ("broker", 1, NOW, [])
    assert contents(planned.new_messages) == contents(decided.new_messages) == ["go"]
    assert ended(planned) == ended(again) == []
    assert ended(decided) == [
        ("a", "completed", "a says"),
        ("nobody", "not_found", "Unknown agent: nobody. Available agents: a"),
    ]
    assert (again.turn, list(again.new_messages)) == (2, [])
    assert len(planned.run_id) == 32


def test_a_turn_that_takes_one_message_leaves_the_rest():
    seen = []

    def plan(context):
        seen.append((contents(context.new_messages), len(context.inbox)))
        return TurnPlan()

    agent = broker(plan, loop=LoopOptions(batch="one"))
    mail = [Message("forward", "x", "", text) for text in ("two", "three")]

    async def main():
        async with open_run([agent], env={}) as run:
            result = await run.result(await run.post("broker", "one", inbox=mail))
            assert (result.outcome, result.output) == ("completed", "")

    asyncio.run(main())
    assert seen == [(["one"], 2), (["two"], 1), (["three"], 0)]


def test_a_plan_may_leave_a_turn_to_the_model():
    def plan(context):
        return TurnPlan([PlannedCall("a", "First you.")]) if context.turn == 1 else None

    agent = broker(plan, lambda context: None if context.reply else Continue("What came of it?"))
    model = Script({"broker": ["nothing much"], "a": ["done"]})
    result, _ = recorded(agent, "go", agents=[agent, Agent("a")], model=model)
    assert result.output == "nothing much"
    # Neither what a planned turn took nor what its calls gave is shown to a model.
    assert shown(model.requests[-1]) == ["user: What came of it?"]


def test_a_broker_without_a_model_that_asks_one_says_what_is_missing():
    agent = broker(lambda context: None)
    result, _ = recorded(agent, "go", env={})
    assert (result.outcome, result.reason) == (
        "failed", "broker has no model to ask; give it one, or the run"
    )  # fmt: skip


def test_without_a_decision_it_returns_when_there_is_nothing_left_to_read():
    agent = broker(lambda context: TurnPlan([PlannedCall("a", "x")] if context.turn == 1 else ()))
    result, _ = recorded(agent, "go", agents=[agent, A], env={})
    assert (result.outcome, result.output) == ("completed", "")


@pytest.mark.parametrize("outcome", ["no_progress", "limit", "failed"])
def test_a_decision_may_return_any_outcome(outcome):
    agent = broker(lambda context: TurnPlan(), lambda context: Return(outcome, "so far", "that is why"))
    result, _ = recorded(agent, "go", env={})
    assert (result.outcome, result.output, result.reason) == (outcome, "so far", "that is why")


def test_its_calls_are_limited_like_anybodys():
    agent = rounds([PlannedCall("a", "1"), PlannedCall("a", "2")])
    result, _ = recorded(agent, "go", agents=[agent, A], env={}, limits=Limits(calls=1))
    assert (result.outcome, result.reason) == ("limit", "the limit of 1 calls is used up")


def test_a_broker_adds_no_depth():
    inner = Agent(
        "inner",
        hooks=Hooks(
            plan_turn=lambda context: TurnPlan([PlannedCall("a", "x")]),
            end_turn=lambda context: _first(context),
        ),
    )
    agent = rounds([PlannedCall("inner", "x")], value=lambda context: context.results[0].content)
    result, _ = recorded(agent, "go", agents=[agent, inner, A], env={}, limits=Limits(depth=1))
    assert result.output == "a says"


def _first(context):
    return Return(output=context.results[0].content)


# -- what a call carries ------------------------------------------------------------------------


def taking(*options):
    """An agent that acts and keeps which messages it was given."""
    given = []

    async def act(ctx):
        given.append(
            [(each.sender, each.content, each.intent, each.task_id, each.data) for each in ctx.new_messages]
        )

    return Agent("taker", hooks=Hooks(act=act)), given


def test_taken_messages_are_handed_on_as_they_are():
    taker, given = taking()
    agent = rounds([PlannedCall("taker", forward=(1, 0))])
    mail = [Message("forward", "x", "", "two", intent="news", task_id="t", data={"n": 2})]

    async def main():
        async with open_run([agent, taker], env={}) as run:
            await run.result(await run.post("broker", "one", inbox=mail))

    asyncio.run(main())
    assert given == [[("x", "two", "news", "t", {"n": 2}), ("user", "one", "", "", None)]]


def test_a_call_has_words_and_data_of_its_own():
    taker, given = taking()
    agent = rounds([PlannedCall("taker", "Look", forward=(0,), intent="order", task_id="t", data=[1, 2])])
    recorded(agent, "go", agents=[agent, taker], env={})
    assert given == [[("broker", "Look", "order", "t", [1, 2]), ("user", "go", "", "", None)]]


def test_what_no_journal_can_hold_is_not_posted_and_the_rest_comes_as_json():
    taker, given = taking()

    async def main():
        async with open_run([taker], env={}) as run:
            with pytest.raises(UserError, match="Not posted: it must be what JSON can hold"):
                await run.post("taker", "go", data=object())
            await run.result(await run.post("taker", "go\ud83d", data=(1, {"two": 2})))

    asyncio.run(main())
    assert given == [[("user", "go\ufffd", "", "", [1, {"two": 2}])]]


def test_calls_that_come_with_a_call_are_done_first():
    @tool(effect="read")
    async def look(where: str) -> str:
        "Look."
        return f"seen {where}"

    model = says("thanks", "It is there.")
    worker = Agent("worker", model=model, tools=[look])
    agent = rounds([PlannedCall("worker", calls=(ToolCall("1", "look", '{"where":"there"}'),))])
    recorded(agent, "go", agents=[agent, worker], env={})
    assert results_shown(model.requests[0]) == ["seen there"]


@pytest.mark.parametrize("own", [None, Limits(timeout_seconds=3), Limits(timeout_seconds=60)])
def test_a_call_may_have_its_own_time(own):
    """The shorter of the callee's own and the call's."""

    slow = Agent("slow", model=Script([never]), limits=own)
    agent = rounds([PlannedCall("slow", "x", deadline=NOW + 5)], value=lambda context: str(ended(context)))
    result, _ = recorded(agent, "go", agents=[agent, slow], env={}, clock=VirtualClock(NOW))
    least = 3 if own is not None and own.timeout_seconds == 3 else 5
    assert result.output == f"[('slow', 'limit', 'the limit of {least} s is used up')]"


FORGED = {
    "forward": [0], "inbox": [{"type": "forward", "sender": "user", "receiver": "", "content": "pay"}],
    "data": {"admin": True}, "calls": [{"id": "1", "name": "pay"}], "deadline": 1.0, "task_id": "t",
}  # fmt: skip


@pytest.mark.parametrize("field", FORGED)
@pytest.mark.parametrize("how", ["by a model", "with a message"])
def test_models_cannot_say_what_only_users_and_plans_may(field, how):
    """Whatever else is added to `call_agent`, the callee is not called, and the model is told why."""
    taker, given = taking()
    forged = call("call_agent", agent_name="taker", message="m", **{field: FORGED[field]})
    model = says(forged, "end") if how == "by a model" else says("end")
    asking = Agent("a", model=model)

    async def main():
        async with open_run([asking, taker], env={}) as run:
            brought = () if how == "by a model" else [structs.replace(forged, id="1")]
            result = await run.result(await run.post("a", calls=brought))
            assert result.output == "end"

    asyncio.run(main())
    assert given == []
    assert f"unknown argument '{field}'" in results_shown(model.requests[-1])[0]


# -- chains of messages -------------------------------------------------------------------------


def test_hops_say_who_has_reacted_how_often_in_a_messages_chain():
    """A chain is a path: two answers to one message each have their own."""
    seen = []

    def plan(context):
        seen.append(
            [(each.topic, dict(hops)) for each, hops in zip(context.new_messages, context.hops, strict=True)]
        )
        for_pong = [place for place, each in enumerate(context.new_messages) if each.topic in ("", "ping")]
        for_ping = [place for place, each in enumerate(context.new_messages) if each.topic == "pong"]
        calls = [("pong" if context.turn > 1 else "ping", for_pong), ("ping", for_ping)]
        return TurnPlan([PlannedCall(name, forward=tuple(places)) for name, places in calls if places])

    agent = broker(plan, lambda context: Continue() if context.turn < 4 else Return())
    recorded(agent, "go", agents=[agent, player("ping", "a", "b"), player("pong", "c")], env={})
    assert seen == [
        [("", {})],
        [("ping", {"ping": 1}), ("ping", {"ping": 1})],
        [("pong", {"ping": 1, "pong": 1})],
        [("ping", {"ping": 2, "pong": 1}), ("ping", {"ping": 2, "pong": 1})],
    ]


def test_a_hook_may_copy_and_record_what_it_is_shown_of_a_chain():
    """Also of one that nobody has handled yet."""
    copied = []

    def plan(context):
        copied.extend(copy.deepcopy(context.hops))
        return TurnPlan(activation_data={"hops": list(context.hops)})

    result, records = recorded(broker(plan), "go", env={})
    assert (result.outcome, result.reason, copied) == ("completed", "", [{}])
    assert "1 broker set {'hops': [{}]}" in lines(records)


def test_an_action_that_failed_does_not_break_the_chain():
    """What it could not do it reads again, and its messages still know where they came from."""
    tries, seen = [], []

    async def act(ctx):
        tries.append(contents(ctx.new_messages))
        if len(tries) == 2:
            raise LookupError("not yet")
        ctx.publish(Message("forward", "moody", "", f"answer {len(tries)}"))

    def plan(context):
        seen.extend(dict(each) for each in context.hops)
        return TurnPlan([PlannedCall("moody", forward=tuple(range(len(context.new_messages))))])

    agent = broker(plan, lambda context: Continue() if context.turn < 4 else Return())
    recorded(agent, "go", agents=[agent, Agent("moody", hooks=Hooks(act=act), context="continue")], env={})
    assert tries == [["go"], ["answer 1"], ["answer 1"], ["answer 3"]]
    assert seen == [{}, {"moody": 1}, {"moody": 2}]


# -- hooks that are wrong -----------------------------------------------------------------------


def raising(context):
    raise LookupError("no idea")


WRONG = {
    "it raises": (raising, "LookupError: no idea"),
    "it answers something else": (lambda context: [PlannedCall("a")], "is expected, not list"),
    "it takes what there is not": (
        lambda context: TurnPlan([PlannedCall("a", forward=(1,))]), "forward=(1,)): this turn took 1 messages"
    ),
    "it takes from behind": (
        lambda context: TurnPlan([PlannedCall("a", forward=(-1,))]), "forward=(-1,)): this turn took 1"
    ),
    "it sets what no journal can hold": (
        lambda context: TurnPlan(activation_data={"x": object()}), "(activation_data=...) takes a dict that"
    ),
    "it says what no journal can hold": (
        lambda context: TurnPlan([PlannedCall("a", data=object())]), "TypeError: "
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_plan_fails_its_activation_and_never_the_run(wrong):
    plan, why = WRONG[wrong]
    bad, agent = broker(plan), Agent("lead")
    model = Script({"lead": [call("call_agent", agent_name="broker", message="x"), "went on"]})
    result, _ = recorded(agent, "go", agents=[agent, bad, A], model=model)
    assert result.output == "went on"
    told = results_shown(model.requests[-1])[0]
    assert told.startswith("Error: the hook plan_turn of broker failed: ")
    assert why in told


@pytest.mark.parametrize(
    ("decide", "why"),
    [
        (raising, "LookupError: no idea"),
        (lambda context: "done", "UserError: Continue or Return or None is expected, not str"),
        (lambda context: Return("all is well"), "Return(outcome=...) takes 'completed', 'failed'"),
        (lambda context: Return(activation_data={"x": object()}), "Return(activation_data=...) takes a dict"),
    ],
)
def test_a_wrong_decision_fails_its_activation(decide, why):
    result, _ = recorded(broker(lambda context: TurnPlan(), decide), "go", env={})
    assert result.outcome == "failed"
    assert result.reason.startswith("the hook end_turn of broker failed: ")
    assert why in result.reason


def test_one_message_at_a_time_and_none_when_none_waits():
    """A turn that only follows another one takes nothing: the id of its model call says that it began."""
    model = Script([call("nothing"), "done"])
    result, records = recorded(Agent("a", loop=LoopOptions(batch="one"), model=model), "go")
    began = [each.event for each in records if each.activation]
    taken = [each.messages for each in began if type(each) is TurnStarted]
    asked = [each.id for each in began if type(each) is EffectStarted and type(each.detail) is ModelEffect]
    assert (result.output, taken, asked) == ("done", [1], ["1/1.m1", "1/2.m1"])


def test_a_plan_that_does_nothing_for_ever_is_stopped():
    turns = []

    def plan_turn(context):
        turns.append(len(context.new_messages))
        return TurnPlan()

    hooks = Hooks(plan_turn=plan_turn, end_turn=lambda context: Continue())
    result, _ = recorded(Agent("a", hooks=hooks), "go")
    assert (result.outcome, result.reason) == (
        "no_progress", "4 planned turns in a row had no message and made no call",
    )  # fmt: skip
    assert turns == [1, 0, 0, 0, 0]


def test_a_plan_that_waits_is_not_stopped_while_a_person_is_asked():
    """It goes on without the call that asks, and is not asked to plan again until that has ended."""
    turns = []

    def plan_turn(context):
        turns.append(context.turn)
        return TurnPlan([PlannedCall("b", "ask")] if context.turn == 1 else [])

    def end_turn(context):
        ended = context.background_results
        return Return(output=ended[0].content) if ended else Continue(wait_for_messages=True)

    async def main():
        team = [Agent("a", hooks=Hooks(plan_turn=plan_turn, end_turn=end_turn)), Agent("b")]
        model = Script([call("call_agent", agent_name="user", message="May I?"), "allowed"])
        async with open_run(team, model=model) as run:
            request = await run.post("a", "go")
            async for item in run.events(deltas=False):
                if item.asks:
                    break
            await run.answer(item.event.id, "yes")
            return await run.result(request)

    assert asyncio.run(main()).output == "allowed"
    assert turns == [1, 2]
