"""Permission in the loop: the user's own rule on every call of a tool, plain or async."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Literal

import msgspec

from antiphon import Agent, Message, Run, Tool
from antiphon.values.fields import Checked
from antiphon.values.hooks import Authorize, Decision


class ToolPermission(Checked, frozen=True):
    """A ruling on one call. `stop_turn`: a denied call ends the turn too. `reason` is told to the model."""

    decision: Literal["allow", "deny", "ask"]
    reason: str = ""
    stop_turn: bool = False


Said = ToolPermission | Literal["allow", "deny", "ask"]
ToolPermissionHook = Callable[[Tool, dict[str, Any]], Said | Awaitable[Said]]
"""Rules on a call: it is given the tool and the validated arguments. What it raises denies. An async one is
waited for, and nothing else of the request waits but its call."""


def is_async(hook: ToolPermissionHook | None) -> bool:
    """Whether a hook has to be waited for."""
    if inspect.iscoroutinefunction(hook):
        return True
    return callable(hook) and inspect.iscoroutinefunction(type(hook).__call__)


def read_ruling(said: Any) -> ToolPermission:
    """What a hook said. Raises msgspec.ValidationError for what is no ruling."""
    if isinstance(said, ToolPermission):
        return said
    return msgspec.convert({"decision": said}, ToolPermission)


def authorize_by(hook: ToolPermissionHook | None) -> Authorize | None:
    """The hook as the kernel asks it. A rule must not wait: for an async one it asks, as for a person."""
    if hook is None:
        return None
    if is_async(hook):
        return lambda tool, arguments: ("ask", "can_execute_tool decides")

    def authorize(tool: Tool, arguments: str) -> tuple[Decision, str]:
        found = read_ruling(hook(tool, msgspec.json.decode(arguments)))
        if found.decision == "deny" and found.stop_turn:
            return "stop", found.reason
        return found.decision, found.reason

    return authorize


class AsyncPermission:
    """Decides on the calls of an agent by an async hook, and hands everything else to a person.

    person: shown what the hook would have asked, and whatever else is asked; None for nobody.
    """

    def __init__(
        self, hook: ToolPermissionHook, agent: Agent, person: Callable[[Message], Awaitable[Any]] | None
    ) -> None:
        self._hook, self._agent, self._person = hook, agent, person

    async def answer(self, run: Run, message: Message) -> Any:
        """The answer to what is asked; what the hook has decided is recorded at once."""
        asks = message.intent == "approval" and message.sender == self._agent.name
        ruling = await self._ruled(message.data["tool"], message.data["arguments"]) if asks else None
        if ruling is not None and ruling.decision == "allow":
            await run.answer(message.call_id, "yes", by="")
            return "yes"
        if ruling is not None and ruling.decision == "deny":
            await run.answer(message.call_id, "no", by="", reason=ruling.reason, ends_turn=ruling.stop_turn)
            return "no"
        if self._person is not None:
            answer = await self._person(message)
            # Whatever was answered, the hook is asked for every call.
            return "yes" if ruling is not None and answer == "always" else answer
        if message.intent:
            why = f"{ruling.reason}, and " if ruling is not None and ruling.reason else ""
            await run.answer(message.call_id, "no", by="", reason=f"{why}nobody is there to ask")
        return "Nobody is there to answer; go on without the user."

    async def _ruled(self, name: str, arguments: str) -> ToolPermission:
        tool = next(each for each in self._agent.tools if isinstance(each, Tool) and each.name == name)
        try:
            said: Any = self._hook(tool, msgspec.json.decode(arguments))
            return read_ruling(await said)
        except Exception as error:  # noqa: BLE001 - whatever it is, a check that failed allows nothing
            return ToolPermission("deny", f"the permission check failed: {type(error).__name__}: {error}")
