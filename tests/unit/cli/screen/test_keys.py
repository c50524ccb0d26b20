"""What keys mean: remapped, in vi, what was sent before, pastes, files that are mentioned."""

import asyncio
import os
import random
import stat
import sys
import time

import pytest

from antiphon.cli.screen.choices import OfferedLine
from antiphon.cli.screen.given import Sent
from antiphon.cli.screen.keys import history as kept
from antiphon.cli.screen.keys.editor import EditorTools
from antiphon.cli.screen.keys.finder import FileFinder, MentionIndex
from antiphon.cli.screen.keys.history import KeptHistory
from antiphon.cli.screen.keys.keymap import ACTIONS, DEFAULT, parsed, read_keymap, shown
from tests.unit.cli.screen.test_inline import seated

PNG = b"\x89PNG\r\n\x1a\n" + bytes(20)


def keymap(tmp_path, text):
    (tmp_path / "keys.yaml").write_text(text, "utf-8")
    return read_keymap(tmp_path / "keys.yaml")


# -- which keys -----------------------------------------------------------------------------------


def test_a_key_is_read_as_a_person_writes_it():
    assert parsed("ctrl-x ctrl-e") == ("c-x", "c-e")
    assert parsed("Alt-Enter") == ("escape", "c-m")
    assert parsed("shift-tab") == ("s-tab",)
    assert parsed("f3") == ("f3",)
    assert shown(DEFAULT, "show-output") == "Ctrl-O"
    assert shown(DEFAULT, "queue") == "Esc Enter"


def test_without_a_file_the_keys_are_the_usual_ones(tmp_path):
    assert read_keymap(tmp_path / "keys.yaml") is DEFAULT
    assert keymap(tmp_path, "").keys == DEFAULT.keys


def test_a_key_that_is_given_away_is_taken_from_what_had_it(tmp_path):
    found = keymap(tmp_path, "keys:\n  queue: [ctrl-o, f5]\n  open-editor: none\n")
    assert found.wrong == ()
    assert found.keys["queue"] == (("c-o",), ("f5",))
    assert found.keys["show-output"] == found.keys["open-editor"] == ()
    assert found.keys["send"] == DEFAULT.keys["send"]


def test_all_that_is_wrong_is_named_at_once_and_the_rest_holds(tmp_path):
    lines = [
        "editing: vim", "keys:", "  sned: f1", "  queue: hyper-x", "  stop: x", "  rewind: [f2, [f3]]",
        "  leave: f2", "  show-output: f9", "colour: red", "  ",
    ]  # fmt: skip
    found = keymap(tmp_path, "\n".join(lines))
    where = f"{tmp_path / 'keys.yaml'}:"
    assert [each.removeprefix(where).partition(": ")[0].partition(":")[0] for each in found.wrong] == [
        "1", "3", "4", "5", "6", "7", "9",
    ]  # fmt: skip
    said = "\n".join(found.wrong)
    assert "editing is emacs or vi" in said
    assert "there is nothing called 'sned'; did you mean 'send'?" in said
    assert "'hyper-x' is no key" in said
    assert "could no longer be written; use ctrl- or alt-" in said
    assert "f2 is rewind already" in said
    assert found.keys["show-output"] == (("f9",),)
    assert found.keys["rewind"] == (("f2",),)
    assert (found.keys["queue"], found.editing) == ((), "emacs")


@pytest.mark.parametrize("text", ["- a list", "keys: [1", "keys: send", "\x00", "a: &b 1\nc: *b"])
def test_a_file_that_is_none_leaves_the_usual_keys(tmp_path, text):
    found = keymap(tmp_path, text)
    assert found.keys == DEFAULT.keys
    assert len(found.wrong) == 1
    assert "keys.yaml" in found.wrong[0]


def test_what_is_wrong_is_said_where_it_is_seen(tmp_path):
    def play(seat):
        assert "nothing called 'sned'" in " ".join(seat.seen())

    seated(play, EditorTools(keymap(tmp_path, "keys: {sned: f1}")))


def test_another_key_does_it(tmp_path):
    def play(seat):
        seat.keys("one\x1bOP")
        assert list(seat.screen.messages) == ["one"]
        seat.keys("two\r")
        assert list(seat.screen.messages) == ["one"]

    seated(play, EditorTools(keymap(tmp_path, "keys: {send: f1}")))


