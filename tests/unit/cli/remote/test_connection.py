"""A run on a server, read and asked through ServerRun: the same as through a connection to its journal."""

import asyncio

import pytest

from antiphon import Agent
from antiphon.cli import exit_codes
from antiphon.cli.remote.address import ServerAddress
from antiphon.cli.remote.client import ServerClient, ServerRefused
from antiphon.cli.remote.connection import connect_server
from antiphon.cli.remote.runs import ServerRuns
from antiphon.cli.store import RunSource
from antiphon.errors import ConfigError
from antiphon.models.script import Script, call
from antiphon.server.routes.bodies import CreateRun
from antiphon.values.secret import Secret
from antiphon.view import connect
from tests.unit.cli.remote.serving import TOKEN, serving
from tests.unit.server.teams import Held, pay


def in_server(tmp_path, teams, work):
    """Do `work(runs, journal)` beside a server."""

    async def bounded(url):
        async with asyncio.timeout(20), ServerClient(ServerAddress(url, Secret(TOKEN))) as client:
            await work(ServerRuns(RunSource(server=url), client, print), f"sqlite:///{tmp_path}/runs.db")

    with serving(tmp_path / "runs.db", teams) as server:
        asyncio.run(bounded(server.url))


async def until(events, enough):
    async for each in events:
        if enough(each):
            return each
    raise AssertionError("the run ended before")


@pytest.mark.slow
def test_everything_is_read_alike(tmp_path):
    clerk = Agent("clerk", model=Script([call("pay", amount=3), "paid"], by="turn"), tools=[pay])

    async def work(runs, journal):
        run_id = await runs.start(CreateRun("clerk", "Pay."), "once")
        assert await runs.start(CreateRun("clerk", "Pay."), "once") == run_id
        async with connect_server(runs.client, run_id, print) as there, connect(journal, run_id) as here:
            events = there.events(deltas=False)
            await until(events, lambda each: each.asks is not None)
            (question,) = await there.open_questions()
            assert (question,) == await here.open_questions()
            assert (question.agent, question.tool, question.arguments) == ("clerk", "pay", '{"amount":3}')
            assert await there.records() == await here.records()
            assert await there.records(3) == (await here.records())[3:]
            assert (await there.tree()).seq == (await here.tree()).seq == there.seq
            assert (await there.tree(5)).seq == 5
            assert await there.view(1) == await here.view(1)
            asked = await there.request_of("1/1.m1")
            assert asked == await here.request_of("1/1.m1")
            assert asked.verified
            prefix = (await here.tree()).activations[1].prefix
            assert await there.blob(prefix) == await here.blob(prefix)
            with pytest.raises(exit_codes.NotFound):
                await there.request_of("9/9.m9")
            with pytest.raises(ServerRefused, match="yes, no or always"):
                await there.answer(question.id, "perhaps")
            command = await there.answer(question.id, "yes")
            assert await there.taken(command) == question.id
            await until(events, lambda each: getattr(each.event, "id", "") == "0/1.c1" and each.seq > 10)
            await events.aclose()
            with pytest.raises(exit_codes.Settled, match="was answered 'yes' by outsider local"):
                await there.answer(question.id, "no")
            again = await there.taken(await there.ask("clerk", "Pay once more."))
            assert again == "0/2.c1"
            await there.cancel(again, "changed my mind")
            await runs.end(run_id, "enough")
            with pytest.raises(ServerRefused, match="is closed"):
                await there.ask("clerk", "Hello?")

    in_server(tmp_path, {"clerk": clerk}, work)


def test_what_was_said_to_an_agent_at_work_is_taken_in(tmp_path):
    model = Held()

    async def work(runs, journal):
        run_id = await runs.start(CreateRun("desk", "Begin."), "once")
        async with connect_server(runs.client, run_id, print) as there:
            events = there.events()
            piece = await until(events, lambda each: hasattr(each, "text"))
            assert piece.text == "Half an "
            assert await there.taken(await there.post("0/1.c1", "Hurry.")) == ""
            assert await there.taken(await there.cancel("", "enough")) == ""
            await events.aclose()
        with pytest.raises(exit_codes.NotFound, match="No run starts with"):
            await runs.find("nobody")
        with pytest.raises(ConfigError, match=r"has no team ./team.py: .* one of its teams: desk$"):
            await runs.team("./team.py")

    in_server(tmp_path, {"desk": Agent("desk", model=model)}, work)
