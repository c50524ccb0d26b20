"""Spans as OTLP in JSON: what a collector takes at `/v1/traces`, and reads from files, one request a line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from antiphon.view.traces.span import Attribute, Attributes, RunSpan, SpanContext, nanoseconds

SPANS_PER_LINE = 200
SCOPE = "antiphon"
"""The name of what made the spans."""
_KINDS = {"internal": 1, "client": 3}
_ERROR = 2
_SAMPLED = 1
_KNOWN_IF_REMOTE, _REMOTE = 0x100, 0x200


def lines(spans: Sequence[RunSpan], service: str, version: str) -> Iterator[bytes]:
    """The spans as `ExportTraceServiceRequest`s in JSON, without line breaks, 200 spans each.

    service: `service.name`. version: of what made them.
    """
    for begin in range(0, len(spans), SPANS_PER_LINE):
        some = [_span(each) for each in spans[begin : begin + SPANS_PER_LINE]]
        scope = {"scope": {"name": SCOPE, "version": version}, "spans": some}
        resource = {"attributes": _attributes({"service.name": service})}
        yield msgspec.json.encode({"resourceSpans": [{"resource": resource, "scopeSpans": [scope]}]})


def _span(span: RunSpan) -> dict[str, Any]:
    remote = _KNOWN_IF_REMOTE | (_REMOTE if span.remote_parent else 0)
    status: dict[str, Any] = {"code": _ERROR} if span.error else {}
    if span.error and span.reason:
        status["message"] = span.reason
    return {
        **_ids(span.context),
        "parentSpanId": span.parent.span_id if span.parent is not None else "",
        "flags": remote | (_SAMPLED if span.context.sampled else 0),
        "name": span.name,
        "kind": _KINDS[span.kind],
        # 64-bit numbers are text in JSON: some readers know doubles only.
        "startTimeUnixNano": str(nanoseconds(span.start)),
        "endTimeUnixNano": str(nanoseconds(span.end)),
        "attributes": _attributes(span.attributes),
        "events": [
            {
                "timeUnixNano": str(nanoseconds(each.at)),
                "name": each.name,
                "attributes": _attributes(each.attributes),
            }
            for each in span.events
        ],
        "links": [_ids(each) for each in span.links],
        "status": status,
    }


def _ids(context: SpanContext) -> dict[str, Any]:
    return {"traceId": context.trace_id, "spanId": context.span_id}


def _attributes(attributes: Attributes) -> list[dict[str, Any]]:
    return [{"key": key, "value": _value(value)} for key, value in attributes.items()]


def _value(value: Attribute) -> dict[str, Any]:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, str):
        return {"stringValue": value}
    return {"arrayValue": {"values": [{"stringValue": each} for each in value]}}
