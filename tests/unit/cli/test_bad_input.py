"""Every bad input ends in one clear message and its exit code: what, where, what to do; no traceback."""

import os
import subprocess

import apsw
import pytest

from antiphon.cli import exit_codes
from antiphon.errors import JournalFull, JournalTooNew, LeaseLost, RunFailed, RunSuspended

SMALL_DISK = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (256 * 1024, 256 * 1024))"
PLAIN = "agents: [{name: a, asking: {retry: {max_attempts: 1}}}]"


def one_message(said):
    """The only complaint."""
    assert "Traceback" not in said.err + said.out
    (found,) = [line for line in said.err.splitlines() if line.startswith("error: ")]
    return found


@pytest.mark.parametrize(
    ("model", "settings", "code", "parts"),
    [
        (None, {}, 3, ["No model is set", "ANTIPHON_MODEL"]),
        ("openai:x", {}, 3, ["openai:x needs a key", "OPENAI_API_KEY"]),
        ("openrouter:a/b", {}, 3, ["OPENROUTER_API_KEY"]),
        ("bedrock:x", {}, 3, ["bedrock:x", "bedrock"]),
        ("local:huge", {}, 3, ["local", "huge"]),
        ("script:none.yaml", {}, 3, ["none.yaml: cannot be read"]),
        ("openai:x", {"OPENAI_BASE_URL": "gopher://x"}, 3, ["base_url"]),
        (
            "openai:x",
            {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"},
            1,
            ["Nothing answers at http://127.0.0.1:1/v1"],
        ),
    ],
)
def test_models(shell, monkeypatch, model, settings, code, parts):
    shell.write("plain.yaml", PLAIN)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    said = shell("run", "plain.yaml", "go", *(["--model", model] if model else []))
    assert said.code == code, said.err
    for part in parts:
        assert part in one_message(said)
    if code == 3:
        assert (
            not (shell.folder / ".antiphon/antiphon.db").exists() or shell("runs", "ls", "--json").value == []
        )
    else:
        assert "antiphon doctor" in said.err


def test_a_bad_settings_file(shell):
    shell.write(".env", "A=1\nnonsense\n")
    said = shell("run", "team.yaml", "go")
    assert said.code == 3
    assert one_message(said).startswith("error: .env:2:1: expected KEY=VALUE")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["run", "team.yaml", "go", "--policy", "none"], "'none' is not one of"),
        (["run", "team.yaml", "go", "--limit-tokens", "-1"], "--limit-tokens"),
        (["run", "team.yaml", "go", "--folder", "none"], "'none' does not exist"),
        (["run"], "Missing argument 'TARGET'"),
        (["run", "team.yaml", "go", "--quick"], "No such option '--quick'"),
        (["sing"], "No such command 'sing'"),
    ],
)
def test_wrong_usage(shell, words, part):
    said = shell(*words)
    assert said.code == 2
    assert part in said.err


@pytest.mark.parametrize(
    "journal", ["team.yaml/x.db", "foo://x", "sqlite://host/x", "sqlite:///x.db?quick=1"]
)
def test_journals_that_cannot_be(shell, journal):
    said = shell("run", "team.yaml", "go", "--journal", journal)
    assert said.code == (5 if journal.startswith("team") else 3)
    assert journal in one_message(said)


@pytest.mark.skipif(
    not os.path.isdir("/sys/kernel"), reason="needs a folder that even root cannot write, /sys"
)
def test_a_folder_that_may_not_be_written(shell):
    said = shell("run", "team.yaml", "go", "--journal", "/sys/kernel/x.db")
    assert said.code == 5
    assert "check the permissions of the file and its folder" in one_message(said)
    doctor = shell("doctor", "--journal", "/sys/kernel/x.db")
    assert doctor.code == 3
    assert "problem  journal" in doctor.out


def test_a_journal_that_is_none(shell):
    shell.write("x.db", "not a database" * 1000)
    said = shell("run", "team.yaml", "go", "--journal", "x.db")
    assert said.code == 5
    assert "it is not an SQLite file" in one_message(said)
    assert shell("doctor", "--journal", "x.db").code == 3


def test_a_journal_of_a_newer_version(shell):
    assert shell("run", "team.yaml", "go").code == 0
    path = shell.folder / ".antiphon/antiphon.db"
    connection = apsw.Connection(str(path))
    connection.execute("update meta set value = 99 where name = 'format'")
    connection.close()
    before = path.read_bytes()
    for words in (["run", "team.yaml", "go"], ["runs", "ls"], ["runs", "verify"]):
        said = shell(*words)
        assert said.code == 5
        assert "has format 99" in one_message(said)
        assert "upgrade" in one_message(said)
    assert path.read_bytes() == before


