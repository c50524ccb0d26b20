"""What happens in a run stays what it was: the records of many runs, compared with stored texts.

Where a change is meant, `python -m tests.oracle.update [NAME ...]` writes the texts anew, and their
difference says what changed.
"""

import asyncio
from typing import Any, get_args

import msgspec
import pytest

from antiphon import Record
from antiphon.kernel.facts.events import Event
from tests.oracle.format import said
from tests.oracle.play import STORED, transcript
from tests.oracle.stage import SCENARIOS


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_transcript_is_as_stored(name, tmp_path):
    stored = (STORED / f"{name}.txt").read_text("utf-8")
    assert asyncio.run(transcript(name, tmp_path)).splitlines() == stored.splitlines()


def test_every_stored_transcript_has_its_scenario():
    assert sorted(each.stem for each in STORED.iterdir()) == sorted(SCENARIOS)


# -- the format leaves nothing out unsaid ----------------------------------------------------------------

MESSAGE = {"type": "forward", "sender": "a", "receiver": "b", "content": "c", "id": "i"}
NEEDED: dict[str, Any] = {
    "run_id": "r",
    "name": "x",
    "message": MESSAGE,
    "activation": 1,
    "id": "1/1.c1",
    "detail": {"kind": "tool", "name": "x"},
    "allowed": False,
    "changes": [],
}
"""Fields without a default."""
SAMPLES = [
    *("other", "failed", "step", "return", 7, True, 1.5, {"key": ["value"]}, {"turns": 1}, {"agent": "x"}),
    [{"name": "x", "description": "", "parameters": {}}],
    [{"folder": "/", "path": "a"}],
    *({"preset": "strict"}, {"tokens": 5}),
    *(
        {"input_tokens": 1},
        {"content": "x"},
        ["x"],
        [{"id": "1", "name": "x"}],
        [{"role": "user", "content": "x"}],
    ),
    *([{"media_type": "text/plain"}], {**MESSAGE, "content": "other"}, "approval", {"background": True}),
    *("length", [{"id": "r", "scope": "run", "key": "x", "tool": "*", "verdict": "ask"}]),
    *({"kind": "step", "name": "y"}, {"origin": "o", "seq": 1, "digest": "d"}, {"kind": "cut", "text": "t"}),
]
LEFT_OUT = {
    "RunStarted": {"run_id", "manifest"},
    "RunResumed": {"manifest", "run_id", "fork"},
    "TranscriptCompacted": {"effect"},
    "EffectFinished": {"source", "trace"},
    "Message": {"id"},
}
"""What a transcript does not show."""


def _other_values(kind: type, name: str) -> list[Any]:
    """The struct with another value in this field, of each sort that it takes."""
    needed = {each.name: NEEDED.get(each.name) for each in msgspec.structs.fields(kind) if each.required}
    needed = MESSAGE if kind.__name__ == "Message" else needed
    plain, found = msgspec.convert(needed, kind), []
    for sample in SAMPLES:
        try:
            other = msgspec.convert({**needed, name: sample}, kind)
        except msgspec.ValidationError:
            continue
        if getattr(other, name) != getattr(plain, name):
            found.append((plain, other))
    return found


def _line(event: Any) -> str:
    return said(Record(1, 0.0, "r", 1, "a", 0, event))


KINDS = get_args(Event)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_each_field_of_an_event_is_shown_or_left_out_by_name(kind):
    hidden = set()
    for field in msgspec.structs.fields(kind):
        pairs = _other_values(kind, field.name)
        assert pairs, f"no sample fits {kind.__name__}.{field.name}"
        if all(_line(plain) == _line(other) for plain, other in pairs):
            hidden.add(field.name)
    assert hidden == LEFT_OUT.get(kind.__name__, set())


def test_each_field_of_a_message_is_shown_or_left_out_by_name():
    posted = next(kind for kind in KINDS if kind.__name__ == "MessagePosted")
    message = type(msgspec.convert({"message": MESSAGE}, posted).message)
    hidden = set()
    for field in msgspec.structs.fields(message):
        pairs = _other_values(message, field.name)
        if all(_line(posted(plain)) == _line(posted(other)) for plain, other in pairs):
            hidden.add(field.name)
    assert hidden == LEFT_OUT["Message"]
