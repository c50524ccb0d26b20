"""Mail is read in the order it came, all of it, once; what cannot be read is said to be dead."""

import asyncio
import random

import pytest

from antiphon import Agent, Limits, open_run
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.facts.events import MessagePosted
from antiphon.kernel.run.commands import AskAgent, PostMessage, encode
from antiphon.models.script import Script
from antiphon.testing.invariants import check_run


class Gate:
    """A model that waits to be let through, once per call."""

    name = "gate"

    def __init__(self):
        self.turns = asyncio.Semaphore(0)
        self.script = Script(["one", "two", "three", "four", "five", "six", "seven"])

    async def complete(self, request, emit):
        await self.turns.acquire()
        return await self.script.complete(request, emit)


async def settle():
    for _ in range(20):
        await asyncio.sleep(0)


def heard(run, activation=1):
    return [each.content for each in run.activation(activation).messages if each.role == "user"]


def test_commands_are_applied_in_the_order_they_came_whichever_way():
    async def main(seed):
        draw = random.Random(seed)
        gate, journal = Gate(), MemoryJournal()
        async with open_run([Agent("a")], journal=journal, model=gate, env={}) as run:
            call_id = await run.post("a", "0")
            sent = ["0"]
            for number in range(1, 60):
                text = str(number)
                sent.append(text)
                if draw.random() < 0.5:
                    await run.post(call_id, text)
                else:
                    await journal.post(run.run_id, f"key {number}", encode(PostMessage(call_id, text)))
                    await settle()
                if number % 17 == 0:
                    gate.turns.release()
                    await settle()
            for _ in range(2):
                gate.turns.release()
                await settle()
                if await run.open_requests():
                    assert heard(run) == sent[: len(heard(run))]
            result = await run.result(call_id)
            said = [each.content for each in result.messages if each.type == "forward"]
            assert said == sent
            assert result.outcome == "completed"
        await check_run(journal, run.run_id)

    for seed in range(10):
        asyncio.run(main(seed))


def test_a_command_with_a_known_key_is_applied_once():
    async def main():
        gate, journal = Gate(), MemoryJournal()
        async with open_run([Agent("a")], journal=journal, model=gate, env={}) as run:
            call_id = await run.post("a", "0")
            for _ in range(50):
                await journal.post(run.run_id, "same", encode(PostMessage(call_id, "more")))
                await settle()
            gate.turns.release()
            gate.turns.release()
            result = await run.result(call_id)
            assert [each.content for each in result.messages if each.type == "forward"] == ["0", "more"]

    asyncio.run(main())


def test_a_full_inbox_refuses_the_newest_and_what_was_never_read_is_dead():
    async def main():
        gate, journal = Gate(), MemoryJournal()
        async with open_run([Agent("a")], journal=journal, model=gate, env={}, limits=Limits(inbox=3)) as run:
            call_id = await run.post("a", "0")
            for number in range(1, 6):
                await journal.post(run.run_id, str(number), encode(PostMessage(call_id, str(number))))
                await settle()
            assert [each.content for each in run.activation(1).inbox] == ["1", "2", "3"]
            await run.cancel(call_id, "enough")
            await run.result(call_id)
            dead = [
                (each.event.message.content, each.event.dead_letter)
                for each in await run.records()
                if type(each.event) is MessagePosted and each.event.dead_letter
            ]
        assert [text for text, _ in dead] == ["4", "5", "1", "2", "3"]
        assert all("full" in why for _, why in dead[:2])
        assert all("ended before" in why for _, why in dead[2:])

    asyncio.run(main())


def test_a_message_that_comes_during_the_last_turn_is_still_read():
    async def main():
        gate, journal = Gate(), MemoryJournal()
        async with open_run([Agent("a")], journal=journal, model=gate, env={}) as run:
            call_id = await run.post("a", "0")
            await settle()
            await run.post(call_id, "wait, one more")
            gate.turns.release()
            await settle()
            assert heard(run) == ["0", "wait, one more"]
            gate.turns.release()
            assert (await run.result(call_id)).output == "two"

    asyncio.run(main())


@pytest.mark.parametrize(
    "body",
    [
        b"", b"null", b"[" * 100_000, b'{"type":"Ask"}', b'{"type":"os.system"}', b"\xff",
        b'{"type":"\xff"}', b'{"type":"Ask","type":5}', b'{"type":"Ask"', b'{"type":"Cancel","why":3}',
    ],
)  # fmt: skip
def test_what_is_no_command_is_a_dead_letter_and_stops_nobody(body):
    async def main():
        journal, model = MemoryJournal(), Script(["done"])
        async with open_run([Agent("a")], journal=journal, model=model, env={}) as run:
            await journal.post(run.run_id, "bad", body)
            await journal.post(run.run_id, "good", encode(AskAgent("a", "hi")))
            await settle()
            assert (await run.result("0/1.c1")).output == "done"
            posted = [each.event for each in await run.records() if type(each.event) is MessagePosted]
            assert "cannot be read" in posted[0].dead_letter

    asyncio.run(main())
