"""Values and models of somebody who means no good, or knows no better; and a run that has to do with them."""

import asyncio
from enum import StrEnum

from msgspec.structs import replace

from antiphon import RunFailed, open_run
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.run.rows import fold
from antiphon.models.script import Script
from antiphon.values.model import Usage


class Unspeakable(Exception):
    def __str__(self):
        raise RuntimeError


class Says:
    """A model made by somebody: it says, or raises, what it is given."""

    name = "says"

    def __init__(self, *said):
        self.said = list(said)

    async def complete(self, request, emit):
        found = self.said.pop(0)
        if isinstance(found, Exception):
            raise found
        return found


async def told(agent, model=None, **options):
    """One request: what came of it, and whether the run is read again as it was left."""
    journal = MemoryJournal()
    async with open_run([agent], journal=journal, model=model or Script([]), **options) as run:
        try:
            found = await run.result(await run.post(agent, "go"))
        except RunFailed as error:
            found = error.result
    await fold(journal, run.run_id)
    return found


class Makes:
    """A model that makes its reply when it is asked."""

    name = "makes"

    def __init__(self, make):
        self.make = make

    async def complete(self, request, emit):
        return self.make()


class Said(StrEnum):
    HELLO = "hello"


class Marked(str):
    """A text of a class of its own, as libraries for markup have them."""


def raises():
    raise Unspeakable


def replaced_usage():
    """Numbers that went round the check of whoever made them."""
    return replace(Usage(1), output_tokens=2.0)


def nested(levels):
    found = []
    for _ in range(levels - 1):
        found = [found]
    return found


def answer(agent, model=None, **options):
    return asyncio.run(told(agent, model, **options))
