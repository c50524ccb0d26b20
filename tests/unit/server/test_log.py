"""The log of a server: what each line says, and what none says."""

import io
import json
import logging

import pytest
from litestar import get

from antiphon import Agent, tool
from antiphon.models.script import Script, call
from antiphon.server.log import LOGGERS, JsonLog, TextLog, begin_log
from antiphon.server.permissions import allowed
from tests.unit.server.teams import TOKEN, desk, in_time, payer, served, started, until_asked, until_done

SECRET = "the word that nobody may read"


@pytest.fixture
def logged():
    """Begins a log; what was written since."""
    before = {name: (logging.getLogger(name).handlers[:], logging.getLogger(name).level) for name in LOGGERS}
    stream = io.StringIO()

    def begin(form):
        begin_log(form, stream)
        return lambda: stream.getvalue().splitlines()

    yield begin
    for name, (handlers, level) in before.items():
        logging.getLogger(name).handlers[:] = handlers
        logging.getLogger(name).setLevel(level)


def about(lines, *names):
    return [tuple(line.get(name) for name in names) for line in map(json.loads, lines)]


def test_a_request_is_one_line_with_route_status_time_subject_and_run(logged):
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            run_id = await started(client)
            await until_done(client, run_id)
            await client("GET", f"/runs/{run_id}?token=abc")
            await client("GET", "/runs?text=secret-query")
            await client("GET", "/runs/not-there")
            await client.as_("a wrong token")("GET", "/runs")
            await client("GET", "/no/such/place")
        return run_id

    lines = logged("json")
    run_id = in_time(work)
    found = about(
        [each for each in lines() if '"method"' in each], "method", "route", "status", "subject", "run_id"
    )
    assert ("POST", "/runs", 201, "local", None) in found
    assert ("GET", "/runs/{run_id}/events", 200, "local", run_id) in found
    assert found[-5:] == [
        ("GET", "(none)", 400, None, None),
        ("GET", "/runs", 200, "local", None),
        ("GET", "/runs/{run_id}", 404, "local", None),
        ("GET", "(none)", 401, None, None),
        ("GET", "(none)", 404, "local", None),
    ]
    said = "\n".join(lines())
    for word in ("Hello", "secret-query", "abc", TOKEN, "not-there", "wrong token", "such"):
        assert word not in said, word
    assert all(each >= 0 for (each,) in about([each for each in lines() if '"ms"' in each], "ms"))


def test_a_websocket_is_a_line_when_it_ends(logged):
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _), client.as_("").socket() as socket:
            assert (await socket.ask({"type": "hello", "request_id": "1", "token": TOKEN}))["type"]

    lines = logged("json")
    in_time(work)
    found = about([each for each in lines() if '"method"' in each], "method", "route", "status")
    assert found[0] == ("WEBSOCKET", "/ws", 101)


def test_how_runs_stand_is_in_it_and_nothing_that_was_said(logged):
    @tool(effect="read")
    def look(what: str) -> str:
        """Look."""
        raise ValueError(SECRET)

    clerk = Agent("clerk", SECRET, model=Script([call("look", what=SECRET), SECRET], by="turn"), tools=[look])

    async def work():
        async with served({"desk": [clerk]}) as (client, _):
            run_id = await started(client, message=SECRET)
            await until_done(client, run_id)
        return run_id

    lines = logged("json")
    run_id = in_time(work)
    of_runs = [each for each in lines() if json.loads(each)["logger"] == "antiphon.run"]
    told = [message for (message,) in about(of_runs, "message")]
    assert f"Run {run_id}: request 0/1.c1 of clerk ended: completed" in told
    failed = next(json.loads(each) for each in of_runs if "ValueError" in each)
    assert failed["message"] == f"Run {run_id}: look of clerk failed, 1/1.c1: ValueError"
    assert failed["places"][0] == "ValueError"
    assert failed["places"][-1].endswith("in look")
    assert SECRET not in "\n".join(lines())


def test_a_fault_of_ours_says_its_place_and_not_its_text(logged):
    @get("/faulty", **allowed("read"))
    async def faulty() -> str:
        raise RuntimeError(SECRET)

    async def work():
        async with served({"desk": desk("Hello.")}, more=(faulty,)) as (client, _):
            assert (await client("GET", "/faulty")).status == 500

    lines = logged(None)
    in_time(work)
    (line,) = lines()
    assert "ERROR request failed: RuntimeError" in line
    assert line.endswith("in faulty")
    assert SECRET not in line


@pytest.mark.parametrize("form", [JsonLog(), TextLog()])
def test_nothing_in_a_record_makes_a_second_line(form):
    evil = 'x\n{"forged": 1}\r\x1b[2J\x85\u2028\u202e\x00y' + "z" * 10_000
    record = logging.LogRecord("antiphon.run", logging.INFO, "f", 1, "Run %s", (evil,), None)
    record.run_id, record.subject, record.ms = evil, evil, 1.0
    try:
        raise ValueError(evil)
    except ValueError as error:
        record.exc_info = (ValueError, error, error.__traceback__)
    line = form.format(record)
    assert len(line.splitlines()) == 1
    assert len(line) < 12_000
    assert all(each.isprintable() for each in line)


def test_without_a_log_requests_are_no_lines(logged):
    async def work():
        async with served({"desk": desk("Hello.")}) as (client, _):
            await until_done(client, await started(client))

    lines = logged(None)
    in_time(work)
    assert lines() == []


def test_why_an_answer_was_refused_is_not_in_it_since_that_may_quote_the_answer(logged):
    async def work():
        async with served({"desk": payer()}) as (client, _):
            run_id = await started(client)
            question = await until_asked(client, run_id)
            body = {"question": question["id"], "content": "yes", "arguments": json.dumps({"amount": SECRET})}
            assert (await client("POST", f"/runs/{run_id}/answers", body)).status == 409

    lines = logged("text")
    in_time(work)
    assert [each for each in lines() if each.endswith("command 2 was refused")]
    assert SECRET not in "\n".join(lines())
