"""Whole teams from the command line: the worked example of ten subtasks, and roles among other agents."""

from pathlib import Path

import pytest

from antiphon.cli import main

TEAMS = Path(__file__).parent / "teams"
Shown = list[str]


def run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, target: str, message: str, script: str = ""
) -> tuple[int, str, Shown]:
    """Exit code, answer and what was shown meanwhile."""
    words = ["run", f"{TEAMS}/{target}", message, "--journal", f"sqlite:///{tmp_path}/runs.db"]
    if script:
        words += ["--model", f"script:{TEAMS}/{script}"]
    with pytest.raises(SystemExit) as ended:
        main(words)
    said = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return ended.value.code, said.out, said.err.splitlines()


def told_by(name: str, shown: Shown) -> list[str]:
    start = f"{name} tells environment: "
    return [line.removeprefix(start) for line in shown if line.startswith(start)]


def test_ten_subtasks_without_a_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, shown = run(capsys, tmp_path, "ten_subtasks.py:team", "a book")
    assert code == 0
    assert told_by("B", shown)[:10] == [f"do (part {number} of: a book)" for number in range(1, 11)]
    assert [len(told_by(name, shown)) for name in "ABCD"] == [11, 30, 30, 30]
    assert any("the limit of 3 laps stopped messages: 10 for B from D" in line for line in shown)
    assert out.startswith("review (compile (do (review (compile (do (review (compile (do (part 10 of")


def test_ten_subtasks_with_a_model(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = "ten_subtasks.yaml"
    _, out, shown = run(capsys, tmp_path, "ten_subtasks.py:thinking", "a book", script)
    assert told_by("B", shown) == ["Done, and it reads well."] * 30
    assert out == "Done, and it reads well.\n"


def test_a_mixed_team(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, out, shown = run(capsys, tmp_path, "mixed_team.py:team", "What about tea?", "mixed_team.yaml")
    assert (code, out) == (0, "The stage has spoken: tea is leaves, water and time.\n")
    assert "chief calls stage: What about tea?" in shown
    assert "Host calls expert: What do you know about this? What about tea?" in shown
    assert "poet tells stage: Tea takes its time, and so does this rhyme." in shown
    assert "Critic tells stage: A rhyme that keeps its promise." in shown
