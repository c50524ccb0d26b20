"""Endpoints of models: which limits, timeouts and retries hold for which, and the queue that keeps them.

`EndpointOptions` says what holds; a key says where: a provider (`openai`), a model string
(`openai:gpt-x`) or `*` for all. `choice` finds what holds for a model, `text` reads the one line of the
environment and of the command line, `queue` lets requests in, `shared` makes models that runs share.
"""

from antiphon.models.endpoints.choice import Endpoints, options_for
from antiphon.models.endpoints.text import VARIABLE, read_endpoints
from antiphon.values.agent import EndpointOptions

__all__ = ["VARIABLE", "EndpointOptions", "Endpoints", "options_for", "read_endpoints"]
