"""Frames: whoever keeps what they say has the run as of any record, without knowing an event."""

import asyncio
from sys import maxsize
from typing import Any

import msgspec
import pytest

from antiphon import Agent, Attachment, Record, RunLimits, ToolContext, open_journal, open_run, tool
from antiphon.kernel.facts.events import (
    EffectFinished,
    EffectStarted,
    Fork,
    RunResumed,
    RunStarted,
    ToolEffect,
    ToolsetOffered,
)
from antiphon.kernel.run.rows import read
from antiphon.models.script import Script, call
from antiphon.values.hooks import Hooks, Return
from antiphon.values.message import FileChange, FileState, ToolResult
from antiphon.values.tool import tool_from
from antiphon.values.tool.offer import ToolOffer
from antiphon.view import RunTree
from antiphon.view.frames import TEXT, VALUE, Frame, FrameReader, encode
from antiphon.view.frames.frame import CutText
from antiphon.view.frames.reader import FILES
from tests.oracle.play import SCENARIOS
from tests.oracle.stage import Stage

USED = ("input_tokens", "output_tokens")


class Drawn:
    """A run as a page keeps it: plain JSON in, lists and numbers out."""

    def __init__(self) -> None:
        self.closed = False
        self.effects: dict[str, dict[str, Any]] = {}
        self.activations: dict[int, dict[str, Any]] = {0: {"agent": "user", "call": "", "turns": []}}
        self.asked: list[str] = []
        self.tokens = self.nano_usd = 0

    def add(self, frame: dict[str, Any]) -> None:
        for change in frame["changes"]:
            getattr(self, "_" + change["type"], lambda _, at: None)(change, frame["at"])

    def _run_closed(self, change, at):
        self.closed = True

    def _turn_started(self, change, at):
        turn = {"turn": change["turn"], "began": at, "took": len(change.get("messages", ()))}
        self.activations[change["activation"]]["turns"].append(turn)

    def _turn_ended(self, change, at):
        turns = self.activations[change["activation"]]["turns"]
        next(each for each in turns if each["turn"] == change["turn"])["ended"] = at

    def _effect_started(self, change, at):
        # A request that waited for others comes a second time.
        began = self.effects.get(change["id"], {}).get("began", at)
        self.effects[change["id"]] = change | {"began": began}
        if "callee" in change:
            callee = change["callee"]
            self.activations[callee["number"]] = {
                "agent": callee["agent"], "call": change["id"], "path": callee["path"], "turns": [],
            }  # fmt: skip
        if change["kind"] == "wait" and change["purpose"] in ("approval", "question", "limit"):
            self.asked.append(change["id"])

    def _effect_ended(self, change, at):
        known = self.effects.setdefault(change["id"], {})
        known.update(change, ended=at)
        if change["id"] in self.asked:
            self.asked.remove(change["id"])
        if "callee" in known:
            self.activations[known["callee"]["number"]]["outcome"] = change["outcome"]
        self.tokens += sum(change.get("usage", {}).get(name, 0) for name in USED)
        self.nano_usd += change.get("nano_usd", 0)


def drawn(tree: RunTree) -> dict[str, Any]:
    """What the tree says in the same words."""
    return {
        "closed": tree.closed,
        "asked": list(tree.human_inputs),
        "effects": {
            each.id: (each.kind, each.name, each.purpose, each.started_at, each.ended_at, each.outcome)
            for each in tree.effects.values()
        },
        "activations": {
            each.id: (
                each.agent,
                each.call,
                each.path,
                [(t.number, t.started_at, t.taken) for t in each.turns],
            )
            for each in tree.activations.values()
        },
        "tokens": sum(each.usage.total for each in tree.models.values()),
        "nano_usd": sum(each.cost.nano_usd for each in tree.models.values()),
    }


