"""The front desk with the local model: the right colleague for 54 of 60 requests, the right answer."""

from __future__ import annotations

import asyncio
import runpy
from pathlib import Path

import pytest

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")

import antiphon
from antiphon.cli import exit_codes, main
from antiphon.cli.target import load_target
from antiphon.models.local import LocalModel
from bench.local_routing import LISTS, front_desk, measure, rows_of

TEAM = Path(__file__).resolve().parents[4] / "examples" / "frontdesk" / "team.py"


@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_a_list_is_whole_and_repeats_no_example(path: Path) -> None:
    entry, agents = front_desk()
    rows = rows_of(path, entry)
    assert len({row["request"] for row in rows}) == 60
    for row in rows:
        assert row["tool"] in {tool.name for tool in agents[row["agent"]].tools}


@pytest.mark.parametrize(
    "path",
    [
        # Each takes minutes; the one that was held out when the prompts were written says most.
        pytest.param(each, marks=pytest.mark.deep if each.stem == "heldout_60" else pytest.mark.soak)
        for each in LISTS
    ],
    ids=lambda path: path.stem,
)
def test_the_right_colleague(path: Path) -> None:
    async def main() -> tuple[int, int, int]:
        async with LocalModel() as model:
            return await measure(model, path, 0, False)

    right, tools, count = asyncio.run(main())
    assert count == 60
    assert right >= 54
    assert tools >= 50


@pytest.mark.slow
def test_the_answer_quotes_the_right_number(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("one two three four five six seven\n")

    async def main() -> antiphon.Result:
        entry, agents = runpy.run_path(str(TEAM))["team"](tmp_path)
        async with LocalModel() as model:
            question = "How many words are in README.md?"
            return await antiphon.run(entry=entry, agents=agents, message=question, model=model)

    result = asyncio.run(main())
    assert result.outcome == "completed"
    assert result.output == "README.md: 7 words, 1 line, 34 characters, 34 bytes"
    assert [(message.sender, message.receiver) for message in result.messages][:2] == [
        ("user", "frontdesk"),
        ("frontdesk", "archivist"),
    ]
    assert result.messages[1].content == "How many words are in README.md?"


@pytest.mark.slow
def test_a_team_in_yaml_is_small_enough_for_it(tmp_path: Path) -> None:
    (tmp_path / "tides.md").write_text("The moon raises the tides twice a day.\n")
    found = load_target("examples/lookup", str(tmp_path))

    async def main() -> list[antiphon.Result]:
        questions = "What is written about tides?", "How many words are in tides.md?"
        async with LocalModel() as model:
            return [
                await antiphon.run(found.entry, question, agents=found.agents, model=model)
                for question in questions
            ]

    quoted, counted = asyncio.run(main())
    assert quoted.output == "tides.md:1-1\n> The moon raises the tides twice a day."
    assert counted.output == "tides.md: 8 words, 1 line, 39 characters, 39 bytes"


SLOW = [
    pytest.param(each, marks=pytest.mark.slow) for each in ("What is the status?", "Launch the principal")
]


@pytest.mark.parametrize("question", ["How do tides work?", *SLOW])
def test_a_team_that_has_to_plan_is_beyond_it_and_fails(
    question: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["run", "examples/research", question, "--folder", str(tmp_path), "--model", "local:smollm2"]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--journal", f"sqlite:///{tmp_path}/runs.db"])
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (exit_codes.FAILED, "")
    assert "actions of manage_work_modules would have to be written" in said.err
    assert "Ask a larger model: --model openai:" in said.err
