"""Lines as models write them and as nobody should, made by chance; and what bash starts of one."""

from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

BASH = shutil.which("bash") or ""
PROGRAMS = ["git", "ls", "grep", "make", "pytest", "tee", "a-b", "x.py", "g++", "größe", "./run", "sub/run"]
BUILTINS = ["echo", "cd", "test", "printf", "true"]
ARGUMENTS = [
    "-x", "--all", "--name=v", "a/b.py", "HEAD~1", "HEAD^", "a=b", "x:y", "@", "1", "%d", "größe", ".", "..",
    "-",
]  # fmt: skip
QUOTED = [
    "a b",
    "a;git",
    "a|ls",
    "$HOME",
    "`ls`",
    "a\tb",
    "*",
    "~",
    "#",
    "a\nls",
    "$(ls)",
    "\\",
    "&",
    "!",
    "",
]
JOINS = [" && ", " || ", "; ", " | ", "\n", "&&", ";", "|", " &&\n", " |\n\n", "\n\n"]
ODD = [
    "$(ls)", "`ls`", "$HOME", "${x:-ls}", "<(ls)", "> out", ">>out", "2>&1", "< in", "<<E\nls\nE", "<<<ls",
    "&", " & ls", "&>", "|& ls", ";;", "*", "?", "[ab]", "{ls,git}", "{", "}", "(ls)", "( ", "~", "~/run",
    "!", "! ls", "#", " # ls", "'", '"', "\\", "\\\n", "\r", "\x0b", "\x0c", "\u00a0", "\u2003", "\u202e",
    "\x00", "$'ls'", '$"ls"', "a=1 ls", "a+=1", "a[0]=1", "PATH=sub", "if ls; then git; fi",
    "while ls; do git; done", "for a in ls; do $a; done", "case a in a) ls;; esac", "f() { ls; }; f",
    "function f { ls; }", "[[ -f x ]]", "time ls", "coproc ls", "eval ls", "exec ls", "command ls",
    "builtin eval ls", ". ./run", "source ./run", "trap ls EXIT", "alias git=ls", "hash -p ./run git",
    "export PATH=sub", "declare PATH=sub", "cd sub", "test -v 'a[$(ls)]'", "printf -v 'a[$(ls)]' x",
    "read 'a[$(ls)]'", "unset 'a[$(ls)]'", "let 'a[$(ls)]=1'", "enable -n test", "set -- ls",
    "shopt -s expand_aliases", "!!", "^a^b", "%1", "x=~", "a:~", "((1))", "\\ls", "l\\s", "l's'", '"ls"',
    "l\\\ns", "''ls", "if", "\\if", "'if'", "{ ls; }", "}", "done", "esac",
]  # fmt: skip


def line(chance: random.Random) -> str:
    """One line; of three about two are plain."""
    found = ""
    for at in range(chance.choice([1, 1, 2, 2, 3, 5])):
        found += (chance.choice(JOINS) if at else "") + _command(chance)
    for _ in range(chance.choice([0, 0, 0, 1, 2])):
        place = chance.randrange(len(found) + 1)
        found = (
            found[:place]
            + chance.choice(["", " "])
            + chance.choice(ODD)
            + chance.choice(["", " "])
            + found[place:]
        )
    return found


def _command(chance: random.Random) -> str:
    words = [chance.choice([*PROGRAMS, *BUILTINS])]
    words += [_word(chance) for _ in range(chance.randrange(4))]
    return chance.choice([" ", "  ", "\t", " \\\n "]).join(words)


def _word(chance: random.Random) -> str:
    found = ""
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        text = chance.choice(QUOTED)
        found += chance.choice([
            chance.choice(ARGUMENTS),
            chance.choice(ARGUMENTS),
            "'" + text + "'",
            '"' + "".join("\\" + each if each in '"\\$`' else each for each in text) + '"',
            "".join("\\" + each for each in text if each != "\n"),
        ])  # fmt: skip
    return found or "''"


class StandIns:
    """A folder in which bash finds programs that do nothing but say that they were started, and with what."""

    def __init__(self, folder: Path) -> None:
        self._log, self._place, self._bin = folder / "log", folder / "place", folder / "bin"
        for each in (self._bin, self._place / "sub"):
            each.mkdir(parents=True)
        for name in PROGRAMS:
            path = self._place / name if "/" in name else self._bin / name
            # One write each, since the programs of a pipeline run side by side.
            path.write_text(f"#!/bin/sh\nprintf '%s\\000' \"$0\" \"$@\" '\x01' >> {self._log}\n")
            path.chmod(0o755)
        (self._place / "a b").write_text("ls\n")

    def started(self, line: str) -> list[list[str]]:
        """The words of each program that bash starts for a line."""
        self._log.write_bytes(b"")
        subprocess.run(
            [BASH, "--norc", "--noprofile", "-c", line],
            env={"PATH": f"{self._bin}", "LC_ALL": "C.UTF-8", "HOME": str(self._place)},
            cwd=self._place, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        runs = self._log.read_bytes().decode().split("\x01\0")[:-1]
        found = [run.split("\0")[:-1] for run in runs]
        return [[self._named(words[0]), *words[1:]] for words in found]

    def _named(self, path: str) -> str:
        return Path(path).name if path.startswith(str(self._bin)) else path
