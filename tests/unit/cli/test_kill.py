"""A run killed in the middle goes on with the printed command, and repeats nothing that had ended."""

import os
import signal
import subprocess

import pytest

pytestmark = pytest.mark.slow

TEAM = '''
import os, time
from antiphon import Agent
from antiphon import tool
from antiphon.models.script import Script, call, finish


@tool
def pay(who: str) -> str:
    """Pay somebody."""
    with open("paid", "a") as book:
        book.write(who + "\\n")
    return "paid " + who


@tool(effect="idempotent")
async def stand() -> str:
    """Stand still until somebody opens the gate."""
    import asyncio
    if os.path.exists("open"):
        return "open"
    os.write(int(os.environ["REACHED"]), b"here")
    await asyncio.Event().wait()


lines = [call("pay", who="ann"), call("stand"), call("pay", who="bob"), finish("all paid")]
payer = Agent("payer", "You pay.", tools=[pay, stand], model=Script(lines, by="turn"))


def team():
    return payer, [payer]
'''


HOLDS_ON = """
import asyncio
from antiphon.journal.sqlite import SqliteJournal

async def never(self, lease, summary=b""):
    await asyncio.Event().wait()

SqliteJournal.release = never
"""
"""A journal that never lets a run go."""


AT_ONCE = """
from antiphon.cli.session import drive
drive.DRAIN_SECONDS = 0.0
"""
"""What is in flight gets no time to end."""
GATED = '''
import os
from antiphon import Agent, tool
from antiphon.models.script import Script, call


@tool(effect="once")
def pay(who: str) -> str:
    """Pay somebody, once the gate is open."""
    os.write(int(os.environ["REACHED"]), b"here")
    with open("gate") as gate:
        gate.read()
    with open("paid", "a") as book:
        book.write(who + "\\n")
    return "paid " + who


payer = Agent("payer", "You pay.", tools=[pay], model=Script([call("pay", who="ann"), "all paid"], by="turn"))


def team():
    return payer, [payer]
'''


def started(shell, *words, said="to resume it: ", team=TEAM, **options):
    """The run, standing in the middle of its second tool."""
    reading, writing = os.pipe()
    shell.write("team.py", team)
    environment = shell.environment
    shell.environment = lambda: {**environment(), "REACHED": str(writing)}
    process = shell.start(
        "run", "team.py:team", "pay them", "--policy", "open", *words, pass_fds=(writing,), text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip
    os.close(writing)
    shell.environment = environment
    assert os.read(reading, 4) == b"here"
    os.close(reading)
    # The tool may run before the line that says how to resume has been written.
    process.said = ""
    while said not in process.said:
        process.said += process.stderr.readline()
    return process


def ended(process):
    """What the run said in all, once it has ended."""
    out, err = process.stdout.read(), process.said + process.stderr.read()
    process.wait()
    process.stdout.close()
    process.stderr.close()
    return out, err


def resume_line(err):
    return next(line for line in err.splitlines() if " runs resume " in line).partition("to resume it: ")[2]


def test_sigkill_then_the_printed_command(shell):
    process = started(shell)
    process.kill()
    _, err = ended(process)
    (listed,) = shell("runs", "ls", "--json").value
    assert (listed["state"], listed["entry"], listed["title"]) == ("suspended", "payer", "pay them")
    assert f"to resume it: {resume_line(err)}" in shell("runs", "show", listed["run_id"]).out
    shell.write("open", "")
    said = shell.paste(resume_line(err))
    assert (said.code, said.out) == (0, "all paid\n"), said.err
    assert (shell.folder / "paid").read_text() == "ann\nbob\n"
    again = shell.paste(resume_line(err))
    assert (again.code, again.out) == (0, "all paid\n")
    assert "had ended already" in again.err
    assert (shell.folder / "paid").read_text() == "ann\nbob\n"
    verified = shell("runs", "verify")
    assert verified.code == 0
    assert "durability: power" in verified.out


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 8), ("SIGTERM", 0), ("SIGHUP", 8)])
def test_a_signal_parks_the_run_and_says_how_to_resume_it(shell, name, code):
    process = started(shell, first=AT_ONCE)
    process.send_signal(getattr(signal, name))
    out, err = ended(process)
    assert (process.returncode, out) == (code, "")
    assert "suspending the run: waiting for stand (Ctrl-C once more: leave at once)" in err
    assert "cut off after 0 s: stand" in err
    assert "is suspended; nothing is lost" in err
    assert "Traceback" not in err
    (listed,) = shell("runs", "ls", "--json").value
    assert (listed["state"], listed["owner"]) == ("suspended", "")
    shell.write("open", "")
    said = shell.paste(err.splitlines()[-1])
    assert (said.code, said.out) == (0, "all paid\n")
    assert (shell.folder / "paid").read_text() == "ann\nbob\n"


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_once_tool_in_flight_ends_before_the_run_is_suspended(shell, name):
    os.mkfifo(shell.folder / "gate")
    process = started(shell, team=GATED)
    process.send_signal(getattr(signal, name))
    while "waiting for pay" not in process.said:
        process.said += process.stderr.readline()
    (shell.folder / "gate").write_text("")
    _, err = ended(process)
    assert "nothing is lost" in err
    said = shell.paste(err.splitlines()[-1])
    assert (said.code, said.out) == (0, "all paid\n")
    assert (shell.folder / "paid").read_text() == "ann\n"
    assert "unknown" not in shell("runs", "show", "--json").out


