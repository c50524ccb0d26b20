"""Editor: what a person writes, key by key; prompt_toolkit reads the keys and edits.

It draws nothing. Whoever shows it is told when to (`drawn`), and what a key means beyond editing (`Heard`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from msgspec import Struct
from prompt_toolkit.application import Application
from prompt_toolkit.application.current import set_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Always, Condition, Filter, vi_insert_mode
from prompt_toolkit.input import Input
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.key_binding.vi_state import InputMode
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, Layout, Window
from prompt_toolkit.output import DummyOutput

from antiphon.cli.screen.keys.finder import MENTION, FileFinder, Listed
from antiphon.cli.screen.keys.history import KeptHistory
from antiphon.cli.screen.keys.keymap import DEFAULT, KeyMap
from antiphon.cli.screen.keys.outside import NotEdited, OutsideEditor
from antiphon.cli.screen.keys.pastes import Pastes

FRAME = 0.016
"""Seconds between two frames at least."""
ESCAPE = 0.05
"""Seconds after which an escape is the key, and not the beginning of another."""
TWICE = 0.6
"""Seconds within which a second Esc is one of two."""
_MOVES = {
    "up": "up", "down": "down", "c-p": "up", "c-n": "down", "pageup": "pageup", "pagedown": "pagedown",
    "c-i": "enter",
}  # fmt: skip


class Heard(Protocol):
    """What keys mean beyond editing."""

    @property
    def choosing(self) -> bool:
        """Whether each key answers something by itself, and none writes."""
        ...

    @property
    def answering(self) -> bool:
        """Whether what is written is an answer, and no message."""
        ...

    def came(self) -> None:
        """A key, whichever."""
        ...

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

    def rewind(self) -> None:
        """Esc twice, with nothing written."""
        ...

    def next_mode(self) -> None:
        """Shift-Tab."""
        ...

    def broke_off(self) -> None:
        """Ctrl-C, with nothing written."""
        ...

    def left(self) -> None:
        """Ctrl-D, with nothing written; or the terminal is gone."""
        ...

    def show_output(self) -> None:
        """What was folded last is to be shown whole."""
        ...

    def pressed(self, key: str) -> bool:
        """A key that may answer a question; whether it did, and so writes nothing."""
        ...

    def away(self, gone: bool, why: str = "") -> None:
        """Another program has the terminal, or no longer has. why: it wrote nothing, and why."""
        ...


class EditorTools(Struct, frozen=True, eq=False):
    """What an editor works with. listed: names the files that may be mentioned; None: none may."""

    keymap: KeyMap = DEFAULT
    history: KeptHistory | None = None
    listed: Listed | None = None


class Editor:
    """keys: where they come from. resized: called when the terminal has another size.

    Of `menu`, the paths that may be mentioned, that of number `picked` is taken. searched: the letters that
    are looked for in what was sent before; None while nothing is.
    """

    def __init__(
        self, keys: Input, heard: Heard, drawn: Callable[[], None], resized: Callable[[], None],
        tools: EditorTools | None = None,
    ) -> None:  # fmt: skip
        tools = tools or EditorTools()
        self._heard, self._keymap = heard, tools.keymap
        self.history = tools.history or KeptHistory()
        self.pastes = Pastes()
        self.menu: list[str] = []
        self.picked = 0
        self.searched: str | None = None
        self._skipped, self._before = 0, Document()
        self._escaped_at = float("-inf")
        self._finder = FileFinder(tools.listed, self._offer) if tools.listed is not None else None
        self.buffer = Buffer(
            multiline=True, history=self.history, enable_history_search=True,
            on_text_changed=lambda _: self._changed(),
        )  # fmt: skip
        self._application = _Application(
            Layout(Window(BufferControl(self.buffer))), self._bindings(), keys, drawn, resized,
            EditingMode.VI if tools.keymap.editing == "vi" else EditingMode.EMACS,
        )  # fmt: skip
        self._application.key_processor.before_key_press += lambda _: heard.came()
        self._task: asyncio.Task[None] | None = None
        self._elsewhere: asyncio.Task[None] | None = None
        self._outside = OutsideEditor()
        self.invalidate = self._application.invalidate
        """Have it drawn soon."""

    def start(self) -> None:
        """Read keys from now on."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="editor")

    def stop(self) -> None:
        """Read no more; the terminal is as it was once the event loop has gone on."""
        if self._finder is not None:
            self._finder.close()
        self._outside.end()
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
        self.write()

    def write(self) -> None:
        """The next letter is written: vi's commands wait for an Esc."""
        self._application.vi_state.input_mode = InputMode.INSERT

    def _take(self) -> str:
        text = self.buffer.text
        if text.strip() and not self._heard.answering:
            self.history.append_string(self.pastes.whole(text))
        self.buffer.reset()
        self.write()
        return text

    async def _run(self) -> None:
        try:
            await self._application.run_async(handle_sigint=False, set_exception_handler=False)
        except Exception as error:
            # Whatever it is, nobody can write any more.
            self._heard.left()
            if not isinstance(error, EOFError):
                raise

    # -- files that are mentioned ---------------------------------------------------------------

    def _changed(self) -> None:
        self.menu = []
        if self._finder is not None and self.searched is None and not self._heard.answering:
            found = MENTION.search(self.buffer.document.text_before_cursor)
            if found is not None:
                self._finder.ask(found[1])

    def _offer(self, text: str, paths: list[str]) -> None:
        found = MENTION.search(self.buffer.document.text_before_cursor)
        if found is not None and found[1] == text and paths != [text]:
            self.menu, self.picked = paths, 0
            self.invalidate()

    def _mention(self, event: KeyPressEvent) -> None:
        """Write the path that is picked in place of the letters."""
        path, document = self.menu[self.picked], self.buffer.document
        found = MENTION.search(document.text_before_cursor)
        if found is not None:
            self.buffer.delete_before_cursor(len(found[1]))
            self.buffer.insert_text(f"{path} ")
        self.menu = []

    def _pick(self, by: int) -> None:
        self.picked = (self.picked + by) % len(self.menu)

    # -- what was sent before -------------------------------------------------------------------

    def _search(self, event: KeyPressEvent) -> None:
        """Begin to look, or look on for an older one."""
        if self.searched is None:
            self.searched, self._skipped, self._before = "", 0, self.buffer.document
        elif self.history.search(self.searched, self._skipped + 1) is not None:
            self._skipped += 1
        self._show_found()

    def _search_for(self, text: str) -> None:
        self.searched, self._skipped = text, 0
        self._show_found()

    def _show_found(self) -> None:
        found = self.history.search(self.searched or "", self._skipped)
        if found is not None:
            self.buffer.document = Document(found, len(found))

    def _end_search(self, *, keep: bool) -> None:
        self.searched = None
        if not keep:
            self.buffer.document = self._before

    # -- another program ------------------------------------------------------------------------

    def _open_outside(self, event: KeyPressEvent) -> None:
        if self._elsewhere is None or self._elsewhere.done():
            loop = asyncio.get_running_loop()
            self._elsewhere = loop.create_task(self._outside_edited(), name="editor outside")

    async def _outside_edited(self) -> None:
        keys, why = self._application.input, ""
        self._heard.away(True)
        try:
            with keys.detach(), keys.cooked_mode():
                self.put(await self._outside.edited(self.pastes.whole(self.buffer.text)))
        except NotEdited as error:
            why = str(error)
        finally:
            self._heard.away(False, why)

    # -- keys -----------------------------------------------------------------------------------

    def _bindings(self) -> KeyBindings:
        found = KeyBindings()
        searching = Condition(lambda: self.searched is not None)
        choosing = Condition(lambda: self._heard.choosing)
        writing = ~searching & ~choosing
        empty = Condition(lambda: not self.buffer.text)
        filters: dict[str, Filter] = {
            "leave": empty & ~searching,
            "take-back": empty & writing,
            "send": ~searching,
            "queue": writing & ~Condition(lambda: self._heard.answering),
            "newline": writing,
            "search-history": ~choosing,
            "open-editor": writing,
            "break": Always(),
        }
        for name, act in self._acts().items():
            for keys in self._keymap.keys[name]:
                allowed = filters.get(name, ~searching)
                if keys == ("escape",):
                    allowed &= ~vi_insert_mode | choosing
                found.add(*keys, filter=allowed)(act)
        self._bind_text(found, choosing)
        self._bind_menu(found, Condition(lambda: bool(self.menu)) & writing)
        self._bind_search(found, searching)
        return found

    def _acts(self) -> dict[str, Callable[[KeyPressEvent], None]]:
        heard, buffer = self._heard, self.buffer

        def send(event: KeyPressEvent) -> None:
            if not heard.pressed("enter"):
                heard.sent(self._take())

        def broken_off(event: KeyPressEvent) -> None:
            if self.searched is not None:
                self._end_search(keep=False)
            elif heard.choosing and heard.pressed("escape"):
                # What was being written is not seen meanwhile, and stays.
                return
            elif buffer.text:
                buffer.reset()
                self.write()
            else:
                heard.broke_off()

        def take_back(event: KeyPressEvent) -> None:
            if text := heard.take_back():
                self.put(text)
            else:
                buffer.auto_up()

        return {
            "send": send,
            "queue": lambda event: heard.queued(self._take()),
            "take-back": take_back,
            "newline": lambda event: buffer.insert_text("\n"),
            "stop": self._escape,
            "rewind": lambda event: heard.rewind(),
            "mode": lambda event: heard.next_mode(),
            "break": broken_off,
            "leave": lambda event: heard.left(),
            "search-history": self._search,
            "open-editor": self._open_outside,
            "show-output": lambda event: heard.show_output(),
        }

    def _escape(self, event: KeyPressEvent) -> None:
        if self.menu:
            self.menu = []
        elif not self._heard.pressed("escape"):
            now = asyncio.get_running_loop().time()
            again, self._escaped_at = now - self._escaped_at < TWICE, now
            if again and not self.buffer.text:
                self._escaped_at = float("-inf")
                self._heard.rewind()
            else:
                self._heard.stopped()

    def _bind_text(self, found: KeyBindings, choosing: Filter) -> None:
        heard, buffer = self._heard, self.buffer

        @found.add("escape", "escape", filter=~vi_insert_mode)
        def _(event: KeyPressEvent) -> None:
            """As two of them that do not come at once."""
            for _ in range(2):
                self._escape(event)

        @found.add("escape", Keys.Any, filter=~vi_insert_mode)
        @found.add("c-z")
        def _(event: KeyPressEvent) -> None:
            """Nothing: Alt and a letter that means nothing is no Esc, and a control character no text."""

        @found.add(Keys.Any, filter=choosing)
        def _(event: KeyPressEvent) -> None:
            if not heard.pressed(event.data):
                buffer.insert_text(event.data)

        for name, meaning in _MOVES.items():

            @found.add(name, filter=choosing)
            def _(event: KeyPressEvent, meaning: str = meaning) -> None:
                heard.pressed(meaning)

        @found.add(Keys.BracketedPaste)
        def _(event: KeyPressEvent) -> None:
            text = event.data.replace("\r\n", "\n").replace("\r", "\n")
            if self.searched is not None:
                self._search_for(self.searched + text.partition("\n")[0])
            else:
                buffer.insert_text(text if heard.answering else self.pastes.take(text))

        @found.add("c-h", filter=Condition(self._is_behind_marker))
        def _(event: KeyPressEvent) -> None:
            """A marker goes as a whole."""
            buffer.delete_before_cursor(len(self.pastes.ends_with(buffer.document.text_before_cursor)))

    def _is_behind_marker(self) -> bool:
        return self.searched is None and bool(self.pastes.ends_with(self.buffer.document.text_before_cursor))

    def _bind_menu(self, found: KeyBindings, shown: Filter) -> None:
        found.add("c-m", filter=shown)(self._mention)
        found.add("c-i", filter=shown)(self._mention)
        for name, by in (("up", -1), ("down", 1), ("c-p", -1), ("c-n", 1)):
            found.add(name, filter=shown)(lambda event, by=by: self._pick(by))

    def _bind_search(self, found: KeyBindings, searching: Filter) -> None:
        @found.add(Keys.Any, filter=searching)
        def _(event: KeyPressEvent) -> None:
            self._search_for((self.searched or "") + event.data)

        @found.add("c-h", filter=searching)
        def _(event: KeyPressEvent) -> None:
            self._search_for((self.searched or "")[:-1])

        @found.add("c-m", filter=searching)
        @found.add("c-i", filter=searching)
        def _(event: KeyPressEvent) -> None:
            """It is written, and may be changed before it is sent."""
            self._end_search(keep=True)

        @found.add("escape", filter=searching)
        def _(event: KeyPressEvent) -> None:
            self._end_search(keep=False)


class _Application(Application[None]):
    """An application that draws elsewhere. drawn: called in the place of its own drawing."""

    def __init__(
        self, layout: Layout, bindings: KeyBindings, keys: Input, drawn: Callable[[], None],
        resized: Callable[[], None], editing: EditingMode,
    ) -> None:  # fmt: skip
        self._resized = resized
        super().__init__(
            layout, key_bindings=bindings, input=keys, output=DummyOutput(), min_redraw_interval=FRAME,
            terminal_size_polling_interval=None, after_render=lambda _: drawn(), editing_mode=editing,
        )  # fmt: skip
        self.ttimeoutlen = self.timeoutlen = ESCAPE

    def _on_resize(self) -> None:
        self._resized()
        self.invalidate()
