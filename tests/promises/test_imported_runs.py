"""A run from elsewhere is quarantined: nothing that it was allowed there is allowed here."""

import asyncio

import pytest

from antiphon import Agent, Policy, open_run, tool
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.port import StoredRun
from antiphon.journal.transfer import named_blobs
from antiphon.models.script import Script, call


def payer(done, *replies, effect="once", hangs=None):
    @tool(effect=effect)
    async def pay(amount: int) -> str:
        "Pay."
        done.append(amount)
        if hangs is not None:
            hangs.set()
            await asyncio.Event().wait()
        return "paid"

    return Agent("payer", model=Script([*replies], by="turn"), tools=[pay], context="continue")


async def moved(journal):
    """The run, taken in by another journal."""
    rows = await journal.read("run")
    target = MemoryJournal()
    blobs = {name: await journal.blob("run", name) for name in named_blobs(rows)}
    await target.restore(StoredRun("run", rows, blobs))
    return target


@pytest.mark.parametrize(
    ("given", "allowed"), [({}, False), ({"policy": Policy("open")}, True), ({"policy": "strict"}, False)]
)
def test_what_was_open_elsewhere_asks_here_unless_somebody_here_says_otherwise(given, allowed):
    async def taken_in():
        done, there = [], MemoryJournal()
        agent = payer(done, call("pay", amount=5), "done")
        async with open_run([agent], journal=there, run_id="run", create=True, policy="open") as run:
            await run.result(await run.post("payer", "Pay"))
        here = await moved(there)
        for _ in range(2):
            options = {"journal": here, "run_id": "run", "interactive": False} | given
            again = payer(done, "x", "x", call("pay", amount=7), "done", call("pay", amount=7), "done")
            async with open_run([again], **options) as run:
                await run.result(await run.post("payer", "Pay again"))
        return done

    assert asyncio.run(taken_in()) == ([5, 7, 7] if allowed else [5])


def test_an_approval_that_was_remembered_elsewhere_is_asked_for_again():
    async def taken_in():
        done, there, asked = [], MemoryJournal(), []

        async def always(message):
            asked.append(message.data["tool"])
            return "always"

        async def pay_twice(journal, **options):
            turns = [call("pay", amount=5), "done"] * 4
            async with open_run([payer(done, *turns)], journal=journal, run_id="run", **options) as run:
                run.on_input(always)
                for _ in range(2):
                    await run.result(await run.post("payer", "Pay"))

        await pay_twice(there, create=True, policy="guarded")
        assert asked == ["pay"]
        await pay_twice(await moved(there))
        return asked, done

    assert asyncio.run(taken_in()) == (["pay", "pay"], [5] * 4)


def test_an_act_that_was_under_way_elsewhere_is_not_done_again_here():
    async def taken_in():
        done, there, hangs = [], MemoryJournal(), asyncio.Event()
        agent = payer(done, call("pay", amount=5), "done", effect="idempotent", hangs=hangs)
        async with open_run([agent], journal=there, run_id="run", create=True) as run:
            request = await run.post("payer", "Pay")
            await hangs.wait()
        here = await moved(there)
        again = payer(done, call("pay", amount=5), "done", effect="idempotent")
        async with open_run([again], journal=here, run_id="run", policy="open") as run:
            await run.result(request)
            shown = run.transcript("payer")[-2].content
        return done, shown

    done, shown = asyncio.run(taken_in())
    assert done == [5]
    assert (
        "it began elsewhere, before the run was taken in here; it may or may not have taken effect" in shown
    )
