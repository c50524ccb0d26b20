"""Spans of runs: the same from the same records, live and afterwards, with nothing in them that was said."""

import asyncio
import json

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased
from opentelemetry.trace import NoOpTracerProvider, SpanKind, StatusCode

from antiphon import Agent, ModelError, open_run, tool
from antiphon.errors import ConfigError, UserError
from antiphon.host import Host
from antiphon.journal.memory import MemoryJournal
from antiphon.kernel.run.rows import read
from antiphon.models.script import Script, call
from antiphon.values.agent import ModelOptions, RetryPolicy
from antiphon.values.model import Reply, Usage
from antiphon.view.nodes import ActivationNode, EffectNode
from antiphon.view.traces import LiveTrace, SpanSender, gen_ai, otlp, spans_of
from antiphon.view.traces.span import remote
from tests.unit.host.hosts import answer_of
from tests.unit.view.test_every_cursor import PLAYED, played

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
TRACEPARENT = f"00-{TRACE}-{PARENT}-01"
SECRET = "the word that nobody may read"


@tool(effect="read")
def look(what: str) -> str:
    """Look."""
    return f"saw {SECRET}"


def team():
    asked = [call("look", what=SECRET), call("call_agent", agent_name="helper", message=SECRET)]
    boss = Agent("boss", SECRET, model=Script([asked, SECRET], by="turn"), tools=[look])
    return [boss, Agent("helper", model=Script([Reply(SECRET, usage=Usage(7, 3))], by="turn"))]


async def recorded(agents, *requests, **options):
    """The records of a run in which these were asked, one after the other."""
    journal = MemoryJournal()
    async with open_run(agents, journal=journal, run_id="run-1", create=True, **options) as run:
        for each in requests:
            await run.result(await run.post(agents[0], each))
    return await read(journal, "run-1")


def shown(spans):
    """Spans as an indented list, by their parents."""
    below = {}
    for each in sorted(spans, key=lambda span: span.start):
        above = each.parent.span_id if each.parent is not None and not each.remote_parent else ""
        below.setdefault(above, []).append(each)

    def walk(above, level):
        for each in below.get(above, ()):
            yield "  " * level + each.name
            yield from walk(each.context.span_id, level + 1)

    return list(walk("", 0))


# -- the same for everyone -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLAYED)
def test_the_spans_of_a_run_are_one_tree_for_each_request_and_always_the_same(name, tmp_path):
    for records in played(name, tmp_path):
        spans = spans_of(records)
        assert spans == spans_of(records)
        contexts = {(each.context.trace_id, each.context.span_id) for each in spans}
        assert len(contexts) == len(spans)
        for each in spans:
            assert each.start <= each.end
            if each.parent is None:
                assert each.name.startswith("invoke_workflow")
            else:
                assert (each.parent.trace_id, each.parent.span_id) in contexts, each
            assert all((link.trace_id, link.span_id) in contexts for link in each.links)
        for cursor in range(len(records)):
            known = {each.context for each in spans}
            assert {each.context for each in spans_of(records[:cursor])} <= known


def test_a_request_is_a_trace_of_agents_turns_model_calls_and_tools():
    spans = spans_of(asyncio.run(recorded(team(), "Do it.")))
    assert shown(spans) == [
        "invoke_workflow boss",
        "  invoke_agent boss",
        "    turn",
        "      chat script",
        "      invoke_agent helper",
        "        turn",
        "          chat script",
        "      execute_tool look",
        "    turn",
        "      chat script",
    ]
    chat = next(each for each in spans if each.name == "chat script")
    assert chat.kind == "client"
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.provider.name"] == "script"
    assert chat.attributes["gen_ai.conversation.id"] == "run-1"
    assert chat.attributes["gen_ai.response.finish_reasons"] == ("tool_call",)
    used = next(each for each in spans if each.name == "execute_tool look")
    assert used.attributes["gen_ai.tool.name"] == "look"
    assert used.attributes["gen_ai.tool.call.id"]
    helper = next(each for each in spans if each.name == "invoke_agent helper")
    assert helper.attributes["gen_ai.agent.id"] == "run-1/2"
    assert helper.attributes["gen_ai.usage.input_tokens"] == 7
    assert helper.attributes["gen_ai.usage.output_tokens"] == 3


def test_each_request_of_a_run_is_a_trace_that_links_to_the_one_before():
    agents = [Agent("clerk", model=Script(["one", "two"]), context="continue")]
    spans = spans_of(asyncio.run(recorded(agents, "First", "Second")))
    first, second = [each for each in spans if each.parent is None]
    assert first.context.trace_id != second.context.trace_id
    assert second.links == (first.context,)
    assert {each.attributes.get("gen_ai.conversation.id", "run-1") for each in spans} == {"run-1"}


