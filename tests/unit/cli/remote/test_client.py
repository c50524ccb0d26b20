"""What a server may answer, and what becomes of it: a value of ours, or one clear error, in bounds."""

import asyncio
import json

import httpx2
import pytest

from antiphon.cli import exit_codes
from antiphon.cli.remote import client as module
from antiphon.cli.remote.address import ServerAddress
from antiphon.cli.remote.client import ServerClient, ServerFault, ServerRefused
from antiphon.server.routes.bodies import RunLine, Teams
from antiphon.values.secret import Secret

TOKEN = "a token that nobody sees"
URL = "http://127.0.0.1:8000"


def asked(handler, method="GET", path="/teams", kind=Teams, **given):
    """What comes of one request, answered by `handler`."""

    async def work():
        address = ServerAddress(URL, Secret(TOKEN))
        async with ServerClient(address, httpx2.MockTransport(handler)) as client:
            return await client.ask(method, path, kind, **given)

    return asyncio.run(work())


def problem(status, code="", title="No.", **more):
    body = {
        "title": title,
        "status": status,
        **({"type": f"urn:antiphon:problem:{code}"} if code else {}),
        **more,
    }
    return lambda request: httpx2.Response(status, json=body)


def test_a_request_names_the_token_in_its_header_only():
    seen = []

    def handler(request):
        seen.append(request)
        return httpx2.Response(200, json={"teams": []})

    assert asked(handler, query={"text": "a&b", "deltas": False, "none": None}) == Teams([])
    (request,) = seen
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert str(request.url) == f"{URL}/teams?text=a%26b&deltas=false"
    assert request.headers["accept-encoding"] == "identity"


REFUSALS = {
    ("unknown_run", 404): (exit_codes.NotFound, 4),
    ("unknown_name", 404): (exit_codes.NotFound, 4),
    ("answered", 409): (exit_codes.Settled, 10),
    ("in_use", 409): (ServerRefused, 9),
    ("suspended", 409): (ServerRefused, 8),
    ("closed", 409): (ServerRefused, 3),
    ("journal", 500): (ServerRefused, 5),
    ("draining", 503): (ServerRefused, 1),
    ("token", 401): (ServerRefused, 3),
    ("scope", 403): (ServerRefused, 3),
    ("invalid", 400): (ServerRefused, 3),
    ("fault", 500): (ServerRefused, 1),
    ("rate", 429): (ServerRefused, 1),
    ("a word of tomorrow", 409): (ServerRefused, 3),
    ("", 404): (ServerFault, 5),
    ("", 502): (ServerFault, 5),
}


@pytest.mark.parametrize(("given", "wanted"), REFUSALS.items())
def test_a_refusal_is_an_error_with_its_exit_code(given, wanted):
    code, status = given
    kind, exit_code = wanted
    with pytest.raises(kind) as refused:
        asked(problem(status, code))
    assert exit_codes.code_of(refused.value) == exit_code


def test_a_refusal_says_the_place_and_what_to_do():
    wrong = [{"path": "$.limits.turns", "expected": "`int`", "got": "`str`"}]
    with pytest.raises(ServerRefused, match=r"Not that: Correct it|Not that\. Correct it"):
        asked(problem(400, "invalid", "Not that", detail="Correct it", errors=wrong))
    with pytest.raises(ServerRefused, match=r"Not that\. \$\.limits\.turns: expected `int`"):
        asked(problem(400, "invalid", "Not that", errors=wrong))
    with pytest.raises(ServerRefused, match="ANTIPHON_SERVER_TOKEN"):
        asked(problem(401, "token", "The token is unknown"))


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202eevil\nFORGED " + TOKEN


def test_a_refusal_steers_no_terminal_and_repeats_no_token():
    for handler in (problem(400, "x", HOSTILE, detail=HOSTILE), problem(404, "unknown_run", HOSTILE)):
        with pytest.raises(Exception) as refused:
            asked(handler)
        assert str(refused.value).isprintable()
        assert TOKEN not in str(refused.value)


NONSENSE = {
    "no JSON": b"<html>hello</html>", "cut": b'{"teams": [', "another type": b'{"teams": 3}', "empty": b"",
    "not UTF-8": b'{"teams": ["\xff"]}', "deep": b"[" * 100_000, "a list": b"[]",
}  # fmt: skip


@pytest.mark.parametrize("body", NONSENSE.values(), ids=NONSENSE)
def test_what_is_no_answer_of_a_server_is_said(body):
    with pytest.raises(ServerFault, match="says what no Antiphon server of this version says"):
        asked(lambda request: httpx2.Response(200, content=body))
    with pytest.raises((ServerFault, ServerRefused)):
        asked(lambda request: httpx2.Response(400, content=body))


def test_an_answer_has_a_largest_size(monkeypatch):
    monkeypatch.setattr(module, "MAX_ANSWER", 1_000)
    with pytest.raises(ServerFault, match="more than 1,000 bytes"):
        asked(lambda request: httpx2.Response(200, json={"teams": ["x" * 2_000]}))
    # A refusal that does not end is read no further than it needs.
    with pytest.raises(ServerFault, match="HTTP 400"):
        asked(lambda request: httpx2.Response(400, content=Endless()))


class Endless(httpx2.AsyncByteStream):
    """A body that goes on and on."""

    async def __aiter__(self):
        while True:
            yield b" " * 65_536


class Silent(httpx2.AsyncByteStream):
    """A body of which a little comes, and no more."""

    async def __aiter__(self):
        yield b"{"
        await asyncio.Event().wait()


def test_an_answer_has_a_longest_time(monkeypatch):
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.0)
    with pytest.raises(ServerFault, match="took longer than 0 s"):
        asked(lambda request: httpx2.Response(200, content=Silent()))


@pytest.mark.parametrize(
    "place", ["https://evil.example.org/teams", "//evil.example.org", "/elsewhere", "http://[", ""]
)
def test_a_redirect_is_never_followed(place):
    seen = []

    def handler(request):
        seen.append(str(request.url))
        return httpx2.Response(307, headers={"location": place} if place else {})

    with pytest.raises(ServerFault, match=r"redirects to .*nothing was sent there"):
        asked(handler)
    assert seen == [f"{URL}/teams"]


def test_a_server_that_is_not_there_is_said_and_waited_for_only_while_a_run_is_followed(monkeypatch):
    calls = []

    def handler(request):
        calls.append(request)
        if len(calls) < 3:
            raise httpx2.ConnectError("refused")
        return httpx2.Response(200, json={"teams": []})

    with pytest.raises(ServerFault, match="cannot be reached: refused") as fault:
        asked(handler)
    assert exit_codes.code_of(fault.value) == exit_codes.JOURNAL
    assert len(calls) == 1
    monkeypatch.setattr(module, "PAUSES", (0, 0))

    async def patient():
        async with ServerClient(ServerAddress(URL, Secret(TOKEN)), httpx2.MockTransport(handler)) as client:
            client.patient = True
            return await client.ask("GET", "/teams", Teams)

    assert asyncio.run(patient()) == Teams([])
    assert len(calls) == 3


def test_a_line_of_the_list_is_what_the_server_sends():
    line = dict.fromkeys(RunLine.__struct_fields__)
    with pytest.raises(ServerFault, match="Expected `str`"):
        asked(lambda request: httpx2.Response(200, content=json.dumps(line).encode()), kind=RunLine)