def test_a_run_in_memory_is_not_parked_by_sigterm(shell):
    process = started(shell, "--journal", "memory", said="kept in memory only", first=AT_ONCE)
    process.send_signal(signal.SIGTERM)
    ended(process)
    assert process.returncode == 8


def test_sigterm_after_ctrl_c_leaves_at_once(shell):
    process = started(shell, "--journal", "held.db", first=HOLDS_ON)
    process.send_signal(signal.SIGINT)
    while "suspending the run" not in process.said:
        process.said += process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    ended(process)
    assert process.returncode == 8


@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 0), ("SIGHUP", 8)])
def test_a_signal_parks_a_conversation(shell, name, code):
    reading, writing = os.pipe()
    shell.write("team.py", TEAM)
    environment = shell.environment
    shell.environment = lambda: {**environment(), "REACHED": str(writing)}
    process = shell.start(
        "chat", "team.py:team", "--policy", "open", pass_fds=(writing,), text=True, bufsize=1, first=AT_ONCE,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    os.close(writing)
    process.stdin.write("pay them\n")
    assert os.read(reading, 4) == b"here"
    os.close(reading)
    process.send_signal(getattr(signal, name))
    process.communicate()
    assert process.returncode == code
    (listed,) = shell("runs", "ls", "--json").value
    assert (listed["state"], listed["owner"]) == ("suspended", "")


def test_cancel_reaches_a_living_owner(shell):
    process = started(shell)
    (listed,) = shell("runs", "ls", "--json").value
    assert listed["state"] == "running"
    assert str(process.pid) in listed["owner"]
    refused = shell.apart("runs", "cancel", listed["run_id"])
    assert refused.code == 2
    assert "--yes" in refused.err
    taken = shell.apart("runs", "resume", listed["run_id"], "team.py:team")
    assert taken.code == 9
    assert f"process {process.pid}" in taken.err
    said = shell("runs", "cancel", listed["run_id"][:8], "--yes", "--reason", "enough")
    assert said.code == 0
    assert f"cancelled by process {process.pid}" in said.out
    _, err = ended(process)
    assert process.returncode == 7
    assert "the request ended cancelled: enough" in err


def test_cancel_of_a_run_that_nobody_drives(shell):
    process = started(shell)
    process.kill()
    ended(process)
    (listed,) = shell("runs", "ls", "--json").value
    missing = shell("runs", "cancel", listed["run_id"], "9/9.c9", "--yes")
    assert missing.code == 4
    assert "Open: 0/1.c1, 1/2.c1" in missing.err
    said = shell("runs", "cancel", listed["run_id"], "--yes")
    assert (said.code, said.err) == (0, "")
    (listed,) = shell("runs", "ls", "--json").value
    assert (listed["state"], listed["closed"], listed["owner"]) == ("cancelled", True, "")
    assert shell("runs", "cancel", listed["run_id"], "--yes").out.endswith("nothing to cancel\n")
    assert shell("runs", "resume", listed["run_id"], "team.py:team").code == 7
    assert shell("runs", "verify").code == 0


def test_cancel_of_one_call_waits_for_the_next_owner(shell):
    process = started(shell)
    process.kill()
    ended(process)
    run_id = shell("runs", "ls", "--json").value[0]["run_id"]
    said = shell("runs", "cancel", run_id, "1/2.c1", "--yes")
    assert "when it is resumed" in said.out
    reached = shell.environment
    with open(os.devnull, "wb") as sink:
        shell.environment = lambda: {**reached(), "REACHED": str(sink.fileno())}
        resumed = shell.start(
            "runs", "resume", run_id, "team.py:team", pass_fds=(sink.fileno(),), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        out, err = resumed.communicate()
    assert (resumed.returncode, out) == (0, "all paid\n"), err
    assert "payer gets stand: cancelled" in err


def test_follow_shows_what_another_process_records(shell):
    process = started(shell)
    run_id = shell("runs", "ls", "--json").value[0]["run_id"]
    tail = shell.start("runs", "tail", run_id, "-f", stdout=subprocess.PIPE, text=True)
    while "uses stand" not in tail.stdout.readline():
        pass
    assert shell("runs", "cancel", run_id, "--yes").code == 0
    rest = tail.stdout.read()  # it ends by itself: the owner closes the run
    assert "cancel every request" in rest
    assert "run closed" in rest
    assert tail.wait() == 0
    tail.stdout.close()
    ended(process)
