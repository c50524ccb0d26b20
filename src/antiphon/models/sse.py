"""Server-sent events without I/O: bytes in, events out.

Follows the event stream format of the HTML standard: CR, LF and CRLF end a line, `:` starts a
comment, an empty line ends an event, a leading byte order mark is skipped. Bytes may be cut
anywhere, inside a character too: nothing is decoded before its line is whole.
"""

from __future__ import annotations

from msgspec import Struct

from antiphon.errors import ModelError

_BOM = b"\xef\xbb\xbf"


class ServerEvent(Struct, frozen=True, gc=False, omit_defaults=True):
    """One event. `data`: its data lines joined by LF; `id`: the last id seen so far."""

    data: bytes
    event: str = "message"
    id: str = ""

    @property
    def text(self) -> str:
        """The data as text; bytes that are not UTF-8 become U+FFFD."""
        return self.data.decode("utf-8", "replace")


class SSEReader:
    """Cuts one stream into events.

    max_line, max_event: bytes; more raises `ModelError("provider")`, after which the reader is spent.
    retry: milliseconds the server asked a client to wait before it reconnects, None if it did not.
    """

    def __init__(self, *, max_line: int = 8 << 20, max_event: int = 16 << 20) -> None:
        self.retry: int | None = None
        self.last_id = ""
        self._max_line, self._max_event = max_line, max_event
        self._head: bytes | None = b""
        self._after_cr = False
        self._open: list[bytes] = []
        self._open_size = 0
        self._data: list[bytes] = []
        self._data_size = 0
        self._event = ""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that `chunk` completes, in order."""
        if self._head is not None:
            chunk = self._head + chunk
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._head = chunk
                return []
            self._head = None
            chunk = chunk.removeprefix(_BOM)
        if self._after_cr and chunk:
            # The CR has already ended the line; an LF right behind it belongs to it.
            self._after_cr = False
            chunk = chunk.removeprefix(b"\n")
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = chunk.split(b"\n")
        rest = lines.pop()
        if not lines:
            self._keep(rest)
            return []
        if self._open:
            self._keep(lines[0])
            lines[0] = b"".join(self._open)
            self._open.clear()
            self._open_size = 0
        found: list[ServerEvent] = []
        for line in lines:
            self._line(line, found)
        if rest:
            self._keep(rest)
        return found

    def close(self) -> list[ServerEvent]:
        """The event that was still open when the stream ended, if it had data.

        The standard drops it. Endpoints exist that send their last line without the empty one
        behind it, so it is handed out here and the caller decides.
        """
        found: list[ServerEvent] = []
        if self._head:
            self._open, self._head = [self._head], None
        if self._open:
            self._line(b"".join(self._open), found)
            self._open.clear()
        self._line(b"", found)
        return found

    def _keep(self, piece: bytes) -> None:
        """Hold a piece of a line whose end has not come yet."""
        self._open_size += len(piece)
        if self._open_size > self._max_line:
            raise ModelError("provider", f"The event stream holds a line of more than {self._max_line} bytes")
        if piece:
            self._open.append(piece)

    def _line(self, line: bytes, found: list[ServerEvent]) -> None:
        if line.startswith(b"data:"):
            value = line[6:] if line.startswith(b"data: ") else line[5:]
            self._data_size += len(value) + 1
            if self._data_size > self._max_event or len(line) > self._max_line:
                raise ModelError(
                    "provider", f"The event stream holds an event of more than {self._max_event} bytes"
                )
            self._data.append(value)
        elif not line:
            if self._data:
                data = self._data[0] if len(self._data) == 1 else b"\n".join(self._data)
                found.append(ServerEvent(data, self._event or "message", self.last_id))
                self._data.clear()
                self._data_size = 0
            self._event = ""
        elif not line.startswith(b":"):
            self._field(line)

    def _field(self, line: bytes) -> None:
        """The rare lines: event, id, retry, and `data` without a colon; others mean nothing."""
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._line(b"data:", [])
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self.last_id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry = int(value)
