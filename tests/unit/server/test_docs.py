"""docs/server.md: every example runs beside a server, and the tables are those of the code."""

import asyncio
import builtins
import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from litestar.routes import HTTPRoute

from antiphon import Agent, tool
from antiphon.host import Host
from antiphon.host.projects import Projects
from antiphon.host.projects.project_file import parse
from antiphon.models.script import Script, call
from antiphon.server import messages
from antiphon.server.app import ServerSettings, make_app
from antiphon.server.permissions import permission_of
from antiphon.server.serve import listen, serve
from antiphon.server.subjects import Subject, one_token
from antiphon.server.users import read_users
from antiphon.values.policy import Grant
from tests.docs.test_examples import parts_of
from tests.unit.server.teams import TOKEN, desk, in_time, served

DOCUMENT = Path(__file__).resolve().parents[3] / "docs/server.md"


@tool(requires_approval=True)
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


@pytest.mark.slow
def test_every_example_runs_beside_a_server(tmp_path, capsys):
    text = DOCUMENT.read_text("utf-8").partition("## A host without HTTP")[0]
    clerk = Agent("clerk", model=Script([call("pay", amount=3), "Paid."], by="turn"), tools=[pay])

    async def work():
        stop, url = asyncio.Event(), asyncio.get_running_loop().create_future()
        projects = Projects(tmp_path / "projects", None)
        async with Host(f"sqlite:///{tmp_path}/runs.db", {"clerk": clerk}, projects=projects) as host:
            app = make_app(host, ServerSettings((one_token(TOKEN),)))
            with listen("127.0.0.1", 0) as listening:
                serving = asyncio.ensure_future(serve(app, listening, stop, 1, url.set_result))
                names = {"URL": await url, "TOKEN": TOKEN}
                printed, run = "", 0
                for part in parts_of(text):
                    if part.kind == "python":
                        code = builtins.compile(
                            part.text,
                            str(DOCUMENT),
                            "exec",
                            flags=0x2000,  # top-level await
                        )
                        made = eval(code, names)
                        if made is not None:
                            await made
                        printed, run = capsys.readouterr().out, run + 1
                    elif part.kind == "output":
                        assert printed.splitlines() == part.text.splitlines(), part.line
                await names["client"].aclose()
                stop.set()
                await serving
        assert run == 6

    in_time(work)


def test_the_file_of_users_is_read_as_it_is_told(tmp_path):
    text = re.search(r"<!-- users -->\n```yaml\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)[1]
    (tmp_path / "users.yaml").write_text(text)
    found = read_users(str(tmp_path / "users.yaml"))
    assert found.hosts == {"agents.example.org"}
    assert [each.subject for each in found.tokens] == [
        Subject("ada"), Subject("screen", frozenset({"read"}), sees_all=True),
    ]  # fmt: skip
    assert [each.expires_at for each in found.tokens] == [None, 1_798_761_600]


def test_the_file_of_a_project_is_read_as_it_is_told():
    text = re.search(r"<!-- project -->\n```yaml\n(.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)[1]
    found = parse(text, "tides", "project.yaml")
    assert (found.name, found.owner, found.served) == ("The tides", "ada", ("desk",))
    assert found.own == {"research": "research.yaml", "lookup": "profiles/lookup"}
    assert [(each.tool, each.verdict, each.key) for each in found.rules] == [
        ("read_lines", "allow", "tides"), ("pay", "deny", "tides"),
    ]  # fmt: skip
    assert found.rules[1].grant == Grant((("account", "9*"),), "clerk")


def test_the_table_of_messages_is_that_of_the_code():
    assert table("messages") == list(told_messages())


def test_the_table_of_routes_is_that_of_the_app():
    async def work():
        async with served({"desk": desk("x")}) as (client, _):
            return list(told_routes(client.app))

    assert table("routes") == in_time(work)


def table(name):
    text = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", DOCUMENT.read_text("utf-8"), re.DOTALL)[1]
    return text.splitlines()[2:]


def told_messages():
    for whose, union in (("client", messages.ClientRequest), ("server", messages.ServerReply),
                         ("server", messages.RunUpdate)):  # fmt: skip
        for each in get_args(union):
            fields = ", ".join(
                f"`{one.name}`" + ("" if one.required else "?") for one in msgspec.structs.fields(each)
            )
            about = " ".join(each.__doc__.split("\n\n")[0].split())
            yield f"| `{each.__struct_config__.tag}` | {whose} | {fields} | {about} |"


def told_routes(app):
    found = []
    for route in app.routes:
        if isinstance(route, HTTPRoute) and not route.path.startswith("/schema"):
            for handler, _ in route.route_handler_map.values():
                for method in handler.http_methods - {"OPTIONS"}:
                    found.append((route.path_format, method, permission_of(handler), handler.summary))
    for path, method, needs, about in sorted(found):
        yield f"| `{method} {path}` | {needs} | {about} |"


def main():
    """Write the tables of the document anew: python -m tests.unit.server.test_docs."""

    async def work():
        async with served({"desk": desk("x")}) as (client, _):
            return list(told_routes(client.app))

    text = DOCUMENT.read_text("utf-8")
    for name, lines in (("messages", list(told_messages())), ("routes", in_time(work))):
        found = re.search(rf"(<!-- {name} -->\n.*?\n.*?\n)(.*?)(<!-- /{name} -->)", text, re.DOTALL)
        text = text[: found.start(2)] + "".join(f"{line}\n" for line in lines) + text[found.end(2) :]
    DOCUMENT.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
