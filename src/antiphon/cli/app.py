"""The commands by name. A command's module is imported when the command is used, not for `--help`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import click

from antiphon import __version__
from antiphon.cli import exit_codes
from antiphon.cli.display import output

COMMANDS: Mapping[str, str] = {
    "run": "Ask a team of agents and watch it work.",
    "chat": "Chat with an agent or team. Saved; resume it any time.",
    "runs": "Look at runs, resume, cancel or delete them, check and export them.",
    "serve": "Serve teams over HTTP and WebSocket.",
    "ui": "Look at runs in a browser.",
    "answer": "Answer what a run asks, from another terminal or process.",
    "rules": "Allow or deny tools beyond one run.",
    "graph": "Draw who reaches whom in a team.",
    "profiles": "Check agents described in YAML.",
    "knowledge": "Add, search and follow folders that teams search.",
    "mcp": "Look at MCP servers and their tools, and call them.",
    "models": "Show model prices, context windows and features.",
    "journal": "Look after the journal that holds the runs.",
    "doctor": "Check that everything a run needs is there.",
}
CONTEXT: Mapping[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}


class Commands(click.Group):
    """A group whose commands are imported one by one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order in which a newcomer needs them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, or None."""
        if cmd_name not in COMMANDS:
            return None
        if cmd_name == "run":
            from antiphon.cli.commands.run import run as found
        elif cmd_name == "runs":
            from antiphon.cli.commands.runs import runs as found
        elif cmd_name == "chat":
            from antiphon.cli.commands.chat import chat as found
        elif cmd_name == "serve":
            from antiphon.cli.serving.serve import serve as found
        elif cmd_name == "ui":
            from antiphon.cli.serving.ui import ui as found
        elif cmd_name == "answer":
            from antiphon.cli.commands.answer import answer as found
        elif cmd_name == "rules":
            from antiphon.cli.commands.rules import rules as found
        elif cmd_name == "graph":
            from antiphon.cli.commands.graph import graph as found
        elif cmd_name == "profiles":
            from antiphon.cli.commands.profiles import profiles as found
        elif cmd_name == "knowledge":
            from antiphon.cli.commands.knowledge.commands import knowledge as found
        elif cmd_name == "mcp":
            from antiphon.cli.commands.mcp.commands import mcp as found
        elif cmd_name == "models":
            from antiphon.cli.commands.models import models as found
        elif cmd_name == "journal":
            from antiphon.cli.commands.journal import journal as found
        else:
            from antiphon.cli.commands.doctor import doctor as found
        return found

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help text, written without importing anything."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(cls=Commands, invoke_without_command=True, context_settings=dict(CONTEXT))
@click.version_option(__version__, prog_name="antiphon")
@click.option("-p", "--prompt", "said", metavar="TEXT", help="Answer this and end; `-` reads it.")
@click.option("--json", "as_json", is_flag=True, help="With -p: write every event as a line of JSON.")
@click.option("--continue", "newest", is_flag=True, help="Go on where it was left last in this folder.")
@click.option("--resume", metavar="RUN", help="Go on with this run.")
@click.option(
    "--mode",
    type=click.Choice(["plan", "ask", "edits", "auto", "open"]),
    help="What it does unasked. [default: ask; with -p auto]",
)
@click.option("--model", metavar="MODEL", help="Who is asked, such as openai:gpt-4.1-mini.")
@click.option(
    "--folder", metavar="PATH", default=".", type=click.Path(exists=True, file_okay=False),
    help="What it works in. [default: .]",
)  # fmt: skip
@click.option("--journal", metavar="PATH", help="Where its runs are kept. [default: in the user's folder]")
@click.option("--trust", is_flag=True, help="Trust what of this folder can run code, as it is now, and end.")
@click.option("--quiet", "-q", is_flag=True, help="Show the answers only.")
@click.pass_context
def antiphon(ctx: click.Context, /, **options: Any) -> int:
    """Antiphon runs teams of LLM agents that call and answer each other. Every run is a journal: it can
    be watched, killed, resumed and checked.

    Without a command it opens an assistant for this folder, which reads, changes and runs what lies there;
    the options are the assistant's.

    Exit codes: 0 completed, 1 failed, 2 wrong usage, 3 invalid configuration or target, 4 no such run,
    5 journal error, 6 limit or budget reached, no progress, or not the whole answer, 7 cancelled,
    8 suspended, 9 owned by another process, 10 already answered.
    """
    if ctx.invoked_subcommand is not None:
        given = [
            each
            for each in options
            if ctx.get_parameter_source(each) is not click.core.ParameterSource.DEFAULT
        ]
        if given:
            raise click.UsageError(
                f"{', '.join(_named(ctx, each) for each in given)} is for the assistant, which is opened"
                f" without a command; options of {ctx.invoked_subcommand} stand behind it."
            )
        return exit_codes.COMPLETED
    from antiphon.cli.commands.assistant.opening import AssistantOptions, open_assistant

    return open_assistant(AssistantOptions(**options))


def _named(ctx: click.Context, option: str) -> str:
    """An option as it is written."""
    return next(each.opts[-1] for each in ctx.command.params if each.name == option)


def _told(
    message: Warning | str, category: type[Warning], filename: str, lineno: int,
    file: TextIO | None = None, line: str | None = None,
) -> None:  # fmt: skip
    """Show a warning: where it stands helps only whoever can change it there."""
    ours = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    if filename.startswith(ours):
        output.tell(f"warning: {message}")
    else:
        output.tell(warnings.formatwarning(message, category, filename, lineno), end="")


def start(arguments: Sequence[str] | None = None) -> int:
    """Run one command; its exit code. Every error ends in one clear message."""
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _told
            found = antiphon.main(
                list(arguments) if arguments is not None else None, "antiphon", standalone_mode=False
            )
    except SystemExit:
        # click's way to end when whoever read our output has gone: not an error of ours.
        return exit_codes.COMPLETED
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the edge of the program: each has its message and code
        return exit_codes.failed(error)
    return found if isinstance(found, int) else 0
