"""log: the logger of roles; a line for each action that a role takes up."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from antiphon.styles.environment.roles.acting import ActingRole

logger = logging.getLogger("antiphon.styles.environment")
"""For roles and actions of the user's own too."""


def log_taken_up(role: ActingRole, setting: str, action: object) -> None:
    """Say who does what, with the run, the agent and the effect in the log record."""
    ctx = role.ctx
    extra = {"run_id": ctx.run_id, "agent": ctx.agent, "effect_id": ctx.effect_id}
    logger.info("%s: to do %s", setting, action, extra=extra)
