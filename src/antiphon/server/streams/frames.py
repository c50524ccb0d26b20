"""The frames of a run as JSON, each made once for all who read it now."""

from __future__ import annotations

from antiphon.host import Host
from antiphon.kernel.facts.records import Record
from antiphon.server.streams.shared import SharedProjection
from antiphon.view.frames import FrameReader, encode
from antiphon.view.reading.projection import Make

OVERHEAD = 100
"""Bytes that a kept frame takes beside its own."""


def frames_of(host: Host, run_id: str) -> SharedProjection[bytes]:
    """The frames of a run for one of its readers."""
    return SharedProjection(host, "frames", run_id, _begin)


def _begin() -> Make[bytes]:
    reader = FrameReader()

    def make(record: Record) -> tuple[bytes, int]:
        data = encode(reader.add(record))
        return data, len(data) + OVERHEAD

    return make
