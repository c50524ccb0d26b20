"""The example of a news desk: stories out of a folder of dispatches, by priority and deadline."""

import runpy
from pathlib import Path
from typing import Any

import pytest

from antiphon.errors import ModelError
from antiphon.models.script import Script

DESK = Path(__file__).resolve().parents[3] / "examples/newsdesk/team.py"


@pytest.fixture
def desk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, Any]:
    """What its module holds; we are in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return runpy.run_path(str(DESK))


def test_stories_are_reported_edited_and_kept(
    desk: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk["main"]([]) == 0
    said = capsys.readouterr()
    assert said.out.splitlines() == [
        "    low  City library: city-library.md",
        " medium  Harbour strike: harbour-strike.md",
        "   high  Storm Petra: storm-petra.md",
    ]
    assert "by a script that quotes the dispatches" in said.err
    first, second, third = Path("stories/storm-petra.md").read_text("utf-8").strip().split("\n\n")
    assert first.startswith("CPA 0715 Transport / Storm Petra / CORRECTION")
    assert first.endswith("[0715]")
    assert second.endswith("[0640]")
    assert third.endswith("[0512]")


def test_a_story_that_fails_holds_no_other_up(
    desk: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    script = desk["script"]()

    class Failing:
        name = "failing"

        async def complete(self, request: Any, emit: Any) -> Any:
            if 'You are "reporter"' in request.system and request.messages[-1].content == "Harbour strike":
                raise ModelError("auth", "no key")
            return await script.complete(request, emit)

    desk["main"].__globals__["script"] = Failing
    assert desk["main"](["Harbour strike", "Storm Petra:urgent", "City library:high:5m"]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].startswith(" medium  Harbour strike: not there: ")
    assert shown[1] == (
        " urgent  Storm Petra: not there: "
        "priority: expected a number or one of high, medium, low; got 'urgent'"
    )
    assert shown[2] == "   high  City library: city-library.md"
    assert [path.name for path in Path("stories").iterdir()] == ["city-library.md"]


def test_the_urgent_ones_come_first(desk: dict[str, Any]) -> None:
    begun: list[str] = []

    def reports(request: Any) -> str:
        begun.append(request.messages[-1].content)
        return "reported"

    desk["main"].__globals__["script"] = lambda: Script({"reporter": reports})
    assert desk["main"](["a:low", "b:low", "c:medium", "d:high"]) == 0
    assert begun == ["d", "c", "a", "b"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Storm Petra", "storm petra"], "error: "),
        (["--wire", "nowhere"], "error: nowhere: is not a folder"),
        (["--model", "nobody:x"], "error: "),
    ],
)
def test_nothing_to_do(
    words: list[str], said: str, desk: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert desk["main"](words) == 3
    assert said in capsys.readouterr().err
    assert not Path("stories").exists()
