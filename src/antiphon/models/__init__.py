"""Models: adapters to what answers. `resolve_model` finds the one that a string names."""

from antiphon.models.resolve import default_model, resolve_model

__all__ = ["default_model", "resolve_model"]
