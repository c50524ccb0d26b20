"""A clerk whose model may not be silent for long."""

import os

from antiphon import Agent, ModelOptions, RetryPolicy
from antiphon.models.openai import OpenAIModel


def clerk() -> Agent:
    model = OpenAIModel("clerk", base_url=os.environ["OPENAI_BASE_URL"], idle_timeout=0.3)
    return Agent(
        "clerk",
        "You calculate.",
        model=model,
        can_call=(),
        asking=ModelOptions(retry=RetryPolicy(initial_delay=0.25)),
    )
