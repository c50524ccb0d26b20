"""Scenarios: models that fail, and conversations that grow too long."""

from antiphon import ModelError, ModelOptions, RetryPolicy, Usage
from antiphon.models.script import call
from antiphon.values.agent import Compaction
from antiphon.values.model import Reply
from tests.oracle.stage import scenario
from tests.oracle.tools import agent, look

BUSY = ModelError("overloaded", "busy")
SUMMARY = "<retain>a fact</retain><summary>so far</summary><next>go on</next>"


def narrow(stage, replies):
    """A model that takes 1,000 tokens."""
    model = stage.script(replies)
    model.window = 1_000
    return model


def long(text, *calls):
    return Reply(text, calls, "calls" if calls else "stop", Usage(900, 1))


@scenario
async def tried_again(stage):
    told = ModelError("rate_limit", "slower", retry_after=3.5, status=429)
    failures = [BUSY, told, call("look"), ModelError("disconnected", "the stream broke"), "done"]
    await stage.ask(agent("a", model=stage.script(failures)))


@scenario
async def failed_for_good(stage):
    """Of a kind that is not tried again; attempts used up; told to wait too long."""
    await stage.ask(agent("a", model=stage.script([ModelError("auth", "no key", status=401)])))
    await stage.ask(
        agent(
            "a",
            model=stage.script([ModelError("disconnected", "broke")] * 3),
            asking=ModelOptions(retry=RetryPolicy(max_attempts=3)),
        )
    )
    await stage.ask(agent("a", model=stage.script([ModelError("rate_limit", "", retry_after=9_999)])))
    await stage.ask(agent("a"))


@scenario
async def texts_cut_short_and_refused(stage):
    for stop in ("length", "refusal"):
        await stage.ask(agent("a", model=stage.script([Reply("half", stop=stop)])))


@scenario
async def other_models_take_over(stage):
    """In the first turn; the next begins with the first again; and all fail."""
    first = stage.script([BUSY, BUSY, "done"], name="first")
    second = stage.script([call("look")], name="second")
    await stage.ask(
        agent(
            "a", model=first, asking=ModelOptions(fallback_models=[second], retry=RetryPolicy(max_attempts=2))
        )
    )
    first, second = (stage.script([BUSY], name=name) for name in ("first", "second"))
    await stage.ask(
        agent(
            "a", model=first, asking=ModelOptions(fallback_models=[second], retry=RetryPolicy(max_attempts=1))
        )
    )


@scenario
async def a_model_that_keeps_failing_is_left_alone(stage):
    first = stage.script([BUSY] * 5 + ["well again"], name="first")
    one = agent("a", model=first, asking=ModelOptions(retry=RetryPolicy(max_attempts=1)))
    async with stage.open(one) as run:
        for number in range(7):
            if number == 6:
                stage.clock.advance(3_600)
            await stage.ended(run, await run.post("a", "go"))


@scenario
async def a_long_conversation_is_compacted(stage):
    replies = [long("one", call("look")), SUMMARY, long("two", call("look")), "nothing of use", "done"]
    await stage.ask(
        agent("a", model=narrow(stage, replies), asking=ModelOptions(compaction=Compaction(last_turns=1)))
    )


@scenario
async def a_conversation_too_long_for_its_provider(stage):
    """It is compacted once; when that does not help the agent fails."""
    context = ModelError("context_length", "too long", status=400)
    for replies in ([call("look"), context, SUMMARY, "done"], [call("look"), context, SUMMARY, context]):
        await stage.ask(agent("a", tools=[look], model=stage.script(replies)))


@scenario
async def a_summary_that_cannot_be_made(stage):
    replies = [long("one", call("look")), ModelError("auth", "no"), "done"]
    await stage.ask(agent("a", model=narrow(stage, replies)))
