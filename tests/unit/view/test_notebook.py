"""A run in a notebook's cell: what it shows while the run goes on, at its end, and when it is left."""

import asyncio
import re
import subprocess
import sys
from itertools import pairwise
from types import SimpleNamespace

import pytest

from antiphon import Agent, ModelError, RunFailed, ToolContext, UserError, stream, tool
from antiphon.kernel.run.live import feed
from antiphon.models.script import Script, call
from antiphon.values.codec import HARMFUL
from antiphon.values.model import Delta, Reply
from antiphon.values.progress import FileLocation
from antiphon.view import notebook, picture
from antiphon.view.notebook import live, live_sync
from antiphon.view.picture import Picture

HOSTILE = '<script>alert(1)</script>&<b onclick="x">\x1b[31m\u202eelif\x00\u2028' * 20
LARGEST = 400_000
"""Characters of HTML that no picture exceeds, whatever the run says."""


@tool(effect="read")
async def look(ctx: ToolContext, page: int) -> str:
    """Look at a page."""
    ctx.report_progress("half way")
    return f"page {page}"


class Pen:
    """A model that writes one piece after the other, and each is read before the next."""

    name = "pen"

    def __init__(self, *pieces):
        self._pieces = pieces

    async def complete(self, request, emit):
        for piece in self._pieces:
            emit(Delta("text", piece))
            for _ in range(10):
                await asyncio.sleep(0)
        return Reply("".join(self._pieces))


class Cell:
    """A notebook's cell, and IPython's part in it."""

    def __init__(self):
        self.shown, self.at, self._waiting = [], [], []
        formatter = SimpleNamespace(active_types=["text/plain", "text/html"])
        self.shell = SimpleNamespace(display_pub=self, display_formatter=formatter)

    def publish(self, data, *, transient, update):
        self.shown.append((data, transient["display_id"], update))
        self.at.append(asyncio.get_running_loop().time())
        for each in self._waiting:
            each.set()

    async def updated(self):
        """Return once the cell has been updated."""
        self._waiting.append(asyncio.Event())
        await self._waiting[-1].wait()

    @property
    def html(self):
        return [data["text/html"] for data, _, _ in self.shown]


@pytest.fixture
def cell(monkeypatch):
    found = Cell()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: found.shell))
    return found


def pair(callee="Two lines.", **options):
    writer = Agent("writer", model=Script([callee] if isinstance(callee, str) else callee), tools=[look])
    replies = [call("call_agent", agent_name="writer", message="Write"), "A report."]
    entry = Agent("researcher", model=Script(replies), **options)
    return entry, [entry, writer]


def text(html):
    """The lines of a picture, each behind its depth."""
    lines = re.findall(r'<div style="padding-left:([\d.]+)em">(.*?)</div>', html)
    return [(round(float(depth) / 1.5), re.sub(r"<.*?>", "", line)) for depth, line in lines]


def pictures(entry, agents, every=1):
    """A run's pictures as HTML, one for each record and piece, or for every so many of them."""

    async def main():
        found, seen = Picture(), []
        async with stream(entry, "Go", agents=agents) as items:
            async for item in items:
                found.take(item)
                seen += [found.html()] if found.tree.seq % every == 0 else []
        return [*seen, found.html()]

    return asyncio.run(main())


def test_agents_stand_under_agents_with_their_tools(cell):
    entry, agents = pair([call("look", page=3), "Two lines."])
    result = live_sync(entry, "Go", agents=agents)
    assert result.output == "A report."
    assert text(cell.html[-1]) == [
        (0, "✓ researcher · 2 turns · A report."),
        (1, "✓ writer · 2 turns · Two lines."),
        (2, "✓ look(page=3) · page 3"),
    ]


def test_the_end_is_the_result_as_a_notebook_shows_it(cell):
    entry, agents = pair()
    result = live_sync(entry, "Go", agents=agents)
    assert result._repr_html_() in cell.html[-1]
    assert repr(result) in cell.shown[-1][0]["text/plain"]


def test_one_display_is_updated(cell):
    entry, agents = pair()
    live_sync(entry, "Go", agents=agents)
    assert [update for _, _, update in cell.shown] == [False] + [True] * (len(cell.shown) - 1)
    assert len({display for _, display, _ in cell.shown}) == 1


def test_a_cell_awaits_it_beside_its_loop(cell):
    entry, agents = pair()
    assert asyncio.run(live(entry, "Go", agents=agents)).output == "A report."

    async def a_cell():
        entry, agents = pair()
        return live_sync(entry, "Go", agents=agents)

    assert asyncio.run(a_cell()).outcome == "completed"


