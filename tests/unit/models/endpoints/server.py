"""A chat-completions server on this machine that counts what it is asked, and answers when it is let."""

import asyncio
import json

from antiphon.testing.wire import GOOD_STREAM

OK = b"".join(step for step in GOOD_STREAM if isinstance(step, bytes))


class Counting:
    """asked: the users' words, in the order in which they came. now, most: requests that wait for an answer.

    opened: connections so far. came: set once one has come. gate: set while they are answered. answers:
    bytes for the next ones.
    """

    def __init__(self):
        self.asked, self.heads = [], []
        self.now = self.most = self.opened = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.came = asyncio.Event()
        self.answers = []
        self._open = {}

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_):
        self._server.close()
        for writer in self._open.values():
            writer.close()
        if self._open:
            await asyncio.wait(self._open)

    @property
    def env(self):
        """Settings that lead here."""
        port = self._server.sockets[0].getsockname()[1]
        return {"OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1", "OPENAI_API_KEY": "sk-canary-123456"}

    async def _serve(self, reader, writer):
        self.opened += 1
        self._open[asyncio.current_task()] = writer
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                size = next(
                    int(line.split(b":")[1])
                    for line in head.split(b"\r\n")
                    if line.lower().startswith(b"content-length")
                )
                body = json.loads(await reader.readexactly(size))
                self.heads.append(head)
                self.asked.append(body["messages"][-1]["content"])
                self.came.set()
                self.now += 1
                self.most = max(self.most, self.now)
                await self.gate.wait()
                # Long enough for all others to come that may.
                for _ in range(20):
                    await asyncio.sleep(0)
                self.now -= 1
                writer.write(self.answers.pop(0) if self.answers else OK)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
            del self._open[asyncio.current_task()]


def refusal(status, **headers):
    """An answer that refuses, as bytes."""
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} No\r\ncontent-length: 0\r\n{lines}\r\n".encode()
