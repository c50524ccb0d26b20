"""The commands of `antiphon mcp`."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from antiphon.cli import exit_codes
from antiphon.cli.commands.mcp.files import added
from antiphon.cli.commands.mcp.serve import serve
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.store import json_option
from antiphon.cli.target import own_servers
from antiphon.config.dotenv import environment
from antiphon.config.yaml import meant
from antiphon.errors import ToolError, UnknownName, UserError
from antiphon.tools.mcp import McpServer
from antiphon.tools.mcp.config import PROJECT_FILE, USER_FILE, user_folder
from antiphon.tools.mcp.offers import tool_name
from antiphon.tools.mcp.visit import changed, look, visited
from antiphon.values.codec import text_of
from antiphon.values.message import ToolResult
from antiphon.values.schema.arguments import Invalid
from antiphon.values.secret import is_secret_name
from antiphon.values.tool import Tool, ToolContext
from antiphon.values.tool.definition import result_of
from antiphon.values.tool.toolset import ProviderLost

WIDTH = 200


@click.group(commands=[serve])
def mcp() -> None:
    """MCP servers: which there are, what they offer, and calls of their tools by hand.

    They stand in .mcp.json of this folder, and in antiphon/mcp.json of your own; see docs/mcp.md. `serve`
    makes a team one itself.
    """


@mcp.command("ls", short_help="List the servers.")
@click.option("--connect", is_flag=True, help="Connect to each, and say how many tools it has.")
@json_option
def ls(connect: bool, as_json: bool) -> int:
    """List the servers that are configured. None is started without --connect."""
    servers = own_servers()
    offered = asyncio.run(look(servers)) if connect else {}
    if as_json:
        output.say(terminal_escape.json_text([_plain(each, offered) for each in servers.values()]))
        return exit_codes.COMPLETED
    for name, server in servers.items():
        facts = [_place(server), *(["required"] if server.required else []), server.origin]
        if name in offered:
            facts.insert(1, _state(offered[name]))
        output.say(f"{name}: {terminal_escape.line(', '.join(facts), WIDTH * 2)}")
    if not servers:
        output.say(f"There are no servers: `antiphon mcp add` writes one into {PROJECT_FILE}")
    return exit_codes.COMPLETED


def _place(server: McpServer) -> str:
    # Arguments and queries may hold a secret that a variable was filled in for.
    return server.url.partition("?")[0] or server.command


def _state(offered: Sequence[Tool] | str) -> str:
    return f"down: {offered}" if isinstance(offered, str) else f"{len(offered)} tools"


def _plain(server: McpServer, offered: Mapping[str, Sequence[Tool] | str]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": server.name, "command": server.command, "url": server.url.partition("?")[0],
        "required": server.required, "timeout": server.timeout, "file": server.origin,
    }  # fmt: skip
    if server.name in offered:
        tools = offered[server.name]
        down = isinstance(tools, str)
        found |= {"reason": tools if down else "", "tools": [] if down else list(map(_described, tools))}
    return found


def _described(tool: Any) -> dict[str, Any]:
    return {
        "name": tool.name, "title": tool.title, "description": tool.description, "effect": tool.effect,
        "parameters": tool.parameters,
    }  # fmt: skip


@mcp.command(
    "add", short_help="Write a server into the file.", context_settings={"allow_interspersed_args": False}
)
@click.option("--url", help="Of a server over HTTP, in place of a command.")
@click.option("--env", "env", metavar="NAME=VALUE", multiple=True, help="A variable for the program.")
@click.option("--header", "headers", metavar="NAME=VALUE", multiple=True, help="Sent with each request.")
@click.option("--required", is_flag=True, help="A run does not start without it.")
@click.option("--timeout", type=float, help="Seconds that a call may take. [default: 60]")
@click.option("--user", "of_user", is_flag=True, help="For all your projects, not for this folder.")
@click.option("--replace", is_flag=True, help="In place of the one of that name.")
@click.argument("name", metavar="NAME")
@click.argument("command", metavar="[COMMAND]...", nargs=-1, type=click.UNPROCESSED)
def add(
    url: str | None, env: Sequence[str], headers: Sequence[str], required: bool, timeout: float | None,
    of_user: bool, replace: bool, name: str, command: Sequence[str],
) -> int:  # fmt: skip
    """Write the server NAME into the file: a program (COMMAND with its arguments), or --url.

    Options stand before NAME. ${VARIABLE} is filled in when the server is used, so that no secret stands in
    the file.
    """
    server: dict[str, Any] = {"command": command[0], "args": list(command[1:])} if command else {}
    server |= {"url": url} if url is not None else {}
    server |= {"env": _pairs(env, "--env")} if env else {}
    server |= {"headers": _pairs(headers, "--header")} if headers else {}
    server |= {"required": True} if required else {}
    server |= {"timeout": timeout} if timeout is not None else {}
    path = user_folder(environment()) / USER_FILE if of_user else Path(PROJECT_FILE)
    added(path, name, server, replace=replace)
    for key, value in {**server.get("env", {}), **server.get("headers", {})}.items():
        if is_secret_name(key) and "${" not in value:
            exit_codes.remark(f"{key} stands openly in {os.fspath(path)}; write a variable, ${{NAME}}")
    output.say(f"{terminal_escape.line(name, 40)} is in {terminal_escape.line(os.fspath(path), WIDTH)}")
    return exit_codes.COMPLETED


def _pairs(texts: Sequence[str], option: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign or not name:
            raise UserError(f"{option} takes NAME=VALUE; got {text[:80]!r}")
        found[name] = value
    return found


@mcp.command("test", short_help="Connect to servers and show their tools.")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@json_option
def test(names: Sequence[str], as_json: bool) -> int:
    """Connect to the servers NAME (all when none is given), and show what they offer. The exit code is 1 when
    one cannot be reached.
    """
    servers = own_servers()
    chosen = {name: _known(name, servers) for name in names} or servers
    offered = asyncio.run(look(chosen))
    if as_json:
        output.say(terminal_escape.json_text([_plain(each, offered) for each in chosen.values()]))
    for name, tools in offered.items() if not as_json else ():
        output.say(f"{name}: {terminal_escape.line(_state(tools), WIDTH * 2)}")
        for each in () if isinstance(tools, str) else tools:
            output.say("  " + terminal_escape.line(f"{each.name} ({each.effect}): {each.description}", WIDTH))
    down = any(isinstance(each, str) for each in offered.values())
    return exit_codes.FAILED if down else exit_codes.COMPLETED


def _known(name: str, servers: Mapping[str, McpServer]) -> McpServer:
    if name not in servers:
        raise UnknownName("MCP server", name, servers)
    return servers[name]


@mcp.command("approve", short_help="Approve changed tools of a server.")
@click.argument("name", metavar="SERVER")
@click.option("--yes", is_flag=True, help="Approve them; without it they are only shown.")
@json_option
def approve(name: str, yes: bool, as_json: bool) -> int:
    """Show which tools of SERVER it defines otherwise now than when they were approved, field by field. Such
    tools are suspended; --yes approves them as they are now.
    """
    server = _known(name, own_servers())
    try:
        found = asyncio.run(changed(server, approving=yes))
    except ToolError as error:
        exit_codes.complain(text_of(error))
        return exit_codes.FAILED
    if as_json:
        output.say(terminal_escape.json_text({"approved": yes, "changed": found}))
        return exit_codes.COMPLETED
    for tool, lines in found.items():
        output.say(terminal_escape.line(tool, WIDTH))
        for line in lines:
            output.say("  " + terminal_escape.line(line, WIDTH * 3))
    if not found:
        output.say("Nothing has changed.")
    else:
        output.say("Approved." if yes else f"To approve them: antiphon mcp approve {name} --yes")
    return exit_codes.COMPLETED


@mcp.command("call", short_help="Call a tool of a server.")
@click.argument("name", metavar="SERVER")
@click.argument("tool", metavar="TOOL")
@click.argument("arguments", metavar="[JSON]", default="{}")
@json_option
def call(name: str, tool: str, arguments: str, as_json: bool) -> int:
    """Call TOOL of SERVER with arguments in JSON, and print its result. It is you who calls: no run is made
    of it, and no policy is asked.
    """
    server = _known(name, own_servers())
    try:
        found = asyncio.run(_called(server, tool, arguments))
    except (ToolError, ProviderLost, TimeoutError) as error:
        exit_codes.complain(text_of(error))
        return exit_codes.FAILED
    if as_json:
        output.say(terminal_escape.json_text({"content": found.content, "attachments": found.attachments}))
        return exit_codes.COMPLETED
    output.say(found.content)
    for each in found.attachments:
        exit_codes.remark(f"a file came with it: {each.name or each.media_type} (--json holds it)")
    return exit_codes.COMPLETED


async def _called(server: McpServer, name: str, arguments: str) -> ToolResult:
    async with visited(server) as tools:
        named = {each.name: each for each in tools}
        tool = named.get(name) or named.get(tool_name(server.name, name))
        if tool is None:
            raise UserError(f"{server.name} has no tool {name!r}{meant(name, list(named))}")
        read = tool.revalidate(arguments)
        if isinstance(read, Invalid):
            raise UserError(read.text)
        async with asyncio.timeout(server.timeout):
            return result_of(await tool.bind(read, ToolContext())())
