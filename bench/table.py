"""Result files to tables: for a terminal, and in Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from bench.budgets import LINES, Line
from bench.contenders import Record

Key = tuple[str, str, str]


class Results:
    """The best of all repeats, per contender, workload and parameters.

    Of durable cells, whose metrics are differences, the fastest repeat is kept as a whole.
    """

    def __init__(self, records: Iterable[Record]) -> None:
        self.records = list(records)
        self._best: dict[Key, dict[str, Any]] = {}
        self._errors: dict[Key, str] = {}
        for record in self.records:
            key = self._key(record["peer"], record["workload"], record["params"])
            if "error" in record:
                self._errors[key] = record["error"].strip().splitlines()[-1]
            else:
                kept = self._best.get(key)
                self._best[key] = self._better(record["workload"], kept, record["metrics"])

    @staticmethod
    def _key(peer: str, workload: str, params: Any) -> Key:
        return peer, workload, json.dumps(params, sort_keys=True)

    @staticmethod
    def _better(workload: str, kept: dict[str, Any] | None, found: dict[str, Any]) -> dict[str, Any]:
        if kept is None:
            return found
        if workload.startswith("W7"):
            measure = "wall_s" if "wall_s" in found else "load_ms"
            return found if found.get(measure, 0) < kept.get(measure, 0) else kept
        best = dict(kept)
        for name, number in found.items():
            if isinstance(number, int | float) and not isinstance(number, bool):
                best[name] = (max if name.endswith("_per_s") else min)(number, kept.get(name, number))
        return best

    @property
    def peers(self) -> list[str]:
        """All contenders but ours and bare Python, in the order of their first record."""
        names = dict.fromkeys(record["peer"] for record in self.records)
        return [name for name in names if name not in ("antiphon", "bare")]

    @property
    def loads(self) -> tuple[float, float]:
        """The lowest and the highest load average beside the cells."""
        loads = [record["load1"] for record in self.records]
        return min(loads), max(loads)

    def number(self, peer: str, line: Line, metric: str = "") -> float | None:
        """What a contender has for a line, if anything."""
        found = self._best.get(self._key(peer, line.workload, self._params(peer, line)), {})
        number = found.get(metric or line.metric)
        return float(number) if isinstance(number, int | float) else None

    def shown(self, peer: str, line: Line) -> str:
        """The same as text; an error as its first words."""
        number = self.number(peer, line)
        if number is not None:
            return figure(number)
        error = self._errors.get(self._key(peer, line.workload, self._params(peer, line)), "–")
        return "timeout" if error.startswith("timeout") else "–" if error == "–" else "error"

    def failures(self) -> list[str]:
        """Every cell that gave nothing, and why."""
        return [f"{' '.join(key)}: {why}" for key, why in self._errors.items() if key not in self._best]

    @staticmethod
    def _params(peer: str, line: Line) -> Any:
        if peer == "antiphon":
            return line.params
        return line.elsewhere.get("bare" if peer == "bare" else "peer", line.params)


def figure(number: float) -> str:
    """A number with three digits that matter."""
    size = abs(number)
    return f"{number:,.0f}" if size >= 100 else f"{number:.1f}" if size >= 10 else f"{number:.2f}"


def ours(results: Results) -> tuple[list[str], list[list[str]]]:
    """Our figures beside CPU time, bare Python and the budget."""
    head = ["", "Antiphon", "CPU", "bare", "× bare", "budget", "of budget", ""]
    rows = []
    for line in LINES:
        number = results.number("antiphon", line)
        if number is None:
            continue
        cpu = results.number("antiphon", line, line.cpu) if line.cpu else None
        bare = results.number("bare", line, line.bare)
        ratio = None if not bare else bare / number if line.more and number else number / bare
        budget = line.budget
        used = None if budget is None or not number else budget / number if line.more else number / budget
        rows.append(
            [
                line.title,
                f"{figure(number)} {line.unit}",
                "" if cpu is None else figure(cpu),
                "" if bare is None else figure(bare),
                "" if ratio is None else figure(ratio),
                "" if budget is None else f"{'≥' if line.more else '≤'} {budget:,g}",
                "" if used is None else f"{used * 100:.0f} %",
                "" if used is None else "kept" if used <= 1 else "MISSED",
            ]
        )
    return head, rows


def side_by_side(results: Results) -> tuple[list[str], list[list[str]]]:
    """Everyone in one table."""
    names = ["antiphon", *results.peers, "bare"]
    rows = []
    for line in LINES:
        cells = [results.shown(name, line) for name in names]
        if any(cell != "–" for cell in cells[:-1]):
            rows.append([f"{line.title}, {line.unit}" if line.unit else line.title, *cells])
    return ["", *names], rows


def plain(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns for a terminal."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in (head, *rows)
    )


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a page."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines)


def page(results: Results) -> str:
    """The page of the results: date, kind of machine, both tables."""
    last = results.records[-1]
    low, high = results.loads
    versions = [
        f"{name} {version}"
        for record in results.records
        for name, version in record.get("metrics", {}).get("versions", {}).items()
    ]
    parts = [
        "# Performance",
        f"Measured {last['date']} on {last['cores']} cores, Python {last['python']}, load average "
        f"{low:.1f} to {high:.1f} beside the cells; the best of the repeats. What each line is and how to "
        "read it: [bench/README.md](../bench/README.md). Generated by `python -m bench --report FILE`.",
        markdown(*ours(results)),
    ]
    if results.peers:
        parts += ["## Beside others", markdown(*side_by_side(results))]
        parts.append("Versions: " + ", ".join(dict.fromkeys(versions)) + ".")
    if results.failures():
        parts += ["## Not obtained", "\n".join(f"- {failure}" for failure in results.failures())]
    return "\n\n".join(parts) + "\n"
