"""Messages, case by case."""

import enum
import re
import threading
import time
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from datetime import time as clock_time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from antiphon.styles.tasks import (
    InvalidMessage,
    MessageType,
    StructuredMessage,
)
from tests.styles.threads import at_once


def task() -> StructuredMessage:
    return StructuredMessage.create_task("Sum up", "controller", "worker", {"priority": "high"})


# -- messages -----------------------------------------------------------------------------------


def test_a_message_with_only_content() -> None:
    message = StructuredMessage("hello")
    assert (message.metadata, message.tool_calls, message.tool_results) == ({}, [], [])
    assert isinstance(message.task_id, str)
    assert isinstance(message.timestamp, float)
    assert message.timestamp <= time.time()
    assert (message.source_agent, message.target_agent, message.message_type) == (None, None, "unknown")
    assert (message.has_tool_calls, message.has_tool_results) == (False, False)
    assert StructuredMessage("hello").task_id != message.task_id


def test_calls_and_results_are_stored() -> None:
    message = StructuredMessage("hello")
    call_id = message.add_tool_call("add", {"a": 1})
    message.add_tool_result("add", 1, call_id)
    message.add_tool_result("add", None, "other", status="error", error="too tired")
    assert message.tool_calls == [{"name": "add", "arguments": {"a": 1}, "id": call_id}]
    assert message.tool_results == [
        {"name": "add", "result": 1, "call_id": call_id, "status": "success", "error": None},
        {"name": "add", "result": None, "call_id": "other", "status": "error", "error": "too tired"},
    ]
    assert (message.has_tool_calls, message.has_tool_results) == (True, True)


def test_what_the_caller_gave_stays_as_it_was() -> None:
    metadata, arguments = {"type": MessageType.QUERY}, {"a": 1}
    given = {"name": "add", "arguments": arguments}
    message = StructuredMessage("hello", metadata, tool_calls=[given])
    reply = StructuredMessage.create_response("ok", message, metadata)
    message.metadata["more"] = message.tool_calls[0]["arguments"]["b"] = reply.metadata["more"] = 2
    described = message.to_dict()
    described["metadata"].clear()
    described["tool_calls"][0]["arguments"].clear()
    assert (metadata, given, arguments) == (
        {"type": "query"},
        {"name": "add", "arguments": {"a": 1}},
        {"a": 1},
    )
    assert message.metadata == {"type": "query", "more": 2}
    assert message.tool_calls[0]["arguments"] == {"a": 1, "b": 2}
    assert message.tool_calls[0]["id"]


def test_two_calls_of_one_id_are_refused() -> None:
    message = StructuredMessage("hello")
    message.add_tool_call("add", call_id="one")
    with pytest.raises(InvalidMessage, match="'one'"):
        message.add_tool_call("add", call_id="one")
    assert len(message.tool_calls) == 1


def whole_message() -> StructuredMessage:
    message = task()
    call_id = message.add_tool_call("weather", {"city": "Zürich"})
    message.add_tool_result("weather", ["sunny", 22.5, None, {"wind": False}], call_id)
    return message


def test_a_dictionary_and_json_bring_everything_back() -> None:
    message = whole_message()
    for other in (
        StructuredMessage.from_dict(message.to_dict()),
        StructuredMessage.from_json(message.to_json()),
    ):
        assert other.to_dict() == message.to_dict()
        assert other == message != task()
        assert (other.task_id, other.timestamp) == (message.task_id, message.timestamp)
        assert (other.source_agent, other.target_agent) == ("controller", "worker")


def test_response_error_and_task() -> None:
    message = task()
    response = StructuredMessage.create_response("done", message, {"type": "query", "in_reply_to": "x"})
    error = StructuredMessage.create_error("no", message)
    for reply, type_ in ((response, "response"), (error, "error")):
        assert reply.metadata == {"type": type_, "in_reply_to": message.task_id}
        assert (reply.source_agent, reply.target_agent) == ("worker", "controller")
    alone = StructuredMessage.create_error("no")
    assert (alone.metadata, alone.source_agent) == ({"type": "error"}, None)
    assert message.metadata == {"type": "task", "priority": "high"}


def test_task_data_cannot_change_the_type() -> None:
    other = StructuredMessage.create_task("x", "a", "b", {"type": "error", "deadline": "2h"})
    assert other.metadata == {"type": "task", "deadline": "2h"}


def test_a_message_without_content() -> None:
    with pytest.raises(InvalidMessage, match=r"no 'content'. Found: task_id"):
        StructuredMessage.from_dict({"task_id": "t"})
    with pytest.raises(ValueError, match="expected text, got int"):
        StructuredMessage.from_dict({"content": 5})