def kept(page: Drawn) -> dict[str, Any]:
    return {
        "closed": page.closed,
        "asked": page.asked,
        "effects": {
            name: (
                each["kind"],
                each.get("name", ""),
                each.get("purpose", ""),
                each.get("began"),
                each.get("ended"),
                each.get("outcome", ""),
            )
            for name, each in page.effects.items()
        },
        "activations": {
            number: (
                each["agent"],
                each["call"],
                each.get("path", ""),
                [(turn["turn"], turn["began"], turn["took"]) for turn in each["turns"]],
            )
            for number, each in page.activations.items()
        },
        "tokens": page.tokens,
        "nano_usd": page.nano_usd,
    }


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_page_that_keeps_the_frames_has_the_tree_at_every_record(name, tmp_path):
    async def scenario() -> None:
        stage = Stage(tmp_path)
        await SCENARIOS[name](stage)
        for info in await stage.journal.runs():
            tree, page, reader = RunTree(), Drawn(), FrameReader()
            for record in await read(stage.journal, info.run_id):
                tree.add(record)
                data = encode(reader.add(record))
                assert msgspec.json.decode(data, type=Frame).seq == record.seq
                page.add(msgspec.json.decode(data))
                assert kept(page) == drawn(tree), record
            assert reader.seq == tree.seq

    asyncio.run(scenario())


def frames_of(
    agent: Agent,
    text: str,
    attachments: Any = (),
    files: int = 0,
    *,
    whole: bool = False,
    **options: Any,
) -> list[Frame]:
    async def scenario() -> list[Frame]:
        journal = open_journal(None)
        async with open_run([agent], journal=journal, interactive=False, **options) as run:
            await run.result(await run.post(agent.name, text, attachments=attachments))
            records = await run.records()
        reader = FrameReader(files=files, text=maxsize if whole else TEXT)
        return [reader.add(each) for each in records]

    return asyncio.run(scenario())


def changes(frames: list[Frame], kind: str) -> list[Any]:
    return [each for frame in frames for each in frame.changes if each.__struct_config__.tag == kind]


def test_a_long_text_is_cut_and_says_how_long_it_is():
    frames = frames_of(Agent("a", model=Script(["y" * (TEXT + 1)])), "x" * (TEXT + 2))
    opening = changes(frames, "effect_started")[0].callee.opening.content
    assert (opening.text, opening.length) == ("x" * TEXT, TEXT + 2)
    ended = changes(frames, "effect_ended")
    assert [each.reply.content.length for each in ended if each.reply] == [TEXT + 1]
    assert [len(each.content.text) for each in ended if each.kind == "call"] == [TEXT]


def test_the_first_frame_says_what_the_run_may_use():
    frames = frames_of(Agent("a", model=Script(["ok"])), "go", run_limits=RunLimits(tokens=7_000))
    (started,) = changes(frames, "run_started")
    assert started.run_limits.tokens == 7_000
    assert started.limits.turns == 200


def test_a_changed_file_is_told_by_the_lines_that_differ():
    before = "".join(f"{n}\n" for n in range(1, 100))
    found = {
        "changed": (before, before.replace("\n50\n", "\nfifty\n51/2\n")),
        "created": (None, "new\n"),
        "deleted": ("old\n", None),
        "binary": (b"\xff", b"\xfe"),
        "large": (None, "x" * (1 << 21)),
        "mode": ("same\n", "same\n"),
        "shorter": ("a\na\na\n", "a\na\n"),
    }

    @tool(effect="idempotent")
    def change() -> ToolResult:
        """Change files."""
        made = [
            FileChange("/f", name, state(old), state(new, 0o755 if name == "mode" else 0o644))
            for name, (old, new) in found.items()
        ]
        return ToolResult("done", changes=tuple(made))

    frames = frames_of(Agent("a", tools=[change], model=Script([call("change"), "ok"])), "go")
    (told,) = changes(frames, "files_changed")
    assert (told.activation, told.id, told.left_out) == (1, "1/1.c1", 0)
    shown = {each.path: each for each in told.files}
    changed = shown["changed"]
    assert (changed.line, changed.before.text) == (47, "47\n48\n49\n50\n51\n52\n53\n")
    assert changed.after.text == "47\n48\n49\nfifty\n51/2\n51\n52\n53\n"
    assert (shown["created"].before, shown["created"].after) == (None, CutText("new\n"))
    assert (shown["deleted"].before, shown["deleted"].after) == (CutText("old\n"), None)
    assert (shown["binary"].before, shown["binary"].after, shown["binary"].bytes) == (None, None, 1)
    assert (shown["large"].change, shown["large"].after) == ("created", None)
    assert (shown["mode"].mode, shown["changed"].mode) == (0o755, 0)
    assert (shown["shorter"].before.text, shown["shorter"].after.text) == ("a\na\na\n", "a\na\n")
    assert [each.change for each in told.files] == [
        name if name in ("created", "deleted") else "created" if name == "large" else "changed"
        for name in found
    ]


