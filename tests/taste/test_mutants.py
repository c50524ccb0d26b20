"""The mutants of scripts/mutants.py are what they claim to be; and a few of them die."""

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import mutants, mutation
from scripts.mutants import Verdict
from scripts.mutation import Mutant

ROOT = Path(__file__).resolve().parents[2]

CODE = '''\
"""Doc."""
from typing import Literal
__all__ = ["f"]
Kind = Literal["tool", "call"]
NAME = "é"; LIMIT = 3
class A(Struct, frozen=True):
    """What it is."""
    size: int = 0
    text: str = "a sentence"
async def f(x: Literal[1], y=True):
    # é: places are counted in bytes
    if "é" and x <= LIMIT: log(x)
    while not y:
        await g()
    z = [each for each in x if each is not y]
    return f"{x}" if (x) not in (  # not in
        y) else z[1:]
def h():
    yield from g(
        1.5,
    )
'''


def changes(text: str) -> list[tuple[int, str, str]]:
    return [(each.line, each.kind, each.change) for each in mutation.mutants_of("a.py", text.encode())]


def test_every_kind_is_made_where_it_stands() -> None:
    assert changes(CODE) == [
        (5, "constant", '"é" -> "éx"'),
        (5, "constant", "3 -> 4"),
        (8, "constant", "0 -> 1"),
        (10, "constant", "True -> False"),
        (12, "constant", '"é" -> "éx"'),
        (12, "condition", '"é" and x <= LIMIT -> (not ("é" and x <= LIMIT))'),
        (12, "comparison", "<= -> <"),
        (12, "comparison", "<= -> >"),
        (12, "call dropped", "log(x) -> pass"),
        (13, "condition", "not y -> (y)"),
        (14, "call dropped", "await g() -> pass"),
        (15, "comparison", "is not -> is"),
        (16, "comparison", "not in -> in"),
        (17, "constant", "1 -> 2"),
        (19, "call dropped", "yield from g( 1.5, ) -> pass"),
        (20, "constant", "1.5 -> 2.5"),
    ]


@pytest.mark.parametrize(
    "text",
    ["def f(x: 'int') -> 'int': ...", "import a", "@g(1)\ndef f(): ...", "x: Literal['a']", "'''one'''",
     "if TYPE_CHECKING:\n g()", "class A(B, gc=False): ...", "T = TypeVar('T')",
     "x = 'two words'", "x = b'a'"],
)  # fmt: skip
def test_declarations_and_prose_are_left_alone(text: str) -> None:
    assert changes(text) == []


def test_equal_changes_of_equal_lines_are_told_apart() -> None:
    first, second = mutation.mutants_of("a.py", b"x = 1\ny = 2\nx = 1\n")[::2]
    assert (first.key, second.key) == ("a.py :: x = 1 :: 1 -> 2", "a.py :: x = 1 :: 1 -> 2 #2")


KERNEL = mutants.population(mutants.files_of(mutants.MODULES))


def test_mutants_of_the_kernel_are_of_all_kinds() -> None:
    assert {mutant.kind for mutant in KERNEL} == {"comparison", "condition", "constant", "call dropped"}
    assert len(KERNEL) > 1000
    assert len({(mutant.path, mutant.start, mutant.end, mutant.after) for mutant in KERNEL}) == len(KERNEL)


@pytest.mark.slow
def test_a_mutant_compiles_and_differs_in_one_place() -> None:
    for mutant in mutants.sample(KERNEL, 50, seed=7):
        text = (ROOT / mutant.path).read_bytes()
        changed = mutant.applied(text)
        assert text[mutant.start : mutant.end].decode() == mutant.before != mutant.after
        assert changed[: mutant.start] + mutant.before.encode() + text[mutant.end :] == text
        assert changed.endswith(mutant.after.encode() + text[mutant.end :])
        compile(changed, mutant.path, "exec", dont_inherit=True)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(text)), str(mutant)


def test_a_seed_draws_the_same_sample_again() -> None:
    again = mutants.population(mutants.files_of(mutants.MODULES))
    assert mutants.sample(again, 20, seed=5) == mutants.sample(KERNEL, 20, seed=5)
    assert mutants.sample(KERNEL, 20, seed=6) != mutants.sample(KERNEL, 20, seed=5)


