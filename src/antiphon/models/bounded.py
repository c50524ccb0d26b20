"""A model with bounds: so many requests at once, so many a minute, and every run has its turn."""

from __future__ import annotations

from typing import Any

from antiphon.models.endpoints.queue import RequestQueue
from antiphon.values.agent import EndpointOptions, RetryPolicy
from antiphon.values.model import Emit, Model, ModelRequest, Reply


class Bounded:
    """Passes requests on to a model object of one's own, within the limits that models from strings have.

    concurrency, requests_per_minute, tokens_per_minute, retry: see EndpointOptions.

    Whoever waits is served run by run in turn, so a run with a hundred requests does not keep another
    with one waiting. Share one instance between runs, in as many threads as you like if the model allows
    it. Everything else of the model (its window, its prices) is the model's own. Raises UserError for a limit
    that lets nobody in.
    """

    def __init__(
        self,
        model: Model,
        *,
        concurrency: int = 8,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        options = EndpointOptions(
            concurrency=concurrency,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            retry=retry,
        )
        self._model, self._queue = model, RequestQueue()
        self._queue.join(options)
        if options.retry is not None:
            self.retry = options.retry

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._model, name)

    @property
    def name(self) -> str:
        """The model's own name."""
        return self._model.name

    async def complete(self, request: ModelRequest, emit: Emit) -> Reply:
        """See `Model.complete`; waits for its turn first, and gives its place up when cancelled."""
        return await self._queue.ask(self._model, request, emit)
