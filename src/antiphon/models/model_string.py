"""A model string taken apart: whose model it is, and which.

openai:gpt-x   openai/gpt-x   gpt-x   are one and the same
"""

from __future__ import annotations

from msgspec import Struct

from antiphon.models.providers.known import KNOWN

COMPATIBLE = ("openai", "ollama", "openrouter")
"""Providers that speak OpenAI's chat completions."""
IN_PROCESS = ("local", "script")
"""What answers in this process: there is no endpoint."""
PROVIDERS = (*COMPATIBLE, *sorted({known.name for known in KNOWN.values()}))
"""Providers with an endpoint, by the names that their models have in the journal."""


class ModelString(Struct, frozen=True):
    """A model string: `prefix` in lower case as it was written, `openai` for a plain id.

    plain: it is an id without a prefix.
    """

    prefix: str
    model: str
    plain: bool = False

    @property
    def provider(self) -> str:
        """The provider by its one name: `claude` is `anthropic`."""
        return KNOWN[self.prefix].name if self.prefix in KNOWN else self.prefix

    @property
    def text(self) -> str:
        """The string as everyone who means this model would write it in full."""
        return f"{self.provider}:{self.model}"


def parse(text: str) -> ModelString:
    """The parts of a model string; both are empty when there is nothing in it."""
    text = text.strip()
    if not text:
        return ModelString("", "")
    # A plain id may hold a slash (vendor/model on a compatible server) or a colon (llama3:8b, a tag of
    # Ollama), so only known prefixes count.
    for mark, known in ((":", {*COMPATIBLE, *IN_PROCESS, *KNOWN}), ("/", {*COMPATIBLE, "local", *KNOWN})):
        prefix, found, rest = text.partition(mark)
        prefix, rest = prefix.lower().strip(), rest.strip()
        if found and prefix in known and (rest or mark == "/"):
            return ModelString(prefix, rest)
    return ModelString("openai", text, plain=True)


def provider_of(prefix: str) -> str:
    """The provider that a prefix of model strings names; empty for one that names none with an endpoint."""
    prefix = prefix.strip().lower()
    return prefix if prefix in COMPATIBLE else KNOWN[prefix].name if prefix in KNOWN else ""
