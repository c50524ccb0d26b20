"""What a line for bash starts: its plain commands, and nothing that no subject names."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import msgspec
import pytest

from antiphon.tools.shell import shell_tools
from antiphon.tools.shell.hazards import PLAIN_BUILTINS
from antiphon.tools.shell.words import MAX_COMMANDS, subject_of, subjects_of
from antiphon.values.policy import Grant, Verbatim, covers
from tests.unit.tools.shell.lines import BASH, BUILTINS, PROGRAMS, StandIns, line

PLAIN = {
    "git status": ["git status"],
    "git diff; curl https://example.com": ["git diff", "curl https://example.com"],
    "pytest -q tests | tail -5": ["pytest -q tests", "tail -5"],
    "cd src && ls -la || echo none": ["cd src", "ls -la", "echo none"],
    "ls\n\n  git log \\\n  --oneline\n": ["ls", "git log --oneline"],
    "ls; ls; ls": ["ls"],
    "ls;": ["ls"],
    "ls |\n\n wc -l": ["ls", "wc -l"],
    "git commit -m 'a; rm -rf ~'": ["git commit -m 'a; rm -rf ~'"],
    'git commit -m "say \\"no\\" to \\$HOME"': ["git commit -m 'say \"no\" to $HOME'"],
    "git diff HEAD~1 HEAD^ --stat=80": ["git diff HEAD~1 HEAD^ --stat=80"],
    "cat a\\ b 'c'd\"e\"": ["cat 'a b' cde"],
    "cat ''": ["cat ''"],
    "python -m pytest -x tests/unit": ["python -m pytest -x tests/unit"],
    "python3.12 -u scripts/run.py -c x": ["python3.12 -u scripts/run.py -c x"],
    "echo größe": ["echo 'größe'"],
}
ITSELF = [
    "echo $HOME", "echo $(ls)", "echo `ls`", 'echo "$HOME"', 'echo "`ls`"', "ls > out", "ls 2>&1", "cat < in",
    "cat <<E\nx\nE", "cat <<< x", "diff <(ls) x", "ls *.py", "ls ?", "ls [ab]", "ls {a,b}", "ls ~",
    "ls ~root", "ls a:~", "FOO=1 ls", "FOO+=1 ls", "ls & rm x", "ls &", "ls |& cat", "ls ;; cat", "; ls",
    "ls ;\n; ls", "ls &&", "ls |", "(ls)", "{ ls; }", "! ls", "if ls; then cat; fi", "while ls; do cat; done",
    "time ls", "[[ -f x ]]", "f() { ls; }", "ls # rest", "ls 'x", 'ls "x', "ls \\", "ls\r\ncat", "ls\u00a0-l",
    "ls\u2003-l", "ls \u202e", "ls\x0bx", "'' x", "", " ", "eval ls", "exec ls", "command ls", ". ./x",
    "source x", "export PATH=.", "alias ls=rm", "hash -p ./x ls; ls", "trap ls EXIT", "test -v 'a[$(ls)]'",
    "printf -v 'a[$(ls)]' x", "read x", "shopt -s expand_aliases", "%1", "cd out && ./run", "cd out; sub/run",
]  # fmt: skip
STARTS = [
    "git -c core.pager=x log", "git --exec-path=. log", "git -C /elsewhere log", "git config alias.x '!ls'",
    "git x", "git log --output=x", "git log --outp=x", "git diff --ext-diff", "git grep -Oless x",
    "git rebase -ix ls", "git rebase --exec ls", "git submodule foreach ls", "git bisect run ls",
    "git fetch --upload-pack=x o", "git fetch ext::ls", "git clone --config x=y a", "git difftool -x ls",
    "git", "/usr/bin/git -c a=b log", "find . -exec ls", "find . -name x -delete", "find . -fprint x",
    "fd -x ls", "xargs ls", "env ls", "/usr/bin/env ls", "sudo ls", "nohup ls", "nice ls", "timeout 5 ls",
    "watch ls", "setsid ls", "ssh host ls", "python -c 'print()'", "python3.11 -c x", "python -Bc x",
    "python -", "python", "python -m timeit x", "python -W x -c y", "perl -e x", "perl -ne x f", "ruby -e x",
    "node -e x", "node --eval x", "php -r x", "bash -c ls", "sh x", "busybox ls", "awk '{system(\"ls\")}'",
    "sed s/a/b/e f", "vim -c x", "make -f x", "make SHELL=./x", "make --eval=x",
    "tar --checkpoint-action=x cf y z", "tar -I x -cf y z", "tar Icf x y", "tar xf y --to-com=x", "go run x",
    "go test -exec x", "npm exec x", "npx x", "uv run x", "cargo run", "pytest -p x", "pytest -c x",
    "rg --pre x y", "sort --compress-program=x", "docker run x", "SUDO ls", "gcc-12 -wrapper x",
    "curl -o x y", "curl -K x",
]  # fmt: skip


@pytest.mark.parametrize("given", PLAIN)
def test_a_plain_line_is_what_its_commands_are(given: str) -> None:
    assert list(subjects_of(given)) == PLAIN[given]


@pytest.mark.parametrize("given", ITSELF)
def test_a_line_that_only_the_shell_can_read_stands_for_itself(given: str) -> None:
    assert subjects_of(given) == (Verbatim(given),)


@pytest.mark.parametrize("given", STARTS)
def test_no_beginning_covers_a_command_that_starts_what_its_arguments_say(given: str) -> None:
    assert [type(each) for each in subjects_of(given)] == [Verbatim]


def test_of_several_commands_each_is_judged_by_itself() -> None:
    assert subjects_of("git status && env ls") == ("git status", Verbatim("env ls"))


def test_no_text_becomes_a_subject_that_another_one_has() -> None:
    assert subjects_of("git 'diff x'") != subjects_of("git diff x")


def test_a_line_of_very_many_commands_stands_for_itself() -> None:
    assert len(subjects_of("; ".join(f"ls {number}" for number in range(MAX_COMMANDS)))) == MAX_COMMANDS
    many = "; ".join(f"ls {number}" for number in range(MAX_COMMANDS + 1))
    assert subjects_of(many) == (Verbatim(many),)


@pytest.mark.skipif(not BASH, reason="there is no bash here")
def test_all_that_this_bash_does_itself_is_known() -> None:
    told = subprocess.run([BASH, "-c", "compgen -b; compgen -k"], capture_output=True, check=True).stdout
    known = {*PLAIN_BUILTINS, *told_apart(), "["}
    assert [each for each in told.decode().split() if each not in known] == []


def told_apart() -> set[str]:
    """Words that make their line stand for itself."""
    words = subprocess.run([BASH, "-c", "compgen -b; compgen -k"], capture_output=True, check=True).stdout
    return {
        each
        for each in words.decode().split()
        if subjects_of(f"{each} x; ls") == (Verbatim(f"{each} x; ls"),)
    }


def check_lines(folder: Path, seed: int, count: int) -> None:
    """Lines made by chance: every program that bash starts, with its words, is one that a subject names, and
    what a person has allowed by its beginning starts nothing else."""
    chance, programs = random.Random(seed), StandIns(folder)
    (shell, *_) = shell_tools(folder)
    plain = started = allowed = 0
    for _ in range(count):
        given = line(chance)
        subjects = shell.subjects(msgspec.json.encode({"command": given}).decode())
        named = {msgspec.json.decode(each.arguments)["command"] for each in subjects}
        known = chance.sample([*PROGRAMS, *BUILTINS], 6)
        grants = [Grant((("command", each),)) for name in known for each in (name, f"{name} *")]
        covered = all(any(covers(grant, "a", each, 0.0) for grant in grants) for each in subjects)
        if named == {given} and subjects[0].verbatim:
            assert not covered or given in known, given
            continue
        found = programs.started(given)
        assert all(text_of(subject_of(each)) in named for each in found), (given, named, found)
        assert not covered or {each[0] for each in found} <= {*known}, (given, known, found)
        plain, started, allowed = plain + 1, started + len(found), allowed + covered
    assert plain > count / 4
    assert started > plain / 2
    assert allowed > count / 50


def text_of(subject: str | Verbatim) -> str:
    return subject.text if isinstance(subject, Verbatim) else subject


@pytest.mark.skipif(not BASH, reason="there is no bash here")
def test_bash_starts_nothing_that_no_subject_names(tmp_path: Path) -> None:
    check_lines(tmp_path, 1, 100)


@pytest.mark.deep
@pytest.mark.skipif(not BASH, reason="there is no bash here")
@pytest.mark.parametrize("seed", range(6))
def test_of_sixty_thousand_lines_bash_starts_nothing_that_no_subject_names(seed: int, tmp_path: Path) -> None:
    check_lines(tmp_path, 100 + seed, 10_000)
