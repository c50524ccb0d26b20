"""Measure Antiphon beside bare Python and its peers; see README.md here.

python -m bench --quick                      within two minutes, our figures against the budgets
python -m bench --out results.jsonl          everything of ours
python -m bench --peers agno,autogen         the same beside peers, in one table
python -m bench --only W2,W4 --repeat 3      some workloads, the best of three processes
python -m bench --profile W2                 where the time of a cell goes
python -m bench --report results.jsonl       write docs/performance.md
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.cell import Cell, Params
from bench.contenders import ANTIPHON, BARE, PEERS, ROOT, Contender, Record, install, measured, profiled
from bench.table import Results, ours, page, plain, side_by_side


def asked() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer cells, within two minutes")
    parser.add_argument("--only", default="", metavar="W2,W4", help="some workloads; W7 means all of W7.*")
    parser.add_argument("--repeat", type=int, default=1, help="processes per cell; the best is shown")
    parser.add_argument("--out", type=Path, metavar="FILE", help="append results as JSON lines")
    parser.add_argument("--peers", default="", metavar="NAMES", help=f"of {', '.join(PEERS)}")
    parser.add_argument("--profile", metavar="CELL", help="profile one of our cells, such as W4.depth")
    parser.add_argument("--params", default="", metavar="JSON", help="the parameters for --profile")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write docs/performance.md from results")
    return parser.parse_args()


def wanted(contender: Contender, only: set[str], quick: bool) -> Iterator[tuple[Cell, Params]]:
    """The cells to measure."""
    for cell in contender.cells:
        if not only or cell.workload in only or cell.workload.split(".")[0] in only:
            for params in cell.chosen(quick):
                yield cell, params


def measure(contenders: list[Contender], options: argparse.Namespace) -> list[Record]:
    """Measure everyone's cells, workload by workload, so that one load is on all of them."""
    only = set(filter(None, options.only.split(",")))
    plan = [
        (cell.workload, contender, cell, params)
        for contender in contenders
        for cell, params in wanted(contender, only, options.quick)
    ] * options.repeat
    # Stable: a workload's cells stay in the order of the contenders.
    plan.sort(key=lambda entry: entry[0])
    records = []
    start = time.monotonic()
    for number, (workload, contender, cell, params) in enumerate(plan, 1):
        told = f"{number}/{len(plan)} {contender.name} {workload} {json.dumps(params)}"
        print(f"{time.monotonic() - start:5.0f} s  {told}", file=sys.stderr, flush=True)
        record = measured(contender, cell, params)
        if "error" in record:
            print(f"         {record['error'].splitlines()[-1]}", file=sys.stderr)
        records.append(record)
        if options.out is not None:
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return records


def profile(name: str, params: str) -> None:
    """Profile a cell of ours, at the given or its first quick parameters."""
    cell = next((cell for cell in ANTIPHON.cells if cell.workload == name), None)
    if cell is None:
        raise SystemExit(f"no cell {name}; there are: {', '.join(cell.workload for cell in ANTIPHON.cells)}")
    profiled(cell, json.loads(params) if params else cell.chosen(quick=True)[-1])


def main() -> int:
    """Do what the command line asks; 1 when a cell gave no result."""
    options = asked()
    if options.profile:
        profile(options.profile, options.params)
        return 0
    if options.report is not None:
        lines = options.report.read_text(encoding="utf-8").splitlines()
        target = ROOT / "docs" / "performance.md"
        target.parent.mkdir(exist_ok=True)
        target.write_text(page(Results(json.loads(line) for line in lines)), encoding="utf-8")
        print(f"wrote {target.relative_to(ROOT)}")
        return 0
    names = list(filter(None, options.peers.split(",")))
    unknown = sorted(set(names) - set(PEERS))
    if unknown:
        raise SystemExit(f"no peer {unknown[0]}; there are: {', '.join(PEERS)}")
    for name in names:
        print(f"installing {name} if it is missing", file=sys.stderr)
        install(PEERS[name])
    results = Results(measure([ANTIPHON, BARE, *(PEERS[name] for name in names)], options))
    if not results.records:
        raise SystemExit(f"no such workload: {options.only}")
    print("\n" + plain(*ours(results)))
    if names:
        print("\n" + plain(*side_by_side(results)))
    low, high = results.loads
    print(f"\n{os.cpu_count()} cores, load average {low:.1f} to {high:.1f} beside the cells")
    for failure in results.failures():
        print(f"no result: {failure}")
    return 1 if results.failures() else 0


if __name__ == "__main__":
    sys.exit(main())
