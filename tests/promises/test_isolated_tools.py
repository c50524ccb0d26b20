"""An isolated tool runs in a process of its own: that is killed when it takes too long, and with its run."""

import asyncio
import importlib.util
import os
import select
import subprocess
import sys
import threading
import zlib
from pathlib import Path

import msgspec
import pytest

from antiphon import Agent, open_run, run_sync, tool
from antiphon.errors import ToolDefinitionError
from antiphon.kernel.run.tools import isolated
from antiphon.kernel.run.tools.threads import NoResult
from antiphon.models.script import Script, call
from antiphon.values.limits import OutputLimits
from antiphon.values.tool import as_tool
from tests.docs.test_examples import parts_of
from tests.promises import isolated_tools
from tests.promises.isolated_tools import results

pytestmark = pytest.mark.slow  # each starts processes

ROOT = Path(__file__).resolve().parents[2]
SOURCE = "from antiphon import tool\n\n@tool(isolated=True)\ndef act() -> str:\n    return ''\n"
IN_DOUBT = "; it may or may not have taken effect"


def gone(process: int, seconds: float = 20) -> bool:
    """Whether a process has ended, or does so in time."""
    try:
        handle = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], seconds)[0])
    finally:
        os.close(handle)


def written(pipe: Path) -> int:
    """The process that is written to a named pipe."""
    end = os.open(pipe, os.O_RDWR)
    try:
        assert select.select([end], [], [], 20)[0]
        return int(os.read(end, 100))
    finally:
        os.close(end)


def test_it_has_a_process_and_pipes_of_its_own():
    first, second = results(call("square", number=4), call("square", number=5))
    one, two = msgspec.json.decode(first), msgspec.json.decode(second)
    assert (one["square"], two["square"]) == (16, 25)
    assert one["read"] == ""
    assert len({one["process"], two["process"], os.getpid()}) == 3


def test_coroutines_and_failures_are_as_elsewhere():
    assert results(call("wait", seconds=0.01), call("fail")) == ["waited", "Error: [fail] 'key'"]


def test_what_it_attaches_comes_with_the_result():
    agent = Agent("a", tools=[isolated_tools.draw])
    result = run_sync(agent, "go", model=Script([call("draw"), "done"]), env={})
    assert [(each.name, each.data) for each in result.attachments] == [("drawing", "ZHJhd24=")]


def test_a_long_result_comes_whole():
    limits = OutputLimits(message=None, total=None)
    assert results(call("long", size=300_000), output_limits=limits) == ["é" * 300_000]


def test_a_result_that_json_cannot_carry_is_named():
    (said,) = results(call("give"))
    assert said.startswith("Error: [give] The tool returned a object at $['here'], which JSON cannot carry")


def test_a_thread_that_is_left_behind_does_not_keep_the_result():
    assert results(call("linger")) == ["lingers"]


def test_it_can_end_the_task():
    model = Script([call("hand_in"), "?"])
    result = isolated_tools.run_sync(Agent("a", tools=[isolated_tools.hand_in]), "go", model=model, env={})
    assert result.output == '{"grade":1}'


def test_its_context_is_plain_data():
    (said,) = results(call("told"))
    run_id, effect_id, agent, key, attempt = said.split()
    assert (effect_id, agent, key, attempt) == ("1/1.c1", "a", f"{run_id}:1/1.c1", "1")
    deps, resolved = results(call("ask", what="deps"), call("ask", what="resolve"), deps=object())
    assert deps == "Error: [ask] ctx.deps lives in the run's process, and an isolated tool has one of its own"
    assert resolved.startswith("Error: [ask] ctx.resolve(db): dependencies are made in the run's process")


def test_at_its_timeout_it_is_killed_with_all_that_it_started(tmp_path):
    file = tmp_path / "processes"
    assert results(call("spin", file=str(file))) == [
        f"Error: [spin] no result after 1.5 s; its process was stopped{IN_DOUBT}"
    ]
    own, child = map(int, file.read_text().split())
    assert gone(own)
    assert gone(child)


def test_a_cancel_kills_it(tmp_path):
    file = tmp_path / "processes"
    os.mkfifo(file)

    async def main():
        agent = Agent("a", tools=[isolated_tools.spin_alone])
        model = Script([call("spin_alone", file=str(file)), "done"])
        async with open_run([agent], model=model, env={}) as run:
            request = await run.post("a", "go")
            process = await asyncio.to_thread(written, file)
            await run.cancel(request)
            return process, (await run.result(request)).outcome

    process, outcome = asyncio.run(main())
    assert outcome == "cancelled"
    assert gone(process)


