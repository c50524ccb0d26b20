"""The program's log: what an operator looks for is there once, with run, agent and effect."""

import asyncio
import logging
import subprocess
import sys
import threading

import pytest

from antiphon import (
    Agent,
    Limits,
    LoopOptions,
    ModelError,
    ModelOptions,
    Policy,
    RetryPolicy,
    RunFailed,
    open_run,
    run_sync,
    tool,
)
from antiphon.errors import LeaseLost, RunSuspended
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.run.commands import AnswerInput, CancelEffect, encode
from antiphon.kernel.run.log.records import LOG, RunLog
from antiphon.models.script import Script, call

RUN = "run-7"
NEW = {"run_id": RUN, "create": True}


@tool(effect="once")
async def send(to: str) -> str:
    """Send."""
    return "sent"


@pytest.fixture
def log(caplog):
    """What was written so far: level, agent, effect and text of each record."""
    caplog.set_level(logging.DEBUG, "antiphon")

    def told():
        found = []
        for each in caplog.records:
            assert each.name == "antiphon.run"
            text = each.getMessage()
            assert text.startswith(f"Run {each.run_id}")
            text = text.removeprefix(f"Run {each.run_id}").lstrip(": ")
            found.append((each.levelname, each.agent, each.effect_id, text))
        return found

    return told


def between(told):
    """What was written from the beginning of the only request to its end."""
    assert [each[3] for each in told[:2]] == ["started", "request 0/1.c1 of a began"]
    return told[2:-2]


async def refuses(message):
    return "no"


def test_a_run_says_that_it_began_how_it_ended_and_that_it_was_left(log):
    run_sync(Agent("a", model=Script(["fine"])), "go", run_id=RUN, create=True)
    assert log() == [
        ("INFO", "", "", "started"),
        ("INFO", "a", "0/1.c1", "request 0/1.c1 of a began"),
        ("INFO", "a", "0/1.c1", "request 0/1.c1 of a ended: completed"),
        ("INFO", "", "", "closed"),
        ("INFO", "", "", "was left, requests open: 0"),
    ]


def test_a_failed_request_is_a_warning(log):
    def model(request):
        raise ModelError("validation", "no such model")

    with pytest.raises(RunFailed):
        run_sync(Agent("a", model=Script(model)), "go")
    assert ("WARNING", "a", "0/1.c1", "request 0/1.c1 of a ended: failed") in log()


def test_retries_and_fallbacks(log):
    busy = Script([ModelError("rate_limit", "busy"), ModelError("rate_limit", "busy")], name="first")
    asking = ModelOptions(
        fallback_models=(Script(["fine"], name="second"),), retry=RetryPolicy(2, initial_delay=0.001)
    )
    run_sync(Agent("a", model=busy, asking=asking), "go")
    first, again, second, other, _ = between(log())[:5]
    assert first[:3] == ("INFO", "a", "1/1.m1")
    assert first[3].startswith("first of a failed, 1/1.m1: ")
    assert again == ("INFO", "a", "1/1.w1", "the model is asked again in 0.0 s, attempt 2 of 2")
    assert second[:3] == ("INFO", "a", "1/1.m2")
    assert other == ("INFO", "a", "1/1.m3", "second is asked instead of the first model")


def test_limits(log):
    model = Script([call("send", to="x"), call("send", to="x"), "never"])
    run_sync(Agent("a", model=model, tools=[send]), "go", limits=Limits(turns=2))
    assert log()[2] == ("INFO", "a", "0/1.c1", "request 0/1.c1 of a ended: limit")


