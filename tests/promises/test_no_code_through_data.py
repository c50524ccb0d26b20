"""Reading a journal makes known records and nothing else happens."""

import json
import random
import sys

import msgspec
import pytest

from antiphon.errors import AntiphonError
from antiphon.kernel.facts import summary
from antiphon.kernel.facts.events import EffectFinished, MessagePosted, RunStarted, decode, encode
from antiphon.kernel.run import commands
from antiphon.kernel.run.rows import unpack
from antiphon.values.message import Message
from antiphon.values.model import Reply

FORBIDDEN = {
    "import", "exec", "compile", "open", "os.system", "os.exec", "os.posix_spawn", "os.fork",
    "subprocess.Popen",
    "socket.connect", "ctypes.dlopen", "pickle.find_class", "marshal.loads", "code.__new__",
}  # fmt: skip
SEED = 20261120

_watching, _happened = [], []


def _hook(event, arguments):
    if _watching and event in FORBIDDEN:
        _happened.append((event, arguments))


@pytest.fixture(scope="module", autouse=True)
def _audit():
    # A hook cannot be taken away again; outside `quietly` it only looks at an empty list.
    sys.addaudithook(_hook)


def quietly(read, *arguments):
    """Call `read`; its value, or None where it says what is wrong. Nothing may happen meanwhile."""
    _happened.clear()
    _watching.append(True)
    try:
        return read(*arguments)
    except (AntiphonError, msgspec.DecodeError, LookupError, ValueError, TypeError, RecursionError):
        return None
    finally:
        _watching.clear()
        assert not _happened, _happened


GOOD = encode(
    [
        RunStarted("r", data={"any": ["json", 1, None]}),
        MessagePosted(Message("forward", "a", "b", "text", data={"type": "RunClosed"})),
        EffectFinished("1/1.m1", reply=Reply("x", opaque={"lc": 1, "type": "constructor"})),
    ]
)
MARKS = [
    {"type": "RunStarted", "run_id": "r", "data": {"lc": 1, "type": "constructor", "id": ["os", "system"]}},
    {
        "type": "RunStarted",
        "run_id": "r",
        "data": {"py/object": "os.system", "__reduce__": ["os.system", ["id"]]},
    },
    {"type": "os.system", "run_id": "id"},
    {"type": "antiphon.kernel.facts.events.RunStarted", "run_id": "r"},
    {"type": "__import__", "run_id": "r"},
    {"type": ["RunStarted"], "run_id": "r"},
    {"type": "RunStarted", "run_id": {"__class__": "str"}},
    {"run_id": "r"},
    ["ext", 1, "gASVIQAAAAAAAACMBXBvc2l4lIwGc3lzdGVtlJOUjAZpZCA+JjKUhZRSlC4="],
    "!!python/object/apply:os.system ['id']",
]
DOORS = [decode, commands.decode, lambda body: unpack(body, (("/0/data", "x"),), {"x": body})]


def known(value):
    """Only records of ours and plain JSON values."""
    if isinstance(value, msgspec.Struct):
        assert type(value).__module__.startswith("antiphon."), type(value)
        for name in value.__struct_fields__:
            known(getattr(value, name))
    elif isinstance(value, (list, tuple)):
        for each in value:
            known(each)
    elif isinstance(value, dict):
        for key, each in value.items():
            known(key)
            known(each)
    else:
        assert value is None or type(value) in (str, int, float, bool, bytes), type(value)


def hostile(draw):
    """A payload: marks of other formats in every place, or good bytes with some of them changed."""
    if draw.random() < 0.3:
        return json.dumps([draw.choice(MARKS)]).encode()
    body = bytearray(GOOD)
    for _ in range(draw.randint(1, 6)):
        place = draw.randrange(len(body))
        match draw.randrange(4):
            case 0:
                body[place] = draw.randrange(256)
            case 1:
                del body[place : place + draw.randint(1, 9)]
            case 2:
                body[place:place] = draw.choice(
                    [b'{"type":', b"]", b"\\ud800", b"\x80\x04", b"!!python/", b"1e999"]
                )
            case _:
                body[place : place + 4] = draw.choice([b"null", b"true", b'"x":', b"9" * 400])
    return bytes(body)


def sweep(count):
    draw = random.Random(SEED)
    accepted = 0
    for _ in range(count):
        body = hostile(draw)
        for door in DOORS:
            found = quietly(door, body)
            known(found)
            accepted += found is not None
    return accepted


def test_hostile_payloads_make_known_records_or_an_error():
    assert sweep(3_000) > 30


@pytest.mark.deep
def test_a_hundred_thousand_of_them():
    assert sweep(100_000) > 1_000


def test_every_mark_stays_data():
    for mark in MARKS:
        found = quietly(decode, json.dumps([mark]).encode())
        if found is not None:
            assert type(found[0]) is RunStarted
            assert type(found[0].data) is dict


def test_depth_is_refused_not_survived_by_luck():
    for body in (b"[" * 200_000, b'[{"type":"RunStarted","run_id":"r","data":' + b"[" * 200_000):
        assert quietly(decode, body) is None
        assert quietly(commands.decode, body) is None


def test_the_outline_is_read_the_same_way():
    for mark in MARKS:
        body = json.dumps({"seq": 7, "title": mark, "more": mark}).encode()
        title = mark if isinstance(mark, str) else None
        assert quietly(summary.decode, body) == (title and summary.RunSummary(7, title=title))
        assert quietly(summary.decode, json.dumps({"seq": 7, "more": mark}).encode()) == summary.RunSummary(7)


def test_the_hook_does_see():
    with pytest.raises(AssertionError):
        quietly(lambda: open("/dev/null").close())
