"""Antiphon's cells of messages between roles (W5): a ring, and many that hear one."""

from __future__ import annotations

from msgspec.structs import replace

from antiphon import UNLIMITED
from antiphon.styles.environment import Action, Environment, Message, Role
from bench import workloads
from bench.cell import Go, Metrics

ROOM = replace(UNLIMITED, inbox=1_000_000)


class Pass(Action):
    """Hands the token on."""

    async def run(self, with_messages: object = None, **kwargs: object) -> str:
        return "x"


class Node(Role):
    """One of a ring: hears its own topic, publishes the next one's."""

    def __init__(self, number: int, count: int) -> None:
        super().__init__(name=f"n{number}", actions=[Pass], watch=[f"t{number}"])
        self.following = f"t{(number + 1) % count}"

    async def _act(self) -> Message:
        message = Message("x", cause_by=self.following)
        self.rc.memory.add(message)
        return message


class Reader(Role):
    """One of many: takes all that waits, and says nothing."""

    heard = 0

    def __init__(self, number: int) -> None:
        super().__init__(name=f"s{number}", actions=[Pass], watch=["news"], consume="all")

    async def react(self) -> None:
        Reader.heard += len(self.rc.news)


async def ring(agents: int, hops: int) -> Metrics:
    """W5.ring."""

    def prepare(hops: int) -> Go:
        env = Environment(roles=[Node(number, agents) for number in range(agents)], laps=None, limits=ROOM)
        env.publish_message(Message("x", cause_by="t0"))

        async def go() -> None:
            async with env:
                result = await env.run(hops)
                if result.outcome != "limit":
                    raise RuntimeError(f"the token was lost: {result.outcome} {result.reason}")

        return go

    return await workloads.ring(prepare, hops)


async def fan_out(subs: int, msgs: int) -> Metrics:
    """W5.fanout."""

    def prepare(msgs: int) -> Go:
        env = Environment(roles=[Reader(number) for number in range(subs)], laps=None, limits=ROOM)

        async def go() -> None:
            Reader.heard = 0
            for _ in range(msgs):
                env.publish_message(Message("x", cause_by="news"))
            async with env:
                await env.run(1)
            if Reader.heard != subs * msgs:
                raise RuntimeError(f"{Reader.heard} of {subs * msgs} messages were heard")

        return go

    return await workloads.deliveries(prepare, subs, msgs)
