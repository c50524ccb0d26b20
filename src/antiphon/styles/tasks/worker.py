"""Worker: whoever does tasks for a controller: an agent, one with a toolkit, or a coroutine."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from antiphon import Agent, Hooks, UserError
from antiphon.styles.tasks.agent import ToolCapableAgent
from antiphon.values.actions import Act
from antiphon.values.agent import ALL


class Worker:
    """One who does tasks, and how many of them at the same time.

        Worker(Agent("writer", "You write well."))
        Worker(ToolCapableAgent("weather_agent", "weather", toolkit=toolkit), concurrency=4)
        Worker("archive", act=store)          # async def store(ctx: ActionContext) -> str

    worker: an agent; or, with `act`, a name. act: the coroutine that does a task; `ctx.new_messages[0]` is
    the task's message, what it returns the result. concurrency: tasks at the same time; one that
    waits for a person does not count. Every task begins anew, without the conversation of another.

    Raises UserError for a coroutine without a name, a name without a coroutine, a concurrency below 1.
    """

    def __init__(
        self, worker: Agent | ToolCapableAgent | str, *, act: Act | None = None, concurrency: int = 1
    ) -> None:
        if isinstance(worker, str) != (act is not None):
            raise UserError('A worker is an agent, or a name and what it does: Worker("archive", act=store)')
        if type(concurrency) is not int or concurrency < 1:
            raise UserError(f"concurrency is a whole number from 1 on; got {concurrency!r}")
        self._worker = Agent(worker, hooks=Hooks(act=act)) if isinstance(worker, str) else worker
        self.concurrency = concurrency

    @property
    def name(self) -> str:
        """What tasks are addressed to."""
        return self._worker.worker_id if isinstance(self._worker, ToolCapableAgent) else self._worker.name

    def agent(self, fellows: Collection[str] = ()) -> Agent:
        """The worker as a team takes it; one that may call everyone may call its fellows."""
        if isinstance(self._worker, ToolCapableAgent):
            # Its own runs keep to these; so do those of a controller.
            own = self._worker.options
            agent = replace(self._worker.agent, limits=own.get("limits"), policy=own.get("policy"))
        else:
            agent = self._worker
        may_call = tuple(fellows) if tuple(agent.can_call) == ALL else agent.can_call
        return replace(agent, context="fresh", can_call=may_call)
