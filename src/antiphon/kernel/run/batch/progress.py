"""The bar that says how far a `map` is, on standard error: for people, who asked for it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from antiphon.values.result import Result


def progress_bar(name: str, total: int | None, shown: bool) -> AbstractContextManager[ProgressBar | None]:
    """The bar of an agent's items, if it is to be shown. total: how many there are, None if nobody knows."""
    return ProgressBar(name, total) if shown else nullcontext()


class ProgressBar:
    """`clerk ━━━━━╸━━━━ 37/200, 2 not completed, 41,200 tokens, 0:00:34 left`; for use in `with`.

    Redrawn in place on a terminal or in a notebook; written once, at the end, to a file or a pipe.
    """

    def __init__(self, name: str, total: int | None) -> None:
        # Slow to import, and only needed here.
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._tokens = self._failed = 0
        said = TextColumn("{task.fields[said]}", markup=False)
        self._bar = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            said,
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(stderr=True),
        )
        self._task = self._bar.add_task(name, total=total, said="")

    def __enter__(self) -> ProgressBar:
        self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._bar.stop()

    def done(self, result: Result) -> None:
        """One more item has its result."""
        self._tokens += result.usage.total
        self._failed += result.outcome != "completed"
        failed = f"{self._failed:,} not completed, " if self._failed else ""
        self._bar.update(self._task, advance=1, said=f"{failed}{self._tokens:,} tokens")