def test_it_dies_with_the_process_of_its_run(tmp_path):
    file = tmp_path / "process"
    os.mkfifo(file)
    program = (
        "import sys; from antiphon.models.script import call; "
        "from tests.promises.isolated_tools import results; results(call('spin_alone', file=sys.argv[1]))"
    )
    command = [sys.executable, "-c", program, str(file)]
    with subprocess.Popen(command, cwd=ROOT) as parent:
        process = written(file)
        parent.kill()
    assert gone(process)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("3", "its process ended with exit code 3 and no result"),
        ("0", "its process ended with exit code 0 and no result"),
        ("segfault", "its process was ended by SIGSEGV"),
    ],
)
def test_a_crash_of_a_tool_that_acts_leaves_it_unknown(how, said):
    assert results(call("crash", how=how)) == [f"Error: [crash] {said}{IN_DOUBT}"]


def test_a_crash_of_a_tool_that_reads_is_a_failure():
    said = "Error: [crash_reading] its process ended with exit code 7 and no result"
    assert results(call("crash_reading")) == [said]


def test_a_module_that_was_imported_from_its_file_only(tmp_path, monkeypatch):
    file = tmp_path / "of-no-package.py"
    file.write_text(SOURCE.replace("''", "__file__"))
    spec = importlib.util.spec_from_file_location("of_no_package", file)
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "of_no_package", module)
    spec.loader.exec_module(module)
    model = Script([call("act"), "done"])
    isolated_tools.run_sync(Agent("a", tools=[module.act]), "go", model=model, env={})
    assert model.requests[-1].messages[-1].content == str(file)


def test_only_so_many_processes_run_at_once(monkeypatch):
    alive, most, lock = [0], [0], threading.Lock()

    class Counted(subprocess.Popen):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            with lock:
                alive[0] += 1
                most[0] = max(most[0], alive[0])

        def wait(self, timeout=None):
            code = super().wait(timeout)
            with lock:
                alive[0] -= 1
            return code

    monkeypatch.setattr(isolated.subprocess, "Popen", Counted)
    monkeypatch.setattr("antiphon.kernel.run.tools.threads.MAX_PROCESSES", 2)
    assert results(*[call("wait", seconds=0)] * 5) == ["waited"] * 5
    assert most == [2]


def test_code_that_has_changed_since_it_was_imported_is_not_run(tmp_path, monkeypatch):
    file = tmp_path / "payments_that_change.py"
    file.write_text(SOURCE)
    monkeypatch.syspath_prepend(tmp_path)
    module = __import__("payments_that_change")
    agent = Agent("a", tools=[module.act])
    said = []
    for count in ("", "twice"):
        file.write_text(SOURCE.replace("''", repr(count)))
        model = Script([call("act"), "done"])
        isolated_tools.run_sync(agent, "go", model=model, env={})
        said += [each.content for each in model.requests[-1].messages if each.role == "tool"]
    assert said[0] == ""
    assert said[1].startswith(f"Error: [act] not run: act in {file} has changed since the run's process")


def test_a_call_that_was_stopped_before_it_began_starts_no_process(monkeypatch):
    stopped = isolated.ChildCall(isolated_tools.square, '{"number":1}', None)
    stopped.stop()
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(NoResult, match="stopped before"):
        stopped()


def test_a_process_that_cannot_be_started_is_a_failure(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    (said,) = results(call("wait", seconds=0))
    assert said.startswith("Error: [wait] not run, its process could not be started: ")


def test_isolated_does_not_change_what_was_approved():
    offered = tool(isolated=True)(isolated_tools.wait.function)
    assert offered.digest == tool()(isolated_tools.wait.function).digest == tool(offered.function).digest


def inner():
    """Something in this module."""


def test_what_another_process_cannot_import_is_refused_where_it_is_defined():
    def local() -> str:
        return ""

    class Desk:
        def work(self) -> str:
            return ""

    for function in (local, lambda: "", Desk.work, Desk().work):
        with pytest.raises(ToolDefinitionError, match="top level of a module with a file"):
            tool(isolated=True, name="some")(function)


def test_a_program_is_not_run_again_for_its_tools(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(SOURCE)
    found = subprocess.run([sys.executable, file], capture_output=True, text=True, timeout=60, check=False)
    assert f"would run the program {file} again; put the function into a module" in found.stderr


def test_the_module_of_the_documentation_runs(tmp_path, monkeypatch):
    text = (ROOT / "docs/tools.md").read_text("utf-8")
    (module,) = [
        part.text for part in parts_of(text) if "isolated=True" in part.text and part.kind == "python"
    ]
    (tmp_path / "pictures.py").write_text(module)
    monkeypatch.syspath_prepend(tmp_path)
    picture = tmp_path / "picture"
    picture.write_bytes(b"picture")
    model = Script([call("checksum", path=str(picture)), "done"])
    agent = Agent("a", tools=[__import__("pictures").checksum])
    isolated_tools.run_sync(agent, "go", model=model, env={})
    assert model.requests[-1].messages[-1].content == str(zlib.crc32(b"picture"))


def test_what_has_another_name_there_is_refused_when_it_is_offered(monkeypatch):
    offered = tool(isolated=True)(inner)
    assert as_tool(offered) is offered
    monkeypatch.setattr(sys.modules[__name__], "inner", len)
    with pytest.raises(ToolDefinitionError, match=r"inner is something else"):
        Agent("a", tools=[offered])
