"""The log of deltas: whoever reads, whenever it came and however slow it is, has all or the end of it."""

from collections import deque
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon.kernel.facts.records import ActivationIndex, ReplyDelta
from antiphon.kernel.run.live import deltas as module
from antiphon.kernel.run.live.deltas import TEXTS, DeltaLog
from antiphon.values.model import Delta

M1, M2 = "0/1.m1", "0/2.m1"


def new_log() -> DeltaLog:
    return DeltaLog(ActivationIndex(), {}, {})


def put(log: DeltaLog, effect: str, *deltas: Any, most: int = 1_000) -> None:
    log.waiting.setdefault(effect, deque(maxlen=most)).extend(deltas)


def text(said: str) -> Delta:
    return Delta("text", said)


class ReaderOfAll:
    """Reads all there is now and then, as a subscription does."""

    def __init__(self, log: DeltaLog) -> None:
        self.log, self.cursor = log, 0
        self.found: list[ReplyDelta] = []

    def read(self, position: int = 0) -> list[ReplyDelta]:
        new = self.log.after(self.cursor, position)
        self.cursor = self.log.number
        self.found += new
        return new


def joined(found: list[ReplyDelta]) -> tuple[int, str]:
    """Where what was read begins that has no gap, and what it is."""
    cuts = [at for at, each in enumerate(found) if each.cut]
    whole = found[cuts[-1] if cuts else 0 :]
    for before, after in pairwise(whole):
        assert after.offset == before.offset + len(before.text)
    return (whole[0].offset, "".join(each.text for each in whole)) if whole else (0, "")


STEPS = st.lists(
    st.one_of(st.text("ab\u00e9🙂", min_size=1, max_size=9), st.sampled_from(["look", "round", 0, 1, 2])),
    max_size=60,
)


@given(STEPS)
def test_what_a_reader_joined_is_the_text_or_its_end(steps: list[str | int]) -> None:
    kept = module.KEPT
    module.KEPT = 12
    try:
        log = new_log()
        readers, said = [ReaderOfAll(log) for _ in range(3)], ""
        log.waiting[M1] = deque(maxlen=1_000)
        for step in steps:
            if step == "look":
                log.take_in()
            elif step == "round":
                log.begin_round(0)
            elif isinstance(step, int):
                readers[step].read()
            else:
                put(log, M1, text(step))
                said += step
        log.take_in()
        for each in (*readers, ReaderOfAll(log)):
            each.read()
            offset, found = joined(each.found)
            assert said[offset:] == found
            assert len(found) >= min(len(said), module.KEPT)
            assert (offset == 0) == (found == said)
        log.begin_round(0)
        log.begin_round(0)
        assert sum(said.size for said in log.open.values()) <= module.KEPT
    finally:
        module.KEPT = kept


class Watching(ReaderOfAll):
    """Reads records too, as a subscription does: what an effect said comes before the record of its end."""

    position = 0

    def go_on(self, ends: list[str]) -> None:
        for effect in ends[self.position :]:
            if effect in self.log.ended:
                self.found += self.log.rest(effect, self.cursor)
            self.position += 1

    def read_on(self) -> None:
        self.read(self.position)


EFFECTS = ("0/1.m1", "0/2.m1", "0/3.m1")
TURNS = st.lists(
    st.one_of(
        st.tuples(st.just("say"), st.integers(0, 2), st.text("ab", min_size=1, max_size=4)),
        st.tuples(st.sampled_from(["look", "round"]), st.just(0), st.just("")),
        st.tuples(st.sampled_from(["end", "void"]), st.integers(0, 2), st.just("")),
        st.tuples(st.sampled_from(["read", "go on"]), st.integers(0, 3), st.just("")),
    ),
    max_size=50,
)  # fmt: skip


@given(TURNS)
def test_each_reader_is_given_every_reply_once_and_nothing_that_is_void_stays(
    steps: list[tuple[str, int, str]],
) -> None:
    log = new_log()
    readers = [Watching(log) for _ in range(4)]
    said, ends, void = dict.fromkeys(EFFECTS, ""), list[str](), set[str]()
    for what, which, spoken in steps:
        effect = EFFECTS[min(which, 2)]
        if what == "say" and effect not in ends:
            put(log, effect, text(spoken))
            said[effect] += spoken
        elif what == "look":
            log.take_in()
        elif what == "round":
            log.begin_round(min(each.position for each in readers))
        elif what in ("end", "void") and effect in log.waiting:
            ends.append(effect)
            void |= {effect} if what == "void" else set()
            log.end(effect, len(ends), void=what == "void", keep=True)
        elif what == "go on":
            readers[which].go_on(ends)
        elif what == "read":
            # What has ended may not be durable yet: it is read of before its record is.
            readers[which].read_on()
    log.take_in()
    for each in readers:
        each.go_on(ends)
        each.read_on()
        for effect in EFFECTS:
            given = [one for one in each.found if one.effect_id == effect]
            if effect not in void:
                assert joined(given) == (0, said[effect])
            elif given:
                assert [one.kind for one in given].index("void") == len(given) - 1 > 0


def test_who_comes_late_is_given_what_is_open_as_one_piece() -> None:
    log = new_log()
    for said in ("One ", "two ", "three."):
        put(log, M1, Delta("reasoning", "hm "), text(said))
        log.take_in()
    assert ReaderOfAll(log).read() == [
        ReplyDelta(M1, 0, "user", "reasoning", "hm hm hm "),
        ReplyDelta(M1, 0, "user", "text", "One two three."),
    ]


