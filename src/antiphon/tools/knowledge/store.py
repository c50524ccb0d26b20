"""Which sources there are, in a folder of their own: each kept under its project and its owner.

    <folder>/<project>/<owner>/<name>/source.json    what was added; empty names stand as `-`
                                      index.db       made of it, and made again whenever it is missing
    <folder>/<project>/<owner>/.folders/              indexes of folders that nobody added: the teams' own

Whoever searches does so with a key, and only sources under that key are opened: no query crosses them, and an
index says in itself whose it is.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from antiphon.errors import ConfigError, DuplicateName, UnknownName, UserError
from antiphon.tools.knowledge.folder_source import FolderSource
from antiphon.tools.knowledge.source import HeldSource, check_source_name
from antiphon.tools.knowledge.spec import SourceSpec, read_spec
from antiphon.tools.knowledge.vectors.model import Embeddings

_NOBODY = "-"
_SPEC, _INDEX = "source.json", "index.db"
_NEW, _GONE, _FOLDERS = ".new-", ".gone-", ".folders"


class KnowledgeKey(Struct, frozen=True):
    """Whose sources are searched; empty texts: of no project, of nobody in particular."""

    project: str = ""
    owner: str = ""


class KnowledgeStore:
    """Sources that were added, in a folder that is made when it is needed. For threads and processes.

    embeddings: the model that its sources share, the one that ships unless given. elsewhere: opens those that
    are no folders, see `antiphon.tools.sources.opened_elsewhere`; without it they say that they are not.
    Everything raises ConfigError when the disk does, or when what is there is not the store's.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        embeddings: Embeddings | None = None,
        *,
        elsewhere: Callable[[SourceSpec], HeldSource] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self.embeddings = embeddings or Embeddings()
        self._elsewhere = elsewhere

    def names(self, key: KnowledgeKey) -> list[str]:
        """The names of a key's sources, in order."""
        place = self._place(key)
        try:
            names = sorted(os.listdir(place))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise ConfigError(f"the sources can not be listed: {error.strerror}", str(place)) from error
        return [name for name in names if not name.startswith(".")]

    def spec(self, key: KnowledgeKey, name: str) -> SourceSpec:
        """A source as it was added. Raises UnknownName, ConfigError for one that is damaged."""
        names = self.names(key)
        if name not in names:
            raise UnknownName("source", name, names)
        return read_spec(self._place(key) / name, self._place(key) / name / _SPEC)

    def known_keys(self) -> list[KnowledgeKey]:
        """The keys under which there are sources."""
        found = sorted(self.folder.glob("*/*/*/source.json"))
        places = dict.fromkeys(each.parent.parent for each in found)
        return [KnowledgeKey(_named(each.parent.name), _named(each.name)) for each in places]

    def add(self, key: KnowledgeKey, name: str, folder: str, description: str = "") -> SourceSpec:
        """Keep a folder as a source. Raises DuplicateName, ConfigError: no folder; UserError: no name."""
        check_source_name(name)
        if not Path(folder).is_dir():
            raise ConfigError("is not a folder", folder)
        return self.keep(key, SourceSpec(name, str(Path(folder).resolve()), description))

    def keep(self, key: KnowledgeKey, spec: SourceSpec) -> SourceSpec:
        """Keep a source of any kind. Raises DuplicateName; UserError: no name, no source."""
        name = check_source_name(spec.name)
        if spec.fault:
            raise UserError(f"{name}: {spec.fault}")
        place = self._place(key)
        draft = place / f"{_NEW}{secrets.token_hex(8)}"
        try:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if name.casefold() in (each.casefold() for each in os.listdir(place)):
                raise DuplicateName("source", name)
            draft.mkdir(mode=0o700)
            (draft / _SPEC).write_bytes(msgspec.json.encode(spec) + b"\n")
            os.rename(draft, place / name)
        except OSError as error:
            if (place / name).is_dir():
                raise DuplicateName("source", name) from error
            raise ConfigError(f"the source can not be added: {error.strerror}", str(place)) from error
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        return spec

    def remove(self, key: KnowledgeKey, name: str) -> None:
        """Forget a source and its index; its folder is left as it is. Raises UnknownName."""
        place = self._place(key)
        if name not in self.names(key):
            raise UnknownName("source", name, self.names(key))
        gone = place / f"{_GONE}{secrets.token_hex(8)}"
        try:
            os.rename(place / name, gone)
        except OSError as error:
            raise ConfigError(f"the source can not be removed: {error.strerror}", str(place)) from error
        shutil.rmtree(gone, ignore_errors=True)
        for each in (place, place.parent):
            # One that holds something stays.
            with suppress(OSError):
                each.rmdir()

    def open(self, key: KnowledgeKey, spec: SourceSpec) -> HeldSource:
        """A source, a folder's with its index. Raises ConfigError: the folder is gone, the index cannot be
        used, or it is not known how to reach what is no folder."""
        if spec.folder:
            return self.open_folder(key, spec)
        if self._elsewhere is None:
            raise ConfigError(f"{spec.name}: {spec.place} can not be searched here")
        return self._elsewhere(spec)

    def open_folder(self, key: KnowledgeKey, spec: SourceSpec) -> FolderSource:
        """A source that is a folder, with its index. Raises ConfigError."""
        index = self._place(key) / spec.name / _INDEX
        return self._opened(key, spec, index)

    def folder_source(self, key: KnowledgeKey, name: str, folder: Path, description: str) -> FolderSource:
        """A folder that nobody added, with an index that is kept all the same. Raises ConfigError."""
        digest = hashlib.blake2b(os.fsencode(folder), digest_size=12).hexdigest()
        index = self._place(key) / _FOLDERS / f"{digest}.db"
        return self._opened(key, SourceSpec(name, str(folder), description), index)

    def _opened(self, key: KnowledgeKey, spec: SourceSpec, index: Path) -> FolderSource:
        subject = f"{spec.folder} of project {key.project or _NOBODY}, owner {key.owner or _NOBODY}"
        return FolderSource(
            spec.name, spec.folder, index=str(index), subject=subject, description=spec.description,
            embeddings=self.embeddings,
        )  # fmt: skip

    def _place(self, key: KnowledgeKey) -> Path:
        for each in (key.project, key.owner):
            if each:
                check_source_name(each)
        return self.folder / (key.project or _NOBODY) / (key.owner or _NOBODY)


def _named(part: str) -> str:
    return "" if part == _NOBODY else part
