"""Compaction and the cache of tool outputs."""

import asyncio
from typing import Any

import pytest

from antiphon import (
    Agent,
    Attachment,
    ModelError,
    ToolContext,
    ToolError,
    Usage,
    open_journal,
    open_run,
    tool,
)
from antiphon.kernel.context.compaction import (
    RETAINED,
    SUMMARY,
    CompactionSummary,
    read_summary,
    remember,
    to_compact,
)
from antiphon.models.script import Script, call
from antiphon.styles.loop import (
    CompactionCompleteEvent,
    CompactionStartEvent,
    FinalResponseEvent,
    LoopAgent,
)
from antiphon.tools import grep_output, read_output
from antiphon.values.agent import Compaction
from antiphon.values.limits import OutputLimits
from antiphon.values.model import ChatMessage, Reply
from tests.transcript import recorded, results_shown, shown


class Known:
    def __init__(self, limit: int) -> None:
        self.input_limit = limit


class Registry:
    """Knows one model."""

    def __init__(self, **limits: int) -> None:
        self._limits = limits

    def find(self, model: str) -> Any:
        return Known(self._limits[model]) if model in self._limits else None


def said(text: str, total: int = 1) -> Reply:
    return Reply(text, usage=Usage(total - 1, 1), model="script")


def asks(agent: LoopAgent, *messages: str, **options: Any) -> list[list[Any]]:
    """The events of several requests of one session."""

    async def asking() -> list[list[Any]]:
        found = []
        for message in messages:
            async with agent.run_stream(message, deltas=False, **options) as events:
                found.append([event async for event in events])
        return found

    return asyncio.run(asking())


def remembered(history: list[ChatMessage], summary: CompactionSummary, last_turns: int) -> list[ChatMessage]:
    """What is left of a conversation. What stayed is known by its place, what is new by -1."""
    found = remember(history, summary, last_turns)
    assert all(each.content == history[place].content for each, place in found if place >= 0)
    return [each for each, _ in found]


# -- compaction ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("used", "compacts"), [(799, False), (800, True), (850, True)])
def test_the_threshold_is_a_share_of_what_the_model_takes(used: int, compacts: bool) -> None:
    replies = [said("one", used), "<summary>S</summary>" if compacts else said("two"), said("two")]
    model = Script(replies)
    agent = LoopAgent(llm=model, model_registry=Registry(script=1_000), compaction=Compaction(ratio=0.8))
    events = asks(agent, "a", "b")[1]
    assert any(isinstance(each, CompactionStartEvent) for each in events) == compacts
    assert model.asked == 2 + compacts


def test_an_unknown_window_never_compacts() -> None:
    model = Script([said("one", 10**9), said("two")])
    asks(LoopAgent(llm=model), "a", "b")
    assert model.asked == 2


def test_compaction_none_never_compacts() -> None:
    model = Script([said("one", 10**6), said("two")])
    asks(LoopAgent(llm=model, compaction=None, model_registry=Registry(script=100)), "a", "b")
    assert model.asked == 2


def test_the_summary_is_asked_for_without_tools_and_the_new_message_stays() -> None:
    @tool(effect="read")
    async def look() -> str:
        """Look."""
        return "seen"

    model = Script([call("look"), said("one", 900), "<retain>x=1</retain><summary>S</summary>", said("two")])
    agent = LoopAgent(llm=model, tools=[look], model_registry=Registry(script=1_000))
    events = asks(agent, "a", "b")[1]
    assert [type(each) for each in events] == [
        CompactionStartEvent, CompactionCompleteEvent, FinalResponseEvent
    ]  # fmt: skip
    compaction = model.requests[2]
    assert (compaction.tools, compaction.tool_choice) == ((), "none")
    assert shown(compaction)[:4] == ["user: a", "assistant: [look]", "tool: seen", "assistant: one"]
    assert shown(model.requests[3]) == [
        f"user: {RETAINED}\nx=1", f"user: {SUMMARY}\nS", "user: a", "assistant: one", "user: b"
    ]  # fmt: skip


