"""`runs check`: what resuming a run with a target would meet, before it is resumed."""

from __future__ import annotations

import asyncio

import click

from antiphon.cli import exit_codes
from antiphon.cli.commands.run import endpoint_option, folder_option, model_option, target_argument
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.store import find, journal_option, json_option, opened, short_id
from antiphon.cli.target import Target, load_target
from antiphon.config.dotenv import environment
from antiphon.kernel.run.open import compare_team
from antiphon.values.result import Difference

CHOICES = (
    "Nothing was changed. `runs resume` with this target goes on as said above; resume with the earlier team"
    " to keep what is gone,"
    " `runs cancel` what is in flight, or resume with --renamed OLD=NEW (an agent has another name now)"
    " or --missing drop (what is gone is forgotten)."
)


@click.command("check", short_help="Say what resuming a run with a team would meet.")
@click.argument("run_id", metavar="RUN")
@target_argument
@model_option
@endpoint_option
@folder_option
@journal_option
@json_option
def check(
    run_id: str,
    target: str,
    model: str | None,
    endpoints: tuple[str, ...],
    folder: str | None,
    journal: str | None,
    as_json: bool,
) -> int:
    """Compare the agents of TARGET with those that RUN was last opened with, and change nothing.

    Said are agents, tools, hooks, models, prompts and options that differ, and what each means for the run;
    `!` marks what stands in the way: work in flight that fails or is done by other code, a conversation at
    rest that is out of reach, a permission that holds no more. The exit code is 0 when nothing does, else 1.
    """
    return asyncio.run(_check(run_id, load_target(target, folder), model, endpoints, journal, as_json))


async def _check(
    prefix: str, target: Target, model: str | None, endpoints: tuple[str, ...], option: str | None,
    as_json: bool,
) -> int:  # fmt: skip
    async with opened(option) as journal:
        entry = await find(journal, prefix)
        found = await compare_team(
            journal, entry.run_id, target.agents, model=model, env=environment(),
            endpoints=target.with_endpoints(endpoints, model),
        )  # fmt: skip
    blocked = any(each.blocks for each in found or ())
    if as_json:
        said = {"run_id": entry.run_id, "known": found is not None, "blocked": blocked}
        output.say(terminal_escape.json_text({**said, "differences": found or []}))
    elif found is None:
        output.say(f"run {short_id(entry.run_id)} names no team; there is nothing to compare")
    else:
        for each in found:
            output.say(_line(each))
        count = sum(each.blocks for each in found)
        output.say(f"{len(found)} differences, {count} in the way" if found else "the team is the same")
        if blocked:
            output.tell(CHOICES)
    return exit_codes.FAILED if blocked else exit_codes.COMPLETED


def _line(found: Difference) -> str:
    """One difference in one line."""
    whose = "" if found.agent in ("", found.name) else f" of {found.agent}"
    text = f"{'!' if found.blocks else ' '} {found.what} {found.name}{whose} {found.change}: {found.means}"
    return terminal_escape.line(text, 400)
