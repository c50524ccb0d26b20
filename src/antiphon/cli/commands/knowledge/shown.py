"""What `antiphon knowledge` shows: a bar while documents are read, changes, what sources hold, passages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from antiphon.cli.display import output, terminal_escape
from antiphon.tools.folder.files import many
from antiphon.tools.folder.index import Changes, IndexProgress, Unreadable
from antiphon.tools.knowledge import FolderSource, Found, KnowledgeKey, SourceSpec

TOLD = 20
"""Documents that could not be read and are named; the others are counted."""
WIDTH = 2_000
"""Characters of a line that are shown."""


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[IndexProgress], None]]:
    """A bar on the error output, where somebody looks: files, bytes, their rate."""
    console = output.terminal()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[files]}"),
        DownloadColumn(),
        TransferSpeedColumn(),
        TextColumn("{task.fields[path]}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=None, files="", path="")

        def show(progress: IndexProgress) -> None:
            path = terminal_escape.line(progress.path, 60)
            files = f"{progress.done:,}/{progress.total:,} files"
            bar.update(
                task, completed=progress.bytes_done, total=progress.bytes_total, files=files, path=path
            )

        yield show


def embed_all(source: FolderSource) -> None:
    """Make the vectors that are missing, with a bar where somebody looks."""
    console, stats = output.terminal(), source.index.stats()
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(f"{source.name}: vectors", total=stats.passages, completed=stats.embedded)
        while made := source.embed_some():
            bar.advance(task, made)


def tell_changes(source: FolderSource, changes: Changes) -> None:
    """Print what a look at the files changed."""
    reasons = {each.path: each.reason for each in changes.unreadable}
    for what in ("added", "changed", "removed"):
        for path in getattr(changes, what):
            why = f" (not read: {reasons[path]})" if path in reasons else ""
            output.say(terminal_escape.line(f"{source.name}: {what} {path}{why}", WIDTH))


def say_stats(
    sources: list[tuple[KnowledgeKey, SourceSpec, FolderSource]], as_json: bool, seconds: float = 0.0
) -> list[dict[str, Any]]:
    """Print what folders hold, unless it is to be JSON, which is returned; seconds: how long it took to read
    them, where they were."""
    told: list[dict[str, Any]] = []
    for key, spec, source in sources:
        found, bad = source.index.stats(), source.index.unreadable()
        size = sum(each.stat().st_size for each in Path(source.index.path or "").parent.glob("index.db*"))
        told.append(
            {
                **plain_spec(key, spec),
                "documents": found.files - found.unreadable,
                "passages": found.passages,
                "embedded": found.embedded,
                "bytes": found.bytes,
                "index_bytes": size,
                "left_out": found.left_out,
                "unreadable": [{"path": each.path, "reason": each.reason} for each in bad],
            }
        )
        if as_json:
            continue
        rate = f" in {seconds:.1f} s ({found.bytes / max(seconds, 0.001) / 1e6:.1f} MB/s)" if seconds else ""
        read = found.files - found.unreadable
        counted = ((read, "document"), (found.passages, "passage"), (found.embedded, "vector"))
        told_counts = ", ".join(many(count, thing) for count, thing in counted)
        output.say(f"{spec.name}: {told_counts}, {found.bytes:,} bytes, index {size:,} bytes{rate}")
        _say_unread(bad, found.left_out)
    return told


def _say_unread(bad: list[Unreadable], left_out: int) -> None:
    for each in bad[:TOLD]:
        output.say("  " + terminal_escape.line(f"not read: {each.reason}", WIDTH))
    if len(bad) > TOLD:
        output.say(f"  not read: {len(bad) - TOLD:,} more")
    if left_out:
        output.say(f"  left out: {many(left_out, 'file')} beyond what a source may hold")


def columns(*texts: str) -> str:
    """Texts beside each other, each on one line; empty ones are left out."""
    return "  ".join(terminal_escape.line(each, WIDTH) for each in texts if each)


def plain_spec(key: KnowledgeKey, spec: SourceSpec) -> dict[str, Any]:
    """A source as JSON has it."""
    return {
        "name": spec.name,
        "folder": spec.folder,
        "mcp": spec.mcp,
        "web": spec.web,
        "description": spec.description,
        "project": key.project,
        "owner": key.owner,
    }


def plain_found(found: Found) -> dict[str, Any]:
    """What was found as JSON has it."""
    passages = [
        {
            "citation": each.citation,
            "source": each.source,
            "document": each.passage.place.document,
            "first": each.passage.place.first,
            "last": each.passage.place.last,
            "heading": each.passage.heading,
            "text": each.passage.text,
        }
        for each in found.passages
    ]
    given = (("missing", found.missing), ("partial", found.partial), ("how", found.how))
    notes = {what: [{"source": each.source, "text": each.text} for each in told] for what, told in given}
    return {"passages": passages, **notes}
