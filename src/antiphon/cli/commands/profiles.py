"""`antiphon profiles`: agents described in YAML, checked before anything runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import click

from antiphon.cli import exit_codes
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.store import json_option
from antiphon.cli.target import own_servers
from antiphon.cli.team_file import SETS, toolbox
from antiphon.styles.profiles import SHAPES, TOOLSETS, Diagnostic, Library, json_schema, load_profiles

WIDTH = 1_000


@click.group()
def profiles() -> None:
    """Agents described in YAML: profiles, LLM configs and handover protocols; see docs/profiles.md."""


@profiles.command("check", short_help="Find everything that is wrong in a folder of profiles.")
@click.argument("folder", metavar="DIR")
@click.option("--connect", is_flag=True, help="Connect to the MCP servers, and check the tools of theirs.")
@json_option
def check(folder: str, connect: bool, as_json: bool) -> int:
    """Read DIR/profiles, DIR/llm_configs and DIR/handover_protocols, and tell every error and warning with
    file, line and column. The exit code is 3 when there are errors; warnings alone leave it at 0.
    MCP servers that are configured are known by their names, and are not started without --connect.
    """
    library = load_profiles(folder, toolsets=_installed() | _of_servers(connect))
    errors = [finding for finding in library.findings if finding.severity == "error"]
    if as_json:
        output.say(terminal_escape.json_text(_plain(library)))
    else:
        for finding in sorted(library.findings, key=lambda each: each.severity):
            output.say(terminal_escape.line(finding.labelled, WIDTH))
        output.say(_summary(library, len(errors)))
    return exit_codes.CONFIG if errors else exit_codes.COMPLETED


@profiles.command("schema", short_help="Print the JSON Schema of a kind of file, for editors.")
@click.argument("kind", type=click.Choice(list(SHAPES)), default="profile")
def schema(kind: str) -> int:
    """Print the JSON Schema of a kind of file. Editors complete and check YAML by it."""
    output.say(terminal_escape.json_text(json_schema(kind)))
    return exit_codes.COMPLETED


def _installed() -> dict[str, Sequence[str] | None]:
    from antiphon.tools.knowledge import Federation

    # Nothing is searched by a check.
    box = toolbox(".", lambda: Federation(()))
    return {**TOOLSETS, **{name: [tool.name for tool in box[name]()] for name in SETS}}


def _of_servers(connect: bool) -> dict[str, Sequence[str] | None]:
    """The servers that are configured, and what each offers: None where that is not known."""
    servers = own_servers()
    if not connect:
        return dict.fromkeys(servers)
    from antiphon.tools.mcp.visit import look

    found: dict[str, Sequence[str] | None] = {}
    for name, tools in asyncio.run(look(servers)).items():
        if isinstance(tools, str):
            exit_codes.remark(f"the MCP server {name} was not checked: {tools}")
        found[name] = None if isinstance(tools, str) else [each.name for each in tools]
    return found


def _summary(library: Library, errors: int) -> str:
    usable = (
        f"{len(library.profiles)} profiles, {len(library.llm_configs)} LLM configs, {len(library.protocols)} "
    )
    refused = [f"{what} {terminal_escape.line(name, 80)}" for what, name in sorted(library.refused)]
    lines = [f"{errors} errors, {len(library.findings) - errors} warnings"]
    lines += [f"refused: {', '.join(refused)}"] if refused else []
    return "\n".join([*lines, f"usable: {usable}handover protocols"])


def _plain(library: Library) -> dict[str, Any]:
    return {
        "profiles": list(library.profiles),
        "llm_configs": list(library.llm_configs),
        "handover_protocols": list(library.protocols),
        "refused": [{"kind": what, "name": name} for what, name in sorted(library.refused)],
        "findings": [_finding(finding) for finding in library.findings],
    }


def _finding(finding: Diagnostic) -> dict[str, Any]:
    place = finding.place
    return {
        "severity": finding.severity,
        "file": place.file,
        "line": place.line,
        "column": place.column,
        "path": place.path,
        "text": finding.text,
    }