def test_a_wait_before_another_attempt_and_a_refused_call_are_events_of_the_turn():
    script = Script([ModelError("overloaded", SECRET), call("nothing", x=1), "done"])
    asking = ModelOptions(retry=RetryPolicy(initial_delay=0.001))
    spans = spans_of(asyncio.run(recorded([Agent("clerk", model=script, asking=asking)], "Hi")))
    turn = next(each for each in spans if each.name == "turn")
    assert [each.name for each in turn.events] == ["antiphon.retry", "antiphon.call_refused"]
    assert turn.events[0].attributes["error.type"] == "overloaded"
    assert turn.events[1].attributes["error.type"] == "not_found"
    failed, again, _ = [each for each in spans if each.name == "chat script"]
    assert (failed.error, failed.attributes["error.type"]) == (True, "overloaded")
    assert (again.error, again.attributes["antiphon.model.attempt"]) == (False, 2)


def test_nothing_that_was_said_is_in_a_span_unless_it_is_asked_for():
    records = asyncio.run(recorded(team(), SECRET))
    assert SECRET not in repr(spans_of(records))
    told = spans_of(records, content=True)
    chat = [each for each in told if each.name == "chat script"][-1]
    assert json.loads(chat.attributes["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": SECRET}], "finish_reason": "stop"}
    ]
    used = next(each for each in told if each.name == "execute_tool look")
    assert used.attributes["gen_ai.tool.call.result"] == f"saw {SECRET}"
    boss = next(each for each in told if each.name == "invoke_agent boss")
    assert SECRET in boss.attributes["gen_ai.input.messages"]


def test_what_still_goes_on_is_marked_and_ends_at_the_last_record():
    records = asyncio.run(recorded(team(), "Do it."))
    begun = next(i for i, each in enumerate(records) if getattr(each.event, "id", "") == "1/1.m1") + 1
    spans = spans_of(records[:begun])
    assert shown(spans) == ["invoke_workflow boss", "  invoke_agent boss", "    turn", "      chat script"]
    assert all(each.attributes["antiphon.open"] and each.end == records[begun - 1].at for each in spans)


# -- who asked --------------------------------------------------------------------------------------------


def test_a_request_with_a_traceparent_stands_under_that_span():
    async def main():
        sent = []
        async with Host(MemoryJournal(), {"desk": team()}, send_spans=sent.extend) as host:
            started = await host.start("desk", "Do it.", run_id="run-1", traceparent=TRACEPARENT)
            await answer_of(host, started.run_id)
        return sent

    spans = asyncio.run(main())
    assert {each.context.trace_id for each in spans} == {TRACE}
    root = next(each for each in spans if each.name == "invoke_workflow boss")
    assert (root.parent.span_id, root.remote_parent) == (PARENT, True)


@pytest.mark.parametrize(
    "header",
    ["", "nonsense", f"ff-{TRACE}-{PARENT}-01", f"00-{'0' * 32}-{PARENT}-01", f"00-{TRACE}-{'0' * 16}-01",
     f"00-{TRACE.upper()}-{PARENT}-01", f"00-{TRACE}-{PARENT}-01\n", f"00-{TRACE}-{PARENT}"],
)  # fmt: skip
def test_a_traceparent_that_names_no_span_counts_for_nothing(header):
    assert remote(header) is None


def test_the_same_request_with_another_traceparent_is_the_same_for_its_key():
    async def main():
        async with Host(MemoryJournal(), {"desk": team()}) as host:
            first = await host.start("desk", "Do it.", key="k", traceparent=TRACEPARENT)
            return first, await host.start("desk", "Do it.", key="k")

    first, again = asyncio.run(main())
    assert (first.run_id, first.created, again.created) == (again.run_id, True, False)


# -- live -------------------------------------------------------------------------------------------------


def test_a_host_sends_the_spans_that_an_export_afterwards_has():
    async def main():
        sent, journal = [], MemoryJournal()
        async with Host(journal, {"desk": team()}, send_spans=sent.extend) as host:
            started = await host.start("desk", "Do it.", run_id="run-1")
            await answer_of(host, started.run_id)
        return sent, spans_of(await read(journal, "run-1"))

    sent, exported = asyncio.run(main())
    assert sent == exported


def test_who_takes_a_run_up_sends_what_ends_from_then_on():
    async def main():
        journal = MemoryJournal()
        records = await recorded(team(), "Do it.")
        middle = next(i for i, each in enumerate(records) if getattr(each.event, "id", "") == "1/1.c1")
        sent = []
        journal = MemoryJournal()
        async with open_run(team(), journal=journal, run_id="run-1", create=True) as run:
            await run.result(await run.post("boss", "Do it."))
        live = LiveTrace(journal, "run-1", sent.extend, after=records[middle].seq)
        await live.read_on()
        return sent, spans_of(await read(journal, "run-1"))

    sent, whole = asyncio.run(main())
    assert 0 < len(sent) < len(whole)
    assert sent == whole[-len(sent) :]


def test_a_collector_that_fails_is_logged_once_and_stops_no_run(caplog):
    def send(spans):
        raise OSError(SECRET)

    async def main():
        async with Host(MemoryJournal(), {"desk": team()}, send_spans=send) as host:
            started = await host.start("desk", "Do it.", run_id="run-1")
            return await answer_of(host, started.run_id)

    assert asyncio.run(main()) == SECRET
    told = [each.getMessage() for each in caplog.records if each.name == "antiphon.traces"]
    assert told == ["No more spans of run run-1: OSError"]


