"""Invoices out of a folder: what is read, what is not and why, and what a second call asks."""

import csv
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from antiphon import Usage
from antiphon.errors import ModelError
from antiphon.models.script import Script
from antiphon.values.model import Reply
from tests.unit.cli.shell import SETTINGS, SRC

EXTRACTION = Path(__file__).resolve().parents[2] / "examples/extraction"
FIELDS = {
    "kind": "invoice", "number": "1", "supplier": "Ann", "issued": "2026-03-01", "due": None,
    "currency": "EUR", "net": "10.00", "tax": "1.90", "total": "11.90",
}  # fmt: skip


@pytest.fixture
def extract(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The program, in an empty folder and without settings."""
    monkeypatch.syspath_prepend(EXTRACTION)
    monkeypatch.chdir(tmp_path)
    for name in ("ANTIPHON_HOME", "ANTIPHON_MODEL", "OPENAI_DEFAULT_MODEL"):
        monkeypatch.delenv(name, raising=False)
    import extract  # type: ignore[import-not-found]

    yield extract
    sys.modules.pop("extract")


def invoice(**others: Any) -> str:
    """What a model says of an invoice."""
    return json.dumps({"invoice": FIELDS | others, "reason": ""})


def rows() -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(Path("invoices.csv").read_text("utf-8"))))


def play(extract: Any, monkeypatch: pytest.MonkeyPatch, model: Any, *words: str) -> int:
    """The program with this model; its exit code."""
    monkeypatch.setattr(extract, "script", lambda: model)
    monkeypatch.setattr(extract, "DOCUMENTS", Path("inbox"))
    return int(extract.main(["inbox", "--journal", "runs.db", *words]))


def inbox(**texts: str | bytes) -> None:
    """Documents; `__` in a name stands for the dot."""
    Path("inbox").mkdir(exist_ok=True)
    for name, text in texts.items():
        data = text.encode() if isinstance(text, str) else text
        (Path("inbox") / name.replace("__", ".")).write_bytes(data)


REPORT = """\
12 documents, 8 of them in invoices.csv: EUR 3,832.33, GBP 1,732.80, USD 1,396.00
counted 2 times, pay once: 118/26 in 03-caterer-mail.txt, 12-thread.txt
4 not read:
  05-newsletter.md: A newsletter that advertises prices; nothing was bought.
  06-repairs.txt: Invoice K-0093 of Kestrel Press Repairs contradicts itself: 434.00 and 86.80 VAT come to \
520.80, and it asks for GBP 540.80.
  08-reminder.txt: A reminder of invoice 2026-03-0417 of Nordlicht Hosting, with a fee of 8.00 EUR; no \
invoice of its own.
  10-scan.txt: A scan of an invoice, it seems of a bindery supplier; its number, date and amounts cannot be \
read.
"""


def test_the_documents_of_the_example(extract: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert extract.main([]) == 0
    said = capsys.readouterr()
    assert said.out == REPORT
    assert "by a script that was written for these documents; --model NAME has them read" in said.err
    assert "12/12" in said.err
    found = rows()
    assert [row["document"] for row in found if row["same as"]] == ["12-thread.txt"]
    assert [row["total"] for row in found if row["kind"] == "credit note"] == ["-67.20"]
    assert sorted(Path.cwd().iterdir()) == [Path.cwd() / ".antiphon", Path.cwd() / "invoices.csv"]


@pytest.mark.slow
def test_what_contradicts_itself_is_told_to_the_model(extract: Any) -> None:
    model = extract.script()
    extract.script = lambda: model
    assert extract.main([]) == 0
    asked_again = [each.messages for each in model.requests if len(each.messages) > 1]
    told = {each[0].content.partition("\n")[0]: each[-1].content for each in asked_again}
    assert "net 434.00 and tax 86.80 come to 520.80, but total is 540.80" in told["Document: 06-repairs.txt"]
    assert "total is 67.20; of a credit note it is below zero" in told["Document: 07-credit-note.md"]
    assert "`$.invoice.net`" in told["Document: 03-caterer-mail.txt"]
    assert len(told) == 4


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"total": "12.00"}, "net 10.00 and tax 1.90 come to 11.90, but total is 12.00"),
        ({"kind": "credit note"}, "total is 11.90; of a credit note it is below zero"),
        ({"due": "2026-02-01"}, "due on 2026-02-01, before it was issued on 2026-03-01"),
        ({"currency": "Euro"}, "invoice.currency"),
        ({"issued": "01.03.2026"}, "invoice.issued"),
        ({"number": ""}, "invoice.number"),
        ({"note": "paid"}, "unknown field `note`"),
    ],
)
def test_what_an_invoice_cannot_be(wrong: dict[str, str], said: str, extract: Any) -> None:
    import msgspec

    msgspec.json.decode(invoice(), type=extract.Reading)
    with pytest.raises(msgspec.ValidationError) as caught:
        msgspec.json.decode(invoice(**wrong), type=extract.Reading)
    assert said in str(caught.value)
    for neither in ('{"invoice": null, "reason": " "}', invoice().replace('"reason": ""', '"reason": "x"')):
        with pytest.raises(msgspec.ValidationError, match="give the invoice and an empty reason"):
            msgspec.json.decode(neither, type=extract.Reading)


@pytest.mark.slow
def test_what_has_no_answer_is_asked_again_and_nothing_else(
    extract: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inbox(a__txt="first", b__txt="second", c__md="third")

    def fails(request: Any) -> Any:
        return ModelError("auth", "no key") if "second" in request.messages[0].content else invoice()

    assert play(extract, monkeypatch, Script(fails), "--run", "march") == 1
    said = capsys.readouterr()
    assert "1 not read:\n  b.txt: failed: auth: no key" in said.out
    assert "1 without an answer; --run march asks about these again" in said.err
    model = Script([invoice(number="2")])
    assert play(extract, monkeypatch, model, "--run", "march") == 0
    assert model.asked == 1
    assert [(row["document"], row["number"]) for row in rows()] == [
        ("a.txt", "1"),
        ("b.txt", "2"),
        ("c.md", "1"),
    ]


STUCK = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
import extract

known = extract.script()

class Stuck:
    name, asked = "stuck", 0

    async def complete(self, request, emit):
        if Stuck.asked == 6:
            print("stuck", flush=True)
            await asyncio.Event().wait()
        Stuck.asked += 1
        return await known.complete(request, emit)

extract.script = Stuck
extract.main(["--run", "march", "--concurrency", "1"])
"""


@pytest.mark.slow
def test_killed_it_goes_on_where_it_was(extract: Any) -> None:
    words = [sys.executable, "-c", STUCK, os.fspath(EXTRACTION)]
    env = {key: value for key, value in os.environ.items() if not SETTINGS.match(key)}
    env |= {"PYTHONPATH": os.fspath(SRC), "PYTHONUTF8": "1"}
    with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"stuck\n"
        process.kill()
    assert not Path("invoices.csv").exists()
    model = extract.script()
    extract.script = lambda: model
    assert extract.main(["--run", "march"]) == 0
    # Six replies are on record: four documents took one, and the third took two.
    asked = {each.messages[0].content.partition("\n")[0] for each in model.requests}
    assert len(asked) == 12 - 5
    assert "Document: 03-caterer-mail.txt" not in asked
    assert len(rows()) == 8


@pytest.mark.slow
def test_one_budget_for_all(
    extract: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    inbox(**{f"{number}__txt": f"number {number}" for number in range(4)})

    def reads(request: Any) -> Reply:
        return Reply(invoice(number=request.messages[0].content[-1]), usage=Usage(900, 100))

    words = ("--run", "march", "--concurrency", "1", "--tokens")
    assert play(extract, monkeypatch, Script(reads), *words, "5000") == 1
    assert "  2.txt, 3.txt: budget: " in capsys.readouterr().out
    model = Script(reads)
    assert play(extract, monkeypatch, model, *words, "100000") == 0
    assert (model.asked, len(rows())) == (2, 4)


@pytest.mark.slow
def test_what_is_not_given_to_the_model(
    extract: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    latin = "Rechnung über 10 €".encode("cp1252")
    inbox(a__txt=latin, b__txt=" \n", c__pdf="%PDF", d__md="x" * 100_001, __hidden="x")
    model = Script([invoice()])
    assert play(extract, monkeypatch, model) == 0
    assert model.requests[0].messages[0].content == "Document: a.txt\n\nRechnung über 10 €"
    assert capsys.readouterr().out.splitlines()[1:] == [
        "3 not read:",
        "  b.txt: it is empty",
        "  c.pdf: only .txt, .md files are read",
        "  d.md: 100,001 bytes; at most 100,000 are read",
    ]


def test_nothing_to_do(extract: Any, capsys: pytest.CaptureFixture[str]) -> None:
    Path("inbox").mkdir()
    for folder, said in (("inbox", "There is no document in inbox"), ("nowhere", "nowhere is no folder")):
        assert extract.main([folder]) == 3
        assert f"error: {said}" in capsys.readouterr().err
    inbox(a__txt="x")
    assert extract.main(["inbox", "--csv", "nowhere/a.csv"]) == 3
    assert "error: nowhere/a.csv cannot be written: there is no folder nowhere" in capsys.readouterr().err
    assert extract.main(["inbox"]) == 3
    assert "error: No model is set" in capsys.readouterr().err
    assert not Path("invoices.csv").exists()


def test_a_spreadsheet_takes_no_cell_for_a_formula(extract: Any) -> None:
    import msgspec

    read = msgspec.json.decode(invoice(supplier='=HYPERLINK("x")', number="-1+2"), type=extract.Reading)
    (row,) = csv.DictReader(io.StringIO(extract.table({"@a.txt": read.invoice})))
    assert (row["document"], row["supplier"], row["number"]) == ("'@a.txt", '\'=HYPERLINK("x")', "'-1+2")
