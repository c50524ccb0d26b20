"""The body of an answer: whole JSON or a stream of events, told apart by how it begins."""

from __future__ import annotations

from collections.abc import Sequence

from antiphon.errors import ModelError
from antiphon.models.openai.failures import body_error
from antiphon.models.openai.reply import ReplyMaker, decode_chunk
from antiphon.models.sse import SSEReader
from antiphon.values.model import Emit, Reply

_DONE = b"[DONE]"
_BOM = b"\xef\xbb\xbf"


class ResponseBody:
    """Takes the pieces of one body; `ended` once it is whole, and deaf from then on.

    What a server says its content is counts for nothing: servers that ignore `stream`, or name
    the wrong type, are common. `limit` is in bytes; more raises `ModelError("provider")`. No error
    repeats one of the `secrets`.
    """

    def __init__(
        self, emit: Emit, where: str, model: str, *, tags: bool, limit: int, secrets: Sequence[str] = ()
    ) -> None:
        self.status = 0
        self.size = 0
        self.ended = False
        self._maker = ReplyMaker(emit, where, model, tags=tags, secrets=secrets)
        self._where, self._limit, self._secrets = where, limit, secrets
        self._reader: SSEReader | None = None
        self._whole: list[bytes] = []
        self._is_json = False

    def feed(self, piece: bytes) -> bool:
        """Take in the next bytes; whether the answer is whole by now."""
        self._feed(piece)
        return self.ended

    def _feed(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self._limit:
            raise ModelError("provider", f"{self._where} sent more than {self._limit} bytes in one answer")
        if self._reader is not None:
            self._events(piece)
            return
        self._whole.append(piece)
        if not self._is_json:
            self._decide(b"".join(self._whole))

    def _decide(self, head: bytes) -> None:
        """Look at the first byte that says something."""
        start = head.removeprefix(_BOM).lstrip()[:1]
        if not start:
            self._whole = [head]
        elif start in (b"{", b"["):
            self._is_json = True
        elif start == b"<":
            text = f"{self._where} answered with a web page; does base_url point at an API (often …/v1)?"
            raise ModelError("provider", text, status=self.status)
        else:
            self._whole = []
            self._reader = SSEReader(max_line=self._limit, max_event=self._limit)
            self._events(head)

    def _events(self, piece: bytes, last: bool = False) -> None:
        reader, maker = self._reader, self._maker
        if reader is None:
            return
        for event in reader.close() if last else reader.feed(piece):
            data = event.data
            if data.startswith(_DONE):
                self.ended = True
                return
            if event.event == "error":
                raise body_error(data, self._where, self._secrets)
            maker.take(decode_chunk(data, self._where))

    def close(self) -> None:
        """The endpoint has closed the body properly."""
        if self.ended:
            return
        if self._reader is not None:
            self._events(b"", last=True)
        elif not self._is_json:
            raise ModelError("disconnected", f"{self._where} sent an empty answer (status {self.status})")
        else:
            whole = b"".join(self._whole).removeprefix(_BOM).strip()
            if whole.startswith(b"["):
                raise body_error(whole, self._where, self._secrets)
            self._maker.take(decode_chunk(whole, self._where))
        self.ended = True

    def reply(self) -> Reply:
        """The reply that the whole answer holds; `ModelError` when it holds none."""
        return self._maker.finish()
