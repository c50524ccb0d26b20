"""Strings that name a provider, without its package."""

import pytest

from antiphon.errors import ConfigError
from antiphon.models import resolve_model
from antiphon.models.providers import KNOWN, ProviderModel


@pytest.mark.parametrize("prefix", sorted(KNOWN))
def test_what_is_not_set_is_named_with_its_extra(prefix: str) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve_model(f"{prefix}:some-model", {})
    known = KNOWN[prefix]
    assert f"the extra `{known.extra}`: pip install 'antiphon[{known.extra}]'" in str(caught.value)
    for names in known.settings:
        assert " or ".join(names) in str(caught.value)


@pytest.mark.parametrize("text", ["anthropic:", "nobody:x", "x"])
def test_a_string_that_names_no_provider_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="expected PREFIX:MODEL"):
        ProviderModel(text, env={})