def test_progress_and_text_are_shown_as_they_come(monkeypatch):
    monkeypatch.setattr(feed, "SOON", 0.0)
    entry, agents = pair([call("look", page=3), "Two lines."])
    assert any((2, "● look(page=3) · half way") in text(html) for html in pictures(entry, agents))
    seen = pictures(Agent("clerk", model=Pen("Well <", "so>", "me ", "lines.")), ())
    written = [html.partition("<b>clerk</b>: ")[2] for html in seen if "<b>clerk</b>: " in html]
    assert [each.removesuffix("</div>") for each in written] == [
        "Well &lt;", "Well &lt;so&gt;", "Well &lt;so&gt;me ", "Well &lt;so&gt;me lines."
    ]  # fmt: skip
    assert any((0, "● clerk · writing …") in text(html) for html in seen)
    assert "<b>clerk</b>: " not in seen[-1]


def test_tokens_and_cost_are_shown(cell):
    async def model(request):
        return "Nothing."

    result = live_sync(Agent("clerk", model=Script(model)), "Go")
    assert f"{result.usage.total:,} tokens" in cell.html[-1]
    assert "0 tokens" in cell.html[0]


def test_a_place_alone_is_shown_as_progress(monkeypatch):
    monkeypatch.setattr(feed, "SOON", 0.0)

    @tool(effect="read")
    async def look(ctx: ToolContext, page: int) -> str:
        """Look at a page."""
        ctx.report_progress(locations=[FileLocation("a.py", 7)])
        return ""

    agent = Agent("clerk", model=Script([call("look", page=3), "Two lines."]), tools=[look])
    assert any((1, "● look(page=3) · a.py:7") in text(html) for html in pictures(agent, ()))


def test_no_text_of_a_run_is_markup_or_steers(cell, monkeypatch):
    monkeypatch.setattr(notebook, "PERIOD", 0)

    @tool(effect="read")
    async def hostile(ctx: ToolContext, text: str) -> str:
        """Say it."""
        ctx.report_progress(HOSTILE)
        await asyncio.sleep(0)
        return HOSTILE

    replies = [call("hostile", text=HOSTILE), call(HOSTILE[:60], x=HOSTILE), HOSTILE]
    live_sync(Agent("clerk", model=Script(replies), tools=[hostile]), HOSTILE)
    shown = cell.html + pictures(Agent("clerk", model=Script(replies), tools=[hostile]), ())
    assert any("&lt;script&gt;" in html for html in shown)
    for html in shown:
        tags = set(re.findall(r"<[^>]*>", html))
        assert {tag.partition(" ")[0].strip("</>") for tag in tags} <= {"div", "span", "b", "small", "pre"}
        assert "onclick" not in "".join(tags)
        assert not HARMFUL.search(html)


def test_it_stays_small_however_much_happens():
    many = [[call("look", page=n) for n in range(5)] for _ in range(60)]

    @tool(effect="read", name="look")
    async def loud(page: int) -> str:
        """Look."""
        return "&" * 10_000

    clerk = Agent("clerk", model=Script([*many, "&" * 100_000]), tools=[loud])
    seen = pictures(clerk, (), every=9)
    assert max(map(len, seen)) < LARGEST
    assert len(text(seen[-1])) <= picture.ROWS + 2
    assert "earlier" in seen[-1]


def test_a_wide_team_is_shown_by_who_still_works():
    workers = [Agent(f"worker{n}", model=Script(["&" * 5_000])) for n in range(150)]
    calls = [call("call_agent", agent_name=each.name, message="&" * 5_000) for each in workers]
    entry = Agent("chief", model=Script([calls, "Done."]))
    seen = pictures(entry, [entry, *workers], every=9)
    assert max(map(len, seen)) < LARGEST
    assert max(len(text(html)) for html in seen) == picture.LINES
    assert any(re.fullmatch(r"“  · \d+ more", line) for html in seen for _, line in text(html))


def test_a_long_result_is_cut_and_says_so(cell):
    result = live_sync(Agent("clerk", model=Script(["&" * 1_000_000])), "Go")
    assert len(result.output) == 1_000_000
    assert max(map(len, cell.html)) < LARGEST
    assert "(1,000,000 characters)" in cell.html[-1]


def test_at_most_five_updates_a_second(cell):
    async def model(request):
        for _ in range(20_000):
            await asyncio.sleep(0)
        return "Done. " * 2_000

    live_sync(Agent("clerk", model=Script(model)), "Go")
    *regular, last = cell.at
    assert last >= regular[-1]
    gaps = [after - before for before, after in pairwise(regular)]
    assert all(gap >= notebook.PERIOD * 0.99 for gap in gaps), gaps
    assert len(cell.at) <= 2 + (last - regular[0]) / notebook.PERIOD


