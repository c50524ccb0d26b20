"""InlineScreen: a conversation on a terminal, of which only the last rows ever change."""

from __future__ import annotations

import io
import shutil
import sys
import termios
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

from prompt_toolkit.input import Input, create_input
from rich.text import Text

from antiphon.cli.display import output, terminal_escape
from antiphon.cli.screen.approval import Panel
from antiphon.cli.screen.choices import Choices, OfferedLine
from antiphon.cli.screen.folding import FoldedOutputs
from antiphon.cli.screen.given import Given, Sent
from antiphon.cli.screen.keys.editor import Editor, EditorTools
from antiphon.cli.screen.keys.keymap import shown
from antiphon.cli.screen.painter import RowPainter
from antiphon.cli.screen.prose import Prose, rows_of
from antiphon.cli.screen.written import editor_rows, menu_rows
from antiphon.values.policy import CallSubject

Size = Callable[[], tuple[int, int]]
"""Columns and rows of the terminal."""
WORKING = 8
"""Agents at work that have a row."""


def terminal_size() -> tuple[int, int]:
    """Columns and rows of this terminal."""
    size = shutil.get_terminal_size()
    return size.columns, size.lines


class InlineScreen:
    """What a person sees and writes, with the face of `Screen` and of `Typed`: a conversation knows no other.

    heard: called when there is something in `messages`. broke_off, stopped: Ctrl-C and Esc. write: takes
    whole frames, None for this terminal. keys: where they come from. messages: what was sent, a `Given`
    where it answers, a `Sent` with files; None is the end. later: what was queued, as it was written.
    """

    live, terminal, inline, raw, unfinished = True, True, True, False, False

    def __init__(
        self, heard: Callable[[], None], broke_off: Callable[[], None], stopped: Callable[[], None], *,
        quiet: bool = False, write: Callable[[str], object] | None = None, keys: Input | None = None,
        size: Size = terminal_size, plain: bool = False, tools: EditorTools | None = None,
    ) -> None:  # fmt: skip
        self.quiet, self._plain, self._size = quiet, plain, size
        self._tools = tools or EditorTools()
        self.messages: deque[str | Given | Sent | None] = deque()
        self.later: deque[str] = deque()
        self._heard, self._broke_off, self._stopped = heard, broke_off, stopped
        # A screen that draws on the real terminal shows there what anybody writes meanwhile.
        self._taken_over = ExitStack()
        self._takes_over = write is None
        self._painter = RowPainter(output.drawing_on(sys.stdout) if write is None else write)
        self._keys = create_input() if keys is None else keys
        self._editor: Editor | None = None
        self._finished: list[str] = []
        self._prose: Prose | None = None
        self._echoes: list[Text] = []
        self._anew = False
        self._status = ""
        self._working: Callable[[], list[str]] = list
        self._facts: Callable[[], str] = str
        self._panel: Panel | None = None
        self._choices: Choices | None = None
        self._folded = FoldedOutputs(shown(self._tools.keymap, "show-output"))
        self._away = False
        self._draft = ""
        self._saved: Any = None

    # -- what is shown ------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Columns of a row. One stays free: some terminals break the line when the last one is filled."""
        return max(self._size()[0] - 1, 10)

    def look(self, working: Callable[[], list[str]], facts: Callable[[], str]) -> None:
        """What the rows below say from now on, of another conversation than before: a line for each agent at
        work, and one on the whole."""
        self.put_away()
        self._working, self._facts = working, facts

    def say(self, text: str) -> None:
        """A part of an answer."""
        if text:
            self._prose = self._prose or Prose(plain=self._plain)
            self._commit(self._prose.take(text, self.width))

    def status(self, text: str) -> None:
        """A word on what goes on."""
        self._status = text
        self._draw()

    def note(self, text: str, style: str = "dim", *, wrap: bool = False) -> None:
        """A line of its own that is no answer."""
        self.end_line()
        if not self.quiet:
            self._commit(rows_of(Text(text, style), self.width, plain=self._plain) or [""])

    def end_line(self) -> None:
        """What is being said is over."""
        prose, self._prose = self._prose, None
        self._status = ""
        self._commit(prose.end(self.width) if prose is not None else [])

    def print(self, *renderables: Any, **_: Any) -> None:
        """Something that rich draws, as what is finished."""
        self.end_line()
        for each in renderables or ("",):
            self._commit(rows_of(each, self.width, plain=self._plain) or [""])

    def output(self, title: str, text: str, *, own: bool = False) -> None:
        """What a tool gave back: its first lines, and the rest when it is asked for. own: it was the
        person's command, and what was asked for."""
        self.end_line()
        if own or not self.quiet:
            told = Text(f"  {terminal_escape.line(title, 300)}", "dim")
            for each in (told, *self._folded.add(title, text, self.width)):
                self._commit(rows_of(each, self.width, plain=self._plain))

    def show_output(self) -> None:
        """See Heard."""
        found = self._folded.next_whole()
        if found:
            self.print("", *found)
        else:
            self.note("(nothing more was folded)")

    @property
    def console(self) -> Any:
        """Where what rich draws is printed."""
        return self

    def prompt(self, text: str) -> None:
        """Nothing goes on: the editor waits, as it always does."""
        self.end_line()

    def entered(self) -> None:
        """What was sent is shown when it is."""

    def asked(self) -> None:
        """A question was put: see `ask`."""

    def _commit(self, rows: list[str]) -> None:
        self._finished += rows
        if rows or self._prose is None:
            # What was sent in the middle of a block follows it.
            for each in self._echoes:
                self._finished += ["", *rows_of(each, self.width, plain=self._plain)]
            self._echoes = []
        self._draw()

    def _draw(self) -> None:
        if self._editor is not None:
            self._editor.invalidate()

    # -- what is asked ------------------------------------------------------------------------

    def ask(self, tool: str, arguments: str, *, offers: bool, subjects: Sequence[CallSubject] = ()) -> None:
        """Have a question answered in the editor's place: one by keys for a tool, else by a text."""
        if self._editor is None:
            return
        self._editor.catch_up()
        self._choices = None
        self._panel = Panel(
            tool, arguments, offers=offers, given=self._answered, put=self._fill, changed=self._draw,
            subjects=subjects,
        )  # fmt: skip
        self._panel.wait(self._settled)
        self._draw()

    def choose(self, title: str, offered: Sequence[OfferedLine]) -> None:
        """Have one of these picked in the editor's place; its line is sent as if it had been written."""
        if self._panel is None and offered:
            self._choices = Choices(title, offered, self._chosen)
            self._draw()

    def _chosen(self, line: str | None) -> None:
        self._choices = None
        if line is not None:
            self.messages.append(line)
            self._heard()
        self._draw()

    def write(self, text: str) -> None:
        """Have this written in the editor, to be changed and sent, before what stands there."""
        if self._editor is not None:
            self._editor.put("\n".join(each for each in (text, self._editor.buffer.text) if each))
            self._draw()

    def put_away(self) -> None:
        """The question is over."""
        panel, self._panel, self._choices = self._panel, None, None
        if panel is not None and self._editor is not None:
            panel.close()
            if panel.live:
                # What was being written as an answer to a question that is over is nobody's but theirs.
                stray = "" if panel.mode == "edit" else self._editor.buffer.text
                self._editor.put("\n".join(each for each in (self._draft, stray) if each))
            self._draft = ""
            self._draw()

    def _settled(self) -> None:
        panel = self._panel
        if panel is not None and self._editor is not None:
            panel.live, self._draft = True, self._editor.buffer.text
            self._editor.put("")
            self._draw()

    def _fill(self, text: str, *, keep: bool) -> None:
        """Have this written. keep: what was, and answers nothing, comes back when the question is over."""
        if self._editor is not None:
            stray = self._editor.buffer.text if keep else ""
            self._draft = "\n".join(each for each in (self._draft, stray) if each)
            self._editor.put(text)

    def _answered(self, given: Given) -> None:
        self.messages.append(given)
        self._heard()

    # -- what is typed --------------------------------------------------------------------------

    def listen(self) -> None:
        """From now on."""
        if self._editor is None:
            with suppress(termios.error, ValueError, OSError):
                self._saved = termios.tcgetattr(sys.stdin.fileno())
            self._editor = Editor(self._keys, self, self._frame, self._resized, self._tools)
            for each in (*self._tools.keymap.wrong, self._editor.history.trouble):
                if each:
                    self.note(each, "yellow")
            if self._takes_over:
                self._taken_over.enter_context(output.taken_over(self._told))
            self._painter.open()
            self._editor.start()

    def forget(self) -> None:
        """What was typed before answers nothing: the panel sees to that, and nothing is lost."""

    def drop(self) -> None:
        """Nothing is unfinished."""

    def close(self) -> None:
        """Show what is left, give the terminal back."""
        self.end_line()
        self._taken_over.close()
        if self._editor is None and self._finished:
            self._painter.open()
        self._painter.paint(self._finished, [])
        self._painter.close()
        self._finished = []
        if self._editor is not None:
            self._editor.stop()
        if self._saved is not None:
            with suppress(termios.error, ValueError, OSError):
                termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._saved)

    def _told(self, text: str) -> None:
        """What the rest of the program says meanwhile."""
        self.print(Text(text))

    def sent(self, text: str) -> None:
        """See Heard."""
        if self._panel is not None and self._panel.writes:
            self._panel.sent(text)
        elif text.strip():
            self._send(text)
            self._heard()

    def _send(self, text: str) -> None:
        """Send what was written: what was folded is whole again, and the images it names go along."""
        self._echo("> ", text)
        if self._editor is None:
            self.messages.append(text)
            return
        pastes = self._editor.pastes
        files = pastes.images(text)
        whole = pastes.whole(text)
        self.messages.append(Sent(whole, files) if files else whole)
        pastes.keep([*self.later, self._draft, self._editor.buffer.text])

    def queued(self, text: str) -> None:
        """See Heard."""
        if text.strip():
            self.later.append(text)
            self._heard()

    def take_back(self) -> str:
        """See Heard."""
        return self.later.pop() if self.later else ""

    def stopped(self) -> None:
        """See Heard."""
        self._stopped()

    def rewind(self) -> None:
        """See Heard."""
        self.messages.append("/rewind")
        self._heard()

    def next_mode(self) -> None:
        """See Heard."""
        self.messages.append("/mode next")
        self._heard()

    def broke_off(self) -> None:
        """See Heard."""
        self._broke_off()

    def left(self) -> None:
        """See Heard."""
        self.messages.append(None)
        self._heard()

    @property
    def choosing(self) -> bool:
        """See Heard."""
        panel = self._panel
        return self._choices is not None or (panel is not None and panel.live and panel.mode == "choose")

    @property
    def answering(self) -> bool:
        """See Heard."""
        return self._panel is not None and self._panel.writes

    def came(self) -> None:
        """See Heard."""
        if self._panel is not None and not self._panel.live:
            self._panel.wait(self._settled)

    def pressed(self, key: str) -> bool:
        """See Heard."""
        if self._choices is not None:
            found = self._choices.pressed(key)
            self._draw()
            return found
        return self._panel is not None and self._panel.live and self._panel.pressed(key)

    def away(self, gone: bool, why: str = "") -> None:
        """See Heard."""
        self._away = gone
        if gone:
            self._painter.close()
        else:
            self._painter.open()
            self._anew = True
            if why:
                self.note(f"({terminal_escape.line(why, 400)})", "yellow")
            self._draw()

    def next_queued(self) -> None:
        """What was queued first is sent now."""
        if self.later:
            self._send(self.later.popleft())

    def _echo(self, mark: str, text: str) -> None:
        rows = [each.rstrip() for each in (f"{mark}{text}").split("\n")]
        self._echoes.append(Text("\n".join(rows), "bold"))
        if self._prose is None:
            self._commit([])

    # -- frames -----------------------------------------------------------------------------------

    def _resized(self) -> None:
        self._anew = True

    def _frame(self) -> None:
        if self._away:
            # Another program draws; what is finished meanwhile is shown after it.
            return
        finished, self._finished = self._finished, []
        anew, self._anew = self._anew, False
        self._painter.paint(finished, self.rows(), anew=anew)

    def rows(self) -> list[str]:
        """Those below what is finished: the block that is not, agents at work, the editor, a word on all."""
        columns, lines = self._size()
        width, room = max(columns - 1, 10), max(lines - 1, 3)
        third = max(room // 3, 1)
        block = self._prose.unfinished(width)[-third:] if self._prose is not None else []
        edited = self._edited(width, max(room - third - 2, 1))
        working = [Text(terminal_escape.line(each, width), "cyan") for each in self._working()[:WORKING]]
        told = terminal_escape.line(" · ".join(filter(None, (self._status.strip(), self._facts()))), width)
        fixed = [*edited, Text(told or " ", "dim")]
        above = [*block, *self._drawn(working, width)][: max(room - len(fixed), 0)]
        return [*above, *self._drawn(fixed, width)][-room:]

    def _edited(self, width: int, limit: int) -> list[Text]:
        text, cursor, mark, menu = "", 0, "> ", list[Text]()
        if self._editor is not None:
            text, cursor = self._editor.buffer.text, self._editor.buffer.cursor_position
            menu = menu_rows(self._editor.menu, self._editor.picked)
            if self._editor.searched is not None:
                mark = f"sent before, with {terminal_escape.line(self._editor.searched, 30)!r}: "
        panel = self._panel
        if self._choices is not None:
            return self._choices.rows(limit)
        queued = [
            Text(terminal_escape.line(f"queued: {each}", width), "dim") for each in list(self.later)[-3:]
        ]
        if panel is None:
            written = editor_rows(mark, text, cursor, width, max(limit - len(menu), 1))
            return [*queued, *written, *menu]
        rows = panel.rows()
        if panel.mode != "choose" or not panel.live or text:
            mark = panel.mark if panel.live else "> "
            rows += editor_rows(mark, text, cursor, width, max(limit - len(rows), 1))
        return rows

    def _drawn(self, rows: list[Text], width: int) -> list[str]:
        console = output.drawing(io.StringIO(), width, plain=self._plain)
        found = []
        for each in rows:
            row = each.copy()
            row.no_wrap = True
            row.truncate(width, overflow="ellipsis")
            with console.capture() as drawn:
                console.print(row, end="", soft_wrap=True)
            found.append(drawn.get().replace("\n", " "))
        return found
