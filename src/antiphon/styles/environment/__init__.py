"""Environment: roles publish messages, and react to the topics they watch.

    class Greet(Action):
        async def run(self, with_messages=None, **kwargs):
            return f"Hello, {with_messages[-1].content}!"

    env = Environment(roles=[Role(name="Host", actions=[Greet])])
    env.publish_message(Message("Ada"))
    await env.run()

The words are its design document's; the work is the kernel's: a round is a turn of one agent, a reaction is a
call, and what a role does in `ctx.step` is done once even if the process dies after it.
"""

from antiphon.styles.environment.api import ExtEnv, mark_as_readable, mark_as_writeable
from antiphon.styles.environment.context import Context
from antiphon.styles.environment.environment import Environment, Receipt
from antiphon.styles.environment.log import logger
from antiphon.styles.environment.message import AIMessage, Message, SystemMessage, UserMessage
from antiphon.styles.environment.metagpt.cost import CostManager, NoMoneyException
from antiphon.styles.environment.metagpt.plan import Plan, Task, TaskResult
from antiphon.styles.environment.metagpt.subscription import SubscriptionRunner
from antiphon.styles.environment.roles.action import Action, UserRequirement
from antiphon.styles.environment.roles.memory import Memory
from antiphon.styles.environment.roles.queue import MessageQueue
from antiphon.styles.environment.roles.rc import RoleContext, RoleReactMode
from antiphon.styles.environment.roles.role import Role
from antiphon.styles.environment.team import Team
from antiphon.styles.environment.topic import (
    MESSAGE_ROUTE_TO_ALL,
    MESSAGE_ROUTE_TO_NONE,
    MESSAGE_ROUTE_TO_SELF,
)

__all__ = [
    "MESSAGE_ROUTE_TO_ALL",
    "MESSAGE_ROUTE_TO_NONE",
    "MESSAGE_ROUTE_TO_SELF",
    "AIMessage",
    "Action",
    "Context",
    "CostManager",
    "Environment",
    "ExtEnv",
    "Memory",
    "Message",
    "MessageQueue",
    "NoMoneyException",
    "Plan",
    "Receipt",
    "Role",
    "RoleContext",
    "RoleReactMode",
    "SubscriptionRunner",
    "SystemMessage",
    "Task",
    "TaskResult",
    "Team",
    "UserMessage",
    "UserRequirement",
    "logger",
    "mark_as_readable",
    "mark_as_writeable",
]