# -- OpenTelemetry ----------------------------------------------------------------------------------------


def exporting(**options):
    exporter = InMemorySpanExporter()
    provider = TracerProvider(**options)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def test_a_tracer_provider_gets_the_spans_with_their_ids_times_and_parents():
    spans = spans_of(asyncio.run(recorded(team(), "Do it.")))
    provider, exporter = exporting()
    with provider.get_tracer("another").start_as_current_span("around"):
        SpanSender(provider).send(spans)
    sent = [each for each in exporter.get_finished_spans() if each.name != "around"]
    assert len(sent) == len(spans)
    for mine, theirs in zip(spans, sent, strict=True):
        assert theirs.name == mine.name
        assert f"{theirs.context.trace_id:032x}" == mine.context.trace_id
        assert f"{theirs.context.span_id:016x}" == mine.context.span_id
        above = theirs.parent
        assert (f"{above.span_id:016x}" if above else None) == (mine.parent.span_id if mine.parent else None)
        assert dict(theirs.attributes) == dict(mine.attributes)
        assert theirs.start_time == pytest.approx(mine.start * 1e9, abs=1_000)
        assert theirs.end_time == pytest.approx(mine.end * 1e9, abs=1_000)
        assert (theirs.kind is SpanKind.CLIENT) == (mine.kind == "client")
        assert (theirs.status.status_code is StatusCode.ERROR) == mine.error


def test_a_trace_that_the_sampler_drops_is_dropped_whole():
    spans = spans_of(asyncio.run(recorded(team(), "Do it.")))
    provider, exporter = exporting(sampler=ParentBased(ALWAYS_OFF))
    SpanSender(provider).send(spans)
    assert exporter.get_finished_spans() == ()


def test_without_a_tracer_provider_it_says_what_to_do():
    with pytest.raises(ConfigError, match="opentelemetry-instrument"):
        SpanSender()
    with pytest.raises(ConfigError, match="opentelemetry-instrument"):
        SpanSender(NoOpTracerProvider())

    class Other:
        def get_tracer(self, *_):
            return object()

    with pytest.raises(UserError, match="Other makes up the ids of spans"):
        SpanSender(Other())


def test_otlp_in_json_has_ids_in_hex_and_large_numbers_as_text():
    spans = spans_of(asyncio.run(recorded(team(), "Do it.")))
    (line,) = otlp.lines(spans, "desk", "1.0")
    (resource,) = json.loads(line)["resourceSpans"]
    assert resource["resource"]["attributes"] == [{"key": "service.name", "value": {"stringValue": "desk"}}]
    sent = resource["scopeSpans"][0]["spans"]
    assert [each["spanId"] for each in sent] == [each.context.span_id for each in spans]
    root = next(each for each in sent if not each["parentSpanId"])
    assert root["name"] == "invoke_workflow boss"
    assert isinstance(root["startTimeUnixNano"], str)
    assert root["status"] == {}
    assert len(list(otlp.lines(spans * 40, "desk", ""))) == -(-len(spans) * 40 // 200)


def test_a_model_is_named_without_its_provider_and_the_provider_as_the_conventions_do():
    effect = EffectNode("1/1.m1", "model", "google:gemini:8b", started_at=1.0)
    name, attributes = gen_ai.chat("run-1", ActivationNode(1, "clerk"), effect, content=False)
    assert name == "chat gemini:8b"
    assert attributes["gen_ai.provider.name"] == "gcp.gemini"
    assert attributes["gen_ai.request.model"] == "gemini:8b"


def test_a_request_that_waits_for_those_before_it_is_a_span_from_when_it_was_asked():
    async def main():
        journal, asked, gate = MemoryJournal(), asyncio.Event(), asyncio.Event()

        async def late(request):
            asked.set()
            await gate.wait()
            return "one"

        clerk = Agent("clerk", model=Script([late, "two"]), context="continue")
        async with open_run([clerk], journal=journal, run_id="run-1", create=True) as run:
            first, second, third = [await run.post("clerk", each) for each in ("1", "2", "3")]
            await asked.wait()
            await run.cancel(third)
            gate.set()
            await run.result(first)
            await run.result(second)
        return await read(journal, "run-1")

    records = asyncio.run(main())
    spans = spans_of(records)
    posted = next(each.at for each in records if getattr(each.event, "id", "") == "0/2.c1")
    waited = next(each for each in spans if each.attributes.get("antiphon.effect.id") == "0/2.c1")
    assert (waited.name, waited.start) == ("invoke_workflow clerk", posted)
    cancelled = [each for each in spans if each.attributes.get("antiphon.effect.id") == "0/3.c1"]
    assert [(each.name, each.error) for each in cancelled] == [("invoke_workflow clerk", False)]
    assert cancelled[0].attributes["antiphon.outcome"] == "cancelled"
