"""What a tool may know about its own call, and what it may need for it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic

from msgspec import Struct, field

from antiphon.values.generic import Held


def _gone(handle: str) -> str | None:
    """No output is kept."""
    return None


def _never() -> bool:
    """Nobody stops it."""
    return False


def _silent(text: str) -> None:
    """Progress that nobody listens to."""


class Dependency(Struct, frozen=True):
    """Something tools need: `create(ctx)` makes it when a tool asks for it, `id` is its name."""

    id: str
    create: Callable[[ToolContext], Any]


class ToolContext(Struct, Generic[Held], frozen=True):
    """What a tool may know about its own call; injected into a first parameter named `ctx`."""

    run_id: str = ""
    effect_id: str = ""
    """Where in the run the call stands; unique."""
    agent: str = ""
    """Name of the agent that called."""
    idempotency_key: str = ""
    """The same on every attempt of this effect; hand it to the outside system."""
    attempt: int = 1
    """1, and one more each time the effect is run again after a crash."""
    deps: Held = None  # type: ignore[assignment]
    """Whatever the caller of the run passed for its tools."""
    deadline: float | None = None
    """When the call is abandoned, seconds on the event loop's clock. None: no timeout."""
    read_output: Callable[[str], str | None] = _gone
    """The whole text of a tool result that was cut or removed, by its handle; None when it is gone."""
    report_progress: Callable[[str], None] = _silent
    """Tells whoever watches the run how far the tool has come; the model is not shown it."""
    is_cancelled: Callable[[], bool] = _never
    """Whether the call was given up, for functions in threads that nothing else can stop."""
    dependency_overrides: Mapping[str, Callable[[ToolContext], Any]] = {}
    """What `resolve` makes instead, by the id of the dependency."""
    resolved: dict[str, Any] = field(default_factory=dict)
    """What `resolve` has made in this call, by id."""

    def resolve(self, key: Dependency) -> Any:
        """The dependency, made once in a call of a tool, however often it is asked for."""
        if key.id not in self.resolved:
            self.resolved[key.id] = self.dependency_overrides.get(key.id, key.create)(self)
        return self.resolved[key.id]
