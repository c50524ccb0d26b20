"""Commands that do not want to end: each ends in its time, and leaves nothing running."""

from __future__ import annotations

import asyncio
import sys

import pytest

from antiphon.tools.shell import Workspace
from antiphon.tools.shell.confinement import confinement
from tests.unit.tools.shell.running import living, shell

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="what is left is looked for in /proc"),
]
PYTHON = f"{sys.executable} -I -S -c"
DAEMON = (
    "import os,signal,time\nos.fork() and os._exit(0)\nos.setsid()\nos.fork() and os._exit(0)\n"
    "[signal.signal(n, signal.SIG_IGN) for n in (1, 2, 3, 13, 15)]\ntime.sleep({})"
)
HOPS = "import os\nwhile True:\n    if os.fork(): os._exit(0)  # {}"
HEIR = (
    "import os,signal,time\ndef again(*_):\n    if not os.fork(): time.sleep({})\n"
    "signal.signal(15, again)\ntime.sleep({})"
)
MANY = "import os,time\n[os.fork() for _ in range(6)]\ntime.sleep({})"
COMMANDS = [
    "sleep {}",
    "exec sleep {}",
    "trap '' TERM; sleep {}; sleep {}",
    "trap '' TERM HUP INT QUIT PIPE; while :; do sleep {}; done",
    "setsid sleep {}",
    "setsid -w sleep {}",
    "setsid sleep {} &",
    "nohup sleep {} &",
    "nohup setsid sleep {} > /dev/null 2>&1 < /dev/null & disown",
    "(setsid sh -c \"trap '' TERM; sleep {}\" &)",
    "sleep {} & disown; echo out",
    "(sleep {} &); exit 3",
    "env -i setsid sleep {} &",
    "exec > /dev/null 2>&1; sleep {}",
    "exec >&- 2>&-; sleep {}",
    "exec 9>&1; sleep {} 2>&9 &",
    "sleep {} & kill -STOP $!",
    "kill -STOP $$; sleep {}",
    "yes {}",
    "yes {} >&2",
    "yes {} & sleep {}",
    "yes {} | cat & exit",
    "cat /dev/zero | tr '\\0' {}",
    "cat; sleep {}",
    "cat /dev/tty; sleep {}",
    "read line < /dev/tty; sleep {}",
    "mkfifo pipe-{}; cat pipe-{}",
    "mkfifo way-{}; sleep {} > way-{} & wait",
    ": | (sleep {}; echo)",
    "sleep {} | sleep {} | sleep {}",
    "coproc sleep {}; wait",
    "bash -i -c 'sleep {}'",
    "bash -l -c 'sleep {}'",
    "vi file-{}",
    "ed file-{}",
    "nano file-{}",
    "less /etc/passwd; sleep {}",
    "more /etc/passwd; sleep {}",
    "git init -q repo-{}; cd repo-{}; git commit --allow-empty; sleep {}",
    "git -c core.editor='sleep {}' commit --allow-empty",
    "stty sane; reset; sleep {}",
    "script -qc 'sleep {}' /dev/null; sleep {}",
    "timeout 1000 sleep {}",
    "timeout -s KILL 1000 sleep {} &",
    "xargs sleep {} < /dev/null; sleep {}",
    "while :; do sleep {} & sleep 0.05; done",
    "su -c 'sleep {}'; sleep {}",
    "sudo -n sleep {}; sleep {}",
    f"{PYTHON} 'import getpass; getpass.getpass()' {{}}; sleep {{}}",
    f"{PYTHON} '{DAEMON}'",
    f"{PYTHON} '{HEIR}'",
    f"{PYTHON} '{MANY}'",
    f"{PYTHON} '{HOPS}'",
    f"{PYTHON} -i {{}}; sleep {{}}",
]
AGAINST_KEEPER = [
    "kill -STOP $PPID; sleep {}",
    "kill -TERM $PPID; sleep {}",
    "kill -KILL $PPID; sleep {}",
    "sleep {} & kill -9 -$(ps -o pgid= -p $PPID | tr -d ' ')",
]
"""What a confined command cannot do."""


def test_no_command_outlives_its_time(workspace: Workspace) -> None:
    lines = COMMANDS + (AGAINST_KEEPER if confinement().landlock >= 6 else [])
    assert len(lines) >= 40

    async def all_of_them() -> list[str]:
        # Not all at once: what is measured is that they end, not how many a machine can bear.
        room = asyncio.Semaphore(8)

        async def one(number: int, line: str) -> str:
            async with room, asyncio.timeout(60):
                return await shell(workspace, line.replace("{}", str(86_500_000 + number)), 1)

        return await asyncio.gather(*(one(number, line) for number, line in enumerate(lines)))

    ends = dict(zip(lines, asyncio.run(all_of_them()), strict=True))
    known = ("ended after 1 s", "exit code ", "ended by SIG")
    assert not [(line, end) for line, end in ends.items() if not end.startswith(known)]
    assert ends["sleep {}"].startswith("ended after 1 s")
    assert ends["setsid sleep {} &"].startswith("exit code 0")
    assert not living("865000")
