"""Controller: gives tasks to workers by priority and deadline, and asks a model where nobody is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import Any

from antiphon import Agent, Model, Record, Run, RunFailed, Tool, UserError, open_run
from antiphon.errors import DuplicateName
from antiphon.styles.tasks.agent import ToolCapableAgent, calls_of
from antiphon.styles.tasks.blocking import blocking
from antiphon.styles.tasks.errors import InvalidMessage
from antiphon.styles.tasks.messages.enclosed import enclosed, shows_enclosed, shows_something
from antiphon.styles.tasks.messages.message import MESSAGE_TYPES, MessageType, StructuredMessage
from antiphon.styles.tasks.messages.reply import noted, reply_to
from antiphon.styles.tasks.scheduling.progress import ProgressReader, TaskStatus, progress
from antiphon.styles.tasks.scheduling.results import Workings
from antiphon.styles.tasks.scheduling.schedule import dealer, lane, lane_name
from antiphon.styles.tasks.scheduling.task import mail_of
from antiphon.styles.tasks.worker import Worker
from antiphon.values.agent import own_tools

INSTRUCTIONS = (
    "You know who can do what. Give each request to the colleague it is for, and answer with the result."
)
"""What a controller with a model is told, unless it is told something else."""

OnStatus = Callable[[StructuredMessage], object]
"""Is given a message of type `status` each time that a task gets into another state."""


class Controller:
    """Gives tasks to workers and gathers what comes of them; everything it knows is in the journal.

        controller = Controller([Worker(analyst, concurrency=2), writer])
        replies = await controller.run_tasks([task, another])

    Tasks of one worker begin by `priority` (a number, or high, medium, low; the higher the sooner),
    then in the order given; those of different workers do not wait for each other. A task with a
    `deadline` that is missed ends with the outcome `limit`. Both are read from the metadata.

    workers: agents are wrapped in Worker. model: who decides where a message goes that names no
    worker; it has the workers as colleagues. name, instructions: the controller's own. options: of
    `open_run`, for the runs it opens; unless `interactive` is True an approval that a tool needs is refused.

    Raises UserError without workers, DuplicateName for two of one name.
    """

    def __init__(
        self,
        workers: Iterable[Worker | ToolCapableAgent | Agent],
        model: str | Model | None = None,
        *,
        name: str = "controller",
        instructions: str = INSTRUCTIONS,
        **options: Any,
    ) -> None:
        found = [each if isinstance(each, Worker) else Worker(each) for each in workers]
        self._workers: dict[str, Worker] = {}
        for each in found:
            if each.name in self._workers:
                raise DuplicateName("worker", each.name)
            self._workers[each.name] = each
        if not found:
            raise UserError("A controller needs at least one worker")
        self.name = name
        self._options = {"interactive": False, **options}
        names = tuple(self._workers)
        self._router = None if model is None else Agent(name, instructions, model=model, can_call=names)
        self._dealer = dealer(name if model is None else lane_name(name, "schedule"), name, names)
        self._lanes = [lane(name, each.name, each.concurrency) for each in found]

    def agents(self) -> list[Agent]:
        """The controller, first, and all it needs, as a team takes them.

        Another agent calls it by its name; without a model it wants a task as JSON then:
        `{"content": …, "target_agent": …, "metadata": {"priority": …, "deadline": …}}`.
        """
        return self._agents(shows=True)

    def _agents(self, *, shows: bool) -> list[Agent]:
        """`agents`. shows: their models are shown what comes with a message."""
        workers = [
            each.agent([name for name in self._workers if name != each.name])
            for each in self._workers.values()
        ]
        router = [self._router] if self._router is not None else []
        if shows:
            router, workers = [list(map(shows_enclosed, each)) for each in (router, workers)]
        return [*router, self._dealer, *self._lanes, *workers]

    def _agents_for(self, messages: Iterable[StructuredMessage]) -> list[Agent]:
        return self._agents(shows=any(map(shows_something, messages)))

    # -- tasks -----------------------------------------------------------------------------------

    async def run_tasks(
        self,
        tasks: Iterable[StructuredMessage | Mapping[str, Any]],
        *,
        signal: Any = None,
        run_id: str | None = None,
        on_status: OnStatus | None = None,
    ) -> list[StructuredMessage]:
        """Have tasks done, each by the worker it is addressed to; the replies, in the tasks' order.

        tasks: messages, or what `to_dict` made of them. A reply is of type `result`, or `error` when
        its task did not complete, of an unknown worker or an invalid deadline for one; the others
        are done all the same. It is from whoever gave the result: of a task that was handed over, from the
        last one. See `reply_to` for its metadata. A message of type `status` or `error` is no task; the reply
        to it is a `status` that says so. on_status: is told, in messages of type `status`, when a task is
        `pending`, `in_progress`, `completed` or `failed` (`state` in the metadata); of a run that goes on,
        from its beginning. signal: an asyncio.Event, say; set, it
        stops what is not done yet. run_id: names the run in the journal; with it the same tasks, given
        again after a crash, go on where they were.

        Raises InvalidMessage for what is no message, cannot be written as JSON, or has the id of
        another task.
        """
        given = [
            each if isinstance(each, StructuredMessage) else StructuredMessage.from_dict(each)
            for each in tasks
        ]
        messages = _distinct(each for each in given if not each.is_notice)
        options = {"run_id": run_id, "create": run_id is not None, **self._options}
        # Of a run that goes on, more is known than what is given now.
        agents = self.agents() if run_id is not None else self._agents_for(messages)
        async with open_run(agents, **options) as run:
            known = self.status(await run.records())
            new = [each for each in messages if each.task_id not in known]
            if new:
                await self.post(run, new)
            for call in await run.open_requests():
                stop = run.cancel_when(signal, call, "stopped") if signal is not None else None
                try:
                    if on_status is not None:
                        await self._report(run, call, messages, on_status)
                    await run.result(call)
                except RunFailed:
                    # Not the run: some of its tasks, and their replies say so.
                    continue
                finally:
                    if stop is not None:
                        stop()
            replies = {each.task_id: each for each in self.replies(messages, await run.records())}
            if run_id is None:
                await run.close()
        found = [noted(each, self.name) if each.is_notice else replies.get(each.task_id) for each in given]
        return [each for each in found if each is not None]

    async def _report(
        self, run: Run, call: str, messages: Iterable[StructuredMessage], on_status: OnStatus
    ) -> None:
        """Tell how far the tasks are, until a request has ended."""
        asked = {each.task_id: each for each in messages}
        reader = self._progress_reader()
        async with aclosing(run.events(deltas=False)) as records:
            async for record in records:
                if not isinstance(record, Record):
                    continue
                for status in reader.changed(record):
                    if status.task_id in asked:
                        on_status(self._status_message(asked[status.task_id], status))
                if call in reader.requests_ended:
                    return

    def _status_message(self, message: StructuredMessage, status: TaskStatus) -> StructuredMessage:
        told = {"state": status.state, "worker": status.worker}
        found = StructuredMessage.create_status(f"{status.worker}: {status.state}", message, told)
        found.source_agent = self.name
        return found

    def _progress_reader(self) -> ProgressReader:
        return ProgressReader(self.name, self._dealer.name, self._workers)

    async def post(self, run: Run, messages: Sequence[StructuredMessage]) -> str:
        """Give tasks to the controller in a run of the caller's own; returns the id of the call."""
        thread = messages[0].task_id if len(messages) == 1 else ""
        return await run.post(self._dealer, task_id=thread, inbox=[mail_of(each) for each in messages])

    def status(self, records: Iterable[Record]) -> Mapping[str, TaskStatus]:
        """How far the tasks of a run are, by task id; see `Conversation.records`."""
        return progress(self._progress_reader(), records)

    def replies(
        self, messages: Iterable[StructuredMessage], records: Sequence[Record]
    ) -> list[StructuredMessage]:
        """The replies to those of the messages whose tasks have ended."""
        known, workings = self.status(records), Workings.of(records)
        ended = [each for each in messages if each.task_id in known and known[each.task_id].outcome]
        return [self._reply(each, known[each.task_id], workings) for each in ended]

    def _reply(self, message: StructuredMessage, status: TaskStatus, workings: Workings) -> StructuredMessage:
        name = status.worker if status.worker in self._workers else self.name
        given = len(message.open_tool_calls)
        work = workings.done(status.activation, name, given, self._tools_of)
        reply = reply_to(
            message, work.giver, status.outcome, status.result, status.why, work.results, work.calls
        )
        if reply.message_type == MessageType.RESPONSE:
            reply.metadata["type"] = MessageType.RESULT
        return reply

    def _tools_of(self, agent: str) -> dict[str, Tool]:
        worker = self._workers.get(agent)
        return {each.name: each for each in own_tools(worker.agent())} if worker is not None else {}

    # -- messages --------------------------------------------------------------------------------

    def process_structured_message(self, message: StructuredMessage) -> StructuredMessage:
        """`aprocess_structured_message` for programs without an event loop."""
        return blocking(self.aprocess_structured_message, message)

    async def aprocess_structured_message(self, message: StructuredMessage) -> StructuredMessage:
        """Have a message answered: by the worker it is addressed to, else by whom the model calls.

        Without a model a message that names no worker is refused, unless there is only one. One of type
        `status` or `error` is not worked on; the reply is a `status` that says so.
        """
        if message.is_notice:
            return noted(message, self.name)
        if self._router is None or message.target_agent in self._workers:
            (reply,) = await self.run_tasks([message])
            return reply
        intent = message.message_type if message.message_type in MESSAGE_TYPES else ""
        async with open_run(self._agents_for([message]), **self._options) as run:
            call = await run.post(
                self._router,
                message.content,
                intent=intent,
                calls=calls_of(message.open_tool_calls),
                task_id=message.task_id,
                data=enclosed(message),
            )
            try:
                result = await run.result(call)
            except RunFailed as failed:
                result = failed.result
            workings = Workings.of(await run.records())
            await run.close()
        given = len(message.open_tool_calls)
        work = workings.done(workings.of_agent(self.name), self.name, given, self._tools_of)
        return reply_to(
            message, work.giver, result.outcome, result.output, result.reason, work.results, work.calls
        )


def _distinct(messages: Iterable[StructuredMessage]) -> list[StructuredMessage]:
    found: dict[str, StructuredMessage] = {}
    for message in messages:
        if message.task_id in found:
            raise InvalidMessage(
                f"Two tasks have the id {message.task_id!r:.80}; results are told apart by it"
            )
        found[message.task_id] = message
    return list(found.values())
