"""The example teams do what their READMEs say: from the command line, with their scripts, without a key."""

import os
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from antiphon.cli import main
from tests.unit.cli.shell import PATIENCE, SETTINGS, SRC

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Run = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """`antiphon run` in an empty folder: exit code, answer, and what was shown meanwhile."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def ran(name: str, message: str, folder: str, *words: str) -> tuple[int, str, list[str]]:
        home = EXAMPLES / name
        options = [
            "--folder",
            f"{home}/{folder}",
            "--model",
            f"script:{home}/script.yaml",
            "--journal",
            "runs.db",
        ]
        with pytest.raises(SystemExit) as ended:
            main(["run", str(home), message, *options, *words])
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, said.out, said.err.splitlines()

    yield ran
    sys.modules.pop("team", None)


# -- what their READMEs say -------------------------------------------------------------------------


def commands(name: str) -> list[list[str]]:
    """The commands of an example's README, each as words."""
    text = (EXAMPLES / name / "README.md").read_text("utf-8").replace("\\\n", " ")
    lines = [line.strip() for line in text.splitlines() if line.startswith("    ")]
    return [shlex.split(line) for line in lines if line.startswith(("antiphon ", ".venv/bin/python "))]


NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())


@pytest.mark.parametrize("name", NAMES)
def test_an_example_says_what_it_does_and_how(name: str) -> None:
    assert f"[{name}]({name}/)" in (EXAMPLES / "README.md").read_text("utf-8")
    text = (EXAMPLES / name / "README.md").read_text("utf-8")
    assert "What comes out" in text
    assert len(text.splitlines()) <= 40
    for target in re.findall(r"\]\(([^)#]+)", text):
        assert (EXAMPLES / name / target).exists(), target
    words = [word for command in commands(name) for word in command]
    paths = [
        word.removeprefix("script:") for word in words if word.removeprefix("script:").startswith("examples/")
    ]
    assert paths
    assert [each for each in paths if not (EXAMPLES.parent / each).exists()] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*NAMES} - {"frontdesk", "lookup"}))
def test_the_commands_without_a_model_of_ones_own(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a process each, as a newcomer types them; the two that are left out answer with the local model."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (tmp_path / "out").mkdir()
    env = {key: value for key, value in os.environ.items() if not SETTINGS.match(key)}
    env |= {"PYTHONPATH": os.fspath(SRC), "PYTHONUTF8": "1"}
    ran = 0
    for program, *words in commands(name):
        scripted = any(word.startswith("script:") for word in words)
        if not scripted and (program == "antiphon" or "--model" in words):
            continue
        if program == "antiphon":
            words = ["-m", "antiphon.cli", *words]
        done = subprocess.run(
            [sys.executable, *words], cwd=tmp_path, env=env, stdin=subprocess.DEVNULL, capture_output=True,
            text=True, encoding="utf-8", timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        first = done.stdout.strip().splitlines()[0]
        told = (EXAMPLES / name / "README.md").read_text("utf-8")
        assert first[:40] in told or program != "antiphon" or name == "newsdesk", first
        ran += 1
    assert ran


# -- profiles: the research -----------------------------------------------------------------------------


def test_the_script_of_the_research_quotes_what_is_there(run: Run) -> None:
    code, out, shown = run("research", "How do tides work?", "documents")
    assert (code, out.splitlines()[0]) == (0, "# How tides work")
    assert any(line.startswith("Reader gets search_documents: moon-and-sun.md:1-8") for line in shown)
    for name, first, last in re.findall(r"\[([\w.-]+):(\d+)-(\d+)\]", out):
        lines = (EXAMPLES / "research/documents" / name).read_text("utf-8").splitlines()
        assert 1 <= int(first) <= int(last) <= len(lines)


# -- a loop: the incident ---------------------------------------------------------------------------


def test_the_cause_of_an_incident_is_found_in_the_log(run: Run) -> None:
    code, out, shown = run("incident", "Why did checkout fail at noon?", "logs", "--policy", "open")
    assert code == 0
    assert out.startswith(
        "Checkout failed because the certificate of the payment provider (psp.example) expired"
    )
    assert "investigator gets count_lines: 200: 40 504: 14 (no request): 2" in shown
    assert "investigator gets count_lines: /checkout: 14" in shown
    (ticket,) = Path("tickets").iterdir()
    assert ticket.read_text("utf-8").startswith("# Checkout failed from 12:02 to 12:18")


def test_every_figure_of_the_scripts_ticket_is_in_the_log(run: Run) -> None:
    log = (EXAMPLES / "incident/logs/shop.log").read_text("utf-8").splitlines()
    checkouts = [line for line in log if "POST /checkout" in line]
    failed = [line for line in checkouts if " 504 " in line]
    assert (len(checkouts), len(failed)) == (54, 14)
    assert (failed[0][11:16], failed[-1][11:16]) == ("12:02", "12:18")
    script = (EXAMPLES / "incident/script.yaml").read_text("utf-8")
    for at in set(re.findall(r"\b12:\d\d:\d\d|\b11:\d\d:\d\d", script)):
        assert any(at in line for line in log), at


def test_a_ticket_needs_permission(run: Run) -> None:
    _, _, shown = run("incident", "Why?", "logs")
    assert any("gets write_ticket: denied" in line for line in shown)
    assert not Path("tickets").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"words": "504"}, "lines: 14"),
        ({"words": "504ms"}, "No line."),
        ({"words": "check"}, "No line."),
        ({"words": "deploy", "by": "minute", "after": "12:00", "before": "24:00"}, "12:08: 1"),
        ({"words": "checkout", "by": "status", "before": "12:00"}, "200: 20"),
        ({"words": "(((", "by": "host"}, "No line."),
    ],
)
def test_what_is_counted(arguments: dict[str, str], said: str) -> None:
    agent = runpy.run_path(str(EXAMPLES / "incident/team.py"))["team"](EXAMPLES / "incident/logs")
    (tool,) = [each for each in agent.agents()[0].tools if each.name == "count_lines"]
    assert tool.function(**arguments) == said


# -- tasks: the news desk ----------------------------------------------------------------------------


def test_the_news_desk(run: Run) -> None:
    code, out, shown = run("newsdesk", '{"content": "Storm Petra", "target_agent": "reporter"}', "wire")
    assert (code, out.splitlines()[0]) == (0, "## Storm Petra: two hurt, no trains to Carn")
    assert "desk/reporter calls reporter: Storm Petra" in shown
    assert any(
        line.startswith("reporter gets search_documents: 0512-storm-warning.txt:1-4") for line in shown
    )
    assert "note: handed over to editor" in shown