def state(held: bytes | str | None, mode: int = 0o644) -> FileState | None:
    if held is None:
        return None
    return FileState.of(held.encode() if isinstance(held, str) else held, mode)


def test_of_very_many_changed_files_the_first_are_told_unless_all_is_asked_for():
    @tool(effect="idempotent")
    def change() -> ToolResult:
        """Change files."""
        made = [FileChange("/f", str(n), None, state("x" * (TEXT + 1))) for n in range(FILES + 2)]
        return ToolResult("done", changes=tuple(made))

    def agent() -> Agent:
        return Agent("a", tools=[change], model=Script([call("change"), "ok"]))

    (told,) = changes(frames_of(agent(), "go"), "files_changed")
    assert (len(told.files), told.left_out, told.files[0].after.length) == (FILES, 2, TEXT + 1)
    (told,) = changes(frames_of(agent(), "go", whole=True), "files_changed")
    assert (len(told.files), told.left_out, told.files[0].after.length) == (FILES + 2, 0, 0)


def test_a_value_too_large_for_a_frame_is_named_with_its_size():
    kept = Return("completed", "ok", activation_data={"small": 1, "large": "z" * VALUE})
    frames = frames_of(Agent("a", model=Script(["ok"]), hooks=Hooks(end_turn=lambda _: kept)), "go")
    (change,) = changes(frames, "data_changed")
    assert change.set == {"small": 1}
    assert change.left_out == {"large": VALUE + 2}


def test_what_a_hook_decided_is_named_with_its_rules():
    hook = Hooks(
        end_turn=lambda _: Return(
            "completed", "ok", activation_data={"kept": 1}, rules=("closing (a.yaml:7)",)
        )
    )
    frames = frames_of(Agent("a", model=Script(["ok"]), hooks=hook), "go")
    (ended,) = [each for each in changes(frames, "turn_ended") if each.ended_by]
    assert (ended.ended_by, ended.rules) == ("end_turn", ("closing (a.yaml:7)",))
    assert [each.by for each in changes(frames, "data_changed")] == ["end_turn"]


def test_a_file_is_named_without_its_bytes():
    file = Attachment("text/plain", b"twelve bytes", name="n.txt")
    frames = frames_of(Agent("a", model=Script(["ok"])), "read it", attachments=[file])
    (shown,) = changes(frames, "effect_started")[0].callee.opening.files
    assert (shown.media_type, shown.name, shown.bytes, shown.data) == ("text/plain", "n.txt", 12, "")


def test_a_file_comes_with_what_it_holds_where_that_is_wanted_and_short_enough():
    @tool(effect="read")
    def draw(ctx: ToolContext[None]) -> str:
        """Draw."""
        ctx.attach(Attachment("image/png", b"a picture", name="p.png"))
        ctx.attach(Attachment("text/plain", b"x" * 100, name="long.txt"))
        return "drawn"

    agent = Agent("a", model=Script([call("draw"), "ok"]), tools=[draw])
    ends = changes(frames_of(agent, "draw", files=16), "effect_ended")
    # Of the tool, and of the request that it was drawn for.
    for found in ([each.files for each in ends if each.id == effect] for effect in ("1/1.c1", "0/1.c1")):
        assert [(each.name, each.data) for each in found[0]] == [("p.png", "YSBwaWN0dXJl"), ("long.txt", "")]


