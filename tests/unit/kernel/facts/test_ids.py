"""Effect ids: what is formatted is parsed again, whatever stands at the place."""

import pytest

from antiphon.kernel.facts import ids

FORMATTED = {
    ids.call_id(3, 2, 0): (3, 2, "c1", 0, ""),
    ids.call_id(12, 345, 99): (12, 345, "c100", 99, ""),
    ids.approval_id(ids.call_id(3, 2, 1)): (3, 2, "c2?", 1, "3/2.c2"),
    ids.model_id(1, 1, 4): (1, 1, "m4", -1, ""),
    ids.backoff_id(1, 1, 4): (1, 1, "w4", -1, ""),
    ids.room_id(3, 1, 2): (3, 1, "r2", -1, ""),
    ids.limit_id(1, 1, 1): (1, 1, "l1", -1, ""),
    ids.deadline_id(7, 1, 2): (7, 1, "d2", -1, ""),
    ids.instructions_id(2, 1): (2, 1, "i", -1, ""),
    ids.action_id(0, 10): (0, 10, "x", -1, ""),
    # The name of an operation is the user's: nothing in it is mistaken for a part of the id.
    ids.action_id(5, 6) + ":a/b.c1?": (5, 6, "x:a/b.c1?", -1, "5/6.x"),
}


@pytest.mark.parametrize(("effect_id", "parts"), FORMATTED.items())
def test_every_id_is_taken_apart_as_it_was_put_together(effect_id: str, parts: tuple[object, ...]) -> None:
    found = ids.parse(effect_id)

    assert str(found) == effect_id
    assert (found.activation, found.turn, found.place, ids.index_of(effect_id), ids.parent_of(effect_id)) == (
        parts
    )
    assert ids.activation_of(effect_id) == found.activation
    assert ids.turn_of(effect_id) == found.turn
    assert ids.turn_id_of(effect_id) == ids.turn_id(found.activation, found.turn)
    assert ids.place_of(effect_id) == found.place
    assert ids.mark_of(effect_id) == found.place[0]


def test_an_approval_is_no_call_but_has_the_place_of_one() -> None:
    assert ids.is_call("3/2.c1")
    assert not ids.is_call("3/2.c1?")
    assert ids.is_approval("3/2.c1?")
    assert not ids.is_approval("3/2.c1")
    assert not ids.is_call("3/2.m1")
    assert not ids.is_approval("3/2.x:who?")


@pytest.mark.parametrize("text", ["", "3", "3/2", "a/2.c1", "3/b.c1"])
def test_what_is_no_id_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        ids.parse(text)
