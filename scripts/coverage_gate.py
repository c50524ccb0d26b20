"""Judge the coverage data of a test run: every branch of the kernel's rules, most of the rest."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

WHOLE = 92.0
FULL = (
    "kernel/facts/state", "kernel/facts/events", "kernel/facts/ledger", "kernel/facts/fold/apply",
    "kernel/facts/fold/turns", "kernel/facts/fold/models", "kernel/facts/fold/calls", "kernel/rules/step",
    "values/policy", "values/limits",
)  # fmt: skip


def shortfalls(report: dict[str, Any]) -> list[str]:
    """What falls short in a `coverage json` report, one line each."""
    files = {Path(path).as_posix(): found for path, found in report["files"].items()}
    problems = []
    for name in FULL:
        path = f"src/antiphon/{name}.py"
        if path not in files:
            problems.append(f"{path}: not measured, 100 % of lines and branches wanted")
        elif files[path]["missing_lines"] or files[path]["missing_branches"]:
            lines = ", ".join(map(str, files[path]["missing_lines"])) or "none"
            branches = ", ".join(f"{a}->{b}" for a, b in files[path]["missing_branches"]) or "none"
            problems.append(f"{path}: 100 % wanted; missing lines {lines}; missing branches {branches}")
    whole = report["totals"]["percent_covered"]
    if whole < WHOLE:
        problems.append(f"whole: {whole:.1f} % covered, {WHOLE:.0f} % wanted; the least covered files:")
        least = sorted(files, key=lambda path: -len(files[path]["missing_lines"]))[:8]
        problems += [f"  {path}: {files[path]['summary']['percent_covered']:.1f} %" for path in least]
    return problems


def main() -> int:
    """Read .coverage of the working directory; 0 when nothing falls short."""
    command = [sys.executable, "-m", "coverage", "json", "-q", "-o", "-"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode:
        print(found.stderr or found.stdout)
        return found.returncode
    problems = shortfalls(json.loads(found.stdout))
    print("\n".join(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
