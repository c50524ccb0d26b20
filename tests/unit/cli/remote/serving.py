"""A server in this process, beside the commands that are called against it."""

import asyncio
import threading
from contextlib import contextmanager

from antiphon.host import Host
from antiphon.server.app import ServerSettings, make_app
from antiphon.server.serve import listen, serve
from antiphon.server.subjects import one_token
from tests.unit.cli.shell import PATIENCE

TOKEN = "the token of the server"


class Server:
    """Its address, and its host in a thread of its own."""

    def __init__(self, journal, teams, port=0):
        self.url, self._ready, self._fault = "", threading.Event(), None
        self._thread = threading.Thread(target=self._run, args=(journal, teams, port), daemon=True)
        self._thread.start()
        assert self._ready.wait(PATIENCE)
        if self._fault is not None:
            raise self._fault

    @property
    def port(self):
        return int(self.url.rpartition(":")[2])

    def _run(self, journal, teams, port):
        try:
            asyncio.run(self._serve(journal, teams, port))
        except BaseException as error:  # told to the one who waits for it
            self._fault = error
            self._ready.set()

    async def _serve(self, journal, teams, port):
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()

        def ready(url):
            self.url = url
            self._ready.set()

        with listen("127.0.0.1", port) as listening:
            async with Host(journal, teams, drain_seconds=0) as host:
                app = make_app(host, ServerSettings((one_token(TOKEN),)))
                await serve(app, listening, self._stop, 0, ready)

    def leave(self):
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()


@contextmanager
def serving(journal, teams):
    """A server of these teams on a journal's file."""
    server = Server(f"sqlite:///{journal}", teams)
    try:
        yield server
    finally:
        server.leave()
