"""Who is measured: Antiphon, bare Python, and peers in environments of their own."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from bench import antiphon_cells, bare
from bench.cell import QUIET, RESULT, Cell, Params
from bench.peers import agno, autogen, langgraph

ROOT = Path(__file__).resolve().parent.parent
CACHE = ROOT / ".bench" / "peers"

Record = dict[str, Any]
"""One line of a result file: {peer, workload, params, metrics | error, load1}, and when and where."""


@dataclass(frozen=True)
class Contender:
    """A name, the module with its cells, and the Python that runs them."""

    name: str
    module: str
    cells: Sequence[Cell]
    python: str = sys.executable
    packages: Sequence[str] = ()


ANTIPHON = Contender("antiphon", "bench.antiphon_cells", antiphon_cells.CELLS)
BARE = Contender("bare", "bench.bare", bare.CELLS)


def _peer(name: str, cells: Sequence[Cell], packages: Sequence[str]) -> Contender:
    folder = CACHE / name / ("Scripts" if os.name == "nt" else "bin")
    return Contender(name, f"bench.peers.{name}", cells, str(folder / "python"), packages)


PEERS: Mapping[str, Contender] = {
    "agno": _peer("agno", agno.CELLS, agno.PACKAGES),
    "autogen": _peer("autogen", autogen.CELLS, autogen.PACKAGES),
    "langgraph": _peer("langgraph", langgraph.CELLS, langgraph.PACKAGES),
}


def install(peer: Contender) -> None:
    """Make the peer's environment, once. Raises CalledProcessError when pip cannot."""
    done = CACHE / peer.name / "installed.json"
    wanted = json.dumps(list(peer.packages))
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return
    venv.create(CACHE / peer.name, with_pip=True, clear=True)
    subprocess.run([peer.python, "-m", "pip", "install", "-q", *peer.packages], check=True)
    done.write_text(wanted, encoding="utf-8")


def _command(contender: Contender, workload: str, params: Params, *options: str) -> list[str]:
    start = [contender.python, "-W", "ignore", "-m", contender.module]
    return [*start, workload, json.dumps(params), *options]


def _environment(contender: Contender) -> dict[str, str]:
    paths = [str(ROOT)] if contender.packages else [str(ROOT), str(ROOT / "src")]
    return {**os.environ, **QUIET, "PYTHONPATH": os.pathsep.join(paths)}


def measured(contender: Contender, cell: Cell, params: Params) -> Record:
    """Measure one cell in a fresh process."""
    record: Record = {
        "peer": contender.name,
        "workload": cell.workload,
        "params": params,
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "date": date.today().isoformat(),
    }
    try:
        found = subprocess.run(
            _command(contender, cell.workload, params),
            capture_output=True, text=True, timeout=cell.timeout, cwd=ROOT, env=_environment(contender),
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return record | {"error": f"timeout {cell.timeout:g} s", "load1": os.getloadavg()[0]}
    record["load1"] = os.getloadavg()[0]
    lines = [line for line in found.stdout.splitlines() if line.startswith(RESULT)]
    if lines:
        return record | {"metrics": json.loads(lines[-1][len(RESULT) :])}
    return record | {"error": (found.stderr or found.stdout or "no output").strip()[-600:]}


def profiled(cell: Cell, params: Params) -> None:
    """Show where the time of one of Antiphon's cells goes."""
    command = _command(ANTIPHON, cell.workload, params, "--profile")
    subprocess.run(command, cwd=ROOT, env=_environment(ANTIPHON), check=False)
