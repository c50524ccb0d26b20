"""The command line as tests use it: in this process, in another one, and at a terminal."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from antiphon.cli import main

PATIENCE = 60
"""Seconds after which something that should have happened has not; never reached when all is well."""
SETTINGS = re.compile(r"(ANTIPHON|OPENAI|OLLAMA|OPENROUTER|ANTHROPIC|GOOGLE|GEMINI)_")
SRC = Path(__file__).resolve().parents[3] / "src"


CONTROLLED = "import os; os.close(os.open(os.ttyname(0), os.O_RDWR))"
"""Makes the terminal the process's own, so that Ctrl-C reaches it: the first one that a new session opens."""


@dataclass
class Said:
    """What a command said, and its exit code."""

    code: int
    out: str
    err: str

    @property
    def events(self):
        """Its standard output as JSON lines."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def value(self):
        """Its standard output as one JSON value."""
        return json.loads(self.out)


@dataclass
class Shell:
    """A folder with a team in it, and the command to be called there."""

    folder: Path
    capsys: pytest.CaptureFixture[str]
    processes: list[subprocess.Popen] = field(default_factory=list)
    plain: bool = True
    """Conversations at a terminal are in the plain mode."""

    @property
    def home(self):
        """The folder of the user's own settings and state, apart from that of the team."""
        return self.folder.with_name(f"{self.folder.name}-home")

    def __call__(self, *words, stderr=None):
        """Call the command in this process; `stderr`: how to patch the error output, and with what."""
        self.capsys.readouterr()
        if stderr is not None:
            patch, file = stderr
            patch.setattr("sys.stderr", file)
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        out, err = self.capsys.readouterr()
        code = ended.value.code
        return Said(code if isinstance(code, int) else 0, out, err)

    def write(self, name, text):
        """Write a file into the folder; its name."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return name

    def environment(self):
        """What another process of the command is started with."""
        env = {key: value for key, value in os.environ.items() if not SETTINGS.match(key)}
        env |= {"PYTHONPATH": os.fspath(SRC), "TERM": "xterm", "COLUMNS": "", "PYTHONUNBUFFERED": "1"}
        return env | {"ANTIPHON_PLAIN": "1" if self.plain else ""}

    def start(self, *words, first="", **options):
        """Start the command in another process, which does `first` (Python) before."""
        program = (
            ["-c", f"{first}\nfrom antiphon.cli import main\nmain()"] if first else ["-m", "antiphon.cli"]
        )
        command = [sys.executable, *program, *map(str, words)]
        process = subprocess.Popen(command, cwd=self.folder, env=self.environment(), **options)
        self.processes.append(process)
        return process

    def close(self):
        """End what a test that failed has left behind, so that no other test pays for it."""
        for process in self.processes:
            if process.poll() is None:
                process.kill()
                process.wait(PATIENCE)

    def apart(self, *words, stdin=None, **options):
        """Call the command in another process."""
        process = self.start(
            *words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        out, err = process.communicate(stdin or "", timeout=PATIENCE)
        return Said(process.returncode, out, err)

    def paste(self, line):
        """Run a command line as it was printed, the way a shell would."""
        done = subprocess.run(
            line, shell=True, cwd=self.folder, env=self.environment(), capture_output=True, text=True,
            timeout=PATIENCE, stdin=subprocess.DEVNULL, check=False,
        )  # fmt: skip
        return Said(done.returncode, done.stdout, done.stderr)


class Terminal:
    """The command at a terminal of its own: what is on the screen is read as it comes."""

    def __init__(self, shell, *words, columns=100, lines=30):
        self.seen = ""
        self._leader, follower = pty.openpty()
        termios.tcsetwinsize(follower, (lines, columns))
        self.process = shell.start(
            *words, stdin=follower, stdout=follower, stderr=follower, start_new_session=True,
            first=CONTROLLED,
        )  # fmt: skip
        os.close(follower)

    def until(self, text):
        """Read until `text` has come since the last call; what came."""
        return self._read(lambda: text in self.seen, f"{text!r} has not come")

    def end(self):
        """Read until the command has ended; what came. Its exit code is in `code`."""
        rest = self._read(lambda: False, "")
        self.code = self.process.wait(PATIENCE)
        os.close(self._leader)
        return rest

    def type(self, text):
        """Type text, control characters as they are."""
        os.write(self._leader, text.encode())

    def _read(self, enough, complaint):
        # What is drawn again and again must not keep a test waiting for ever.
        until = time.monotonic() + PATIENCE
        while not enough():
            ready, _, _ = select.select([self._leader], [], [], max(until - time.monotonic(), 0))
            if not ready:
                self.process.send_signal(signal.SIGKILL)
                raise AssertionError(f"{complaint}; the screen got: {self.seen!r}")
            try:
                data = os.read(self._leader, 65536)
            except OSError:  # the other end is closed: Linux says so with an error
                data = b""
            if not data:
                break
            self.seen += data.decode("utf-8", "replace")
        if complaint and not enough():
            raise AssertionError(f"{complaint}; the screen got: {self.seen!r}")
        came, self.seen = self.seen, ""
        return came


ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def plain(text):
    """What a terminal got, without the sequences that the command's own drawing is made of."""
    return ESCAPES.sub("", text)
