"""Who sits at the terminal: what they type and see, and how they stop."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, cast

from antiphon.cli import exit_codes
from antiphon.cli.display.reply_printer import Screen
from antiphon.cli.screen.fit import fits
from antiphon.cli.session.drive import WakeSignal, on_signals
from antiphon.cli.session.line_input import Typed

if TYPE_CHECKING:
    from antiphon.cli.screen.inline import InlineScreen


class Person:
    """Who sits there: what they type and see, and how they stop; the same over several runs. folder: whose
    files are talked of; None: the one we are in."""

    def __init__(self, quiet: bool, folder: str | None = None) -> None:
        self.folder = os.path.abspath(folder or ".")
        self.bell = WakeSignal()
        self.inline: InlineScreen | None = None
        if fits():
            # Only where somebody sits at a terminal: what reads keys takes long to import.
            from antiphon.cli.screen.inline import InlineScreen
            from antiphon.cli.session.own.editor import editor_tools

            self.inline = InlineScreen(
                self.bell.ring, self._break, self._stop, quiet=quiet, tools=editor_tools(self.folder)
            )
            # It has the faces of both.
            self.screen, self.typed = cast("Screen", self.inline), cast("Typed", self.inline)
            self.interactive = True
        else:
            self.screen, self.typed = Screen(quiet), Typed(self.bell.ring)
            self.interactive = self.typed.terminal and self.screen.console.is_terminal
        self.breaks = self.stops = 0
        self.left = self.polite = False
        self.farewell = ""

    def install(self) -> None:
        """Take the signals over, for as long as the event loop lives."""
        on_signals(self._break, "SIGINT")
        on_signals(self._leave, "SIGHUP")
        on_signals(self._terminate, "SIGTERM")

    def _break(self) -> None:
        self.breaks += 1
        self._again()

    def _stop(self) -> None:
        self.stops += 1
        self.bell.ring()

    def _terminate(self) -> None:
        """Whoever stops processes here wants to hear that all is well."""
        self.polite = self.polite or not self.left
        self._leave()

    def _leave(self) -> None:
        self._again()
        self.left = True

    def _again(self) -> None:
        """Who has left and still asks to stop does not want to wait."""
        if self.left:
            if self.inline is not None:
                self.inline.close()
            with suppress(OSError):
                os.write(2, f"\n{self.farewell}\n".encode())
            os._exit(exit_codes.SUSPENDED)
        self.bell.ring()
