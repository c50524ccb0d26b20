"""How much of a prompt stays as it was: the measure itself, and that it sees a prompt that does not stay."""

import asyncio

from antiphon.values.model import ChatMessage, ModelRequest
from bench.antiphon_cells import prompt_prefix
from bench.prefix import Listener, prefix_shares, prompt_of


def test_shares_are_counted_in_bytes_of_the_earlier_prompt() -> None:
    assert prefix_shares([b"abcd", b"abxx", b"abxxyy", b"abxx", b"-"]) == [0.5, 1.0, 4 / 6, 0.0]


def test_a_system_prompt_that_tells_the_time_is_seen() -> None:
    said = [ChatMessage("user", "word " * 100)]
    prompts = [prompt_of(ModelRequest("m", f"You talk. It is {hour}:00.", said)) for hour in range(10, 13)]
    assert max(prefix_shares(prompts)) < 0.1


def test_a_result_that_is_shortened_later_is_seen() -> None:
    long, short = (ChatMessage("tool", "detail " * count, call_id="c1", name="look") for count in (99, 9))
    end = ChatMessage("user", "and now?")
    prompts = [prompt_of(ModelRequest("m", "You talk.", said)) for said in ([long], [short, end])]
    assert prefix_shares(prompts)[0] < 0.5


def test_pairs_with_a_compaction_between_them_are_left_out() -> None:
    model = Listener()
    model.prompts, model.breaks = [b"abcd", b"abcdef", b"summary", b"summary and more"], {2}
    assert model.calm() == [1.0, 1.0]


def test_the_cell_talks_for_as_many_turns_as_it_is_told() -> None:
    found = asyncio.run(prompt_prefix(40))
    assert (found["prompts"], found["compactions"], found["least_kept_percent"]) == (40, 0, 100.0)
