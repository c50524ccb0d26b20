"""A conversation on a terminal while 200 deltas a second come: keys, bytes, CPU time, memory.

    python -m bench.screen [--deltas 2000] [--turns 1000]

The command runs in a pty of 100 columns and 30 rows, and is read as fast as it writes; times are told with
the load of the machine, since on a busy one they say more of that. CPU time and bytes do not depend on it.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable
from pathlib import Path

COLUMNS, ROWS = 100, 30
PER_SECOND = 200
PATIENCE = 120.0
"""Seconds after which something that should have come has not."""
KEY_EVERY = 0.05
"""Seconds between two keys."""
KEYS, LINE = 400, 60
"""Keys that are typed at most, and as one line."""
AT_ONCE = 100
"""Turns of one request: an agent has a limit."""
TEAM = """
import asyncio, time
from antiphon import Agent, tool
from antiphon.models.script import call
from antiphon.values.model import Delta, Reply, Usage

WORDS = "the quick brown fox jumps over a lazy dog and then **rests** in `the` shade of trees".split()

def pieces(count):
    for number in range(count):
        end = "\\n\\n" if number % 60 == 59 else "\\n- " if number % 60 in (40, 45, 50) else " "
        yield WORDS[number % len(WORDS)] + end

@tool(effect="read")
def look(at: int) -> str:
    "Look at something."
    return f"There is something at {at}"

class Fast:
    name = "fast"
    async def complete(self, request, emit):
        asked = next(each.content for each in reversed(request.messages) if each.role == "user").split()
        if asked[0] == "turns":
            last = max(at for at, each in enumerate(request.messages) if each.role == "user")
            done = sum(each.role == "tool" for each in request.messages[last:])
            if done < int(asked[1]):
                return Reply(f"Turn {done}.", (call("look", at=done),), "calls", Usage(1, 1))
            return Reply("That is all.")
        if asked[0] != "deltas":
            return Reply("Ready.")
        begun, text = time.monotonic(), []
        for number, piece in enumerate(pieces(int(asked[1]))):
            await asyncio.sleep(max(begun + number / RATE - time.monotonic(), 0))
            text.append(piece)
            emit(Delta("text", piece))
        return Reply("".join(text) + "That is all.")

