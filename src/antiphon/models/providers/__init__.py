"""Providers that speak a protocol of their own: Anthropic, Google, Bedrock, Mistral, Groq, Cohere, Azure.

    ProviderModel("anthropic:claude-sonnet-4-5")       # extra `anthropic`, ANTHROPIC_API_KEY

Their protocols are read and written by `pydantic_ai.direct`; nothing of it is loaded before a model
is made. It retries nothing here: attempts are effects of the run, and so journaled.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from msgspec import Struct

from antiphon.errors import ConfigError, ModelError
from antiphon.models.providers.known import (
    KNOWN,
    ProviderSpec,
    check_settings,
    make,
    own_settings,
    secrets,
    wanted,
)
from antiphon.models.timeouts import DEFAULT, Timeouts
from antiphon.values.model import Emit, ModelRequest, Reply
from antiphon.values.secret import shown

__all__ = ["KNOWN", "ProviderModel"]


class ProviderModel:
    """A model at a provider.

    model: `PREFIX:ID` with a prefix of `KNOWN`, or a `pydantic_ai` model of your own making; that one's
        connections stay yours.
    env: where keys and addresses are read; os.environ when None.
    name: what the journal calls it; the model string unless given.
    first_timeout, idle_timeout, total_timeout: seconds until the answer's first piece, connecting included;
        between two pieces of it; and for all of it.

    Connections are shared by all calls in one event loop and closed with it, or by `aclose()`.
    Raises `ConfigError` for an unknown prefix, a missing setting or a missing extra.
    """

    def __init__(
        self,
        model: Any,
        *,
        env: Mapping[str, str] | None = None,
        name: str = "",
        first_timeout: float = DEFAULT.first,
        idle_timeout: float = DEFAULT.idle,
        total_timeout: float = DEFAULT.total,
    ) -> None:
        self._timeouts = Timeouts(DEFAULT.connect, first_timeout, idle_timeout, total_timeout)
        given = os.environ if env is None else env
        self._env: Mapping[str, str] = {}
        self._known: ProviderSpec | None = None
        self._secrets: tuple[str, ...] = ()
        self._loops: dict[asyncio.AbstractEventLoop, _Live] = {}
        self._given: Any = None
        self._fresh: Any = None
        self._model = ""
        if not isinstance(model, str):
            self._given = model
            self._name = name or f"{model.system}:{model.model_name}"
            return
        prefix, _, self._model = model.partition(":")
        self._known = KNOWN.get(prefix.strip().lower())
        self._model = self._model.strip()
        if self._known is None or not self._model:
            raise ConfigError(f"{model!r}: expected PREFIX:MODEL with one of {', '.join(sorted(KNOWN))}")
        self._name = name or f"{self._known.name}:{self._model}"
        check_settings(self._known, model, given)
        self._env = own_settings(self._known, model, given)
        self._secrets = secrets(self._known, self._env)
        # Made here, so that a missing extra or a wrong setting is told before a run begins.
        self._fresh = self._make(self._known)

    @property
    def name(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"ProviderModel({self._name!r})"

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the model can be used again."""
        live = self._loops.get(asyncio.get_running_loop())
        if live is not None:
            await live.keeper.aclose()

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """Ask once. Cancelling closes the connection; raises `ModelError` only."""
        from antiphon.models.providers.exchange import exchange

        provider = self._known.name if self._known is not None else str(self._given.system)
        return await exchange(await self._live(), provider, request, emit, self._timeouts, self._secrets)

    def _make(self, known: ProviderSpec) -> Any:
        try:
            return make(known, self._model, self._env)
        except ImportError as error:
            missing = f" (missing: {error.name})" if error.name else ""
            raise ConfigError(f"{self._name} needs {wanted(known)}{missing}") from error
        except Exception as error:  # noqa: BLE001 - whatever an SDK raises, told without what it quotes
            # An SDK's own complaint about a setting; it may quote the setting.
            raise ConfigError(f"{self._name}: {shown(str(error), self._secrets)}") from None

    def _again(self, known: ProviderSpec) -> Any:
        try:
            return self._make(known)
        except ConfigError as error:
            raise ModelError("validation", str(error)) from error

    async def _live(self) -> Any:
        """The running loop's model, made at its first call: connections belong to one loop."""
        if self._known is None:
            return self._given
        loop = asyncio.get_running_loop()
        live = self._loops.get(loop)
        if live is None:
            for other in [one for one in self._loops if one.is_closed()]:
                del self._loops[other]
            model, self._fresh = self._fresh or self._again(self._known), None
            live = self._loops[loop] = _Live(model, _keeping(model, self._loops, loop))
            # A running loop closes its asynchronous generators before it ends: so it closes the connections.
            await anext(live.keeper)
        return live.model


class _Live(Struct, frozen=True):
    model: Any
    keeper: AsyncGenerator[None, None]


async def _keeping(
    model: Any, loops: dict[asyncio.AbstractEventLoop, _Live], loop: asyncio.AbstractEventLoop
) -> AsyncGenerator[None, None]:
    async with model:
        try:
            yield
        finally:
            loops.pop(loop, None)
