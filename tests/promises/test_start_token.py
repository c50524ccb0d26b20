"""An acting tool begins only when it may, there and then: in the thread that runs it."""

import asyncio
import threading

import pytest

from antiphon import Agent, Policy, open_run, tool
from antiphon.errors import RunSuspended
from antiphon.journal.memory import MemoryJournal
from antiphon.journal.sqlite import SqliteJournal
from antiphon.kernel.facts.activation import OpenEffect
from antiphon.kernel.facts.events import ToolEffect
from antiphon.kernel.run.perform import use_tool
from antiphon.kernel.run.tools.start_token import StartToken
from antiphon.kernel.run.tools.threads import Threads
from antiphon.models.script import Script, call
from tests.promises.test_ownership import Clock


def worker_threads():
    return [each for each in threading.enumerate() if each.name == "antiphon-tool"]


def test_calls_that_wait_for_a_thread_when_the_run_is_left_never_begin():
    began, busy, let_go = [], threading.Semaphore(0), threading.Event()

    @tool
    def charge(card: int) -> str:
        "Charge a card."
        began.append(card)
        busy.release()
        let_go.wait()
        return "charged"

    agent = Agent("payer", model=Script([[call("charge", card=card) for card in range(40)]]), tools=[charge])

    async def left():
        async with open_run([agent], journal=MemoryJournal()) as run:
            await run.post("payer", "Charge them all")
            for _ in range(32):
                await asyncio.get_running_loop().run_in_executor(None, busy.acquire)
        let_go.set()
        for each in worker_threads():
            await asyncio.to_thread(each.join)

    asyncio.run(left())
    assert len(began) == 32


def test_a_call_that_found_no_thread_in_its_time_has_done_nothing_and_never_will():
    paid, let_go = [], threading.Event()

    @tool
    def hang(number: int) -> str:
        "Hang."
        let_go.wait()
        return ""

    @tool(timeout=0.05)
    def pay(amount: int) -> str:
        "Pay."
        paid.append(amount)
        return "paid"

    calls = [call("hang", number=number) for number in range(32)]
    agent = Agent("payer", model=Script([[*calls, call("pay", amount=5)], "done"]), tools=[hang, pay])

    async def told():
        async with open_run([agent], journal=MemoryJournal()) as run:
            request = await run.post("payer", "Pay")
            async for record in run.events(deltas=False):
                if getattr(record.event, "id", "") == "1/1.c33" and record.type == "EffectFinished":
                    break
            let_go.set()
            await run.result(request)
        for each in worker_threads():
            await asyncio.to_thread(each.join)
        return record.event

    end = asyncio.run(told())
    assert (end.outcome, paid) == ("failed", [])
    assert "not run, no thread was free for 0.05 s" in end.reason


@pytest.mark.parametrize("beats", [False, True])
@pytest.mark.parametrize("taken_over", [True, False])
def test_an_owner_that_stood_still_asks_whether_the_run_is_still_its_own_before_it_acts(
    tmp_path, taken_over, beats
):
    paid, busy, let_go = [], threading.Semaphore(0), threading.Event()

    @tool(effect="read")
    def hang(number: int) -> str:
        "Hang."
        busy.release()
        let_go.wait()
        return ""

    @tool
    def pay(amount: int) -> str:
        "Pay."
        paid.append(amount)
        return "paid"

    calls = [call("hang", number=number) for number in range(32)]
    agent = Agent("payer", model=Script([[*calls, call("pay", amount=5)], "done"]), tools=[hang, pay])

    async def standing_still():
        steady = Clock()
        mine = SqliteJournal(tmp_path / "journal.db", steady=steady)
        other = SqliteJournal(tmp_path / "journal.db", steady=steady)
        try:
            async with open_run([agent], journal=mine, run_id="run", create=True) as run:
                request = await run.post("payer", "Pay")
                for _ in range(32):
                    await asyncio.get_running_loop().run_in_executor(None, busy.acquire)
                await run.records()
                # The payment is on record, and waits for a thread; now the process is stopped for a minute.
                steady.ahead += 60
                if taken_over:
                    await other.claim("run")
                if beats:
                    # Its heartbeat was due long ago, and comes before anything else.
                    await mine.beat()
                let_go.set()
                return (await run.result(request)).output
        finally:
            let_go.set()
            await mine.close()
            await other.close()

    if taken_over:
        with pytest.raises(RunSuspended, match="another owner"):
            asyncio.run(standing_still())
        assert paid == []
    else:
        assert asyncio.run(standing_still()) == "done"
        assert paid == [5]


@pytest.mark.parametrize(
    ("version", "policy", "reason"),
    [
        ("1", None, ""),
        ("2", None, "it has changed since this call was allowed"),
        ("1", Policy(deny=("delete",)), "it is not run again: the policy denies delete"),
    ],
)
def test_after_a_crash_only_what_is_as_it_was_allowed_runs_again(version, policy, reason):
    async def crashed():
        journal, began, hanging = MemoryJournal(), [], asyncio.Event()

        def keeper(version, hangs):
            @tool(effect="idempotent", version=version)
            async def delete(tree: str) -> str:
                "Delete a tree."
                began.append(version)
                if hangs:
                    hanging.set()
                    await asyncio.Event().wait()
                return "deleted"

            return Agent(
                "keeper", model=Script([call("delete", tree="x"), "done"], by="turn"), tools=[delete]
            )

        async with open_run([keeper("1", True)], journal=journal, run_id="run", create=True) as run:
            request = await run.post("keeper", "Tidy up")
            await hanging.wait()
        async with open_run([keeper(version, False)], journal=journal, run_id="run", policy=policy) as run:
            await run.result(request)
            end = next(
                each.event for each in await run.records()
                if each.type == "EffectFinished" and each.event.id == "1/1.c1"
            )  # fmt: skip
        return began, end

    began, end = asyncio.run(crashed())
    if reason:
        assert (began, end.outcome) == (["1"], "unknown")
        assert reason in end.reason
        assert "it may or may not have taken effect" in end.reason
    else:
        assert (began, end.outcome) == (["1", "1"], "completed")


@pytest.mark.parametrize(("crashes", "outcome"), [(0, "failed"), (1, "unknown")])
def test_what_began_before_a_crash_and_not_again_after_it_may_have_taken_effect(crashes, outcome):
    @tool(effect="idempotent")
    async def rate() -> str:
        "Set a rate."
        return "set"

    opened = OpenEffect("1/1.c1", ToolEffect("rate"), 1, 1, 0, crashes=crashes)
    token = StartToken(opened, lambda: True)
    token.revoke()
    end = asyncio.run(use_tool(rate, "{}", opened, lambda: None, Threads, token))
    assert end.outcome == outcome
    assert ("it may or may not have taken effect" in end.reason) == bool(crashes)
