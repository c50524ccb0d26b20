"""Models whose replies the test lets go, and event loops whose time the test tells."""

import asyncio

from antiphon.values.model import ModelRequest, Reply


class Slow:
    """A model whose calls end when the test says so. fails: what the next ones raise, or return."""

    name = "slow"
    window = 1000

    def __init__(self):
        self.asked = []
        self.now = self.most = 0
        self.gate = asyncio.Event()
        self.says = []

    async def complete(self, request, emit):
        self.asked.append(request.session)
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.gate.wait()
        finally:
            self.now -= 1
        said = self.says.pop(0) if self.says else Reply(request.session)
        if isinstance(said, BaseException):
            raise said
        return said


class Time:
    """Seconds that pass when the test says so; what the running loop was to do later is done then."""

    def __init__(self, monkeypatch):
        self.now = 0.0
        self._later = []
        monkeypatch.setattr(asyncio.get_running_loop(), "call_later", self._call_later)

    def __call__(self):
        return self.now

    def _call_later(self, wait, function, *arguments):
        handle = asyncio.Handle(function, arguments, asyncio.get_running_loop())
        self._later.append((self.now + wait, handle))
        return handle

    @property
    def due(self):
        """When the loop will look again."""
        return [at for at, handle in self._later if not handle.cancelled()]

    async def pass_to(self, instant):
        """Let time pass, alarm by alarm."""
        await settle()
        while ready := sorted(at for at in self.due if at <= instant):
            self.now = max(self.now, ready[0])
            ringing = [each for each in self._later if each[0] <= self.now and not each[1].cancelled()]
            self._later = [each for each in self._later if each not in ringing]
            for _, handle in ringing:
                handle._run()
            await settle()
        self.now = instant
        await settle()


def request(run_id="a", text="", max_output=1):
    return ModelRequest("slow", text, (), session=run_id, max_output=max_output)


async def settle():
    for _ in range(12):
        await asyncio.sleep(0)