def test_a_failed_run_raises_and_leaves_its_reason(cell):
    def model(request):
        raise ModelError("validation", "no such <model>")

    with pytest.raises(RunFailed, match="no such"):
        live_sync(Agent("clerk", model=Script(model)), "Go")
    assert "failed" in cell.html[-1]
    assert "no such &lt;model&gt;" in cell.html[-1]


def test_what_never_began_shows_nothing(cell):
    with pytest.raises(UserError):
        live_sync("nobody", "Go", agents=[Agent("clerk")])
    assert cell.shown == []


def test_a_cancelled_cell_ends_the_run_and_says_so(cell):
    began, ended = asyncio.Event(), []

    async def model(request):
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(request.effect_id)

    async def main():
        shown = asyncio.ensure_future(live(Agent("clerk", model=Script(model)), "Go"))
        await began.wait()
        shown.cancel()
        with pytest.raises(asyncio.CancelledError):
            await shown
        return len(cell.shown)

    count = asyncio.run(main())
    assert ended
    assert "interrupted" in cell.html[-1]
    assert len(cell.shown) == count


INTERRUPTED = """
import asyncio, signal, sys, threading, types
from antiphon import Agent
from antiphon.models.script import Script
from antiphon.view.notebook import live_sync

signal.signal(signal.SIGINT, signal.default_int_handler)

async def model(request):
    signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
    try:
        await asyncio.Event().wait()
    finally:
        print("ended")

class Shell:
    display_formatter = types.SimpleNamespace(active_types=["text/html"])
    def publish(self, data, **how):
        print("interrupted" in data["text/html"])

shell = Shell()
shell.display_pub = shell
sys.modules["IPython"] = types.SimpleNamespace(get_ipython=lambda: shell)

async def cell():
    live_sync(Agent("clerk"), "hi", model=Script([model]))

loop = asyncio.new_event_loop()
try:
    loop.run_until_complete(cell())
except KeyboardInterrupt:
    print("interrupted", threading.active_count())
"""


def test_an_interrupt_of_the_cell_ends_the_run_first():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=30)
    assert done.stdout.split("\n")[:-1] == ["False", "ended", "True", "interrupted 1"], done.stderr


def test_who_is_asked_answers_while_the_cell_shows_the_question(cell, monkeypatch):
    monkeypatch.setattr(notebook, "PERIOD", 0)
    replies = [call("call_agent", agent_name="user", message="How <long>?"), "Two lines."]

    async def person(message):
        await cell.updated()
        return "Short"

    result = live_sync(Agent("clerk", model=Script(replies)), "Go", on_input=person)
    assert result.outcome == "completed"
    assert any((1, "● question · How &lt;long&gt;?") in text(html) for html in cell.html)
    assert (1, "✓ question · Short") in text(cell.html[-1])


@pytest.mark.parametrize("shell", ["none", "terminal"])
def test_without_html_it_writes_lines(shell, monkeypatch, capsys):
    terminal = SimpleNamespace(display_formatter=SimpleNamespace(active_types=["text/plain"]))
    found = SimpleNamespace(get_ipython=lambda: terminal) if shell == "terminal" else SimpleNamespace()
    monkeypatch.setitem(sys.modules, "IPython", found)
    entry, agents = pair([call("look", page=3), "Two\x1b[2J lines."])
    live_sync(entry, "Go", agents=agents)
    out, err = capsys.readouterr()
    *lines, status = err.splitlines()
    assert out == ""
    assert lines == [
        "● researcher: Go",
        "● writer: Write",
        "● look(page=3)",
        "✓ look(page=3): page 3",
        "✓ writer: Two␛[2J lines.",
        "✓ researcher: A report.",
    ]
    assert re.fullmatch(r"✓ [\d.]+ s · .* tokens.*", status)


SHELL = """
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.displaypub import CapturingDisplayPublisher

HistoryManager.enabled = False
shell = InteractiveShell.instance(display_pub_class=CapturingDisplayPublisher)
shell.run_cell('''
from antiphon import Agent
from antiphon.models.script import Script
from antiphon.view.notebook import live, live_sync
clerk = Agent("clerk", model=Script(lambda request: "Done & good."))
''').raise_error()
for cell in ("result = await live(clerk, 'Go')", "result = live_sync(clerk, 'Go')"):
    shell.run_cell(cell).raise_error()
    shown, shell.display_pub.outputs[:] = list(shell.display_pub.outputs), []
    print([each["update"] for each in shown], "Done &amp; good." in shown[-1]["data"]["text/html"])
"""


@pytest.mark.slow
def test_in_a_real_shell(tmp_path):
    env = {"IPYTHONDIR": str(tmp_path), "PATH": "", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SHELL], capture_output=True, text=True, timeout=60, env=env, check=False
    )
    assert done.stdout.splitlines() == ["[False, True] True"] * 2, done.stderr