def test_who_reads_in_every_round_misses_nothing_however_much_is_said() -> None:
    log = new_log()
    reader = ReaderOfAll(log)
    for _ in range(3):
        put(log, M1, text("x" * 2 * module.KEPT))
        log.take_in()
        log.begin_round(0)
        reader.read()
    assert joined(reader.found) == (0, "x" * 6 * module.KEPT)
    assert not any(each.cut for each in reader.found)
    assert len(ReaderOfAll(log).read()[0].text) < 6 * module.KEPT


def test_readers_at_the_same_place_share_what_they_read() -> None:
    log = new_log()
    put(log, M1, text("One"))
    log.take_in()
    first, second = ReaderOfAll(log).read(), ReaderOfAll(log).read()
    assert first is second


@pytest.mark.parametrize("between", [False, True], ids=["before its record", "as soon as it is read"])
def test_an_attempt_that_failed_is_taken_back_from_those_who_read_some_of_it(between: bool) -> None:
    log = new_log()
    reader, late = ReaderOfAll(log), ReaderOfAll(log)
    put(log, M1, text("half an "))
    log.take_in()
    reader.read()
    put(log, M1, text("answer"))
    log.end(M1, 7, void=True, keep=True)
    put(log, M2, text("The answer."))
    log.take_in()
    for each in (reader, late):
        before = each.read(6) if between else []
        found = [*before, *log.rest(M1, each.cursor), *each.read(7)]
        told = [(one.effect_id, one.kind, one.text) for one in found]
        taken_back = [(M1, "void", "")] if each is reader else []
        assert told == [*taken_back, (M2, "text", "The answer.")]


@pytest.mark.parametrize("looks", [0, 1, 2])
@pytest.mark.parametrize("reads", ["", "after", "before", "both"])
def test_a_reply_that_has_ended_is_handed_out_once_and_before_its_record(looks: int, reads: str) -> None:
    """Whether it was read of before its end, between that and its record, or not at all."""
    log, said = new_log(), ""
    reader = ReaderOfAll(log)
    for number in range(looks):
        put(log, M1, text(f"{number} "))
        said += f"{number} "
        log.take_in()
        if reads in ("before", "both") and not number:
            reader.read()
    put(log, M1, text("end"))
    log.end(M1, 7, void=False, keep=True)
    if reads in ("after", "both"):
        reader.read(6)
    reader.found += log.rest(M1, reader.cursor)
    assert joined(reader.found) == (0, f"{said}end")
    assert not any(each.cut for each in reader.found)
    assert reader.read(7) == []
    log.begin_round(7)
    assert not log.ended


def test_what_has_ended_and_nobody_reads_is_forgotten() -> None:
    log = new_log()
    for number in range(3 * module.ENDED):
        put(log, f"0/{number}.m1", text("x"))
        log.end(f"0/{number}.m1", number, void=False, keep=True)
    assert len(log.ended) == module.ENDED
    for number in range(3):
        put(log, f"1/{number}.m1", text("x" * module.KEPT)) if number else put(log, M1, text("y"))
        log.waiting.setdefault(f"0/{number}.m2", deque())
        log.end(f"0/{number}.m2", 9, void=False, keep=False)
    assert not any(effect.endswith("m2") for effect in (*log.ended, *log.open, *log.waiting))


@pytest.mark.parametrize("kind", ["queued", "progress"])
def test_of_how_it_stands_only_the_latest_is_kept(kind: Any) -> None:
    log = new_log()
    reader = ReaderOfAll(log)
    for number in range(1, 4):
        put(log, M1, Delta(kind, f"{number} of 9", number))
        log.take_in()
        reader.read()
    assert [each.text for each in reader.found] == ["1 of 9", "2 of 9", "3 of 9"]
    (late,) = ReaderOfAll(log).read()
    assert (late.text, late.index, late.offset, late.cut) == ("3 of 9", 3, 0, False)
    log.end(M1, 7, void=True, keep=True)
    assert [each.kind for each in log.rest(M1, 0)] == [kind]
    assert log.rest(M1, reader.cursor) == []
    reader.read(6)
    assert log.rest(M1, reader.cursor) == []


def test_what_is_no_delta_is_ignored() -> None:
    log = new_log()
    made: Any = Delta
    wrong = [None, "text", made("text", 5), made([], "x"), made("text", "x", "1"), made("void", "x")]
    put(log, M1, *wrong, text(""), text("good"))
    log.take_in()
    assert [each.text for each in log.after(0, 0)] == ["good"]


def test_of_texts_without_number_only_so_many_are_kept() -> None:
    log = new_log()
    put(log, M1, *(Delta("call_name", "x", number) for number in range(3 * TEXTS)), most=10_000)
    log.take_in()
    assert len(log.after(0, 0)) == TEXTS


def test_of_more_than_can_wait_the_oldest_are_lost_and_nothing_is_joined_over_the_gap() -> None:
    log = new_log()
    reader = ReaderOfAll(log)
    put(log, M1, text("before "), most=3)
    log.take_in()
    put(log, M1, *map(text, "abcdef"))
    log.take_in()
    (piece,) = reader.read()
    assert (piece.text, piece.cut) == ("def", True)