def test_the_call_of_an_outside_tool_is_told_with_its_arguments():
    day = tool_from("read-day", "The day.", {"type": "object", "properties": {"n": {"type": "integer"}}})

    async def scenario() -> list[Frame]:
        reader, frames = FrameReader(), list[Frame]()
        agent = Agent("a", model=Script([call("read-day", n=1), "ok"]), tools=[day])
        async with open_run([agent], journal=open_journal(None)) as run:
            await run.post("a", "go")
            async for record in run.events(deltas=False):
                frames.append(reader.add(record))
                if any(each.purpose == "question" for each in changes(frames, "effect_started")):
                    return frames
        raise AssertionError

    (asked,) = [each for each in changes(asyncio.run(scenario()), "effect_started") if each.outside]
    assert (asked.kind, asked.name, asked.arguments.text) == ("wait", "read-day", '{"n":1}')
    assert (asked.outside.tool, asked.outside.finishes) == ("read-day", False)


def test_a_result_says_what_it_carries_however_it_ended_and_only_its_own():
    @tool(effect="read", labels=["private"])
    def read_mail() -> ToolResult:
        """Read."""
        return ToolResult("4711", labels=("untrusted", "private"))

    @tool(effect="read", labels=["untrusted"])
    def fetch() -> str:
        """Fetch."""
        raise ValueError("gone")

    model = Script([[call("read_mail"), call("fetch")], "ok"])
    ends = changes(frames_of(Agent("a", model=model, tools=[read_mail, fetch]), "go"), "effect_ended")
    assert {each.id: each.labels for each in ends if each.labels} == {
        "1/1.c1": ("private", "untrusted"), "1/1.c2": ("untrusted",),
    }  # fmt: skip


def test_a_tree_keeps_what_results_carry_and_a_live_reader_forgets_what_has_ended():
    detail = ToolEffect("fetch", labels=("untrusted",))
    events = [RunStarted("r"), EffectStarted("0/1.c1", detail), EffectFinished("0/1.c1", labels=("private",))]
    trees = RunTree(), RunTree(recent=True)
    for tree in trees:
        for seq, event in enumerate(events, 1):
            tree.add(Record(seq, 1.0, "r", 0, "user", 0, event))
    assert [tree.labels for tree in trees] == [{"0/1.c1": ("private", "untrusted")}, {}]


def test_a_toolset_is_told_when_it_offers_others_and_when_it_goes():
    offer = ToolOffer("find", "Find.", {"type": "object"})
    events = [
        RunStarted("r"), ToolsetOffered("web", (offer,)), ToolsetOffered("web", reason="unplugged"),
        ToolsetOffered("web"),
    ]  # fmt: skip
    reader = FrameReader()
    frames = [reader.add(Record(seq, 1.0, "r", 0, "user", 0, each)) for seq, each in enumerate(events, 1)]
    told = [(each.name, each.tools, each.reason) for each in changes(frames, "toolset_changed")]
    assert told == [("web", ("find",), ""), ("web", ("find",), "unplugged"), ("web", ("find",), "")]


def test_a_fork_has_its_own_id_and_says_where_it_began():
    events = [RunStarted("origin"), RunResumed(run_id="mine", fork=Fork("origin", 1, "00")), RunResumed()]
    tree, reader = RunTree(), FrameReader()
    frames = []
    for seq, each in enumerate(events, 1):
        record = Record(seq, 1.0, "mine", 0, "user", 0, each)
        tree.add(record)
        frames.append(reader.add(record))
    assert tree.run_id == "mine"
    first, second = changes(frames, "run_resumed")
    assert (first.run_id, first.origin, first.seq) == ("mine", "origin", 1)
    assert encode(second) == b'{"type":"run_resumed"}'


def test_a_model_call_names_the_prompt_that_it_was_sent():
    frames = frames_of(Agent("a", "Be brief.", model=Script(["ok"])), "go")
    started = [each for each in changes(frames, "effect_started") if each.kind == "model"]
    assert [len(each.prefix) for each in started] == [64]