def test_modules_are_files_or_folders(tmp_path: Path) -> None:
    for path in ("kernel/facts/fold.py", "kernel/facts/ids.py", "step.py", "tool.py"):
        (tmp_path / mutants.PACKAGE / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / mutants.PACKAGE / path).touch()
    found = mutants.files_of(["kernel/facts", "step", "src/antiphon/tool.py", "gone"], tmp_path)
    names = [path.removeprefix(mutants.PACKAGE) for path in found]
    assert names == ["/kernel/facts/fold.py", "/kernel/facts/ids.py", "/step.py", "/tool.py"]
    with pytest.raises(SystemExit, match="gone"):
        mutants.files_of(["gone"], tmp_path)


def test_every_argued_survivor_can_still_be_made() -> None:
    reasons = mutants.argued(mutants.ARGUED.read_text("utf-8"))
    assert reasons.keys() <= {mutant.key for mutant in KERNEL}


def test_an_argument_has_a_reason() -> None:
    line = "a.py :: x = y[::2] :: 2 -> 3 :: every second one is as good as every third"
    assert mutants.argued(f"# why\n\n{line}\n") == {
        "a.py :: x = y[::2] :: 2 -> 3": "every second one is as good as every third"
    }
    for bad in ("a.py :: x = 1 :: 1 -> 2", "a.py :: x = 1 :: 1 -> 2 :: too short"):
        with pytest.raises(SystemExit, match="line 1"):
            mutants.argued(bad)


@pytest.mark.parametrize(
    ("survivors", "tested", "wrong"), [(1, 8, False), (2, 8, True), (5, 100, False), (6, 100, True)]
)
def test_more_than_one_in_twenty_is_too_many(survivors: int, tested: int, wrong: bool) -> None:
    assert mutants.too_many(survivors, tested) is wrong


def told(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    killers: Sequence[str],
    reasons: str = "",
) -> tuple[int, str]:
    """Exit code and output of the command, with tests that kill as they are told to."""

    def judged(chosen: Sequence[Mutant], jobs: int) -> list[Verdict]:
        assert jobs == 1
        return [Verdict(mutant, by, 1.0) for mutant, by in zip(chosen, killers, strict=True)]

    monkeypatch.setattr(mutants, "judged", judged)
    monkeypatch.setattr(
        "sys.argv", ["mutants.py", "--seed", "1", "--count", "3", "--equivalent", reasons or "none"]
    )
    code = mutants.main()
    return code, capsys.readouterr().out


def test_survivors_are_shown_and_judged(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, said = told(monkeypatch, capsys, ["tests/a.py::test_a", "", "tests/b.py::test_b"])
    assert code == 0
    assert "2 of 3 killed (67 %), 1 survived" in said
    code, said = told(monkeypatch, capsys, ["tests/a.py::test_a", "", ""])
    assert code == 1
    (key, _) = re.findall(r"SURVIVED .*\n.*\n +(.*), 1 s", said)
    (tmp_path / "reasons.txt").write_text(f"{key} :: nobody could tell the difference\n", "utf-8")
    code, said = told(monkeypatch, capsys, ["tests/a.py::test_a", ""], str(tmp_path / "reasons.txt"))
    assert code == 0
    assert "1 of 2 killed (50 %), 1 survived" in said
    assert "argued" in said
    assert "nobody could tell the difference" in said


@pytest.mark.longest
@pytest.mark.deep
def test_a_fresh_sample_of_mutants_dies() -> None:
    """Another sample with every commit; `python scripts/mutants.py --seed N` makes it again."""
    seed = mutants.seed_of_the_commit()
    reasons = mutants.argued(mutants.ARGUED.read_text("utf-8"))
    chosen = [each for each in mutants.sample(KERNEL, 8, seed) if each.key not in reasons]
    survivors = [verdict.mutant for verdict in mutants.judged(chosen, jobs=1) if not verdict.killed_by]
    assert not mutants.too_many(len(survivors), len(chosen)), f"seed {seed}:\n" + "\n".join(
        map(str, survivors)
    )