def test_vi_is_edited_with_its_commands(tmp_path):
    def play(seat):
        seat.keys("one two\x1b")
        seat.keys("bcwthree\x1b")
        seat.keys("0x\r")
        assert list(seat.screen.messages) == ["ne three"]
        # What is written next is text again, and Esc stops only where it has nothing else to do.
        seat.keys("x\x1b")
        assert seat.stops == 0
        seat.keys("\x1b")
        assert seat.stops == 1

    seated(play, EditorTools(keymap(tmp_path, "editing: vi")))


def test_vi_commands_answer_no_question_and_its_keys_do(tmp_path):
    def play(seat):
        seat.keys("draft\x1b")
        seat.ask()
        seat.keys("y")
        assert [each.content for each in seat.screen.messages] == ["yes"]

    seated(play, EditorTools(keymap(tmp_path, "editing: vi")))


def test_alt_and_a_letter_without_a_meaning_stops_nothing():
    def play(seat):
        seat.keys("\x1bj")
        assert seat.stops == 0
        seat.keys("\x1b")
        assert seat.stops == 1

    seated(play)


def test_esc_twice_goes_back_and_only_with_nothing_written():
    def play(seat):
        seat.keys("draft")
        seat.keys("\x1b")
        seat.keys("\x1b")
        assert (seat.stops, list(seat.screen.messages)) == (2, [])
        seat.keys("\x03")
        seat.screen._editor._escaped_at = float("-inf")
        seat.keys("\x1b")
        seat.keys("\x1b")
        assert (seat.stops, list(seat.screen.messages)) == (3, ["/rewind"])
        seat.keys("\x1b\x1b")
        assert list(seat.screen.messages) == ["/rewind", "/rewind"]

    seated(play)


def test_one_of_a_list_is_picked_in_the_editors_place():
    def play(seat):
        seat.keys("draft")
        seat.screen.choose("Back to:", [OfferedLine(f"message {n}", f"/rewind {n}") for n in range(40)])
        seat.keys("x\x1b[A\x1b[A")
        rows = seat.seen()
        assert rows[0] == "Back to:"
        assert "  message 37" in rows
        assert "> draft" not in rows
        seat.keys("\r")
        assert list(seat.screen.messages) == ["/rewind 37"]
        assert seat.seen()[0] == "> draft"
        seat.screen.choose("Back to:", [OfferedLine("one", "/rewind 1")])
        seat.keys("\x1b")
        assert list(seat.screen.messages) == ["/rewind 37"]
        seat.screen.choose("Back to:", [OfferedLine("one", "/rewind 1")])
        seat.keys("\x03")
        assert (seat.seen()[0], seat.breaks) == ("> draft", 0)
        # A question comes first.
        seat.screen.choose("Back to:", [OfferedLine("one", "/rewind 1")])
        seat.ask()
        seat.keys("y")
        assert seat.screen.messages[-1].content == "yes"

    seated(play)


# -- what was sent before -------------------------------------------------------------------------


def test_what_is_sent_is_kept_for_the_user_alone_and_found_again(tmp_path):
    path = tmp_path / "state" / "history"
    first = KeptHistory(path)
    first.append_string("one\ntwo")
    first.append_string("one\ntwo")
    first.append_string("x" * (kept.LONGEST + 1))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again = KeptHistory(path)
    assert again.get_strings() == ["one\ntwo"]
    again.append_string("Three")
    assert KeptHistory(path).search("THR", 0) == "Three"
    assert KeptHistory(path).search("o", 1) is None


def test_the_file_is_bounded_and_what_is_torn_is_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "KEPT", 3)
    monkeypatch.setattr(kept, "MOST", 6)
    path = tmp_path / "history"
    found = KeptHistory(path)
    for number in range(7):
        found.append_string(f"message {number}")
    assert path.read_text() == '"message 4"\n"message 5"\n"message 6"\n'
    with path.open("a") as file:
        file.write('"torn\n17\n\xff\n')
    assert KeptHistory(path).get_strings() == ["message 4", "message 5", "message 6"]


def test_two_terminals_lose_nothing_of_each_other(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "MOST", 4)
    path = tmp_path / "history"
    one, other = KeptHistory(path), KeptHistory(path)
    for number in range(3):
        one.append_string(f"one {number}")
        other.append_string(f"other {number}")
    found = {each.strip('"') for each in path.read_text().splitlines()}
    assert found == {f"{who} {n}" for who in ("one", "other") for n in range(3)}


