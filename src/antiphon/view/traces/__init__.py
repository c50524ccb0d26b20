"""Traces: a run as spans for OpenTelemetry, made from its records.

`RunTrace` makes spans record by record, `spans_of` those of a whole run, always the same ones. `otlp` writes
them as JSON that collectors read, which needs no dependency; `SpanSender` hands them to the program's tracer
provider (extra `otel`), `LiveTrace` while a run goes on. `gen_ai` has every name that OpenTelemetry gives.
"""

from antiphon.view.traces.live import LiveTrace, SendSpans
from antiphon.view.traces.provider import SpanSender
from antiphon.view.traces.run_trace import RunTrace, spans_of
from antiphon.view.traces.span import RunSpan, SpanContext, SpanEvent

__all__ = [
    "LiveTrace",
    "RunSpan",
    "RunTrace",
    "SendSpans",
    "SpanContext",
    "SpanEvent",
    "SpanSender",
    "spans_of",
]
