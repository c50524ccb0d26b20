"""Structured content: a receiver in the same team gets it as one of its own types."""

import asyncio
from dataclasses import dataclass
from typing import Any

import pydantic

from antiphon.journal.memory import MemoryJournal
from antiphon.styles.environment import Action, Environment, Message, Role
from tests.styles.environment.ensemble import play


class Design(pydantic.BaseModel):
    files: list[str]
    sizes: dict[int, str] = {}


class Anything(pydantic.BaseModel):
    note: str = ""


@dataclass
class Verdict:
    good: bool


class Draw(Action):
    async def run(self, with_messages: Any = None, **kwargs: Any) -> Any:
        return Design(files=["a.py"], sizes={1: "small"})


class Look(Action):
    seen: list[Any]

    async def run(self, with_messages: Any = None, **kwargs: Any) -> Any:
        self.seen.append(with_messages[-1].instruct_content)
        return Verdict(good=True)


def stage(seen: list[Any], *types: Any, **options: Any) -> Environment:
    looker = Role(name="Looker", actions=[Look(seen=seen)], watch=[Draw], instruct_types=types)
    return Environment(roles=[Role(name="Drawer", actions=[Draw]), looker], **options)


def test_a_receiver_gets_the_type_of_its_own_list() -> None:
    seen: list[Any] = []
    play(stage(seen, Design), Message("go"))
    assert seen == [Design(files=["a.py"], sizes={1: "small"})]


def test_without_a_list_it_is_plain_data() -> None:
    seen: list[Any] = []
    play(stage(seen), Message("go"))
    assert seen == [{"files": ["a.py"], "sizes": {"1": "small"}}]


def test_the_type_that_writes_exactly_this_comes_before_one_that_only_takes_it() -> None:
    seen: list[Any] = []
    play(stage(seen, Anything, Design), Message("go"))
    assert type(seen[0]) is Design


def test_what_fits_none_of_them_is_plain_data() -> None:
    seen: list[Any] = []
    play(stage(seen, Verdict), Message("go"))
    assert type(seen[0]) is dict


def test_what_it_remembers_has_its_type_in_another_process_too() -> None:
    journal, seen = MemoryJournal(), []

    async def remembered(**options: Any) -> list[Any]:
        env = stage(seen, Design, journal=journal, **options)
        async with env:
            if not options:
                env.publish_message(Message("go"))
            await env.run(5)
            looker = env.get_role("Looker")
            assert isinstance(looker, Role)
            return [env.run_id, *(each.instruct_content for each in looker.rc.memory.get())]

    run_id, *first = asyncio.run(remembered())
    _, *again = asyncio.run(remembered(run_id=run_id))
    assert type(first[0]) is type(again[0]) is Design
    assert first[0] == again[0]
    assert len(seen) == 1


def test_a_role_alone_reads_its_types_too() -> None:
    seen: list[Any] = []
    role = Role(name="Looker", actions=[Look(seen=seen)], instruct_types=[Design])
    asyncio.run(role.run(Message("look", instruct_content=Design(files=[]))))
    assert seen == [Design(files=[])]
