"""`antiphon answer`: what a run asks is answered from another process, once."""

import pytest

from tests.unit.cli.shell import Terminal, plain
from tests.unit.cli.test_terminal import ALLOW, CODE, sent

pytestmark = pytest.mark.slow


@pytest.fixture
def waiting(shell):
    """A run at a terminal that waits for an answer; its id."""
    shell.write("code.py", CODE)
    opened = []

    def start(name, text=ALLOW):
        screen = Terminal(shell, "run", f"code.py:{name}", "go")
        opened.append(screen)
        screen.until(text)
        return screen, shell("runs", "ls", "--json").value[0]["run_id"]

    yield start
    for screen in opened:
        if not hasattr(screen, "code"):
            screen.process.kill()
            screen.end()


def test_what_is_open_is_listed(shell, waiting):
    _, run_id = waiting("one")
    listed = shell("answer", run_id[:8]).out
    assert "1/1.c1  sender asks to use send" in listed
    assert "to: ann␛[2J" in listed
    assert "text: one\n      two" in listed
    assert f"answer {run_id[:12]} 1/1.c1 yes" in listed
    (found,) = shell("answer", run_id, "--json").value
    assert (found["effect"], found["kind"], found["tool"]) == ("1/1.c1?", "approval", "send")
    assert found["arguments"] == {"to": "ann\x1b[2J", "text": "one\ntwo"}
    assert shell("answer", "--json").value == [found]
    assert shell("answer").out.startswith(f"run {run_id[:12]}\n1/1.c1  sender asks to use send")


def test_another_process_answers_while_the_first_one_waits(shell, waiting):
    screen, run_id = waiting("one")
    said = shell.apart("answer", run_id, "1/1.c1", "yes", "--by", "eve")
    assert (said.code, said.err) == (0, "")
    assert f"answered 'yes' by outsider eve, taken in by process {screen.process.pid}" in said.out
    rest = plain(screen.end())
    assert screen.code == 0
    assert "settled elsewhere" in rest
    assert sent(shell) == ["ann\x1b[2J"]
    again = shell("answer", run_id, "1/1.c1", "no")
    assert again.code == 10
    assert "1/1.c1 is settled already: answered 'yes' by outsider eve" in again.err
    assert shell("answer", run_id, "yes").code == 4
    assert shell("answer", run_id).out == f"run {run_id[:12]} asks nothing now\n"


def test_edited_arguments_are_what_the_tool_gets(shell, waiting):
    screen, run_id = waiting("one")
    said = shell("answer", run_id, "y", "--arguments", '{"to": "bob", "text": "else"}')
    assert said.code == 0
    screen.end()
    assert sent(shell) == ["bob"]


def test_an_edit_that_the_tool_refuses_is_told_and_can_be_mended(shell, waiting):
    screen, run_id = waiting("one")
    said = shell("answer", run_id, "y", "--arguments", '{"to": 3}')
    assert said.code == 2
    assert "does not fit, so the question stays open" in said.err
    assert shell("answer", run_id, "y", "--arguments", '{"to": "bob", "text": "else"}').code == 0
    screen.end()
    assert sent(shell) == ["bob"]


def test_a_question_takes_any_text(shell, waiting):
    screen, run_id = waiting("asks", "your answer: ")
    assert "sender asks:\n    Which colour?" in shell("answer", run_id).out
    said = shell("answer", run_id, "1/1.c1", "dark", "blue")
    assert "answered 'dark blue'" in said.out
    screen.end()
    assert screen.code == 0


def test_a_question_with_form_is_listed_with_it_and_held_to_it(shell, waiting):
    screen, run_id = waiting("chooser", "your answer: ")
    listed = shell("answer", run_id).out
    assert "1  red␛[2J" in listed
    assert f"answer {run_id[:12]} 1/1.c1 1" in listed
    (found,) = shell("answer", run_id, "--json").value
    assert (found["options"], found["schema"]) == (["red\x1b[2J", "Blue"], None)
    assert found["deadline"] == pytest.approx(found["since"] + 900)
    wrong = shell("answer", run_id, "1/1.c1", "green")
    assert (wrong.code, "expected one of red" in wrong.err) == (2, True)
    assert "answered 'Blue'" in shell("answer", run_id, "1/1.c1", "blue").out
    screen.until("How old?")
    assert shell("answer", run_id, "1/2.c1", "old").code == 2
    assert "answered '7'" in shell("answer", run_id, "1/2.c1", "7").out
    screen.end()
    assert screen.code == 0