def test_a_place_that_cannot_be_written_is_said_and_nothing_is_lost_here(tmp_path):
    (tmp_path / "file").write_text("")

    def play(seat):
        seat.keys("one\r")
        seat.keys("\x12o")
        assert seat.screen._editor.buffer.text == "one"
        assert "is not kept in" in seat.screen._editor.history.trouble

    seated(play, EditorTools(history=KeptHistory(tmp_path / "file" / "history")))


def test_a_link_in_its_place_is_not_followed(tmp_path):
    (tmp_path / "history").symlink_to(tmp_path / "elsewhere")
    found = KeptHistory(tmp_path / "history")
    found.append_string("one")
    assert found.trouble
    assert not (tmp_path / "elsewhere").exists()


def test_it_is_searched_as_in_a_shell():
    def play(seat):
        for text in ("git diff", "git log", "ls"):
            seat.keys(text + "\r")
        seat.keys("half\x12GIT")
        assert "sent before, with 'GIT': git log" in seat.seen()[-1]
        seat.keys("\x12")
        assert seat.screen._editor.buffer.text == "git diff"
        seat.keys("\x12")
        assert seat.screen._editor.buffer.text == "git diff"
        seat.keys("\x03")
        assert seat.screen._editor.buffer.text == "half"
        seat.keys("\x12log\r")
        assert (len(seat.screen.messages), seat.screen._editor.buffer.text) == (3, "git log")
        seat.keys("\x12\x1b[200~ls\n\x1b[201~\x7f\x7f\x7fdiff\r\r")
        assert seat.screen.messages[-1] == "git diff"

    seated(play)


def test_an_answer_is_no_message_and_is_not_kept():
    def play(seat):
        seat.ask("")
        seat.keys("a secret\r")
        assert seat.screen._editor.history.get_strings() == []

    seated(play)


# -- pastes ---------------------------------------------------------------------------------------


def pasted(text):
    return f"\x1b[200~{text}\x1b[201~"


def test_a_large_paste_is_a_marker_and_sent_whole():
    lines = "\n".join(f"line {n}" for n in range(42))

    def play(seat):
        seat.keys("See " + pasted(lines) + " please")
        assert "> See [pasted 1: 42 lines] please" in seat.seen()
        seat.keys("\r")
        assert list(seat.screen.messages) == [f"See {lines} please"]
        assert seat.screen._editor.pastes._texts == {}
        # The marker written by hand is a text.
        seat.keys("[pasted 1: 42 lines]\r")
        assert seat.screen.messages[-1] == "[pasted 1: 42 lines]"
        seat.keys("\x12line 7")
        assert seat.screen._editor.buffer.text == f"See {lines} please"

    seated(play)


def test_a_marker_goes_as_a_whole_and_a_queued_one_stays_good():
    def play(seat):
        seat.keys("a" + pasted("x" * 2_000) + "\x7f")
        assert seat.screen._editor.buffer.text == "a"
        seat.keys(pasted("y" * 2_000) + "\x1b\r")
        assert list(seat.screen.later) == ["a[pasted 2: 2,000 characters]"]
        seat.keys("other\r\x1b[A\r")
        assert seat.screen.messages[-1] == "a" + "y" * 2_000

    seated(play)


def test_an_answer_shows_all_that_was_pasted_into_it():
    def play(seat):
        seat.ask("")
        seat.keys(pasted("x\n" * 20) + "\r")
        assert seat.screen.messages[-1].content == "x\n" * 20

    seated(play)


@pytest.mark.parametrize("form", ["{}", "'{}'", '"{}"', "{} ", "file://{}"])
def test_the_path_of_an_image_takes_it_along(tmp_path, form):
    image = tmp_path / "shot.png"
    image.write_bytes(PNG)

    def play(seat):
        seat.keys("Look: " + pasted(form.format(image)))
        assert "> Look: [image 1: shot.png]" in seat.seen()
        seat.keys("\r")
        (sent,) = seat.screen.messages
        assert (type(sent), sent.text) == (Sent, "Look: [image 1: shot.png]")
        assert [(each.media_type, each.name) for each in sent.files] == [("image/png", "shot.png")]

    seated(play)


