"""`antiphon journal`: what concerns the journal as a whole, and not one of its runs."""

from __future__ import annotations

import asyncio

import click

from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.store import journal_option, json_option, opened


@click.group()
def journal() -> None:
    """Look after the journal that holds the runs."""


@journal.command("vacuum", short_help="Give the space of deleted runs back.")
@journal_option
@json_option
def vacuum(journal: str | None, as_json: bool) -> int:
    """Give the space of deleted runs back to the system, by rewriting the journal without it.

    It needs twice as much free space as what is left takes, and nobody may hold a run: exit code 9 when
    somebody does, 5 when the space is missing. Nothing is lost when it is interrupted.
    """
    freed = asyncio.run(_vacuum(journal))
    if as_json:
        output.say(terminal_escape.json_text({"freed_bytes": freed}))
    else:
        output.say(f"{max(freed, 0):,} bytes given back")
    return exit_codes.COMPLETED


async def _vacuum(option: str | None) -> int:
    async with opened(option) as journal:
        return await journal.compact()