@pytest.mark.parametrize(
    ("on_breach", "last_word", "effect", "told"),
    [
        ("stop", True, "1/2.m1", "a limit is reached, script is asked for a last word"),
        ("ask", False, "1/2.l1", "a limit is reached, a person is asked whether to go on"),
        ("handoff", False, "1/3.c1", "the limit of 1 turns of one activation is used up, b goes on"),
    ],
)
def test_what_happens_at_a_limit(log, on_breach, last_word, effect, told):
    limits = Limits(turns=1, on_breach=on_breach, breach_target="b" if on_breach == "handoff" else "")
    loop = LoopOptions(summarize_at_limit=last_word)
    replies = [call("send", to="x"), "last word"]
    team = [Agent("a", model=Script(replies), tools=[send], loop=loop)]
    team.append(Agent("b", model=Script(["fine"])))
    run_sync(team[0], "go", agents=team, limits=limits, on_input=refuses)
    assert ("WARNING", "a", effect, told) in log()


def test_an_agent_below_that_ends_otherwise_than_asked(log):
    team = [Agent("a", model=Script([call("call_agent", agent_name="b", message="x"), "fine"]))]
    team.append(Agent("b", model=Script([ModelError("validation", "no")])))
    run_sync(team[0], "go", agents=team)
    assert ("INFO", "b", "1/1.c1", "b ended: failed") in log()


@pytest.mark.parametrize("person", [None, refuses], ids=["rule", "person"])
def test_a_call_that_is_denied(log, person):
    model = Script([call("send", to="x"), "fine"])
    run_sync(Agent("a", model=model, tools=[send]), "go", policy=Policy("guarded"), on_input=person)
    assert [each for each in log() if "denied" in each[3]] == [("INFO", "a", "1/1.c1", "a call was denied")]


def test_a_person_who_is_asked(log):
    async def person(message):
        return "secret-answer"

    model = Script([call("call_agent", agent_name="user", message="secret-question"), "fine"])
    run_sync(Agent("a", model=model), "go", on_input=person)
    assert between(log())[0] == ("INFO", "a", "1/1.c1", "a person is asked")


def test_a_run_that_is_taken_up_again(log):
    journal, begun = MemoryJournal(), asyncio.Event()

    async def hangs(request):
        begun.set()
        await asyncio.Event().wait()

    async def main():
        async with open_run(
            [Agent("a", model=Script(hangs))], journal=journal, run_id=RUN, create=True
        ) as run:
            await run.post("a", "go")
            await begun.wait()
        async with open_run([Agent("a", model=Script(["fine"]))], journal=journal, run_id=RUN) as run:
            await run.cancel(reason="secret")

    asyncio.run(main())
    assert ("INFO", "", "", "was left, requests open: 1") in log()
    assert ("INFO", "", "", "resumed, effects in flight: 2") in log()
    assert ("INFO", "", "", "cancel of every request was requested") in log()
    assert ("INFO", "a", "0/1.c1", "request 0/1.c1 of a ended: cancelled") in log()


def test_commands_that_are_refused_and_no_line_that_an_outsider_writes(log):
    journal = MemoryJournal()
    forged = "0/9.c1\nERROR antiphon.run Run run-7 is suspended\x1b[2J"

    async def main():
        async with open_run(
            [Agent("a", model=Script(["x"]))], journal=journal, run_id=RUN, create=True
        ) as run:
            await run.until_durable()
            await journal.post(RUN, "1", b"no command")
            await journal.post(RUN, "2", encode(AnswerInput(forged, "secret")))
            await journal.post(RUN, "3", encode(CancelEffect(forged, "secret")))
            async for record in run.events():
                if record.type == "CancelRequested":
                    return

    asyncio.run(main())
    first, second, third = log()[1:4]
    assert first == ("WARNING", "", "", "command 1 was refused")
    line = forged.replace("\n", "␊").replace("\x1b", "␛")
    assert second == ("WARNING", "", "", "command 2 was refused")
    assert third == ("INFO", "", "", f"cancel of {line} was requested")


class Taken(MemoryJournal):
    """A journal whose runs somebody else takes over when `taken` is set."""

    taken = False

    def append(self, lease, row, blobs, done):
        if self.taken:
            done(LeaseLost(lease.run_id))
        else:
            super().append(lease, row, blobs, done)


