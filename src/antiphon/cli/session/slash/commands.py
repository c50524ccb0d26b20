"""The commands of a conversation, by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from msgspec import Struct

from antiphon.cli.display import terminal_escape
from antiphon.cli.session.slash import branches, doing, files, telling
from antiphon.cli.session.talk import Talk

LINES = (
    "A line that ends with \\ goes on in the next; lines pasted together are one message. What you say while"
    " an agent works is told to it before its next step. Ctrl-C stops it; a second one leaves."
)
KEYS = (
    "What you say while an agent works is told to it before its next step. !command runs a command of yours"
    " and tells the agent, !!command does not. @ and some letters mention a file."
)


class SlashCommand(Struct, frozen=True):
    """One of them. wants: what follows its name, empty for nothing."""

    do: Callable[[Talk, str], Awaitable[None]]
    text: str
    wants: str = ""


async def obey(talk: Talk, line: str) -> None:
    """Do what a line that begins with a slash says."""
    name, _, rest = line[1:].strip().partition(" ")
    found = COMMANDS.get(name.lower())
    if found is None:
        talk.screen.note(
            f"There is no /{terminal_escape.line(name, 40)}. /help lists all; //text says what begins with /"
        )
        return
    await found.do(talk, rest.strip())


async def _help(talk: Talk, rest: str) -> None:
    width = max(len(name) + len(each.wants) for name, each in COMMANDS.items()) + 2
    for name, each in COMMANDS.items():
        talk.screen.note(f"  {f'/{name} {each.wants}'.ljust(width)}  {each.text}", "")
    talk.screen.note(LINES if talk.person.inline is None else KEYS, wrap=True)


COMMANDS: Mapping[str, SlashCommand] = {
    "help": SlashCommand(_help, "what can be said here"),
    "history": SlashCommand(telling.history, "the conversation so far"),
    "cost": SlashCommand(telling.cost, "tokens and US dollars, by model; what is left of the context"),
    "context": SlashCommand(telling.context, "how much of the model's window is taken"),
    "tools": SlashCommand(telling.tools, "the tools of every agent"),
    "agents": SlashCommand(telling.agents, "the team"),
    "to": SlashCommand(doing.to, "whom you talk with from now on", "[AGENT]"),
    "model": SlashCommand(
        doing.model, "which models are asked; with NAME: another one from now on", "[NAME]"
    ),
    "mode": SlashCommand(doing.mode, "what is done unasked; with MODE: from now on", "[MODE]"),
    "rules": SlashCommand(telling.rules, "what is allowed, denied or asked for in this run"),
    "diff": SlashCommand(telling.diff, "which files this run changed, and what git says of them"),
    "undo": SlashCommand(files.undo, "make files again what they were before a message", "[N]"),
    "redo": SlashCommand(files.redo, "take the last undo back"),
    "jobs": SlashCommand(telling.jobs, "commands that run in the background here"),
    "init": SlashCommand(doing.init, "have AGENTS.md written for this folder"),
    "compact": SlashCommand(doing.compact, "have the conversation so far shortened to a summary"),
    "rewind": SlashCommand(
        branches.rewind, "go back to before a message, with its files, in another run", "[N]"
    ),
    "fork": SlashCommand(branches.fork, "go on from here in a run of its own"),
    "tree": SlashCommand(branches.tree, "the runs that begin as this one does"),
    "resume": SlashCommand(branches.resume, "go on with another run", "[RUN]"),
    "name": SlashCommand(branches.name, "what this run is called; with NAME: from now on", "[NAME]"),
    "export": SlashCommand(branches.export, "write this run into a file: JSON, or a page (.html)", "[FILE]"),
    "clear": SlashCommand(branches.clear, "begin anew; what was said stays in its run"),
    "quit": SlashCommand(doing.leave, "leave; so do Ctrl-D and a second Ctrl-C"),
}
