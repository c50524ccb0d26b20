"""Commands that change the conversation, or what comes next in it."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.cli.display import terminal_escape
from antiphon.cli.session.slash.telling import team_of
from antiphon.cli.session.talk import BUSY, Opening, Talk
from antiphon.config.dotenv import environment
from antiphon.models.catalog import load_catalog

INIT = (
    "Write AGENTS.md in this folder, for agents that work here: what the project is, how it is built, tested"
    " and run, where things are, and its conventions. Read what is there first, README and build files too,"
    " and say only what you have seen. Where there is an AGENTS.md already, improve it and keep what holds."
    " At most 150 lines."
)


async def model(talk: Talk, rest: str) -> None:
    """`/model [NAME]`."""
    if rest:
        if talk.call:
            talk.screen.note(BUSY)
            return
        talk.next, talk.leaving = Opening(talk.run.run_id, rest), True
        return
    env = environment()
    for agent in team_of(talk):
        spec = talk.model or agent.model or env.get("ANTIPHON_MODEL") or env.get("OPENAI_DEFAULT_MODEL") or ""
        name = spec if isinstance(spec, str) else spec.name
        known = load_catalog(env=env).find(name)
        window = f"{known.input_limit:,} tokens" if known is not None and known.input_limit else "unknown"
        talk.screen.note(f"  {agent.name}: {terminal_escape.line(name, 80)}  (window {window})", "")


async def to(talk: Talk, rest: str) -> None:
    """`/to [AGENT]`."""
    names = [each.name for each in team_of(talk)]
    if rest and rest not in names:
        known = ", ".join(terminal_escape.line(each, 60) for each in names)
        talk.screen.note(f"There is no agent {terminal_escape.line(rest, 60)} here; there are: {known}")
        return
    talk.to = rest or talk.to
    talk.screen.note(f"You talk with {terminal_escape.line(talk.to, 60)}")


async def mode(talk: Talk, rest: str) -> None:
    """`/mode [MODE]`; `next` is the one after this."""
    # Only the assistant has some.
    permission = getattr(getattr(talk.target, "source", None), "permission", None)
    if permission is None:
        talk.screen.note("This team has no modes; its policy and rules say what is asked for")
        return
    modes: Sequence[str] = permission.modes
    if rest == "next":
        rest = modes[(modes.index(permission.mode) + 1) % len(modes)]
    if rest and rest not in modes:
        talk.screen.note(f"There is no mode {terminal_escape.line(rest, 40)}; there are: {', '.join(modes)}")
        return
    permission.mode = rest or permission.mode
    talk.screen.note(f"The mode is {permission.mode}: {permission.told}")


async def compact(talk: Talk, rest: str) -> None:
    """`/compact`."""
    if talk.call:
        talk.screen.note(BUSY)
    elif not talk.tree.requests:
        talk.screen.note("Nothing was said yet")
    else:
        talk.screen.status("compacting…")
        await talk.ask("", compact=True)


async def init(talk: Talk, rest: str) -> None:
    """`/init`."""
    await talk.ask(f"{INIT} {rest}".rstrip())


async def leave(talk: Talk, rest: str) -> None:
    """`/quit`."""
    talk.leaving = True
