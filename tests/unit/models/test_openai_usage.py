"""What chat-completions endpoints say of usage, in every spelling; and what counts as not said."""

import json
from typing import Any

import msgspec
import pytest

from antiphon.models.openai.reply import read_usage
from antiphon.values.model import Usage


@pytest.mark.parametrize(
    ("told", "usage"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 2}, Usage(5, 2)),
        ({"input_tokens": 5, "output_tokens": 2}, Usage(5, 2)),
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}},
            Usage(5, 2, 4),
        ),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 3}, Usage(5, 2, 3)),
        ({"prompt_tokens": 5, "completion_tokens": 2, "cached_tokens": 3}, Usage(5, 2, 3)),
        (
            {
                "prompt_tokens": 0,
                "completion_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 4},
            },
            Usage(0, 9, 0, 4),
        ),
        (
            {"input_tokens": 1, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 4}},
            Usage(1, 9, 0, 4),
        ),
        (
            {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 11, "reasoning_tokens": 4},
            Usage(5, 6, 0, 4),
        ),
        ({"prompt_tokens": "5", "completion_tokens": 2.0}, Usage(5, 2)),
        ({"prompt_tokens": None, "prompt_tokens_details": None}, None),
        ({"completion_tokens": 9}, None),
        ({"prompt_tokens": 5}, None),
        ({"prompt_tokens": -5, "completion_tokens": 2}, None),
        ({"prompt_tokens": 5, "completion_tokens": 2, "cached_tokens": -1}, None),
        ({"prompt_tokens": 10**13, "completion_tokens": 2}, None),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": "many", "completion_tokens": 2}, None),
        ([], None),
    ],
)
def test_usage_in_every_spelling(told: Any, usage: Usage | None) -> None:
    assert read_usage(msgspec.Raw(json.dumps(told).encode())) == usage
