"""A run as a dialogue: the same for whoever was there from the beginning and for who joins at any record."""

import asyncio
import copy
from contextlib import aclosing

import msgspec
import pytest

from antiphon import Agent, ModelError, Record, ReplyDelta, open_run, tool
from antiphon.errors import JournalCorrupt
from antiphon.journal.memory import MemoryJournal
from antiphon.models.script import Script, call
from antiphon.values.model import Delta, Reply, Usage
from antiphon.view import RunTree, connect
from antiphon.view.dialogue import AgentText, Dialogue, Exchange, PersonAsked, ToolPart, UserText
from tests.transcript import until
from tests.unit.view.test_every_cursor import PLAYED, played


def seen(dialogue):
    """All that a dialogue shows, as plain data."""
    return msgspec.to_builtins(dialogue.requests)


def lines(exchange, level=0):
    """An exchange as a person would read it."""
    pad = "  " * level
    yield f"{pad}{exchange.caller} > {exchange.agent}: {exchange.text}"
    for part in exchange.parts:
        match part:
            case Exchange():
                yield from lines(part, level + 1)
            case UserText(text=text):
                yield f"{pad}  user: {text}"
            case AgentText(agent=agent, text=text):
                if text:
                    yield f"{pad}  {agent}: {text}"
            case ToolPart(name=name, arguments=arguments, outcome=outcome, content=content):
                yield f"{pad}  {name} {arguments} {outcome} {content}".rstrip()
            case PersonAsked(asks_for=what, tool=about, answer=answer, by=by):
                yield f"{pad}  {what} {about}: {answer} by {by}"
    yield f"{pad}{exchange.agent} {exchange.outcome}: {exchange.content}"


# -- the same for everyone -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAYED)
def test_who_joins_at_any_record_has_the_same_dialogue_as_who_was_there(name, tmp_path):
    for records in played(name, tmp_path):
        whole = Dialogue()
        at = [seen(whole)]
        for record in records:
            whole.add(record)
            at.append(seen(whole))
        assert whole.requests
        for cursor in range(len(records) + 1):
            joined = Dialogue(RunTree.of(records[:cursor]))
            assert seen(joined) == at[cursor], cursor
            for record in records[cursor:]:
                joined.add(record)
            assert seen(joined) == at[-1], cursor


@pytest.mark.parametrize("name", PLAYED)
def test_who_applies_the_changed_parts_has_the_whole_dialogue(name, tmp_path):
    for records in played(name, tmp_path):
        dialogue, known = Dialogue(), {}
        for record in records:
            for part in dialogue.add(record):
                known[part.id] = copy.deepcopy(part)
        left = list(dialogue.requests.values())
        while left:
            part = left.pop()
            if isinstance(part, Exchange):
                left += part.parts
                part = msgspec.structs.replace(part, parts=[])
                known[part.id] = msgspec.structs.replace(known[part.id], parts=[])
            assert known[part.id] == part


# -- what it shows ---------------------------------------------------------------------------------------


