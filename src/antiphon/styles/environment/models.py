"""Models: which model each role of an environment thinks with."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from antiphon.models.endpoints.shared import ConfiguredModel
from antiphon.values.model import Model

if TYPE_CHECKING:
    from antiphon.styles.environment.context import Context
    from antiphon.styles.environment.metagpt.settings import ModelSettings
    from antiphon.styles.environment.roles.setup import RoleSetup


class Models:
    """The models of one environment: a role's own, else what the settings say, else the environment's."""

    def __init__(self, context: Context, model: str | Model | None) -> None:
        self._context, self._model = context, model

    @property
    def any(self) -> str | Model | None:
        """What everyone thinks with that has no other."""
        settings = self._context.config.llm
        return self._model or (_made(settings) if settings is not None else None)

    def of(self, role: RoleSetup) -> str | Model | None:
        """What a role thinks with."""
        if role.llm is not None:
            return role.llm
        names = (type(role).__name__, role.role_id, role.key)
        settings = next((found for name in names if (found := self._context.config.roles.get(name))), None)
        return _made(settings) if settings is not None else self.any

    def named(self, name: str) -> str | Model:
        """A model of the settings, or else what a model string names."""
        known = self._context.config.models
        return _made(known[name]) if name in known else name


def _made(settings: ModelSettings) -> str | Model:
    """The model: as a string where nothing but its name is said, so that the run makes and closes it."""
    if not settings.base_url and settings.api_key is None and not settings.api_key_env:
        return settings.model
    return ConfiguredModel(settings.model, settings.environment(os.environ))