def test_only_what_was_said_remains() -> None:
    history = [
        ChatMessage("user", "go"),
        ChatMessage("assistant", "looking", (call("look"),), reasoning="hm", opaque={"sig": 1}),
        ChatMessage("tool", "seen", call_id="1", name="look"),
        ChatMessage("assistant", "found"),
    ]
    kept = remembered(history, CompactionSummary(summary="S"), 1)
    assert [each.role for each in kept] == ["user", "user", "assistant", "assistant"]
    assert not any(each.calls or each.reasoning or each.opaque for each in kept)


def test_in_the_middle_of_a_task_it_ends_with_a_word_of_the_user() -> None:
    """A provider may take a last word of the assistant for the beginning of its own answer."""
    history = [
        ChatMessage("user", "go"),
        ChatMessage("assistant", "looking", (call("look"),)),
        ChatMessage("tool", "seen", call_id="1", name="look"),
    ]
    assert remembered(history, CompactionSummary(summary="S"), 1)[-1].role == "user"


def test_texts_of_a_long_turn_do_not_pile_up() -> None:
    turn = [ChatMessage("user", "go"), *[ChatMessage("assistant", f"step {n}") for n in range(100)]]
    kept = remembered([*turn, ChatMessage("tool", "x", call_id="1")], CompactionSummary(summary="S"), 1)
    assert [each.content for each in kept[1:6]] == ["go", "step 96", "step 97", "step 98", "step 99"]


def test_facts_of_two_compactions_and_the_newest_summary() -> None:
    model = Script(
        [
            said("1", 900),
            "<retain>a</retain><summary>first</summary>",
            said("2", 900),
            "<retain>b\na</retain><summary>second</summary>",
            said("3"),
        ]
    )
    agent = LoopAgent(llm=model, model_registry=Registry(script=1_000), compaction=Compaction(last_turns=0))
    asks(agent, "x", "y", "z")
    second = shown(model.requests[3])
    assert not any(RETAINED in text or SUMMARY in text for text in second[:-1])
    assert shown(model.requests[4]) == [f"user: {RETAINED}\na\nb", f"user: {SUMMARY}\nsecond", "user: z"]


def test_memory_alone_is_not_compacted_again() -> None:
    memory = remembered([], CompactionSummary("a", "first"), 0)
    assert to_compact(memory) == []
    model = Script([said("1"), "<summary>S</summary>", "never"])
    agent = LoopAgent(llm=model, compaction=Compaction(last_turns=0))
    asks(agent, "x")
    asks(agent, "", "", force_compaction=True)
    assert model.asked == 2


@pytest.mark.parametrize(
    ("text", "retain", "summary"),
    [
        ("just words", "", "just words"),
        ("<RETAIN>a</Retain> and <Summary>b", "a", "b"),
        ("<retain>a</retain> the rest", "a", "the rest"),
        ("", None, None),
        ("<summary> </summary>", None, None),
    ],
)
def test_what_an_answer_means(text: str, retain: str | None, summary: str | None) -> None:
    found = read_summary(text)
    assert (retain, summary) == (None, None) if found is None else (found.retain, found.summary) == (
        retain, summary
    )  # fmt: skip


def test_forced_with_compaction_off_does_nothing() -> None:
    model = Script([])
    agent = LoopAgent(llm=model, compaction=None)
    (events,) = asks(agent, "not taken", force_compaction=True)
    assert [type(each) for each in events] == [FinalResponseEvent]
    assert model.asked == 0
    assert asyncio.run(agent.get_history_messages()) == []


@pytest.mark.parametrize(
    ("reply", "compacted"),
    [("<summary>S</summary>", True), ("", False), (ModelError("provider", "down"), False)],
)
def test_forced_tells_whether_it_compacted(reply: Any, compacted: bool) -> None:
    model = Script([said("1"), reply, said("2")])
    agent = LoopAgent(llm=model)
    asks(agent, "x")
    (events,) = asks(agent, "not taken", force_compaction=True)
    assert [type(each) for each in events] == [
        CompactionStartEvent, CompactionCompleteEvent, FinalResponseEvent
    ]  # fmt: skip
    assert events[1].compacted is compacted
    assert model.requests[1].session == model.requests[0].session
    asks(agent, "go on")
    first = f"user: {SUMMARY}\nS" if compacted else "user: x"
    assert shown(model.requests[2])[0] == first
    assert "user: not taken" not in shown(model.requests[2])