NO_ANSWERS = [
    (["perhaps"], 2, "A permission is answered yes, no, always; got 'perhaps'"),
    (["yes", "--arguments", "[1]"], 2, "--arguments is an object"),
    (["yes", "--arguments", "{"], 2, "--arguments is not JSON"),
    (["no", "--arguments", "{}"], 2, "--arguments goes with allowing"),
    (["--arguments", "{}"], 2, "--arguments comes with an answer"),
    (["9/9.c9", "yes"], 4, "does not ask '9/9.c9'. Open: 1/1.c1"),
    (["9/9.c9"], 4, "does not ask '9/9.c9'"),
    (["0/1.c1", "yes"], 4, "does not ask '0/1.c1'"),
]


def test_what_cannot_be_an_answer_is_never_posted(shell):
    run_id = killed_in_a_question(shell, "one")
    for words, code, text in NO_ANSWERS:
        said = shell("answer", run_id, *words)
        assert said.code == code, words
        assert text in said.err
    assert mail(shell, run_id) == []


def test_several_questions_must_be_told_apart(shell):
    run_id = killed_in_a_question(shell, "both")
    said = shell("answer", run_id, "yes")
    assert said.code == 2
    assert "2 things are asked; say which one is meant: 1/1.c1, 1/1.c2" in said.err


def test_a_killed_run_takes_the_answer_in_when_it_is_resumed(shell):
    run_id = killed_in_a_question(shell, "one")
    said = shell("answer", run_id, "1/1.c1", "yes", "--by", "eve")
    assert said.code == 0
    assert "nobody drives it now; the answer waits for whoever resumes it" in said.out
    assert shell("answer", run_id, "yes", "--by", "eve").code == 0  # repeated: posted once
    other = shell("answer", run_id, "no")
    assert other.code == 10
    assert "has an answer already, which waits to be read: 'yes' by outsider eve" in other.err
    assert len(mail(shell, run_id)) == 1
    assert sent(shell) == []
    resumed = shell.paste(said.out.splitlines()[-1])
    assert (resumed.code, resumed.out) == (0, "done\n")
    assert sent(shell) == ["ann\x1b[2J"]
    assert shell("answer", run_id, "1/1.c1", "yes").code == 10
    again = shell.paste(said.out.splitlines()[-1])
    assert "had ended already" in again.err
    assert sent(shell) == ["ann\x1b[2J"]
    assert shell("runs", "verify").code == 0


def test_a_no_by_mail_denies(shell):
    run_id = killed_in_a_question(shell, "one")
    shell("answer", run_id, "no", "--by", "eve")
    resumed = shell.apart("runs", "resume", run_id, "code.py:one")
    assert resumed.code == 0
    assert "permission denied by outsider eve" in resumed.err
    assert sent(shell) == []


def test_a_cancelled_question_is_settled(shell):
    run_id = killed_in_a_question(shell, "one")
    assert shell("runs", "cancel", run_id, "--yes").code == 0
    said = shell("answer", run_id, "1/1.c1", "yes")
    assert said.code == 10
    assert "1/1.c1 is settled already: cancelled" in said.err


def killed_in_a_question(shell, name):
    """A run of a process that died while it asked; its id."""
    shell.write("code.py", CODE)
    screen = Terminal(shell, "run", f"code.py:{name}", "go")
    screen.until(ALLOW)
    screen.process.kill()
    screen.end()
    return shell("runs", "ls", "--json").value[0]["run_id"]


def mail(shell, run_id):
    import asyncio

    from antiphon.journal import open_journal

    async def look():
        journal = open_journal(f"sqlite:///{shell.folder}/.antiphon/antiphon.db")
        try:
            return list(await journal.commands(run_id))
        finally:
            await journal.close()

    return asyncio.run(look())
