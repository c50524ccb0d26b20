"""`./run --ui` of a clone that is set up: a browser is opened on a page, and in it a team is at work."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

ROOT = Path(__file__).resolve().parents[3]
LIVE_SECONDS = 5.0
"""From the server's start until words of a team at work reach the page."""
PATIENCE = 60
# What has been set up is not set up again: nothing is fetched, and nothing is built.
SET_UP = """
VENV=$ROOT/.venv
install() { :; }
try_install() { :; }
say() { printf '%s\\n' "$*" >&2; }
die() { say "error: $*"; exit 1; }
"""


@pytest.fixture
def clone(tmp_path):
    """A clone with the real ./run, examples and package, and a browser that tells what it was opened on."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    shutil.copy(ROOT / "run", tmp_path / "run")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "src").symlink_to(ROOT / "src")
    (tmp_path / "scripts" / "setup.sh").write_text(SET_UP)
    for name, text in (
        ("scripts/page.sh", "exit 0"),
        (".venv/bin/antiphon", f'exec "{sys.executable}" -m antiphon.cli "$@"'),
        ("browser", f'printf "%s\\n" "$1" > "{tmp_path}/opened"'),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    os.mkfifo(tmp_path / "opened")
    return tmp_path


@contextmanager
def running(clone, *words):
    """./run in a clone, without a model of the user's; ended as Ctrl-C ends it."""
    ours = ("ANTIPHON_", "OPENAI_")
    env = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    env |= {"BROWSER": f"{clone}/browser %s", "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    process = subprocess.Popen(
        [clone / "run", *words], cwd=clone, env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield process
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) in (0, 130)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()


def opened(clone):
    """What the browser was opened on."""
    pipe = os.open(clone / "opened", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert select.select([pipe], [], [], PATIENCE)[0], "no browser was opened"
        return os.read(pipe, 4_096).decode().strip()
    finally:
        os.close(pipe)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="./run is a script of a POSIX shell")
@pytest.mark.usefixtures("built_page")
def test_run_ui_opens_a_browser_on_a_team_at_work(clone):
    with running(clone, "--ui") as process:
        serving = next(line for line in process.stdout if line.startswith("serving "))
        begun = time.monotonic()
        address = opened(clone)
        url, _, rest = address.partition("/#")
        path, _, opening = rest.partition("?opening=")
        assert url == serving.split()[-1]
        with httpx2.Client(base_url=url, timeout=PATIENCE) as page:
            assert "<script" in page.get("/").text
            given = page.post("/session/opening", json={"opening": opening}).json()
            page.headers["Authorization"] = f"Bearer {given['token']}"
            run_id = path.rpartition("/run/")[2]
            line = page.get(f"/runs/{run_id}").json()
            assert (line["team"], line["title"]) == ("tides", "How do tides work?")
            with page.stream("GET", f"/runs/{run_id}/events") as events:
                said = next(each for each in told(events.iter_lines()) if each["kind"] == "text")
        assert said["text"]
        assert time.monotonic() - begun < LIVE_SECONDS


def told(lines):
    """The pieces of replies in Server-Sent Events."""
    kind = ""
    for each in lines:
        if each.startswith("event: "):
            kind = each.removeprefix("event: ")
        elif each.startswith("data: ") and kind == "delta":
            yield json.loads(each.removeprefix("data: "))
