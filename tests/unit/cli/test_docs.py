"""Every example of docs/cli.md, run in order: what it shows is said, `…` standing for anything."""

import re
import shlex
from pathlib import Path

from antiphon.cli import exit_codes
from antiphon.cli.app import COMMANDS

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/cli.md"
FILE = re.compile(r"<!-- file: (\S+) -->\n```yaml\n(.*?)```", re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
RUN = "3f9c2ab81d04"
"""The id of the first run, as the document writes it."""


def shown(line):
    """A pattern for a line of the document; spaces may differ: columns are as wide as their contents."""
    words = [".*".join(map(re.escape, word.split("…"))) for word in line.split()]
    return re.compile(r"\s*" + r"\s+".join(words).replace(r".*\s+", r".*\s*") + r"\s*")


def test_examples(shell, monkeypatch):
    text = DOCUMENT.read_text("utf-8")
    for name, content in FILE.findall(text):
        shell.write(name, content)
    shell.write("typed", "")
    real, commands = "", 0
    for block in CONSOLE.findall(text):
        for example in block.split("$ ")[1:]:
            command, *lines = example.splitlines()
            words = shlex.split(command)
            if words[0] == "echo":
                shell.write("typed", words[1] + "\n")
                words = words[words.index("|") + 1 :]
            with (shell.folder / "typed").open() as typed, monkeypatch.context() as patch:
                patch.setattr("sys.stdin", typed)
                said = shell(*[real or word if word == RUN else word for word in words[1:]])
            assert said.code == 0, (command, said)
            commands += 1
            if not real:
                real = re.search(r"run ([0-9a-f]{12});", said.err)[1]
            got = [line.replace(real, RUN) for line in (said.err + said.out).splitlines()]
            for line in lines:
                assert any(shown(line).fullmatch(each) for each in got), (command, line, got)
    assert commands == 20


def test_every_exit_code_is_told():
    text = DOCUMENT.read_text("utf-8")
    table = text.partition("## Exit codes")[2].partition("## Settings")[0]
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)}
    known = {value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    assert told == known


def test_every_command_and_option_is_told(shell):
    text = DOCUMENT.read_text("utf-8")
    for group in ("runs", "journal", "knowledge", "models", "profiles"):
        for name in re.findall(r"^  (\w+)  ", shell(group, "--help").out, re.MULTILINE):
            assert f"`antiphon {group} {name}" in text
    for name in COMMANDS:
        assert f"`antiphon {name}" in text
    for name in ("chat", "answer"):
        for option in re.findall(r"^  (?:-\w, )?--([a-z]+)", shell(name, "--help").out, re.MULTILINE):
            assert f"--{option}" in text
    for option in re.findall(r"--limit-(\w+)", shell("run", "--help").out):
        assert f"-{option}`" in text
