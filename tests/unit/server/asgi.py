"""A client of an ASGI app in this event loop: requests, streams that are read as they come, WebSockets."""

import asyncio
import json
from collections import deque
from contextlib import asynccontextmanager


class Reply:
    """A response: status, headers, body, and `json`."""

    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __repr__(self):
        return f"<{self.status} {self.body[:400]!r}>"


class Client:
    """token: sent with each request, unless it is empty."""

    def __init__(self, app, token="", host="127.0.0.1"):
        self.app, self.token, self.host = app, token, host

    def as_(self, token):
        return Client(self.app, token, self.host)

    def scope(self, kind, path, headers, **more):
        path, _, query = path.partition("?")
        found = (
            {"host": self.host} | ({"authorization": f"Bearer {self.token}"} if self.token else {}) | headers
        )
        return {
            "type": kind, "asgi": {"version": "3.0"}, "http_version": "1.1", "path": path,
            "raw_path": path.encode(), "query_string": query.encode(), "root_path": "", "scheme": "http",
            "headers": [(key.lower().encode(), each.encode()) for key, each in found.items() if each],
            "client": ("127.0.0.1", 50000), "server": ("127.0.0.1", 8000), "state": {}, **more,
        }  # fmt: skip

    async def __call__(self, method, path, body=None, **headers):
        """One request. body: JSON, or bytes as they are."""
        async with self.stream(method, path, body, **headers) as reply:
            chunks = [chunk async for chunk in reply.chunks()]
            return Reply(reply.status, reply.headers, b"".join(chunks))

    @asynccontextmanager
    async def stream(self, method, path, body=None, **headers):
        """A response whose body is read as it comes; leaving disconnects."""
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        headers = {key.replace("_", "-"): value for key, value in headers.items()}
        if data:
            headers = {"content-type": "application/json", "content-length": str(len(data))} | headers
        scope = self.scope("http", path, headers, method=method)
        reply = _Streamed()
        given = False

        async def receive():
            nonlocal given
            if not given:
                given = True
                return {"type": "http.request", "body": data, "more_body": False}
            await reply.left.wait()
            return {"type": "http.disconnect"}

        task = asyncio.ensure_future(self.app(scope, receive, reply.sent.put))
        task.add_done_callback(reply.ended)
        try:
            await reply.begin()
            yield reply
        finally:
            reply.left.set()
            await asyncio.wait((task,))
            task.result()

    @asynccontextmanager
    async def socket(self, path="/ws", **headers):
        """An accepted WebSocket, or one that was refused: `closed` is its code then."""
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        scope = self.scope("websocket", path, given, subprotocols=[], scheme="ws", extensions={})
        found = Socket()
        task = asyncio.ensure_future(self.app(scope, found.incoming.get, found.outgoing.put))
        task.add_done_callback(lambda _: found.outgoing.put_nowait({"type": "ended"}))
        found.incoming.put_nowait({"type": "websocket.connect"})
        try:
            await found.begin()
            yield found
        finally:
            found.incoming.put_nowait({"type": "websocket.disconnect", "code": 1001})
            await asyncio.wait((task,))
            task.result()


class _Streamed:
    def __init__(self):
        self.sent, self.left = asyncio.Queue(), asyncio.Event()
        self.status, self.headers = 0, {}

    def ended(self, task):
        self.sent.put_nowait({"type": "ended"})

    async def begin(self):
        found = await self.sent.get()
        assert found["type"] == "http.response.start", found
        self.status = found["status"]
        self.headers = {key.decode(): value.decode() for key, value in found["headers"]}

    async def chunks(self):
        while True:
            found = await self.sent.get()
            if found["type"] == "ended":
                return
            if found.get("body"):
                yield found["body"]
            if not found.get("more_body"):
                return

    async def events(self):
        """Server-Sent Events as (event, id, data)."""
        text = b""
        async for chunk in self.chunks():
            text += chunk
            while b"\n\n" in text:
                block, _, text = text.partition(b"\n\n")
                lines = [line.partition(b": ") for line in block.split(b"\n") if not line.startswith(b":")]
                fields = {key.decode(): value.decode() for key, _, value in lines}
                if "data" in fields:
                    yield fields["event"], fields.get("id"), json.loads(fields["data"])


class Socket:
    """One WebSocket from the client's side."""

    def __init__(self):
        self.incoming, self.outgoing, self.closed = asyncio.Queue(), asyncio.Queue(), None
        self._kept = deque()

    async def begin(self):
        found = await self.outgoing.get()
        if found["type"] != "websocket.accept":
            self.closed = found.get("code")

    def send(self, message):
        text = message if isinstance(message, str) else json.dumps(message)
        self.incoming.put_nowait({"type": "websocket.receive", "text": text})

    async def receive(self):
        """The next message; None when it was closed, with `closed` as the code."""
        return self._kept.popleft() if self._kept else await self._next()

    async def _next(self):
        found = await self.outgoing.get()
        if found["type"] == "websocket.close":
            self.closed = found["code"]
            return None
        if found["type"] == "ended":
            return None
        return json.loads(found.get("text") or found["bytes"])

    async def until(self, kind):
        """The next message of a type, others dropped."""
        while (found := await self.receive()) is not None:
            if found["type"] == kind:
                return found
        raise AssertionError(f"closed with {self.closed} before {kind}")

    async def ask(self, message):
        """Send a request and wait for the message that repeats its id; what comes before it is kept."""
        self.send(message)
        while (found := await self._next()) is not None:
            if found.get("request_id") == message["request_id"]:
                return found
            self._kept.append(found)
        raise AssertionError(f"closed with {self.closed}")
