"""The assistant: what it is told, its tools, its list, its questions, the work that it gives away."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from antiphon import Message, open_run, run, run_sync
from antiphon.assistant import coder
from antiphon.assistant.prompt import CODER, EXPLORER
from antiphon.cli.target import load_target
from antiphon.errors import ConfigError
from antiphon.models.script import Script, call
from antiphon.values.model import ModelRequest
from antiphon.view import RunTree
from tests.transcript import results_shown
from tests.unit.assistant.asked import ask, lines

TOKEN = 4
"""Bytes of UTF-8 that count as one token."""


def test_its_prompt_is_short(place: Path) -> None:
    script = lines("done")
    ask(place, script)
    own, told = len(script.requests[0].system.encode()) - len(str(place)), script.requests[0].system
    assert told.startswith('You are "coder"')
    assert str(place) in told
    assert own / TOKEN <= 1_000
    assert max(len(CODER), len(EXPLORER)) / TOKEN <= 1_000


def test_each_tool_that_it_is_told_of_is_there(place: Path) -> None:
    script = lines("done")
    ask(place, script)
    offered = {each.name for each in script.requests[0].tools}
    named = {
        "find_files", "grep_files", "read_lines", "edit_file", "write_file", "shell", "todo", "ask_user",
        "delegate",
    }  # fmt: skip
    assert named <= offered
    assert all(each in script.requests[0].system for each in named)
    assert "visit_url" not in offered


def test_it_has_the_web_where_there_is_a_key(place: Path) -> None:
    script = lines("done")
    run_sync(coder(place, model=script, env={"BRAVE_API_KEY": "key"}), "go")
    assert {"web_search", "visit_url"} <= {each.name for each in script.requests[0].tools}


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a folder"):
        coder(tmp_path / "nowhere")


def test_the_command_line_takes_it_as_a_target(place: Path) -> None:
    found = load_target("antiphon.assistant:coder", str(place))
    assert (found.entry, [each.name for each in found.agents][:2]) == ("coder", ["coder", "explorer"])
    assert str(place) in str(found.source.folder)


def test_it_edits_what_it_has_read(place: Path) -> None:
    (place / "prices.py").write_text("TEA = 3\n")
    script = lines(
        call("read_lines", path="prices.py"),
        call("edit_file", path="prices.py", old="TEA = 3", new="TEA = 4"),
        "Tea costs 4.",
    )
    assert ask(place, script, policy="open").output == "Tea costs 4."
    assert (place / "prices.py").read_text() == "TEA = 4\n"


def test_it_remembers_what_was_said(place: Path) -> None:
    async def talked(script: Script) -> None:
        async with open_run([coder(place, model=script)]) as opened:
            for said in ("one", "two"):
                await opened.result(await opened.post("coder", said))

    script = lines("first", "second")
    asyncio.run(talked(script))
    assert [each.content for each in script.requests[1].messages] == ["one", "first", "two"]


# -- the list -------------------------------------------------------------------------------------


def step(text: str, status: str = "todo") -> dict[str, str]:
    return {"text": text, "status": status}


async def data_after(place: Path, script: Script) -> dict[str, Any]:
    async with open_run([coder(place, model=script)]) as opened:
        await opened.result(await opened.post("coder", "go"))
        tree = RunTree.of(await opened.records())
        return dict(tree.user.data)


def test_its_list_is_the_board_of_the_run(place: Path) -> None:
    script = lines(
        call("todo", items=[step("look", "doing"), step("mend")]),
        call("todo", items=[step("look", "done"), step("mend", "doing"), step("tell")]),
        "done",
    )
    board = asyncio.run(data_after(place, script))["work_modules"]
    assert [(each["name"], each["status"]) for each in board.values()] == [
        ("look", "completed"),
        ("mend", "ongoing"),
        ("tell", "pending"),
    ]
    assert results_shown(script.requests[2])[-1] == "1 of 3 done; doing: mend"


def test_one_step_is_done_at_a_time(place: Path) -> None:
    script = lines(call("todo", items=[step("a", "doing"), step("b", "doing")]), "done")
    assert "work_modules" not in asyncio.run(data_after(place, script))
    assert "at most one step" in results_shown(script.requests[1])[-1]


# -- questions ------------------------------------------------------------------------------------


def test_it_asks_its_user_with_options(place: Path) -> None:
    script = lines(call("ask_user", question="Which?", options=["tea", "rum"]), "Tea it is.")
    asked: list[Message] = []

    async def answer(message: Message) -> str:
        asked.append(message)
        return "tea"

    team = coder(place, model=script)
    assert asyncio.run(run(team, "go", on_input=answer)).output == "Tea it is."
    assert asked[0].content == "Which?"
    assert results_shown(script.requests[1]) == ["tea"]


def test_where_nobody_is_it_is_told_to_decide(place: Path) -> None:
    script = lines(call("ask_user", question="Which?"), "I took tea.")
    assert ask(place, script).output == "I took tea."
    assert "decide yourself" in results_shown(script.requests[1])[0]


# -- work that it gives away ----------------------------------------------------------------------


def tasks(*texts: str) -> list[dict[str, str]]:
    return [{"title": each, "task": f"Find {each}"} for each in texts]


def test_agents_that_read_report_each_under_its_title(place: Path) -> None:
    (place / "a.txt").write_text("tea\n")
    together = threading.Barrier(2)

    async def found(request: ModelRequest) -> str:
        if request.messages[-1].role == "tool":
            return f"in a.txt:1, for {request.messages[0].content}"
        await asyncio.to_thread(together.wait, 10)
        return "nothing"

    script = Script({"coder": [call("delegate", tasks=tasks("tea", "rum")), "done"], "explorer": found})
    assert ask(place, script).output == "done"
    asked = [each for each in script.requests if "explorer" in each.system]
    assert {each.messages[0].content for each in asked} == {"Find tea", "Find rum"}
    assert not {"edit_file", "shell", "delegate", "todo", "ask_user"} & {one.name for one in asked[0].tools}
    shown = results_shown(next(each for each in script.requests if len(each.messages) == 3))
    assert shown == ["## 1. tea\nnothing\n\n## 2. rum\nnothing"]


def test_one_that_fails_takes_none_with_it(place: Path) -> None:
    def found(request: ModelRequest) -> Any:
        return ValueError("torn") if "rum" in request.messages[0].content else "tea is there"

    script = Script({"coder": [call("delegate", tasks=tasks("tea", "rum")), "done"], "explorer": found})
    ask(place, script)
    shown = results_shown(next(each for each in script.requests if len(each.messages) == 3))[0]
    assert "tea is there" in shown
    assert "[failed: " in shown


def test_nine_are_too_many(place: Path) -> None:
    script = lines(call("delegate", tasks=tasks(*"abcdefghi")), "done")
    ask(place, script)
    assert "length <= 8" in results_shown(script.requests[1])[0]