def test_what_is_no_image_stays_a_text(tmp_path, monkeypatch):
    (tmp_path / "a b.png").write_bytes(PNG)
    (tmp_path / "note.txt").write_text("x")
    monkeypatch.chdir(tmp_path)
    others = ["note.txt", "gone.png", str(tmp_path), "it's", "x\0.png", "a b.png c", "/etc/passwd"]

    def play(seat):
        seat.keys(pasted("a\\ b.png"))
        assert seat.screen._editor.buffer.text == "[image 1: a b.png]"
        for each in others:
            seat.screen._editor.put("")
            seat.keys(pasted(each))
            assert seat.screen._editor.buffer.text == each

    seated(play)


# -- files that are mentioned ---------------------------------------------------------------------


def test_the_likeliest_files_come_first():
    paths = ["docs/terminal.md", "src/term/inal.py", "tests/unit/test_terminal.py", "terminal.py", "a/t.py"]
    index = MentionIndex(paths)
    assert index.best("terminal")[:3] == ["terminal.py", "docs/terminal.md", "tests/unit/test_terminal.py"]
    assert index.best("tterm") == ["tests/unit/test_terminal.py"]
    assert index.best("zz") == []
    assert index.best("DOCSTER") == ["docs/terminal.md"]
    assert len(index.best("")) == 5


def test_a_hundred_thousand_files_are_searched_in_a_moment():
    chance = random.Random(7)
    words = ["src", "test", "view", "kernel", "model", "runtime", "journal", "index", "main", "render"]
    paths = [
        "/".join(f"{chance.choice(words)}{chance.randint(0, 99)}" for _ in range(5)) + ".py"
        for _ in range(100_000)
    ]
    index = MentionIndex(paths)

    def cost(work):
        began = time.process_time()
        work()
        return time.process_time() - began

    # Whatever counts lines would count those of one side only.
    traced = sys.gettrace()
    sys.settrace(None)
    try:
        plain = min(cost(lambda: ["run" in each for each in paths]) for _ in range(3))
        for letters in ("", "r", "run", "runtime", "kerjoumai", "zzz"):
            index.best("")
            assert cost(lambda: index.best(letters)) < 40 * plain, letters  # noqa: B023 - called at once
    finally:
        sys.settrace(traced)


def test_a_file_is_mentioned_by_some_letters():
    def play(seat):
        editor = seat.screen._editor
        asked = []
        editor._finder.ask = asked.append
        seat.keys("See @ter")
        assert asked == ["", "t", "te", "ter"]
        editor._offer("te", ["late.md"])
        assert editor.menu == []
        editor._offer("ter", ["docs/terminal.md", "term\x1b[2J.py"])
        assert seat.seen()[-2:] == ["  @docs/terminal.md", "  @term␛[2J.py"]
        seat.keys("\x1b[B\x1b[A\x1b[A")
        assert editor.picked == 1
        seat.keys("\x1b[A\t")
        assert editor.buffer.text == "See @docs/terminal.md "
        # What is written in full is sent, and an address is none.
        seat.keys("@docs/terminal.md")
        editor._offer("docs/terminal.md", ["docs/terminal.md"])
        assert editor.menu == []
        seat.keys("\r")
        assert seat.screen.messages[-1] == "See @docs/terminal.md @docs/terminal.md"
        del asked[:]
        seat.keys("ann@example")
        assert asked == []
        seat.keys(" @x")
        editor._offer("x", ["x.py"])
        seat.keys("\x1b")
        assert (editor.menu, seat.stops) == ([], 0)

    seated(play, EditorTools(listed=list))


def test_files_are_looked_for_beside_the_keys_and_only_what_is_asked_last():
    async def main():
        came = asyncio.Queue()
        finder = FileFinder(lambda: ["a/one.py", "b/two.py"], lambda *found: came.put_nowait(found))
        for letters in ("o", "on", "tw"):
            finder.ask(letters)
        found = await came.get()
        while found[0] != "tw":
            found = await came.get()
        assert found == ("tw", ["b/two.py"])
        finder.close()

    asyncio.run(main())


def test_every_key_has_a_place_in_the_documentation():
    text = (os.path.dirname(__file__), "../../../../docs/terminal.md")
    with open(os.path.join(*text), encoding="utf-8") as file:
        told = file.read()
    assert [name for name in ACTIONS if f"`{name}`" not in told] == []
