"""`runs export` and `runs import`: a run as a file, and back."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import click

from antiphon import __version__
from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.source import opened_runs, source_option
from antiphon.cli.store import RunSource, load_export, short_id
from antiphon.config.dotenv import environment
from antiphon.errors import JournalError
from antiphon.journal.port import StoredRun
from antiphon.view import export_file, page
from antiphon.view.export_file import Export
from antiphon.view.traces import otlp, spans_of


@click.command("export", short_help="Write a run as one JSON or HTML file.")
@click.argument("run_id", metavar="RUN")
@source_option
@click.option("--html", "as_html", is_flag=True, help="Write a page that any browser opens, without network.")
@click.option("--otel", "as_otel", is_flag=True, help="Write its spans as OTLP in JSON, for collectors.")
@click.option("--content", is_flag=True, help="With --otel: what was asked, said and called, too.")
@click.option(
    "--out", metavar="FILE", help="Write to a new file that only you can read. [default: standard output]"
)
@click.option("--yes", "-y", is_flag=True, help="Replace FILE when it exists.")
def export(
    run_id: str, source: RunSource, as_html: bool, as_otel: bool, content: bool, out: str | None, yes: bool
) -> int:  # fmt: skip
    """Write a run as one JSON file, with its blobs and digests; `runs verify FILE` checks it anywhere.

    With --html it is a page to look at instead: who called whom, what was said, when, and what it cost. With
    --otel it is a trace for each request: one OTLP request a line, the same spans however often it is done.
    OTEL_SERVICE_NAME names the service.
    """
    if as_html and as_otel:
        raise click.UsageError("A file is one or the other; say --html or --otel.")
    if content and not as_otel:
        raise click.UsageError("--content goes with --otel; the other files hold what was said anyway.")
    if out is not None and Path(out).exists() and not yes:
        raise click.UsageError(f"{out} exists; say --yes to replace it, or name another file.")
    if as_html:
        run, records, data = asyncio.run(_page(run_id, source))
        return _write(data, out, f"run {short_id(run)}: {records:,} records in {out}; open it in a browser")
    if as_otel:
        run, count, data = asyncio.run(_spans(run_id, source, content))
        return _write(data, out, f"run {short_id(run)}: {count:,} spans in {out}")
    found, waiting = asyncio.run(_export(run_id, source))
    if waiting:
        exit_codes.remark(
            f"{waiting:,} {'command waits' if waiting == 1 else 'commands wait'} for the run's owner and"
            f" {'is' if waiting == 1 else 'are'} not exported; after `runs resume` they are in its records"
        )
    data = (terminal_escape.json_text(found) + "\n").encode()
    told = f"run {short_id(found.run_id)}: {len(found.rows):,} rows and {len(found.blobs):,} blobs in {out}"
    return _write(data, out, told)


def _write(data: bytes, out: str | None, told: str) -> int:
    if out is None:
        output.say(data.decode(), end="")
    else:
        export_file.write(Path(out), data)
        output.tell(told)
    return exit_codes.COMPLETED


async def _page(prefix: str, source: RunSource) -> tuple[str, int, bytes]:
    """The run's id, how many records it has, and the page."""
    async with opened_runs(source) as runs:
        entry = await runs.find(prefix)
        async with runs.connect(entry.run_id) as run:
            records = await run.records()
            prefixes = {name: await run.blob(name) for name in sorted(page.prefixes_of(records))}
        made = page.page(records, prefixes, name=entry.name, made_at=time.time())
        return entry.run_id, len(records), made


async def _spans(prefix: str, source: RunSource, content: bool) -> tuple[str, int, bytes]:
    """The run's id, how many spans it has, and these as lines."""
    async with opened_runs(source) as runs:
        entry = await runs.find(prefix)
        async with runs.connect(entry.run_id) as run:
            spans = spans_of(await run.records(), content=content)
    service = environment().get("OTEL_SERVICE_NAME") or otlp.SCOPE
    data = b"".join(line + b"\n" for line in otlp.lines(spans, service, __version__))
    return entry.run_id, len(spans), data


async def _export(prefix: str, source: RunSource) -> tuple[Export, int]:
    """The run, and how many commands its records do not hold yet."""
    async with opened_runs(source) as runs:
        return await runs.export(await runs.find(prefix))


@click.command("import", short_help="Take in a run that was exported elsewhere.")
@click.argument("file", metavar="FILE")
@source_option
def import_run(file: str, source: RunSource) -> int:
    """Take in a run from the FILE that `runs export` wrote; it keeps its id, and is marked as imported.

    All of it is checked first, then all of it is stored in one step, or nothing. Exit code 5 when the file is
    damaged or was not written by `runs export`.
    """
    loaded = load_export(file)
    try:
        run = export_file.checked(loaded)
    except JournalError as error:
        raise JournalError(f"{file} is damaged and was not taken in: {error}") from error
    asyncio.run(_import(run, file, source))
    records = run.rows[-1].seq if run.rows else 0
    output.say(f"run {short_id(run.run_id)}: {records:,} records taken in")
    return exit_codes.COMPLETED


async def _import(run: StoredRun, file: str, source: RunSource) -> None:
    async with opened_runs(source, create=True) as runs:
        await runs.restore(run, file)
