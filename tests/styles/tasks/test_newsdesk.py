"""The example of a news desk."""

import asyncio
import runpy
from pathlib import Path
from typing import Any

from antiphon.models.script import Script, call

DESK = Path(__file__).resolve().parents[3] / "examples" / "newsdesk" / "desk.py"


def look_up(subject: str) -> str:
    """What the agencies say."""
    return f"{subject}, they say"


def reports(request: Any) -> Any:
    last = request.messages[-1]
    if last.role == "user":
        return call("look_up", subject=last.content)
    return call("call_agent", agent_name="editor", message=last.content, handoff=True)


def test_stories_are_reported_edited_and_kept(tmp_path: Path) -> None:
    made = runpy.run_path(str(DESK))
    model = Script({"reporter": reports, "editor": lambda request: f"{request.messages[0].content}."})
    desk = made["news_desk"](tmp_path, model, look_up)

    async def play() -> list[str]:
        subjects = {"parade": "A parade", "storm": "A storm"}
        replies = await desk.run_tasks([made["story"](each, subjects[each]) for each in subjects])
        files = await desk.run_tasks([made["kept"](each) for each in replies])
        return [each.content for each in files]

    assert asyncio.run(play()) == ["parade.txt", "storm.txt"]
    assert (tmp_path / "storm.txt").read_text() == "A storm, they say."
    assert made["wire"]("Rain") == "Rain: nothing new"
