"""Routes of operation: health, readiness, metrics, tickets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from litestar import Response, get, post
from litestar.di import NamedDependency
from litestar.params import JSONBody
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from antiphon import __version__
from antiphon.server.permissions import allowed
from antiphon.server.problems import Refusal
from antiphon.server.routes.bodies import Health, PageOpening, PageToken, SessionView, Ticket
from antiphon.server.routes.loading import FromServed, FromSubject
from antiphon.server.served import Served
from antiphon.server.subjects import TICKET_SECONDS

TEXT = "text/plain; version=0.0.4; charset=utf-8"


@get("/health", summary="Whether the server lives", **allowed("public"))
async def health() -> Health:
    """It answers, so it lives."""
    return Health("ok")


@get("/ready", summary="Whether the server takes requests", status_code=200, **allowed("public"))
async def ready(served: FromServed) -> Response[Health]:
    """200 when runs can be started; 503 when it is being left."""
    leaving = served.host.draining
    return Response(Health("draining" if leaving else "ok"), status_code=503 if leaving else 200)


@get("/status", summary="What the server does", **allowed("read"))
async def status(served: FromServed) -> Health:
    """Its version, and its runs by state."""
    return Health("draining" if served.host.draining else "ok", __version__, _states(served))


def _states(served: Served) -> dict[str, int]:
    return dict(Counter(each.state for each in served.host.runs.values()))


@get("/session", summary="Who asks", **allowed("read"))
async def who(served: FromServed, subject: FromSubject) -> SessionView:
    """Whose the token is, what it allows, and whether anything can be changed here at all."""
    return SessionView(
        subject.name, sorted(subject.scopes), __version__, served.host.drives, dict(served.commands)
    )


@post("/session/opening", status_code=201, summary="The token of a page", **allowed("public"))
async def open_page(data: JSONBody[PageOpening], served: FromServed) -> PageToken:
    """The token, for what stood in the address that a browser was opened with; once."""
    token = served.subjects.by_opening(data.opening)
    if token is None:
        raise Refusal(
            403, "opening", "This address was used before, or is too old", "Open the one that was printed"
        )
    return PageToken(token)


@post("/session", status_code=201, summary="A ticket for a WebSocket", **allowed("read"))
async def session(served: FromServed, subject: FromSubject) -> Ticket:
    """A text for the first frame of one WebSocket, so that a page needs to keep no token."""
    return Ticket(served.subjects.ticket(subject), TICKET_SECONDS)


class HostCollector:
    """Gauges of a host, read when they are asked for."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def collect(self) -> Iterator[Metric]:
        """See prometheus_client."""
        runs = GaugeMetricFamily(
            "antiphon_runs", "Runs that this server drives or watches.", labels=["state"]
        )
        for state, count in sorted(_states(self._served).items()):
            runs.add_metric([state], count)
        yield runs
        open_now = self._served.rates.connections
        yield GaugeMetricFamily(
            "antiphon_connections", "Streams and WebSockets that are open.", value=open_now
        )
        yield GaugeMetricFamily(
            "antiphon_draining", "1 while it is being left.", value=int(self._served.host.draining)
        )


@get("/metrics", summary="Prometheus metrics", media_type="text/plain", **allowed("read"))
async def metrics(registry: NamedDependency[CollectorRegistry]) -> Response[bytes]:
    """Requests, runs and connections, in the text format of Prometheus; no content of any run."""
    return Response(generate_latest(registry), headers={"content-type": TEXT}, media_type=TEXT)
