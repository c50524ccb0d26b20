"""However many requests a run has, each has its result until somebody fetches it, and after that too."""

import asyncio

import pytest

from antiphon import Agent, Usage, open_journal, open_run
from antiphon.errors import AntiphonError
from antiphon.kernel.facts.fold.calls import KEPT
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script, call
from antiphon.values.limits import RunLimits
from antiphon.values.model import Reply


def answers(request):
    """Each request is answered in its own words, after it asked another agent; and has its own usage."""
    text = request.messages[0].content
    number = int(text.split()[-1])
    if 'You are "helper"' in request.system:
        return Reply(f"help {number}", usage=Usage(number, 1))
    if len(request.messages) == 1:
        return Reply("", (call("call_agent", agent_name="helper", message=text),), "calls", Usage(number, 2))
    return Reply(f'{{"number": {number}}}', usage=Usage(number, 3))


TEAM = [Agent("lead", output_type=dict[str, int]), Agent("helper")]


async def check(run, request, number):
    result = await run.result(request)
    assert (result.value, result.outcome) == ({"number": number}, "completed")
    assert result.usage == Usage(3 * number, 6)
    assert [each.content for each in result.messages] == [
        f"item {number}", f"item {number}", f"help {number}", f'{{"number": {number}}}'
    ]  # fmt: skip


COUNT = 1_200
"""More than the state of a run remembers."""


async def asked(run):
    return [await run.post("lead", f"item {number}") for number in range(COUNT)]


@pytest.mark.slow
@pytest.mark.unwatched  # every event of it is folded again by what is tested
@pytest.mark.parametrize("order", ["as posted", "backwards"])
def test_every_answer_can_be_fetched(order):
    """By who asked, when all have long ended; and by another process that opens the run."""

    async def playing():
        journal = open_journal()
        async with open_run(TEAM, model=Script(answers), journal=journal) as run:
            requests = list(enumerate(await asked(run)))
            await asyncio.gather(*[check(run, request, number) for number, request in requests])
            state = await fold(journal, run.run_id)
            assert len(state.activations[0].done) == KEPT < COUNT
            requests = requests[::-1] if order == "backwards" else requests
            for number, request in requests:
                await check(run, request, number)
        async with open_run(TEAM, model=Script([]), journal=journal, run_id=run.run_id) as again:
            for number, request in requests[::50]:
                await check(again, request, number)
            with pytest.raises(AntiphonError, match="has no request"):
                await again.result(f"0/{COUNT + 9}.c1")

    asyncio.run(playing())


@pytest.mark.unwatched  # as above
def test_whoever_waits_is_told_though_all_end_in_one_moment():
    async def playing():
        async with open_run(TEAM, model=Script(lambda request: asyncio.Event().wait())) as run:
            requests = await asked(run)
            waiting = [asyncio.ensure_future(run.result(each)) for each in requests]
            await asyncio.sleep(0)
            await run.cancel()
            return [(each.outcome, each.call_id) for each in await asyncio.gather(*waiting)], requests

    outcomes, requests = asyncio.run(playing())
    assert outcomes == [("cancelled", each) for each in requests]


def test_what_could_not_even_be_asked_is_forgotten_and_found_alike():
    async def playing():
        journal = open_journal()
        async with open_run(
            TEAM, model=Script(["x"]), journal=journal, run_limits=RunLimits(activations=0)
        ) as run:
            requests = await asked(run)
            found = [(await run.result(each)).outcome for each in requests]
        return found, len((await fold(journal, run.run_id)).activations[0].done)

    found, remembered = asyncio.run(playing())
    assert (set(found), len(found), remembered) == ({"limit"}, COUNT, KEPT)
