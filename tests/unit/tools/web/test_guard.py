"""What must not be reached: however an address is spelled, wherever a redirect leads, whatever a name
means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import httpx2
import pytest

from antiphon.errors import ToolError, UserError
from antiphon.tools.web import guard
from antiphon.tools.web.client import WebClient
from antiphon.tools.web.courtesy import Courtesy
from antiphon.tools.web.networks import why_not_public
from antiphon.tools.web.options import WebOptions
from tests.unit.tools.web.site import HERE, Pauses, guest, opened, to_here
from tests.unit.tools.web.spellings import looked_up, spellings

PUBLIC = "93.184.216.34"


class Connections(httpx2.AsyncBaseTransport):
    """Connects to nothing: keeps which address was to be connected to, and answers with a redirect, once."""

    def __init__(self, to: list[tuple[str, int | None, str, str]], location: str = "") -> None:
        self._to, self._location = to, location

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._to.append(
            (request.url.host, request.url.port, request.headers["host"], request.extensions["sni_hostname"])
        )
        if request.url.path == "/start":
            return httpx2.Response(302, headers=[(b"Location", self._location.encode())])
        return httpx2.Response(200, headers={"Content-Type": "text/html"}, content=b"<p>inside")


def visited(
    url: str, location: str = "", resolve=looked_up, **options
) -> list[tuple[str, int | None, str, str]]:
    """What was connected to for an address; it ends with `refused` when that was refused."""
    to: list[tuple[str, int | None, str, str]] = []
    pauses = Pauses()
    client = WebClient(
        WebOptions(obey_robots=False, **options), resolve=resolve,
        transport=lambda: Connections(to, location), courtesy=Courtesy(pauses.now, pauses.sleep),
    )  # fmt: skip
    try:
        asyncio.run(client.get(url))
    except ToolError:
        to.append(("refused", None, "", ""))
    return to


REFUSED = ("refused", None, "", "")


def test_there_are_enough_spellings() -> None:
    assert len(spellings()) >= 200


@pytest.mark.parametrize("url", spellings())
def test_no_spelling_is_let_in(url: str) -> None:
    assert visited(url) == [REFUSED]


@pytest.mark.parametrize("url", spellings())
def test_no_redirect_leads_in(url: str) -> None:
    assert {each[0] for each in visited("https://example.test/start", url)} <= {PUBLIC, "refused"}


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://example.test/", (PUBLIC, None, "example.test", "example.test")),
        ("https://Example.TEST/a?b=c#d", (PUBLIC, None, "example.test", "example.test")),
        ("https://example.test:8443/", (PUBLIC, 8443, "example.test:8443", "example.test")),
        ("https://bücher.test/", (PUBLIC, None, "xn--bcher-kva.test", "xn--bcher-kva.test")),
        ("http://93.184.216.34/", (PUBLIC, None, PUBLIC, PUBLIC)),
        (
            "http://[2606:2800:220:1::1]/",
            ("2606:2800:220:1::1", None, "[2606:2800:220:1::1]", "2606:2800:220:1::1"),
        ),
        (" https://example.test. ", (PUBLIC, None, "example.test.", "example.test")),
    ],
)
def test_what_is_public_is_connected_to_by_its_number(url: str, expected: tuple[object, ...]) -> None:
    assert visited(url) == [expected]


def test_a_name_that_means_another_machine_the_second_time_is_refused_then() -> None:
    answers = iter([[PUBLIC], ["10.0.0.5"]])

    async def rebound(host: str, port: int) -> Sequence[str]:
        return next(answers)

    assert visited("http://example.test/", resolve=rebound) == [REFUSED]


def test_nothing_is_looked_up_between_the_judgement_and_the_connection() -> None:
    lookups: list[str] = []

    async def counted(host: str, port: int) -> Sequence[str]:
        lookups.append(host)
        return [PUBLIC]

    assert visited("http://example.test/", resolve=counted) == [
        (PUBLIC, None, "example.test", "example.test")
    ]
    # Once when it is asked whether it may be visited, once for the connection.
    assert lookups == ["example.test"] * 2


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("8.8.8.8", ""),
        ("2a00:1450:4001::1", ""),
        ("::ffff:8.8.8.8", ""),
        ("64:ff9b::808:808", ""),
        ("127.0.0.1", "this machine"),
        ("10.255.255.255", "a private network"),
        ("100.64.0.1", "a private network"),
        ("169.254.169.254", "the link this machine is on"),
        ("168.63.129.16", "a service of the cloud that this machine may be in"),
        ("64:ff9b::a9fe:a9fe", "the link this machine is on"),
        ("fe80::1%eth0", "the link this machine is on"),
        ("2001:0:1::", "an address that is reserved"),
        ("4000::1", "an address that is reserved"),
        ("no address", "what is no address"),
    ],
)
def test_addresses_are_judged_by_number(address: str, why: str) -> None:
    assert why_not_public(address) == why


def test_this_machine_s_own_public_address_is_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    assert guard._spoken_from("127.0.0.1") == "127.0.0.1"
    monkeypatch.setattr(guard, "_spoken_from", lambda address: PUBLIC)
    assert visited(f"http://{PUBLIC}/") == [REFUSED]
    assert visited("http://8.8.8.8/") == [("8.8.8.8", None, "8.8.8.8", "8.8.8.8")]


def test_a_user_s_own_networks_and_hosts() -> None:
    inside = {"networks": ("10.0.0.0/24", "fd00::/8"), "hosts": ("example.test", "10.0.0.5", "fd00::1")}
    assert visited("http://10.0.0.5:9200/x", **inside)[0][:2] == ("10.0.0.5", 9200)
    assert visited("http://[fd00::1]/", **inside)[0][0] == "fd00::1"
    assert visited("https://docs.example.test/", **inside)[0][0] == PUBLIC
    assert visited("https://notexample.test/", **inside) == [REFUSED]
    assert visited("http://10.0.1.5/", networks=("10.0.0.0/24",)) == [REFUSED]
    # Of a host with addresses of both kinds the ports of public ones are those that count.
    assert visited("http://mixed.test:9200/", networks=("10.0.0.0/24",)) == [REFUSED]
    with pytest.raises(UserError, match=r"WebOptions\(networks=\.\.\.\): .* give one as 10\.1\.0\.0/16"):
        WebOptions(networks=("10.0.0.1/8",))
    with pytest.raises(UserError, match=r"WebOptions\(pause=\.\.\.\) is at least 0"):
        WebOptions(pause=-1)
    with pytest.raises(UserError, match="user_agent"):
        WebOptions(user_agent="A\r\nX: y")


def test_the_first_address_that_answers_is_used_and_no_other() -> None:
    tried: list[str] = []

    class Refusing(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            tried.append(request.url.host)
            raise httpx2.ConnectError("refused")

    async def several(host: str, port: int) -> Sequence[str]:
        return [f"93.184.216.{number}" for number in range(1, 10)]

    client = WebClient(WebOptions(obey_robots=False), resolve=several, transport=Refusing)
    with pytest.raises(ToolError, match=r"http://example\.test/ could not be read: refused"):
        asyncio.run(client.get("http://example.test/"))
    assert tried == [f"93.184.216.{number}" for number in range(1, 5)]


def test_the_name_is_in_the_request_and_the_number_is_connected_to() -> None:
    async def scenario() -> tuple[list[str], str]:
        to: list[str] = []
        async with opened({"/a": "<p>told"}) as site:
            answer = await guest(to, obey_robots=False).get(f"http://shop.test:{site.port}/a")
            assert (str(answer.url), answer.body) == (f"http://shop.test:{site.port}/a", b"<p>told")
            assert to == [f"127.0.0.1:{site.port}"]
            return site.heads, f"shop.test:{site.port}"

    (head,), host = asyncio.run(scenario())
    assert head.startswith("GET /a HTTP/1.1\r\n")
    assert f"\r\nHost: {host}\r\n" in head
    assert head.lower().count("\r\nhost:") == 1
    assert "\r\nUser-Agent: Antiphon\r\n" in head


def test_a_certificate_is_asked_for_by_the_name() -> None:
    async def scenario() -> bytes:
        hello: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def greeted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            hello.set_result(await reader.read(4096))
            writer.close()

        server = await asyncio.start_server(greeted, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = WebClient(WebOptions(networks=(HERE,), obey_robots=False), resolve=to_here)
        with pytest.raises(ToolError, match="could not be read"):
            await client.get(f"https://shop.test:{port}/")
        server.close()
        await server.wait_closed()
        return await hello

    found = asyncio.run(scenario())
    assert b"shop.test" in found
    assert b"127.0.0.1" not in found


def test_what_never_ends_is_given_up() -> None:
    class Endless(httpx2.AsyncByteStream):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            while True:
                yield b"a" * 65536

    class Sending(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(200, stream=Endless())

    async def public(host: str, port: int) -> Sequence[str]:
        return [PUBLIC]

    client = WebClient(WebOptions(obey_robots=False), resolve=public, transport=Sending)
    with pytest.raises(ToolError, match="has more than 5,000,000 bytes"):
        asyncio.run(client.get("http://example.test/"))
