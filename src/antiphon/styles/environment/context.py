"""Context: what the roles of one environment share: settings, values of the user's own, the costs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from antiphon.styles.environment.metagpt.cost import CostManager
from antiphon.styles.environment.metagpt.settings import ModelSettings, Settings, find_settings, read_settings


class Values(dict[str, Any]):
    """The user's own values by name: to `set`, `get` and `remove`, or as attributes; None when missing."""

    def set(self, name: str, value: Any) -> None:
        """Keep a value."""
        self[name] = value

    def remove(self, name: str) -> None:
        """Forget a value, if it is there."""
        self.pop(name, None)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # what Python itself looks for is not one of the user's values
            raise AttributeError(name)
        return self.get(name)

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value


class Context:
    """Read from `config2.yaml` in the working directory, else from `~/.metagpt`, else empty.

    config: settings instead of a file's. path: another file, which must be there. kwargs: values of the
    user's own. cost_manager: what the model calls of all roles are added up in.
    Raises ConfigError for a file that is wrong.
    """

    def __init__(
        self,
        config: Settings | None = None,
        *,
        path: str | os.PathLike[str] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        cost_manager: CostManager | None = None,
    ) -> None:
        if config is None:
            found = path if path is not None else find_settings()
            config = read_settings(found) if found is not None else Settings()
        self.config = config
        self.kwargs = Values(kwargs or {})
        self.cost_manager = cost_manager if cost_manager is not None else CostManager()

    def model_of(self, *names: str, own: ModelSettings | None = None) -> ModelSettings | None:
        """What a role thinks with: its own, else what the settings give one of its names, else everyone's.

        names: the role's class name and role id. None when nothing is said of any.
        """
        return own if own is not None else self.config.model_of(*names)