def test_a_lease_that_is_lost(log):
    journal = Taken()

    async def main():
        async with open_run(
            [Agent("a", model=Script(["x"]))], journal=journal, run_id=RUN, create=True
        ) as run:
            journal.taken = True
            await run.result(await run.post("a", "go"))

    with pytest.raises(RunSuspended):
        asyncio.run(main())
    (told,) = (each for each in log() if each[0] == "WARNING")
    assert told[:3] == ("WARNING", "", "")
    assert told[3].startswith("is suspended: LeaseLost: ")


def test_a_fault_in_a_rule_has_its_traceback(log, caplog, monkeypatch):
    def broken(*given):
        raise ZeroDivisionError("a fault")

    def model(request):
        monkeypatch.setattr("antiphon.kernel.run.runtime.step", broken)
        return "fine"

    with pytest.raises(RunSuspended):
        run_sync(Agent("a", model=Script(model)), "go")
    (fault,) = (each for each in caplog.records if each.levelname == "ERROR")
    assert fault.getMessage().endswith(" is suspended: ZeroDivisionError")
    assert isinstance(fault.exc_info[1], ZeroDivisionError)


def test_a_thread_that_is_given_up(log):
    release = threading.Event()

    @tool(effect="read", timeout=0.01)
    def hang() -> str:
        """Hang."""
        release.wait(30)
        return "late"

    def model(request):
        if len(request.messages) < 3:
            return call("hang")
        release.set()
        return "fine"

    before = set(threading.enumerate())
    run_sync(Agent("a", model=Script(model), tools=[hang]), "go")
    for each in set(threading.enumerate()) - before:
        each.join(30)
    assert between(log())[:2] == [
        ("WARNING", "", "", "hang still runs in a thread that nothing can stop"),
        ("INFO", "a", "1/1.c1", "hang failed"),
    ]


def test_a_conversation_that_is_compacted(log):
    async def main():
        agent = Agent("a", context="continue", model=Script(["one", "SUMMARY: all", "two"]))
        async with open_run([agent]) as run:
            await run.result(await run.post("a", "go"))
            await run.result(await run.post("a", "", intent="compact"))

    asyncio.run(main())
    (told,) = (each for each in log() if "compacted" in each[3])
    assert told[1] == "a"


def test_nothing_that_anybody_said_is_in_it(log, caplog):
    secret = "sk-0123456789"

    @tool(effect="once")
    async def tell(text: str) -> str:
        """Tell."""
        return secret

    async def person(message):
        return secret

    replies = [
        call("tell", text=secret),
        call(secret, x=secret),
        call("call_agent", agent_name="user", message=secret),
        call("call_agent", agent_name="b", message=secret),
        secret,
    ]
    team = [
        Agent("a", secret, model=Script(replies), tools=[tell]),
        Agent("b", secret, model=Script([secret])),
    ]
    run_sync(team[0], secret, agents=team, on_input=person, data={"key": secret})
    assert len(log()) > 5
    for record in caplog.records:
        assert secret not in logging.Formatter().format(record) + repr(vars(record))


SILENT = """
from antiphon import Agent, ModelError, run_sync, RunFailed
from antiphon.models.script import Script
{setup}
def model(request):
    raise ModelError("validation", "no such model")
try:
    run_sync(Agent("a", model=Script(model)), "go")
except RunFailed:
    print("failed")
"""


@pytest.mark.parametrize(
    ("setup", "lines"), [("", 0), ("import logging; logging.basicConfig()", 1)], ids=["nobody", "somebody"]
)
def test_it_is_silent_until_somebody_listens(setup, lines):
    command = [sys.executable, "-c", SILENT.format(setup=setup)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout == "failed\n"
    assert len(done.stderr.splitlines()) == lines, done.stderr


def test_where_nobody_listens_no_event_is_looked_at(monkeypatch):
    monkeypatch.setattr(LOG, "propagate", False)
    monkeypatch.setattr(RunLog, "note", lambda *given: pytest.fail("it was looked at"))
    assert run_sync(Agent("a", model=Script(["fine"])), "go").outcome == "completed"