def test_a_record_of_a_newer_version(shell):
    assert shell("run", "team.yaml", "go").code == 0
    run_id = shell("runs", "ls", "--json").value[0]["run_id"]
    export = shell("runs", "export", run_id).value
    assert export["antiphon_export"] == 2
    assert exit_codes.code_of(JournalTooNew("x")) == 5


def test_a_damaged_run_is_not_resumed(shell):
    assert shell("run", "team.yaml", "go").code == 0
    run_id = shell("runs", "ls", "--json").value[0]["run_id"]
    connection = apsw.Connection(str(shell.folder / ".antiphon/antiphon.db"))
    connection.execute("update rows set body = cast(replace(body, '2+3', '9+3') as blob)")
    connection.close()
    for words in (["resume", run_id, "team.yaml"], ["show", run_id], ["tail", run_id], ["export", run_id]):
        said = shell("runs", *words)
        assert said.code == 5
        assert "Restore the journal from a copy" in one_message(said)
    assert shell("run", "team.yaml", "go").code == 0  # the other runs go on


@pytest.mark.slow
def test_a_full_disk_parks_the_run_and_loses_nothing(shell):
    """The file may not grow beyond 256 KiB: the answer of the second tool no longer fits.

    The tool acts, so it waits until the request is durable, however slow the disk is.
    """
    shell.write(
        "fill.py",
        "from antiphon import Agent, tool\n"
        "from antiphon.models.script import Script, call, finish\n"
        "@tool(effect='idempotent')\n"
        "def big(n: int) -> str:\n"
        "    'Much text.'\n"
        "    import random\n"
        "    return random.Random(n).randbytes(n).hex()\n"
        "lines = [call('big', n=1000), call('big', n=400_000), finish('full')]\n"
        "a = Agent('a', tools=[big], model=Script(lines, by='turn'))\n",
    )

    said = shell.apart("run", "fill.py:a", "go", "--policy", "open", first=SMALL_DISK)
    assert said.code == 5
    assert "file-size limit was reached" in one_message(said)
    line = said.err.splitlines()[-1]
    assert " runs resume " in line
    resumed = shell.paste(line)  # with room again
    assert (resumed.code, resumed.out) == (0, "full\n")
    assert shell("runs", "verify").code == 0


@pytest.mark.slow
def test_a_full_disk_at_the_request_itself(shell):
    message = os.urandom(300_000).hex()
    said = shell.apart("run", "team.yaml", stdin=message, first=SMALL_DISK)
    assert said.code == 5
    assert "The request was not recorded" in said.err
    assert " runs resume " not in said.err
    run_id = shell("runs", "ls", "--json").value[0]["run_id"]
    resumed = shell("runs", "resume", run_id, "team.yaml")
    assert resumed.code == 4
    assert "has no request to go on with" in one_message(resumed)


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error(shell):
    with shell.start("run", "--help", stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LeaseLost("x"), 9),
        (JournalFull("x"), 5),
        (RunSuspended("r", "x"), 8),
        (RunFailed(None), 1),
        (exit_codes.NotFound("x"), 4),
        (ConnectionError("x"), 70),
        (PermissionError(13, "Permission denied", "/x"), 5),
        (KeyboardInterrupt(), 130),
    ],
)
def test_codes_of_errors(error, code, capsys):
    assert exit_codes.failed(error) == code
    assert "Traceback" not in capsys.readouterr().err


def test_a_fault_of_our_own_can_be_looked_at(monkeypatch, capsys):
    assert exit_codes.failed(ZeroDivisionError("x")) == 70
    assert "ANTIPHON_DEBUG=1" in capsys.readouterr().err
    monkeypatch.setenv("ANTIPHON_DEBUG", "1")
    with pytest.raises(ZeroDivisionError) as raised:
        raise ZeroDivisionError("x")
    assert exit_codes.failed(raised.value) == 70
    assert "Traceback" in capsys.readouterr().err


def test_the_codes_are_stable():
    first = [
        exit_codes.COMPLETED,
        exit_codes.FAILED,
        exit_codes.USAGE,
        exit_codes.CONFIG,
        exit_codes.NOT_FOUND,
    ]
    second = [
        exit_codes.JOURNAL,
        exit_codes.LIMIT,
        exit_codes.CANCELLED,
        exit_codes.SUSPENDED,
        exit_codes.TAKEN,
    ]
    assert [*first, *second, exit_codes.FAULT] == [*range(10), 70]