def test_compaction_is_billed_and_does_not_count_as_an_attempt() -> None:
    compaction = Reply("<summary>S</summary>", usage=Usage(40, 2), model="script")
    model = Script([said("1", 900), compaction, said("2", 10)])
    agent = LoopAgent(llm=model, model_registry=Registry(script=1_000), llm_max_retries=0)
    asks(agent, "x", "y")
    assert agent.get_usage_summary().total_tokens == 900 + 42 + 10
    assert agent.get_context_left_percent() == 99


# -- large outputs ------------------------------------------------------------------------------

LINES = "\n".join(f"line {number} " + "x" * 300 for number in range(1, 201))


def one_tool(text: Any, **limits: Any) -> Script:
    """The script after one call of a tool that returned `text`, and what was shown of it."""

    @tool(effect="read")
    async def big() -> Any:
        """Say much."""
        return text

    model = Script([call("big"), "done"])
    recorded(Agent("a", tools=[big]), "go", model=model, **limits)
    return model


def test_a_single_long_line_below_the_limit_is_untouched() -> None:
    assert results_shown(one_tool("x" * 12_000).requests[1]) == ["x" * 12_000]


def test_what_the_reading_tools_give_is_never_cut() -> None:
    @tool(effect="read", name="read_output")
    async def big() -> str:
        """Say much."""
        return "y" * 70_000

    model = Script([call("read_output"), "done"])
    recorded(Agent("a", tools=[big]), "go", model=model)
    assert len(results_shown(model.requests[1])[0]) == 70_000


def test_a_result_with_files_is_not_cut() -> None:
    picture = Attachment("image/png", data="AAAA")
    model = one_tool(["z" * 60_000, picture])
    last = model.requests[1].messages[-1]
    assert (len(last.content), last.attachments) == (60_000, (picture,))


def test_a_result_beyond_the_total_is_a_handle() -> None:
    model = one_tool(
        "w" * 300_000, output_limits=OutputLimits(message=None), context_windows={"script": 272_000}
    )
    (text,) = results_shown(model.requests[1])
    assert text.startswith("[an old tool result was removed here")
    assert '"1/1.c1"' in text


def test_without_limits_nothing_is_touched() -> None:
    model = one_tool("w" * 500_000, output_limits=OutputLimits(None, None))
    assert len(results_shown(model.requests[1])[0]) == 500_000


def test_a_budget_of_one_ends() -> None:
    """The notes in place of results are not counted, or trimming would never end."""
    (text,) = results_shown(one_tool("word " * 10, output_limits=OutputLimits(total=1)).requests[1])
    assert text.startswith("[an old tool result")


def test_many_lines_are_cut_at_a_line_end_with_a_handle() -> None:
    (text,) = results_shown(one_tool(LINES).requests[1])
    shown_part, _, note = text.rpartition("\n")
    assert LINES.startswith(shown_part + "\n")
    assert len(shown_part.encode()) <= 51_200
    assert '200 lines in all; read_output(handle="1/1.c1")' in note


def test_the_oldest_go_first() -> None:
    @tool(effect="read")
    async def big(n: int) -> str:
        """Say much."""
        return f"{n}" * 4_000

    model = Script([*[call("big", n=n) for n in range(1, 5)], "done"])
    recorded(Agent("a", tools=[big]), "go", model=model, output_limits=OutputLimits(total=3_000))
    assert [text[0] for text in results_shown(model.requests[-1])] == ["[", "[", "3", "4"]


# -- reading them -------------------------------------------------------------------------------


def reading(*calls: Any, text: Any = LINES) -> list[str]:
    @tool(effect="read")
    async def big() -> Any:
        """Say much."""
        return text

    model = Script([call("big"), list(calls), "done"])
    recorded(Agent("a", tools=[big, read_output, grep_output]), "go", model=model)
    return results_shown(model.requests[-1])[1:]


