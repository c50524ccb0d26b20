"""llmock, a model server that nobody here wrote: started on its own, told over HTTP what to answer.

`./check` installs it into an environment of its own: it brings a web framework and a pytest plugin
that must not meet ours.
"""

import http.client
import json
import os
import re
import select
import subprocess
from pathlib import Path
from typing import Any

PYTHON = Path(__file__).resolve().parents[2] / ".venv/llmock/bin/python"
START = "from llmock.cli import app; app()"
CHUNK_MS = 5
"""Pause between two pieces of a stream, so that a client can leave in the middle of one."""
PATIENCE = 60
"""Seconds after which something that should have happened has not; never reached when all is well."""
HALF = " ".join(["word"] * 1000)
"""The reply of a stream that breaks: so long that whoever leaves it leaves it in the middle."""


class Server:
    """A running llmock. `url` is its OpenAI-compatible endpoint; options: further ones of its start."""

    def __init__(self, *options: str) -> None:
        pause = ["--stream-chunk-delay-ms", str(CHUNK_MS)]
        command = [PYTHON, "-c", START, "serve", "--port", "0", *pause, *options]
        env = {key: value for key, value in os.environ.items() if not key.startswith(("LLMOCK_", "PYTHON"))}
        self._process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            bufsize=0,
        )  # fmt: skip
        try:
            self._port = self._said_port()
            assert self._ask("GET", "/health")["status"] == "ok"
        except BaseException:
            self.stop()
            raise
        self.url = f"http://127.0.0.1:{self._port}/v1"

    def stop(self) -> None:
        """End it and wait for its end."""
        self._process.terminate()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stderr is not None:
            self._process.stderr.close()

    def script(self, *behaviors: dict[str, Any]) -> None:
        """Forget everything, then behave like this, request by request; replies not given are made up."""
        self._ask("POST", "/_llmock/reset")
        if behaviors:
            self._ask("POST", "/_llmock/scenario", {"behaviors": behaviors})

    def left(self) -> list[dict[str, Any]]:
        """What it was told and has not done."""
        found: list[dict[str, Any]] = self._ask("GET", "/_llmock/scenario")["pending"]
        return found

    def requests(self) -> list[dict[str, Any]]:
        """Every request it got, in order, with what became of it."""
        found: list[dict[str, Any]] = self._ask("GET", "/_llmock/requests")["requests"]
        return found

    def verdict(self) -> tuple[int, list[str]]:
        """How often it was asked, and what it finds wrong with whoever asked.

        Not whether delays grow: it compares gaps by the wall clock, and two jittered ones on a busy machine
        look alike. The unit tests of retries hold them against a clock of their own.
        """
        found = self._ask("GET", "/_llmock/verdict")
        wrong = [finding["code"] for finding in found["findings"]]
        return found["attempts"], [each for each in wrong if each != "no_backoff"]

    def _said_port(self) -> int:
        """The port that the system chose for it, from the line that says it is ready."""
        said, errors = b"", self._process.stderr
        assert errors is not None
        while not (found := re.search(rb"running on http://127\.0\.0\.1:(\d+)", said)):
            ready, _, _ = select.select([errors], [], [], PATIENCE)
            came = os.read(errors.fileno(), 65536) if ready else b""
            assert came, f"llmock did not start: {said.decode('utf-8', 'replace')}"
            said += came
        return int(found[1])

    def _ask(self, method: str, path: str, value: Any = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=PATIENCE)
        try:
            connection.request(method, path, json.dumps(value) if value is not None else None)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
        assert answer.status < 300, f"{method} {path}: {answer.status} {body!r}"
        return json.loads(body)


def says(model: str, text: str, times: int = 1) -> dict[str, Any]:
    """A reply of that model in words."""
    return {"type": "reply", "text": text, "times": times, "match": {"model": model}}


def calls(model: str, *wanted: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """A reply of that model that calls tools: their names and arguments."""
    listed = [{"name": name, "arguments": arguments} for name, arguments in wanted]
    return {"type": "reply", "tool_calls": listed, "match": {"model": model}}


def to(agent: str, message: str) -> tuple[str, dict[str, str]]:
    """A call of another agent."""
    return "call_agent", {"agent_name": agent, "message": message}


def finish(message: str) -> tuple[str, dict[str, str]]:
    """A call that ends the agent's task."""
    return "finish", {"message": message}


def fails(status: int, times: int = 1, **how: Any) -> dict[str, Any]:
    """A refusal. how: retry_after in seconds, code, message."""
    return {"type": "fail", "status": status, "times": times, **how}


def breaks(kind: str, times: int = 1, **how: Any) -> dict[str, Any]:
    """A stream that breaks after a few pieces: disconnect, truncate, malformed or stall."""
    return {"type": "stream_fault", "kind": kind, "after_chunks": 3, "times": times, **how}


def conversations(server: Server, model: str) -> list[list[dict[str, Any]]]:
    """What that model was shown, request by request; every call in it has one answer, right behind it."""
    found = [each["body"]["messages"] for each in server.requests() if each["model"] == model]
    for messages in found:
        for place, message in enumerate(messages):
            wanted = [call["id"] for call in message.get("tool_calls", ())]
            answers = messages[place + 1 : place + 1 + len(wanted)]
            assert [each.get("tool_call_id") for each in answers] == wanted
        assert sum(each["role"] == "tool" for each in messages) == sum(
            len(each.get("tool_calls", ())) for each in messages
        )
    return found


def results(messages: list[dict[str, Any]]) -> list[str]:
    """The texts of the tool results among messages."""
    return [each["content"] for each in messages if each["role"] == "tool"]