def test_everything_else_may_be_missing_and_more_may_be_there() -> None:
    message = StructuredMessage.from_dict({"content": "x", "of_a_later_version": 1})
    assert (message.metadata, message.tool_calls, message.source_agent) == ({}, [], None)
    assert message.task_id
    assert message.timestamp <= time.time()
    assert message != {"content": "x"}


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"metadata": []}, "metadata"),
        ({"task_id": 5}, "task_id"),
        ({"timestamp": "now"}, "timestamp"),
        ({"timestamp": True}, "timestamp"),
        ({"tool_calls": {}}, "tool_calls"),
        ({"tool_calls": [1]}, "tool_calls[0]"),
        ({"tool_calls": [{}]}, "tool_calls[0].name"),
        ({"tool_calls": [{"name": "add", "arguments": [1]}]}, "tool_calls[0].arguments"),
        ({"tool_calls": [{"name": "add", "id": 1}]}, "tool_calls[0].id"),
        ({"tool_results": "x"}, "tool_results"),
        ({"tool_results": [{"name": "add"}]}, "tool_results[0].call_id"),
        ({"source_agent": 5}, "source_agent"),
    ],
)
def test_a_field_of_the_wrong_type_is_named(fields: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidMessage, match=rf"^{re.escape(where)}: expected "):
        StructuredMessage.from_dict({"content": "x", **fields})


def test_bad_json_says_where() -> None:
    with pytest.raises(InvalidMessage, match="line 2, column 15"):
        StructuredMessage.from_json('{"content":\n"x", "task_id"}')
    with pytest.raises(InvalidMessage, match="got list"):
        StructuredMessage.from_json("[]")


class Color(enum.Enum):
    RED = "red"


class Place(msgspec.Struct):
    name: str


@dataclass
class Order:
    id: int
    place: Place
    due: datetime


VALUES = {
    "when": datetime(2025, 5, 7, 12, 30, 1, 5),
    "utc": datetime(2025, 5, 7, tzinfo=UTC),
    "east": datetime(2025, 5, 7, tzinfo=timezone(timedelta(hours=5, minutes=30))),
    "day": date(2025, 5, 7),
    "at": clock_time(12, 30, tzinfo=UTC),
    "span": timedelta(days=-1, microseconds=3),
    "tags": {"a", "b"},
    "frozen": frozenset({1, 2}),
    "pair": (1, ("x", [2])),
    "raw": b"\x00\xff",
    "path": Path("a/b c"),
    "id": UUID(int=7),
    "price": Decimal("1.10"),
    "by_number": {1: "one", (2, 3): "pair"},
    "deep": [{"in": {"a", frozenset({date(2025, 1, 1)})}}],
}


def test_complex_values_come_back() -> None:
    message = StructuredMessage("x", VALUES)
    message.add_tool_call("add", {"a": VALUES["when"]}, "one")
    message.add_tool_result("add", VALUES["pair"], "one")
    back = StructuredMessage.from_json(message.to_json())
    assert back.to_dict() == message.to_dict()
    assert {name: type(value) for name, value in back.metadata.items()} == {
        name: type(value) for name, value in VALUES.items()
    }


def test_classes_come_back_only_for_a_reader_who_asks() -> None:
    order = Order(7, Place("Bern"), datetime(2025, 5, 7))
    text = StructuredMessage("x", {"color": Color.RED, "order": order}).to_json()
    plain = StructuredMessage.from_json(text).metadata
    assert plain == {
        "color": "red",
        "order": {"id": 7, "place": {"name": "Bern"}, "due": datetime(2025, 5, 7)},
    }
    known = StructuredMessage.from_json(text, types=[Color, Order, Place]).metadata
    assert known == {"color": Color.RED, "order": order}


def test_a_reply_stays_in_its_thread() -> None:
    message = task()
    reply = StructuredMessage.create_response("done", message)
    again = StructuredMessage.create_error("no", reply)
    more = StructuredMessage.create_task("x", "a", "b", task_id=message.task_id)
    assert {each.task_id for each in (message, reply, again, more)} == {message.task_id}


# -- threads ------------------------------------------------------------------------------------


def test_a_hundred_threads_lose_nothing() -> None:
    message = StructuredMessage("x")

    def work(number: int) -> None:
        for _ in range(10):
            call_id = message.add_tool_call("add", {"a": number})
            message.add_tool_result("add", number, call_id)
        if number % 20 == 0:
            StructuredMessage.from_json(message.to_json())

    at_once(work)
    ids = {each["id"] for each in message.tool_calls}
    assert (len(ids), len(message.tool_calls), len(message.tool_results)) == (1_000, 1_000, 1_000)
    assert {each["call_id"] for each in message.tool_results} == ids


class Contested(str):
    """An id that another thread asks for too, between the look whether it is free and the taking."""

    def __new__(cls, text: str, rival: threading.Thread) -> "Contested":
        made = super().__new__(cls, text)
        made.rival, made.looks = rival, 0
        return made

    def __hash__(self) -> int:
        self.looks += 1
        if self.looks == 2:
            self.rival.start()
            self.rival.join(0.1)  # it can only be done by then if nothing keeps it out
        return super().__hash__()


def test_looking_for_an_id_and_taking_it_are_one_step() -> None:
    message = StructuredMessage("x")
    refused: list[InvalidMessage] = []

    def late() -> None:
        with pytest.raises(InvalidMessage) as caught:
            message.add_tool_call("add", call_id="mine")
        refused.append(caught.value)

    rival = threading.Thread(target=late)
    message.add_tool_call("add", call_id=Contested("mine", rival))
    rival.join()
    assert (len(message.tool_calls), len(refused)) == (1, 1)
