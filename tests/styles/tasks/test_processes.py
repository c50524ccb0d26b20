"""Messages and what goes with them pass between processes, and are copied, as they are."""

import copy
import multiprocessing
import pickle
import threading
from datetime import UTC, datetime
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import pytest

from antiphon import errors
from antiphon.styles.tasks import (
    AuditEntry,
    DuplicateTool,
    InvalidArguments,
    InvalidMessage,
    NotPermitted,
    StructuredMessage,
    TaskStatus,
    UnknownTool,
)
from antiphon.styles.tasks.scheduling.task import mail_of


def whole() -> StructuredMessage:
    metadata = {"due": datetime(2030, 1, 1, tzinfo=UTC), "tags": {"a"}, "where": Path("a/b"), 1: b"\xff"}
    message = StructuredMessage.create_task("Sum up", "controller", "worker", metadata)
    message.add_tool_result("add", {"sum": 3}, message.add_tool_call("add", {"a": 1, "b": 2}))
    message.add_tool_call("add", {"a": 3}, "open")
    return message


def answer(asked: "Queue[StructuredMessage]", answered: "Queue[StructuredMessage]") -> None:
    """In another process: one message in, its answer and itself out."""
    message = asked.get()
    reply = StructuredMessage.create_response("done", message)
    reply.add_tool_call("thanks")
    answered.put(reply)
    answered.put(message)


@pytest.mark.unwatched  # the standard library keeps a process that looks after its semaphores
def test_a_queue_carries_messages_to_another_process_and_back() -> None:
    processes = multiprocessing.get_context("spawn")
    asked: Queue[StructuredMessage] = processes.Queue()
    answered: Queue[StructuredMessage] = processes.Queue()
    other = processes.Process(target=answer, args=(asked, answered))
    other.start()
    message = whole()
    asked.put(message)
    reply, back = answered.get(timeout=60), answered.get(timeout=60)
    other.join()
    assert other.exitcode == 0
    assert back == message
    assert (reply.content, reply.task_id, reply.target_agent) == ("done", message.task_id, "controller")


@pytest.mark.parametrize("through", [lambda each: pickle.loads(pickle.dumps(each)), copy.deepcopy, copy.copy])
def test_a_copy_is_a_message_of_its_own(through: Any) -> None:
    message = whole()
    found = through(message)
    assert found == message
    found.metadata["more"] = found.tool_calls[0]["arguments"]["more"] = found.tool_results[0]["more"] = 1
    found.add_tool_call("add", {}, "later")
    assert message == through(message)
    assert "more" not in message.metadata
    assert [each["id"] for each in message.tool_calls[1:]] == ["open"]
    with pytest.raises(InvalidMessage, match="'open'"):
        found.add_tool_call("add", {}, "open")


def test_a_message_is_whole_in_whichever_moment_it_is_taken() -> None:
    message, stop = StructuredMessage("x"), threading.Event()

    def add() -> None:
        while not stop.is_set() and len(message.tool_calls) < 1_000:
            message.add_tool_call("add", {"a": 1})

    rival = threading.Thread(target=add)
    rival.start()
    try:
        for _ in range(50):
            found = pickle.loads(pickle.dumps(message))
            for each in found.tool_calls[-1:]:
                with pytest.raises(InvalidMessage, match=each["id"]):
                    found.add_tool_call("add", {}, each["id"])
    finally:
        stop.set()
        rival.join()


@pytest.mark.parametrize(
    "value",
    [
        TaskStatus("1", "worker", "failed", "limit", "half", "late", 3, 5.0),
        AuditEntry(1, 2.0, "grant", "agent", "add", "boss", 3.0),
        mail_of(whole()),
    ],
)
def test_what_tells_of_messages_passes_too(value: Any) -> None:
    assert pickle.loads(pickle.dumps(value)) == value


@pytest.mark.parametrize(
    "error",
    [
        InvalidMessage("no text"),
        InvalidArguments("no a"),
        UnknownTool("add", ["b"]),
        DuplicateTool("add"),
        NotPermitted("agent", "add", ["b"]),
        errors.ConfigError("wrong", "a.yaml", 3, 4),
        errors.ModelError("rate_limit", "slow down", retry_after=2.0, status=429),
        errors.EffectFailed("failed", "why", "half"),
        errors.RunInUse("run", "pid 5"),
        errors.RunSuspended("run", "disk full"),
        errors.AgentsMissing("run", ["a"]),
    ],
)
def test_an_error_is_the_same_in_another_process(error: errors.AntiphonError) -> None:
    for found in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(found) is type(error)
        assert (str(found), found.args, vars(found)) == (str(error), error.args, vars(error))
