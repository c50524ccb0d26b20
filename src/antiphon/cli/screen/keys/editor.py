"""Editor: what a person writes, key by key, with history; prompt_toolkit reads the keys and edits.

It draws nothing. Whoever shows it is told when to (`drawn`), and what a key means beyond editing (`Heard`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, Layout, Window
from prompt_toolkit.output import DummyOutput
from rich.cells import cell_len
from rich.text import Text

from antiphon.cli.display import terminal_escape

FRAME = 0.016
"""Seconds between two frames at least."""
ESCAPE = 0.05
"""Seconds after which an escape is the key, and not the beginning of another."""


class Heard(Protocol):
    """What keys mean beyond editing."""

    def sent(self, text: str) -> None:
        """Enter."""
        ...

    def queued(self, text: str) -> None:
        """Alt-Enter."""
        ...

    def take_back(self) -> str:
        """Up, in an empty editor: what was queued last; empty where nothing is."""
        ...

    def stopped(self) -> None:
        """Esc."""
        ...

    def broke_off(self) -> None:
        """Ctrl-C, with nothing written."""
        ...

    def left(self) -> None:
        """Ctrl-D, with nothing written; or the terminal is gone."""
        ...

    def pressed(self, key: str) -> bool:
        """A key that may answer a question; whether it did, and so writes nothing."""
        ...


class Editor:
    """keys: where they come from. resized: called when the terminal has another size."""

    def __init__(
        self, keys: Input, heard: Heard, drawn: Callable[[], None], resized: Callable[[], None]
    ) -> None:
        self._heard, self._history = heard, InMemoryHistory()
        self.buffer = Buffer(multiline=True, history=self._history, enable_history_search=True)
        self._application = _Application(
            Layout(Window(BufferControl(self.buffer))), self._bindings(), keys, drawn, resized
        )
        self._task: asyncio.Task[None] | None = None
        self.invalidate = self._application.invalidate
        """Have it drawn soon."""

    def start(self) -> None:
        """Read keys from now on."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="editor")

    def stop(self) -> None:
        """Read no more; the terminal is as it was once the event loop has gone on."""
        if self._task is None:
            return
        if self._application.is_running and not self._application.is_done:
            self._application.exit()
        else:
            # It has not begun, or has ended by itself.
            self._task.cancel()

    def catch_up(self) -> None:
        """Take in what was typed so far."""
        self.feed(self._application.input.read_keys())

    def feed(self, keys: list[KeyPress]) -> None:
        """Take keys in."""
        with set_app(self._application):
            self._application.key_processor.feed_multiple(keys)
            self._application.key_processor.process_keys()

    def put(self, text: str) -> None:
        """Have this written, with the cursor at its end."""
        self.buffer.document = Document(text, len(text))

    def _take(self) -> str:
        text = self.buffer.text
        if text.strip():
            self._history.append_string(text)
        self.buffer.reset()
        return text

    async def _run(self) -> None:
        try:
            await self._application.run_async(handle_sigint=False, set_exception_handler=False)
        except Exception as error:
            # Whatever it is, nobody can write any more.
            self._heard.left()
            if not isinstance(error, EOFError):
                raise

    def _bindings(self) -> KeyBindings:
        found, heard, buffer = KeyBindings(), self._heard, self.buffer
        empty = Condition(lambda: not buffer.text)

        @found.add("enter")
        def _(event: KeyPressEvent) -> None:
            if not heard.pressed("enter"):
                heard.sent(self._take())

        @found.add("escape", "enter")
        def _(event: KeyPressEvent) -> None:
            heard.queued(self._take())

        @found.add("c-j")
        @found.add("escape", "c-j")
        def _(event: KeyPressEvent) -> None:
            buffer.insert_text("\n")

        @found.add("escape")
        def _(event: KeyPressEvent) -> None:
            if not heard.pressed("escape"):
                heard.stopped()

        @found.add("c-c")
        def _(event: KeyPressEvent) -> None:
            if buffer.text:
                buffer.reset()
            else:
                heard.broke_off()

        @found.add("c-z")
        def _(event: KeyPressEvent) -> None:
            """Nothing: a control character is no text."""

        @found.add("c-d", filter=empty)
        def _(event: KeyPressEvent) -> None:
            heard.left()

        @found.add("up", filter=empty)
        def _(event: KeyPressEvent) -> None:
            if text := heard.take_back():
                self.put(text)
            else:
                buffer.auto_up()

        @found.add(Keys.Any)
        def _(event: KeyPressEvent) -> None:
            if not heard.pressed(event.data):
                buffer.insert_text(event.data)

        return found


class _Application(Application[None]):
    """An application that draws elsewhere. drawn: called in the place of its own drawing."""

    def __init__(
        self, layout: Layout, bindings: KeyBindings, keys: Input, drawn: Callable[[], None],
        resized: Callable[[], None],
    ) -> None:  # fmt: skip
        self._resized = resized
        super().__init__(
            layout, key_bindings=bindings, input=keys, output=DummyOutput(), min_redraw_interval=FRAME,
            terminal_size_polling_interval=None, after_render=lambda _: drawn(),
        )  # fmt: skip
        self.ttimeoutlen = self.timeoutlen = ESCAPE

    def _on_resize(self) -> None:
        self._resized()
        self.invalidate()


def editor_rows(mark: str, text: str, cursor: int, width: int, limit: int) -> list[Text]:
    """What is written, as rows no wider than `width`, at most `limit`, with that of the cursor among them."""
    shown, cursor = terminal_escape.clean(text), len(terminal_escape.clean(text[:cursor]))
    rows, at, used = [Text(mark, "bold")], 0, cell_len(mark)
    cursor_row = 0
    for place, sign in enumerate(f"{shown}\n"):
        under = place == cursor
        cells = 1 if sign == "\n" else cell_len(sign)
        if used + cells > width:
            rows.append(Text(" " * cell_len(mark)))
            used, at = cell_len(mark), at + 1
        if under:
            cursor_row = at
        if sign == "\n":
            if under:
                rows[-1].append(" ", "reverse")
            if place < len(shown):
                rows.append(Text(" " * cell_len(mark)))
                used, at = cell_len(mark), at + 1
            continue
        rows[-1].append(sign, "reverse" if under else "")
        used += cells
    first = max(0, min(cursor_row - limit // 2, len(rows) - limit))
    return rows[first : first + limit]