team = Agent("fast", model=Fast(), tools=[look], context="continue")
""".replace("RATE", str(PER_SECOND))


class Command:
    """`antiphon chat` in a pty. came: all that it wrote, with when each part came."""

    def __init__(self, folder: Path) -> None:
        leader, follower = pty.openpty()
        termios.tcsetwinsize(follower, (ROWS, COLUMNS))
        env = {name: value for name, value in os.environ.items() if not name.startswith("ANTIPHON")}
        own = os.fspath(folder / "own")
        env |= {"TERM": "xterm-256color", "XDG_STATE_HOME": own, "XDG_CONFIG_HOME": own}
        self.began = time.monotonic()
        command = [sys.executable, "-m", "antiphon.cli", "chat", "team.py:team", "--journal", "memory"]
        self.process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=follower, stdout=follower, stderr=follower,
            start_new_session=True,
        )  # fmt: skip
        os.close(follower)
        self._leader, self.came = leader, b""

    def type(self, text: str) -> None:
        """Type a text."""
        os.write(self._leader, text.encode())

    def read(self, seconds: float) -> bool:
        """Read what comes within so many seconds, once; whether there was something."""
        if not select.select([self._leader], [], [], max(seconds, 0))[0]:
            return False
        self.came += os.read(self._leader, 1 << 16)
        return True

    def until(self, enough: Callable[[], bool]) -> float:
        """Read until something holds; when it did."""
        late = time.monotonic() + PATIENCE
        while not enough():
            if not self.read(late - time.monotonic()):
                raise TimeoutError(f"it has not come; the end of what did: {self.came[-500:]!r}")
        return time.monotonic()

    @property
    def cpu(self) -> float:
        """Seconds of the processor that it has taken so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory(self) -> float:
        """MiB that it holds now."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        (found,) = [each.split()[1] for each in lines if each.startswith("VmRSS")]
        return int(found) / 1024

    def end(self) -> None:
        """Leave it."""
        self.process.kill()
        self.process.wait()
        os.close(self._leader)


def ready(folder: Path) -> dict[str, float]:
    """From its start to a key on the screen: seconds, and those of the processor."""
    found = Command(folder)
    try:
        found.type("7")
        at = found.until(lambda: b"> 7" in found.came)
        return {"editor_ready_ms": 1e3 * (at - found.began), "editor_ready_cpu_ms": 1e3 * found.cpu}
    finally:
        found.end()


def streaming(folder: Path, deltas: int, *, keys: bool) -> dict[str, float]:
    """While deltas come. keys: somebody writes meanwhile; how long each key takes to the screen."""
    found = Command(folder)
    try:
        found.until(lambda: b"> " in found.came)
        found.type("ready\r")
        found.until(lambda: b"Ready." in found.came)
        time.sleep(0.5)
        while found.read(0):
            pass
        cpu, at = found.cpu, len(found.came)
        found.type(f"deltas {deltas}\r")
        times = _typed(found, at) if keys else []
        found.until(lambda: b"That is all." in found.came[at:])
        cpu = found.cpu - cpu
        if keys:
            return {"key_p50_ms": 1e3 * statistics.median(times), "key_p95_ms": 1e3 * _part(times, 0.95),
                    "keys": len(times)}  # fmt: skip
        text = _text(folder, deltas)
        return {"bytes_per_byte": (len(found.came) - at) / text, "cpu_ms_per_delta": 1e3 * cpu / deltas,
                "text_bytes": text}  # fmt: skip
    finally:
        found.end()


def _typed(found: Command, at: int) -> list[float]:
    """Type digits, of which there are none in the text, one after another while it is said; the seconds from
    each to the screen."""
    times, written = list[float](), ""
    found.until(lambda: b"quick" in found.came[at:])
    while b"That is all." not in found.came[at:] and len(times) < KEYS:
        if len(written) == LINE:
            found.type("\x15")
            written = ""
            _read_on(found, time.monotonic() + KEY_EVERY)
        written += str((len(times) * 7) % 10)
        began = time.monotonic()
        times.append(_shown(found, written) - began)
        _read_on(found, began + KEY_EVERY)
    return times


def _shown(found: Command, written: str) -> float:
    """Type the last sign of a line; when it is on the screen."""
    wanted, since = written[-6:].encode(), len(found.came)
    found.type(written[-1])
    return found.until(lambda: wanted in found.came[since:])


def _read_on(found: Command, until: float) -> None:
    while time.monotonic() < until:
        found.read(until - time.monotonic())


def _text(folder: Path, deltas: int) -> int:
    """Bytes of the text that is said."""
    code = f"import team; print(len(''.join(team.pieces({deltas}))))"
    told = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, check=True)
    return int(told.stdout)


def _part(times: list[float], share: float) -> float:
    return sorted(times)[int(share * (len(times) - 1))]


def turns(folder: Path, count: int) -> dict[str, float]:
    """Memory after a request of so many turns, and of the same process before it."""
    found = Command(folder)
    try:
        found.until(lambda: b"> " in found.came)
        found.type("ready\r")
        found.until(lambda: b"Ready." in found.came)
        before = found.memory
        for _ in range(count // AT_ONCE):
            found.came = b""
            found.type(f"turns {AT_ONCE - 1}\r")
            found.until(lambda: b"That is all." in found.came)
            _read_on(found, time.monotonic() + KEY_EVERY)
        return {"memory_mib": found.memory, "memory_before_mib": before, "turns": count}
    finally:
        found.end()


def main() -> None:
    """Measure all, and print one JSON object."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--deltas", type=int, default=2_000)
    parser.add_argument("--turns", type=int, default=1_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "team.py").write_text(TEAM, "utf-8")
        # Once for nothing: what Python compiles it keeps.
        ready(folder)
        found = min((ready(folder) for _ in range(5)), key=lambda each: each["editor_ready_ms"])
        found |= streaming(folder, given.deltas, keys=False)
        found |= streaming(folder, given.deltas, keys=True)
        found |= turns(folder, given.turns)
    print(
        json.dumps({**{name: round(value, 2) for name, value in found.items()}, "load1": os.getloadavg()[0]})
    )


if __name__ == "__main__":
    main()
