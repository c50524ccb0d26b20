"""The seal of a journal: what nobody without its key can write.

The digests of rows and commands show damage, and changes by whoever did not reckon with them; who does can
compute them anew. A journal that is opened with a key keeps a seal beside the end of each run and beside each
command, name, label, rule and snapshot. As a run's end covers everything before it, one seal covers the whole
run.

A seal shows that its holder of the key wrote this once, not that it is the newest: an older copy of all files
passes.
"""

from __future__ import annotations

import os
import struct
from hashlib import blake2b

from antiphon.errors import ConfigError

VARIABLE = "ANTIPHON_JOURNAL_KEY"
"""The setting of the process's environment that holds the key."""
SHORTEST = 16
"""Characters of a key, at least."""
_SEQ = struct.Struct("<q").pack


class Seal:
    """Seals with one key; without a key there is none, and every seal is empty. Raises ConfigError for a key
    of fewer than SHORTEST characters."""

    __slots__ = ("_key",)

    def __init__(self, key: str = "") -> None:
        if key and len(key) < SHORTEST:
            raise ConfigError(
                f"the key of a journal ({VARIABLE}) has {len(key)} characters; give it at least {SHORTEST},"
                " drawn by chance: `openssl rand -hex 32`"
            )
        self._key = blake2b(key.encode(errors="surrogateescape"), digest_size=32).digest() if key else b""

    def __bool__(self) -> bool:
        return bool(self._key)

    @property
    def mark(self) -> bytes:
        """What a journal keeps of the key, to know it again."""
        return self._over(b"journal", b"")

    def head(self, run_id: str, origin: str, imported: int) -> bytes:
        """What of a run never changes, for `end`."""
        return self._over(b"head", repr((run_id, origin, imported)).encode())

    def end(self, head: bytes, seq: int, digest: bytes) -> bytes:
        """The seal of a run that ends at record `seq`, whose last row has this digest."""
        return self._over(b"end", head + _SEQ(seq) + digest)

    def command(self, digest: bytes) -> bytes:
        """The seal of a command, by its digest."""
        return self._over(b"command", digest)

    def name(self, digest: bytes) -> bytes:
        """The seal of a run's name, by its digest."""
        return self._over(b"name", digest)

    def labels(self, digest: bytes) -> bytes:
        """The seal of a run's labels, by their digest."""
        return self._over(b"labels", digest)

    def rule(self, digest: bytes) -> bytes:
        """The seal of a rule, by its digest."""
        return self._over(b"rule", digest)

    def snapshot(self, digest: bytes) -> bytes:
        """The seal of a snapshot, by its digest."""
        return self._over(b"snapshot", digest)

    def _over(self, what: bytes, data: bytes) -> bytes:
        if not self._key:
            return b""
        return blake2b(data, key=self._key, person=what, digest_size=16).digest()


UNSEALED = Seal()
"""The seal of a journal that has none."""


def journal_key() -> str:
    """The key that the process's environment gives, empty when none. No `.env` file is asked: one in the
    folder of the journal would be as easily written as the journal itself."""
    return os.environ.get(VARIABLE, "")
