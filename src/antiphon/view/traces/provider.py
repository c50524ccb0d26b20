"""Spans handed to OpenTelemetry: the tracer provider that the program has set up, by its API alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from antiphon.errors import ConfigError, UserError
from antiphon.view.traces.span import RunSpan, SpanContext, nanoseconds

_FLUSH_MILLISECONDS = 5_000


class SpanSender:
    """Hands spans that have ended to a tracer provider, with the ids that they have.

    provider: an OpenTelemetry tracer provider; the program's own without one. version: of what made them.
    Raises ConfigError without the extra `otel`, and where the program has set up none; UserError for a
    provider whose tracers make up ids that nobody can give.
    """

    def __init__(self, provider: Any = None, version: str = "") -> None:
        try:
            from opentelemetry import context, trace
        except ModuleNotFoundError as error:
            raise ConfigError(
                "Live traces need opentelemetry-api, of the extra `otel`: pip install 'antiphon[otel]'"
            ) from error
        self._api, self._empty = trace, context.Context()
        self._provider = provider if provider is not None else trace.get_tracer_provider()
        if isinstance(self._provider, trace.ProxyTracerProvider | trace.NoOpTracerProvider):
            raise ConfigError(
                "No tracer provider is set up, so nobody would get the spans. Start the program with"
                " `opentelemetry-instrument`, or call opentelemetry.trace.set_tracer_provider first"
            )
        self._tracer = self._provider.get_tracer("antiphon", version)
        if not hasattr(self._tracer, "id_generator"):
            raise UserError(
                f"{type(self._provider).__name__} makes up the ids of spans. Give OpenTelemetry's own"
                " TracerProvider, or write the spans to a file: antiphon runs export RUN --otel"
            )
        self._ids = _GivenIds()
        self._tracer.id_generator = self._ids

    def send(self, spans: Iterable[RunSpan]) -> None:
        """Hand spans over, whole: what becomes of them is the provider's to say. It does not wait."""
        for span in spans:
            self._send(span)

    def _send(self, span: RunSpan) -> None:
        api = self._api
        self._ids.trace_id, self._ids.span_id = (
            int(span.context.trace_id, 16),
            int(span.context.span_id, 16),
        )
        # Not the context that is current: whatever goes on beside has nothing to do with the run.
        context = self._empty
        if span.parent is not None:
            given = api.NonRecordingSpan(self._context(span.parent, span, remote=span.remote_parent))
            context = api.set_span_in_context(given, self._empty)
        kind = api.SpanKind.CLIENT if span.kind == "client" else api.SpanKind.INTERNAL
        made = self._tracer.start_span(
            span.name, context, kind, dict(span.attributes),
            [api.Link(self._link(each)) for each in span.links], nanoseconds(span.start),
        )  # fmt: skip
        for event in span.events:
            made.add_event(event.name, dict(event.attributes), nanoseconds(event.at))
        if span.error:
            made.set_status(api.Status(api.StatusCode.ERROR, span.reason or None))
        made.end(nanoseconds(span.end))

    def _context(self, parent: SpanContext, span: RunSpan, *, remote: bool) -> Any:
        sampled = parent.sampled if remote else parent.sampled and self._is_sampled(span)
        flags = self._api.TraceFlags(self._api.TraceFlags.SAMPLED if sampled else 0)
        return self._api.SpanContext(int(parent.trace_id, 16), int(parent.span_id, 16), remote, flags)

    def _is_sampled(self, span: RunSpan) -> bool:
        """Whether the trace is kept: its root may have been sent by another process, or not yet."""
        sampler = getattr(self._tracer, "sampler", None)
        if sampler is None:
            return True
        asked = sampler.should_sample(self._empty, int(span.context.trace_id, 16), "")
        return bool(asked.decision.is_sampled())

    def _link(self, context: SpanContext) -> Any:
        return self._api.SpanContext(int(context.trace_id, 16), int(context.span_id, 16), False)

    def flush(self) -> None:
        """Wait until what was handed over is sent, 5 s at most."""
        flush = getattr(self._provider, "force_flush", None)
        if flush is not None:
            flush(_FLUSH_MILLISECONDS)


class _GivenIds:
    """OpenTelemetry's `IdGenerator`, that draws nothing: the next span has the ids that it is given."""

    def __init__(self) -> None:
        self.trace_id = self.span_id = 0

    def generate_trace_id(self) -> int:
        return self.trace_id

    def generate_span_id(self) -> int:
        return self.span_id

    def is_trace_id_random(self) -> bool:
        return False
