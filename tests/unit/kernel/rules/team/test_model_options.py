"""What is known of a model that an agent may ask."""

from antiphon.kernel.rules.team.compiled import ModelOption
from antiphon.models.script import Script


def test_a_models_name_stands_in_the_digest_of_what_it_is_asked() -> None:
    one, other, again = (ModelOption(Script([], name=name)) for name in ("one", "other", "one"))
    assert [one.name, other.name] == ["one", "other"]
    assert len(one.seed) == 16
    assert one.seed == again.seed != other.seed


def test_it_counts_by_the_name_that_it_had_when_the_run_was_opened() -> None:
    known = ModelOption(Script([], name="later"), name="at first")
    assert (known.name, known.seed) == ("at first", ModelOption(Script([], name="at first")).seed)


def test_without_a_word_on_its_prices_it_costs_what_nobody_knows_and_its_cache_saves_nothing() -> None:
    unknown, free = ModelOption(Script([])), ModelOption(Script([]), None, 0.0, 0.0)
    assert (unknown.most(10, 10), unknown.free, unknown.cached_share) == (None, False, 1.0)
    assert (free.most(10, 10), free.free) == (0, True)
