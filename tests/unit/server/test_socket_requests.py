"""A request over the WebSocket says what one over HTTP can say."""

from antiphon import Agent
from antiphon.kernel.facts.events import MessagePosted
from antiphon.models.script import Script
from tests.unit.server.teams import in_time, served, until_done
from tests.unit.server.test_socket import hello


def test_requests_say_what_was_said_before_and_whose_trace_they_are_a_part_of():
    spans = [f"00-{digit * 32}-00f067aa0ba902b7-01" for digit in "45"]
    before = [{"role": "user", "content": "My name is Ada."}, {"role": "assistant", "content": "Hello, Ada."}]
    asked = []

    def answer(request):
        asked.append([each.content for each in request.messages])
        return "Ada."

    async def work():
        agent = Agent("desk", model=Script([answer] * 3))
        async with served({"desk": agent}) as (client, host), client.as_("").socket() as socket:
            await hello(socket)
            start = {"type": "start_run", "team": "desk", "message": "Who am I?", "history": before}
            ready = await socket.ask(
                start | {"request_id": "s", "conversation": True, "traceparent": spans[0]}
            )
            run_id = ready["run_id"]
            await until_done(client, run_id)
            more = {"type": "send_to_run", "run_id": run_id, "message": "Sure?"}
            await socket.ask(more | {"request_id": "m", "traceparent": spans[1]})
            await until_done(client, run_id, 2)
            await socket.ask(more | {"request_id": "n", "traceparent": "none"})
            await until_done(client, run_id, 3)
            told = {"request_id": "o", "call_id": "0/1.c1", "history": before}
            assert (await socket.ask(more | told))["code"] == "refused"
            async with host.connect(run_id) as run:
                events = [record.event for record in await run.records()]
            return [each.traceparent for each in events if isinstance(each, MessagePosted) and not each.to]

    assert in_time(work) == [*spans, ""]
    assert asked[0] == ["My name is Ada.", "Hello, Ada.", "Who am I?"]
    assert asked[1] == [*asked[0], "Ada.", "Sure?"]
    assert asked[2][-1] == "Sure?"
