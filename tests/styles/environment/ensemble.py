"""What the tests of roles share: members that note what they react to, and how they are run."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

from antiphon import Result, RunFailed
from antiphon.styles.environment import Action, Environment, Message, Role

Diary = list[str]
"""Reactions in the order they happened: `who: what it had news of`."""


class Note(Action):
    """Notes the news in `diary`, and says what `says` makes of it, on the role's own topic.

    says: a function of the news, joined; what it raises is raised, and None says nothing.
    """

    diary: Diary
    says: Callable[[str], Any] = staticmethod(lambda news: news)

    async def run(self, with_messages: Any = None, **kwargs: Any) -> Message:
        role = self.role
        assert role is not None
        news = " + ".join(each.content for each in role.rc.news)
        self.diary.append(f"{role.key}: {news}")
        said = self.says(news)
        return said if isinstance(said, Message) else Message(said or "", cause_by=role.key)


def member(
    name: str, diary: Diary, *watch: Any, says: Callable[[str], Any] | None = None, **fields: Any
) -> Role:
    """A role that notes what it has news of, and answers on the topic of its own name.

    watch: its topics, else what users require.
    """
    action = Note(diary=diary, says=says) if says is not None else Note(diary=diary)
    return Role(name=name, actions=[action], watch=watch or None, **fields)


async def rounds_of(env: Environment, *messages: Message, rounds: int | None = 20, **options: Any) -> Result:
    """Publish, and do rounds; the result of a failed run too. The environment stays open.

    rounds: None for as many as there is something to do.
    """
    for message in messages:
        env.publish_message(message)
    try:
        return await env.run(rounds, until_idle=rounds is None, **options)
    except RunFailed as failed:
        return failed.result


def play(env: Environment, *messages: Message, rounds: int | None = 20, **options: Any) -> Result:
    """The same in a loop of its own; the environment is closed."""

    async def playing() -> Result:
        async with env:
            return await rounds_of(env, *messages, rounds=rounds, **options)

    return asyncio.run(playing())


def texts(messages: Iterable[Message]) -> list[str]:
    return [each.content for each in messages]
