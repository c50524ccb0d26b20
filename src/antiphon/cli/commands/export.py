"""`runs export` and `runs import`: a run as a file, and back."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import click

from antiphon import __version__
from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.store import find, journal_option, load_export, opened, short_id, url_of
from antiphon.config.dotenv import environment
from antiphon.errors import JournalError
from antiphon.journal import open_journal
from antiphon.journal.port import StoredRun
from antiphon.kernel.run.rows import read
from antiphon.view import export_file, page
from antiphon.view.export_file import Export
from antiphon.view.traces import otlp, spans_of


@click.command("export", short_help="Write a run as one JSON or HTML file.")
@click.argument("run_id", metavar="RUN")
@journal_option
@click.option("--html", "as_html", is_flag=True, help="Write a page that any browser opens, without network.")
@click.option("--otel", "as_otel", is_flag=True, help="Write its spans as OTLP in JSON, for collectors.")
@click.option("--content", is_flag=True, help="With --otel: what was asked, said and called, too.")
@click.option(
    "--out", metavar="FILE", help="Write to a new file that only you can read. [default: standard output]"
)
@click.option("--yes", "-y", is_flag=True, help="Replace FILE when it exists.")
def export(
    run_id: str, journal: str | None, as_html: bool, as_otel: bool, content: bool, out: str | None, yes: bool
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
        run, records, data = asyncio.run(_page(run_id, journal))
        return _write(data, out, f"run {short_id(run)}: {records:,} records in {out}; open it in a browser")
    if as_otel:
        run, count, data = asyncio.run(_spans(run_id, journal, content))
        return _write(data, out, f"run {short_id(run)}: {count:,} spans in {out}")
    found, waiting = asyncio.run(_export(run_id, journal))
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


async def _page(prefix: str, option: str | None) -> tuple[str, int, bytes]:
    """The run's id, how many records it has, and the page."""
    async with opened(option) as journal:
        entry = await find(journal, prefix)
        records = await read(journal, entry.run_id)
        prefixes = {
            name: await journal.blob(entry.run_id, name) for name in sorted(page.prefixes_of(records))
        }
        made = page.page(records, prefixes, name=entry.name, made_at=time.time())
        return entry.run_id, len(records), made


async def _spans(prefix: str, option: str | None, content: bool) -> tuple[str, int, bytes]:
    """The run's id, how many spans it has, and these as lines."""
    async with opened(option) as journal:
        entry = await find(journal, prefix)
        spans = spans_of(await read(journal, entry.run_id), content=content)
    service = environment().get("OTEL_SERVICE_NAME") or otlp.SCOPE
    data = b"".join(line + b"\n" for line in otlp.lines(spans, service, __version__))
    return entry.run_id, len(spans), data


async def _export(prefix: str, option: str | None) -> tuple[Export, int]:
    """The run, and how many commands its records do not hold yet."""
    async with opened(option) as journal:
        entry = await find(journal, prefix)
        found, state = await export_file.export_of(journal, entry)
        posted = await journal.commands(entry.run_id)
        return found, sum(each.number > state.command for each in posted)


@click.command("import", short_help="Take in a run that was exported elsewhere.")
@click.argument("file", metavar="FILE")
@journal_option
def import_run(file: str, journal: str | None) -> int:
    """Take in a run from the FILE that `runs export` wrote; it keeps its id, and is marked as imported.

    All of it is checked first, then all of it is stored in one step, or nothing. Exit code 5 when the file is
    damaged or was not written by `runs export`.
    """
    loaded = load_export(file)
    try:
        run = export_file.checked(loaded)
    except JournalError as error:
        raise JournalError(f"{file} is damaged and was not taken in: {error}") from error
    asyncio.run(_import(run, journal))
    records = run.rows[-1].seq if run.rows else 0
    output.say(f"run {short_id(run.run_id)}: {records:,} records taken in")
    return exit_codes.COMPLETED


async def _import(run: StoredRun, option: str | None) -> None:
    journal = open_journal(url_of(option, environment()))
    try:
        await journal.restore(run)
    finally:
        await journal.close()
