"""The `/` commands of a conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from msgspec import Struct

from antiphon.cli.display import terminal_escape
from antiphon.cli.display.draw import tokens
from antiphon.cli.session.talk import Opening, Talk, exchange
from antiphon.cli.store import short_id
from antiphon.config.dotenv import environment
from antiphon.models.catalog import load_catalog
from antiphon.models.usage import context_left
from antiphon.view.wording import cost_text, parts


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
    talk.screen.note(
        "A line that ends with \\ goes on in the next; lines pasted together are one message. What you say"
        " while an agent works is told to it before its next step. Ctrl-C stops it; a second one leaves.",
        wrap=True,
    )


async def _quit(talk: Talk, rest: str) -> None:
    talk.leaving = True


async def _cost(talk: Talk, rest: str) -> None:
    tree = talk.tree
    for model, totals in tree.run.models.items():
        if totals.reported:
            name = terminal_escape.line(model, 60)
            talk.screen.note(f"  {name}: {parts(totals.usage)}, {cost_text(totals.cost)}", "")
    talk.screen.note(f"  in all: {tokens(tree)}", "")
    if talk.last is not None:
        model, usage = talk.last
        left = context_left(usage, load_catalog(env=environment()).find(model))
        talk.screen.note(f"  context left: {f'{left} %' if left is not None else 'unknown'}", "")


async def _tools(talk: Talk, rest: str) -> None:
    found = False
    for agent in _team(talk):
        for tool in agent.tools:
            found = True
            first = tool.description.strip().partition("\n")[0]
            name, effect = tool.name, tool.effect
            acts = "reads" if effect == "read" else "acts"
            talk.screen.note(
                f"  {agent.name}: {name} ({acts})  {terminal_escape.line(first, 100)}", "", wrap=True
            )
    if not found:
        talk.screen.note("  no agent here has tools", "")


async def _agents(talk: Talk, rest: str) -> None:
    for agent in _team(talk):
        mark = "you talk with it" if agent.name == talk.target.entry else ""
        told = terminal_escape.line(agent.about, 100)
        talk.screen.note("  " + "  ".join(part for part in (agent.name, told, mark) if part), "", wrap=True)


async def _model(talk: Talk, rest: str) -> None:
    if rest:
        if talk.call:
            talk.screen.note("It is still at work: Ctrl-C stops it")
            return
        talk.next, talk.leaving = Opening(talk.run.run_id, rest), True
        return
    env = environment()
    for agent in _team(talk):
        spec = talk.model or agent.model or env.get("ANTIPHON_MODEL") or env.get("OPENAI_DEFAULT_MODEL") or ""
        name = spec if isinstance(spec, str) else spec.name
        known = load_catalog(env=env).find(name)
        window = f"{known.input_limit:,} tokens" if known is not None and known.input_limit else "unknown"
        talk.screen.note(f"  {agent.name}: {terminal_escape.line(name, 80)}  (window {window})", "")


async def _compact(talk: Talk, rest: str) -> None:
    if talk.call:
        talk.screen.note("It is still at work: Ctrl-C stops it")
    elif not talk.tree.requests:
        talk.screen.note("Nothing was said yet")
    else:
        talk.screen.status("compacting…")
        await talk.ask("", compact=True)


async def _history(talk: Talk, rest: str) -> None:
    requests = talk.tree.requests
    for each in requests:
        exchange(talk.screen, each.node, whole=True)
    if not requests:
        talk.screen.note("Nothing was said yet")


async def _clear(talk: Talk, rest: str) -> None:
    talk.next, talk.leaving = Opening(None, talk.model), True


async def _resume(talk: Talk, rest: str) -> None:
    if not rest:
        talk.screen.note(f"This is run {short_id(talk.run.run_id)}; `antiphon runs ls` lists all")
        return
    talk.next, talk.leaving = Opening(rest, talk.model), True


def _team(talk: Talk) -> list[Any]:
    return sorted(talk.target.agents, key=lambda agent: agent.name != talk.target.entry)


COMMANDS: Mapping[str, SlashCommand] = {
    "help": SlashCommand(_help, "what can be said here"),
    "history": SlashCommand(_history, "the conversation so far"),
    "cost": SlashCommand(_cost, "tokens and US dollars, by model; what is left of the context"),
    "tools": SlashCommand(_tools, "the tools of every agent"),
    "agents": SlashCommand(_agents, "the team"),
    "model": SlashCommand(_model, "which models are asked; with NAME: another one from now on", "[NAME]"),
    "compact": SlashCommand(_compact, "have the conversation so far shortened to a summary"),
    "clear": SlashCommand(_clear, "begin anew; what was said stays in its run"),
    "resume": SlashCommand(_resume, "go on with another run", "[RUN]"),
    "quit": SlashCommand(_quit, "leave; so do Ctrl-D and a second Ctrl-C"),
}