@tool(requires_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def test_what_a_chat_client_shows():
    async def talk():
        journal = MemoryJournal()
        to_clerk = call("call_agent", agent_name="clerk", message="Pay 3.")
        lead = Agent(
            "lead",
            model=Script(
                [
                    Reply("Let me ask.", (to_clerk,), "calls"),
                    [call("call_agent", agent_name="user", message="Sure?")],
                    "Done.",
                ]
            ),
        )
        clerk = Agent("clerk", model=Script([call("pay", amount=3), "Paid."]), tools=[pay])
        async with open_run([lead, clerk], journal=journal, interactive=True) as run:
            request = await run.post("lead", "Pay it.")
            await until(run, "2/1.c1? wait approval pay started")
            async with connect(journal, run.run_id) as other:
                asked = Dialogue(await other.tree())
                assert asked.requests[request].waits
                await run.answer("2/1.c1?", "yes", by="ann")
                await until(run, "1/2.c1 wait question user started")
                await run.answer("1/2.c1", "yes", by="ben")
                await run.result(request)
                return list(lines(Dialogue(await other.tree()).requests[request]))

    assert asyncio.run(talk()) == [
        "user > lead: Pay it.",
        "  lead: Let me ask.",
        "  lead > clerk: Pay 3.",
        "    approval pay: yes by ann",
        '    pay {"amount":3} completed paid 3',
        "    clerk: Paid.",
        "  clerk completed: Paid.",
        "  question : yes by ben",
        "  lead: Done.",
        "lead completed: Done.",
    ]


def test_what_the_user_adds_is_unread_until_a_turn_takes_it_up():
    async def talk():
        journal, gate = MemoryJournal(), asyncio.Event()

        @tool(effect="read")
        async def look() -> str:
            """Look."""
            await gate.wait()
            return "seen"

        agent = Agent("a", model=Script([call("look"), "Blue, then."]), tools=[look])
        async with open_run([agent], journal=journal) as run, connect(journal, run.run_id) as other:
            request = await run.post("a", "Which?")
            await until(run, "1/1.c1 tool look started")
            await other.taken(await other.post(request, "Blue."))
            before = Dialogue(await other.tree()).requests[request]
            gate.set()
            await run.result(request)
            after = Dialogue(await other.tree()).requests[request]
        return [each.text for each in before.unread], after.unread, list(lines(after))

    unread, later, shown = asyncio.run(talk())
    assert (unread, later) == (["Blue."], [])
    assert shown == [
        "user > a: Which?",
        "  look {} completed seen",
        "  user: Blue.",
        "  a: Blue, then.",
        "a completed: Blue, then.",
    ]


def test_pieces_are_shown_and_those_of_a_lost_attempt_are_not():
    class Halting:
        name = "halting"
        asked = 0

        async def complete(self, request, emit):
            self.asked += 1
            emit(Delta("text", "half an ans" if self.asked == 1 else "an answer"))
            if self.asked == 1:
                await seen_half.wait()
                raise ModelError("disconnected", "the stream broke", retry_after=0)
            return Reply("an answer", usage=Usage(1, 1))

    seen_half = asyncio.Event()

    async def talk():
        journal = MemoryJournal()
        async with open_run([Agent("a", model=Halting())], journal=journal) as run:
            dialogue, texts = Dialogue(), []

            async def watch():
                async with connect(journal, run.run_id) as other, aclosing(other.events()) as events:
                    async for item in events:
                        for part in dialogue.add(item):
                            if isinstance(part, AgentText):
                                texts.append((part.id, part.text))
                            if texts[-1:] == [("1/1.m1", "half an ans")]:
                                seen_half.set()
                        assert isinstance(item, Record | ReplyDelta)

            watching = asyncio.ensure_future(watch())
            await until(run, "run started")
            request = await run.post("a", "go")
            await run.result(request)
            await run.close()
            await watching
            return texts, list(lines(dialogue.requests[request])), seen(dialogue), await run.records()

    texts, shown, whole, records = asyncio.run(talk())
    assert ("1/1.m1", "half an ans") in texts
    assert ("1/1.m1", "") in texts
    assert ("1/1.m2", "an answer") in texts
    assert shown == ["user > a: go", "  a: an answer", "a completed: an answer"]
    assert seen(Dialogue(RunTree.of(records))) == whole


def test_a_request_of_nobody_is_shown_with_its_end():
    async def talk():
        journal = MemoryJournal()
        async with (
            open_run([Agent("a", model=Script([]))], journal=journal) as run,
            connect(journal, run.run_id) as other,
        ):
            await other.taken(await other.ask("nobody", "Hello?"))
            return Dialogue(await other.tree())

    (found,) = asyncio.run(talk()).requests.values()
    assert (found.agent, found.text, found.outcome, found.parts) == ("nobody", "Hello?", "not_found", [])


def test_a_record_that_cannot_follow_is_refused():
    async def talk():
        journal = MemoryJournal()
        async with open_run([Agent("a", model=Script(["one"]))], journal=journal) as run:
            await run.result(await run.post("a", "go"))
            return await run.records()

    records = asyncio.run(talk())
    end = next(each for each in records if each.type == "EffectFinished")
    wrong = msgspec.structs.replace(end, event=msgspec.structs.replace(end.event, id="nothing"))
    with pytest.raises(JournalCorrupt, match=f"at record {wrong.seq}"):
        Dialogue(RunTree.of(records[: wrong.seq - 1])).add(wrong)


def test_pieces_of_what_is_not_shown_or_is_over_change_nothing():
    dialogue = Dialogue()
    assert dialogue.add(ReplyDelta("7/1.m1", 7, "a", "text", "late")) == ()
    assert dialogue.requests == {}
