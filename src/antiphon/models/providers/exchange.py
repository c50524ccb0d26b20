"""One call of a provider's model, from request to reply."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai.direct import model_request_stream
from pydantic_ai.messages import ModelResponse

from antiphon.errors import ModelError
from antiphon.models.providers.answer import Deltas, reply_of
from antiphon.models.providers.ask import parameters, run, settings
from antiphon.models.providers.failures import failure, is_clean
from antiphon.models.timeouts import Timeouts, lateness
from antiphon.values.model import Emit, ModelRequest, Reply


class _ResponseProgress:
    """How far an answer has come."""

    begun = False
    whole: ModelResponse | None = None


async def exchange(
    model: Any, provider: str, request: ModelRequest, emit: Emit, patience: Timeouts, secrets: tuple[str, ...]
) -> Reply:
    """Ask once, as a stream. Raises only `ModelError`, and what cancels the caller."""
    where = f"{provider} ({model.model_name})"
    progress = _ResponseProgress()
    try:
        async with asyncio.timeout(min(patience.first, patience.total)) as timer:
            await _stream(model, provider, request, Deltas(emit), patience, timer, progress)
    except ModelError:
        raise
    except TimeoutError as error:
        if progress.whole is None:
            raise ModelError("timeout", lateness(where, progress.begun, patience)) from error
    except Exception as error:  # noqa: BLE001 - whatever an SDK raises, told without what it quotes
        # An answer that is whole counts, whatever the connection does after it.
        if progress.whole is None:
            cause = error if is_clean(error, secrets) else None
            raise failure(error, where, progress.begun, secrets) from cause
    if progress.whole is None:
        raise ModelError("disconnected", f"{where} sent no answer")
    return reply_of(progress.whole, where)


async def _stream(
    model: Any,
    provider: str,
    request: ModelRequest,
    deltas: Deltas,
    patience: Timeouts,
    timer: asyncio.Timeout,
    progress: _ResponseProgress,
) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + patience.total
    asked = model_request_stream(
        model,
        run(request, model),
        model_settings=settings(request, model, provider),
        model_request_parameters=parameters(request, model),
        instrument=False,
    )
    async with asked as stream:
        async for event in stream:
            progress.begun = True
            timer.reschedule(min(loop.time() + patience.idle, end))
            deltas.take(event)
        progress.whole = stream.get()
