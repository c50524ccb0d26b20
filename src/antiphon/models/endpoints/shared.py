"""Models that the runs of a process share: those that are made from model strings.

An adapter, with its connections, belongs to an event loop: all runs of the loop share it, it ends with the
last of them, and it is kept on the loop itself, whose lifetime it has. The queue before it belongs to the
process, since that is what the provider counts.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from functools import cache
from hashlib import blake2b
from threading import Lock
from typing import Any, TypeAlias

from msgspec.structs import replace

from antiphon.models.endpoints.choice import Endpoints, options_for
from antiphon.models.endpoints.queue import RequestQueue
from antiphon.models.endpoints.text import VARIABLE, read_endpoints
from antiphon.models.model_string import IN_PROCESS
from antiphon.models.resolve import Located, default_model, locate
from antiphon.models.timeouts import DEFAULT, Timeouts
from antiphon.values.agent import EndpointOptions, RetryPolicy
from antiphon.values.model import Emit, Model, ModelRequest, Reply

_KEPT_AS = "_antiphon_models"
_Key: TypeAlias = tuple[bytes, str, Timeouts]


class SharedModel:
    """One run's hold on a model that others may use too. Close it once; the last one closes the model.

    options: what the run says of the endpoint; its limits count as long as this is open.
    """

    def __init__(self, located: Located, options: EndpointOptions, digest: bytes = b"") -> None:
        """Belongs to the running event loop. digest: of what leads there, where it is known."""
        self._options = options
        digest = digest or _queues().digest(located)
        self._queue = _queues().join(digest, options)
        self._key = digest, located.name, timeouts_of(options)
        try:
            self._adapter = _take(self._key, located)
        except BaseException:
            self._queue.part(options)
            raise
        self._closed = False

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._adapter.model, name)

    def __repr__(self) -> str:
        return f"SharedModel({self._adapter.model!r})"

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._adapter.model.name

    @property
    def adapter(self) -> Model:
        """What answers."""
        return self._adapter.model

    @property
    def retry(self) -> RetryPolicy | None:
        """When a failed request is tried again, if that is said of the endpoint."""
        return self._options.retry

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """See `Model.complete`; waits for its turn first, and gives its place up when cancelled."""
        return await self._queue.ask(self._adapter.model, request, emit)

    async def aclose(self) -> None:
        """Let go of the model; of several calls only the first one counts."""
        if self._closed:
            return
        self._closed = True
        self._queue.part(self._options)
        model = _let_go(self._key)
        close = getattr(model, "aclose", None)
        if close is not None:
            await close()


def share(
    spec: Model | str | None, env: Mapping[str, str], given: Endpoints, models: Collection[str]
) -> tuple[Model, Model]:
    """The model that a string names, shared with all runs that ask it in the same way; and what answers.

    spec: None is the default model; an object that is no ConfiguredModel is given back. given: see `choice`;
    what it leaves open ANTIPHON_ENDPOINTS says. models: the model strings of the run. What answers in this
    process has no endpoint, and is made anew. Raises ConfigError as `resolve_model`, and for settings that
    cannot be read.
    """
    if isinstance(spec, ConfiguredModel):
        return spec.share(env, given, models)
    if spec is not None and not isinstance(spec, str):
        return spec, spec
    text = default_model(env) if spec is None else spec
    located = locate(text, env)
    if located.string.prefix in IN_PROCESS:
        made = located.make(DEFAULT)
        return made, made
    shared = SharedModel(located, _options(located, env, given, (*models, text)))
    return shared, shared.adapter


class ConfiguredModel:
    """A model string with settings of its own, such as a configuration file's: runs share it all the same.

    Asked by itself it is a model like any other, and stands in no line. Raises ConfigError as
    `resolve_model`.
    """

    def __init__(self, text: str, env: Mapping[str, str]) -> None:
        located = locate(text, env)
        self._digest = _queues().digest(located)
        # Keys are where the model has them, and nowhere else.
        self._located = replace(located, leads=())
        self._model = located.make(DEFAULT)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._model, name)

    def __repr__(self) -> str:
        return f"ConfiguredModel({self._model!r})"

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._model.name

    @property
    def model_string(self) -> str:
        """What endpoints know it by."""
        return self._located.string.text

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """See `Model.complete`."""
        return await self._model.complete(request, emit)

    def share(self, env: Mapping[str, str], given: Endpoints, models: Collection[str]) -> tuple[Model, Model]:
        """See `share`. env: where ANTIPHON_ENDPOINTS is read."""
        if self._located.string.prefix in IN_PROCESS:
            return self, self._model
        options = _options(self._located, env, given, models)
        shared = SharedModel(self._located, options, self._digest)
        return shared, shared.adapter


def _options(
    located: Located, env: Mapping[str, str], given: Endpoints, models: Collection[str]
) -> EndpointOptions:
    """What holds for a model: what is given, then what the environment says."""
    options = options_for(located.string, given)
    if said := env.get(VARIABLE, ""):
        options = options.over(options_for(located.string, read_endpoints((said,), models, VARIABLE)))
    return options


def timeouts_of(options: EndpointOptions) -> Timeouts:
    """How long an endpoint is waited for, with the defaults."""
    return Timeouts(
        options.connect_timeout or DEFAULT.connect,
        options.first_timeout or DEFAULT.first,
        options.idle_timeout or DEFAULT.idle,
        options.total_timeout or DEFAULT.total,
    )


class _Adapter:
    """A model of one event loop, and how many runs hold it."""

    __slots__ = ("model", "users")

    def __init__(self, model: Model) -> None:
        self.model, self.users = model, 0


def _take(key: _Key, located: Located) -> _Adapter:
    loop = asyncio.get_running_loop()
    kept: dict[_Key, _Adapter] | None = getattr(loop, _KEPT_AS, None)
    if kept is None:
        kept = {}
        setattr(loop, _KEPT_AS, kept)
    adapter = kept.get(key)
    if adapter is None:
        adapter = kept[key] = _Adapter(located.make(key[2]))
    adapter.users += 1
    return adapter


def _let_go(key: _Key) -> Model | None:
    """One run less; the model when that was the last one."""
    loop = asyncio.get_running_loop()
    kept: dict[_Key, _Adapter] = getattr(loop, _KEPT_AS)
    adapter = kept[key]
    adapter.users -= 1
    if adapter.users:
        return None
    del kept[key]
    if not kept:
        delattr(loop, _KEPT_AS)
    return adapter.model


class _Queues:
    """The queues of a process, by a digest of what leads to their endpoint.

    The digest is keyed with bytes of this process alone, so that nobody can try keys against it.
    """

    def __init__(self) -> None:
        self._salt, self._lock = os.urandom(32), Lock()
        self._queues: dict[bytes, RequestQueue] = {}
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._begin_anew)

    def _begin_anew(self) -> None:
        """What a parent has in flight is not this process's, nor is a lock that one of its threads holds."""
        self._lock, self._queues = Lock(), {}

    def digest(self, located: Located) -> bytes:
        """What an endpoint is known by here."""
        found = blake2b(key=self._salt, digest_size=16)
        for part in (located.string.text, *located.leads):
            data = part.encode("utf-8", "surrogatepass")
            found.update(len(data).to_bytes(8, "big") + data)
        return found.digest()

    def join(self, digest: bytes, options: EndpointOptions) -> RequestQueue:
        """The queue before an endpoint, with the limits of one more user."""
        with self._lock:
            # What was asked a minute ago still counts, although its run has ended; what is older does not.
            for other in [each for each, queue in self._queues.items() if each != digest and queue.idle]:
                del self._queues[other]
            queue = self._queues.setdefault(digest, RequestQueue())
            queue.join(options)
        return queue


@cache
def _queues() -> _Queues:
    return _Queues()