def test_read_output_gives_numbered_lines() -> None:
    first, last, beyond, unknown = reading(
        call("read_output", handle="1/1.c1", offset=199, limit=1),
        call("read_output", handle="1/1.c1", offset=200),
        call("read_output", handle="1/1.c1", offset=201),
        call("read_output", handle="9/9.c9"),
    )
    assert first.startswith("   199  line 199 ")
    assert first.endswith("[1 more lines; go on with offset=200]")
    assert last.endswith("[end of output]")
    assert beyond == "Line 201 is beyond the end: the output has 200 lines."
    assert unknown.startswith("Error: [read_output] No output is kept under the handle '9/9.c9'")


def test_read_output_clips_lines_and_answers() -> None:
    (text,) = reading(call("read_output", handle="1/1.c1"), text="a" * 5_000 + "\n" + "b\n" * 30_000)
    assert text.startswith("     1  " + "a" * 1_000 + " [… 4000 more characters]")
    assert "[29802 more lines; go on with offset=201]" in text


def test_grep_output_finds_text_and_patterns() -> None:
    plain, none, regex, bad, around = reading(
        call("grep_output", handle="1/1.c1", pattern="line 20"),
        call("grep_output", handle="1/1.c1", pattern="line [0-9]"),
        call("grep_output", handle="1/1.c1", pattern="^line 1[0-9]{2} ", regex=True, most=2),
        call("grep_output", handle="1/1.c1", pattern="(", regex=True),
        call("grep_output", handle="1/1.c1", pattern="line 100", around=1),
    )
    assert [line.split()[0] for line in plain.splitlines()] == ["20", "200"]
    assert none == "No match for 'line [0-9]' in 200 lines."
    assert regex.splitlines()[-1] == "[98 more matches]"
    assert "not a regular expression" in bad
    assert [line.split()[0] for line in around.splitlines()] == ["99", "100", "101"]


def test_a_hostile_pattern_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from antiphon.tools import outputs as module

    monkeypatch.setattr(module, "SECONDS", 0.5)
    context = ToolContext(read_output=lambda handle: "a" * 5_000 + "!")
    with pytest.raises(ToolError, match="too long"):
        grep_output(context, "h", "(a+)+$", True)


def test_handles_mean_the_same_after_a_restart(tmp_path: Any) -> None:
    @tool(effect="read")
    async def big() -> str:
        """Say much."""
        return LINES

    async def playing() -> list[str]:
        agent = Agent("a", tools=[big, read_output], context="continue")
        journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
        async with open_run([agent], journal=journal, model=Script([call("big"), "ok"])) as run:
            await run.result(await run.post("a", "go"))
        model = Script([call("read_output", handle="1/1.c1", offset=200), "done"])
        async with open_run([agent], journal=journal, run_id=run.run_id, model=model) as run:
            await run.result(await run.post("a", "and the last line?"))
        await journal.close()
        return results_shown(model.requests[-1])

    found = asyncio.run(playing())
    assert "read_output" in found[0]
    assert found[1].startswith("   200  line 200 ")


def test_what_is_kept_for_reading_is_bounded() -> None:
    @tool(effect="read")
    async def big(n: int) -> str:
        """Say much."""
        return f"{n}" * 60_000

    model = Script(
        [
            *[call("big", n=n) for n in (1, 2, 3)],
            [call("read_output", handle=f"1/{n}.c1") for n in (1, 2, 3)],
            ".",
        ]
    )
    recorded(
        Agent("a", tools=[big, read_output]),
        "go",
        model=model,
        output_limits=OutputLimits(total=None, kept=130_000),
    )
    texts = results_shown(model.requests[-1])[3:]
    assert [text.startswith("Error") for text in texts] == [True, False, False]


@pytest.mark.parametrize(
    ("tokens", "window", "trimmed"),
    [
        (24_000, 100_000, False),  # a quarter of the window
        (26_000, 100_000, True),
        (19_900, 1_000, False),  # however small a window, results of 20,000 tokens are shown
        (20_100, 1_000, True),
        (24_000, 96_004, False),
        (24_002, 96_004, True),
    ],
)
def test_results_are_trimmed_beyond_a_quarter_of_the_window(tokens: int, window: int, trimmed: bool) -> None:
    model = one_tool(
        "w" * 4 * tokens, output_limits=OutputLimits(message=None), context_windows={"script": window}
    )
    (text,) = results_shown(model.requests[1])
    assert text.startswith("[an old tool result was removed") is trimmed
