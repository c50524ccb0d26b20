"""What the state of a run keeps for reading again, and how much of it."""

from antiphon.kernel.facts.options import Options
from antiphon.kernel.facts.state import RunState, keep_outputs
from antiphon.values.limits import OutputLimits


def keeping(characters):
    return RunState(options=Options(outputs=OutputLimits(kept=characters)))


def test_the_oldest_texts_go_when_there_are_too_many():
    run = keeping(8)
    keep_outputs(run, [("a", "1234"), ("b", "5678"), ("c", "9")])
    assert run.outputs.texts == {"b": "5678", "c": "9"}
    assert run.outputs.characters == 5


def test_the_last_one_is_kept_however_long_it_is():
    run = keeping(4)
    keep_outputs(run, [("a", "12"), ("b", "far too long")])
    assert run.outputs.texts == {"b": "far too long"}


def test_a_text_is_kept_once():
    run = keeping(8)
    keep_outputs(run, [("a", "1234"), ("a", "1234")])
    assert run.outputs.characters == 4
