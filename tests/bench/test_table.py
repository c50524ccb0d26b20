"""Results become tables: the best repeat, ratios to bare Python, budgets kept and missed."""

import json
from typing import Any

import pytest

from bench import budgets
from bench.cell import Cell
from bench.contenders import ANTIPHON, BARE, PEERS, measured
from bench.table import Results, ours, page, plain, side_by_side


def record(peer: str, workload: str, params: dict[str, Any], **metrics: float) -> dict[str, Any]:
    told = {"peer": peer, "workload": workload, "params": params, "load1": 1.0}
    return told | {"metrics": metrics, "date": "2026-01-01", "cores": 2, "python": "3.11"}


TURNS = [
    record("antiphon", "W2", {"n": 10}, us_per_turn=30.0, cpu_us_per_turn=28.0),
    record("antiphon", "W2", {"n": 10}, us_per_turn=24.0, cpu_us_per_turn=29.0),
    record("bare", "W2", {"n": 10}, us_per_turn=2.0),
    record("agno", "W2", {"n": 10}, us_per_turn=150.0),
]


def test_the_best_repeat_is_compared_with_bare_python_and_the_budget() -> None:
    _, rows = ours(Results(TURNS))
    assert rows == [["Tool turn, N = 10", "24.0 µs", "28.0", "2.00", "12.0", "≤ 20", "120 %", "MISSED"]]


def test_of_durable_cells_one_repeat_is_kept_as_a_whole() -> None:
    params = {"n": 200, "sync": "FULL"}
    fast = record("antiphon", "W7.turn", params, wall_s=1.0, us_per_turn=5.0, added_to_commit_us=4.0)
    slow = record("antiphon", "W7.turn", params, wall_s=2.0, us_per_turn=10.0, added_to_commit_us=1.0)
    _, rows = ours(Results([slow, fast]))
    assert [row[1] for row in rows] == ["5.00 µs", "4.00 µs"]


def test_more_is_better_where_it_is() -> None:
    found = record("antiphon", "W7.many", budgets.MANY, wall_s=1.0, turns_per_s=10_000.0)
    _, [row] = ours(Results([found]))
    assert row[-3:] == ["≥ 20,000", "200 %", "MISSED"]


def test_everyone_stands_in_one_table_and_on_the_page() -> None:
    late = {"peer": "agno", "workload": "W4.depth", "params": {"depth": 50}, "load1": 3.0}
    results = Results([*TURNS, late | {"error": "timeout 100 s"} | {"date": "2026-01-01"}, TURNS[-1]])
    head, rows = side_by_side(results)
    assert head == ["", "antiphon", "agno", "bare"]
    assert rows == [
        ["Tool turn, N = 10, µs", "24.0", "150", "2.00"],
        ["Agent call, 50 deep, µs", "–", "timeout", "–"],
    ]
    assert "150" in plain(head, rows)
    text = page(results)
    assert "load average 1.0 to 3.0" in text
    assert "| Tool turn, N = 10, µs | 24.0 | 150 | 2.00 |" in text
    assert "agno W4.depth" in text


def every(cells: Any) -> set[str]:
    return {
        f"{cell.workload} {json.dumps(params)}"
        for cell in cells
        for params in (*cell.params, *(cell.quick or ()))
    }


def test_every_line_shows_a_cell_that_exists() -> None:
    shown = {f"{line.workload} {json.dumps(line.params)}" for line in budgets.LINES}
    assert shown <= every(ANTIPHON.cells)


@pytest.mark.parametrize("name", ["bare", *PEERS])
def test_what_others_measure_stands_beside_ours(name: str) -> None:
    contender = BARE if name == "bare" else PEERS[name]
    kind = "bare" if name == "bare" else "peer"
    lines = {f"{line.workload} {json.dumps(line.elsewhere.get(kind, line.params))}" for line in budgets.LINES}
    assert every(contender.cells) <= lines


@pytest.mark.slow
def test_a_cell_runs_in_a_process_of_its_own() -> None:
    cell = next(cell for cell in ANTIPHON.cells if cell.workload == "W2")
    found = measured(ANTIPHON, cell, {"n": 10})
    assert found["metrics"]["model_calls"] == 11
    assert {"peer", "workload", "params", "load1"} <= found.keys()


@pytest.mark.slow
def test_an_error_is_told_and_a_slow_cell_ends() -> None:
    cell = next(cell for cell in ANTIPHON.cells if cell.workload == "W2")
    assert "no workload W99" in measured(ANTIPHON, Cell("W99", cell.measure), {})["error"]
    assert measured(ANTIPHON, Cell("W2", cell.measure, timeout=0.01), {"n": 10})["error"] == "timeout 0.01 s"
