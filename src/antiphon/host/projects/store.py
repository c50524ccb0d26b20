"""The folder of all projects: found, made, renamed, removed, and their teams. Synchronous: for threads."""

from __future__ import annotations

import os
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from antiphon.config.yaml import read_text
from antiphon.errors import AntiphonError, ConfigError, UnknownName, UserError
from antiphon.host.projects.files import FilesFailed, NameTaken, ProjectFiles
from antiphon.host.projects.names import check_project
from antiphon.host.projects.project_file import FILE, FILES, ProjectFile, parse, renamed, written
from antiphon.host.team import HostedTeam, teams_of
from antiphon.journal.listing import check_name
from antiphon.values.codec import type_and_text
from antiphon.values.policy import StandingRule

MAX_PROJECTS = 10_000
MAX_OWNED = 200
"""Projects of one owner that can be made."""
MAX_TEAM_FILES = 2_000
"""Files that one team is made of."""
ABANDONED_SECONDS = 3600.0
"""A project that somebody began to make so long ago never will be."""
_NEW, _GONE = ".new-", ".gone-"
_OWN_FILES = "a project's teams are files of its own"

Stamp = tuple[tuple[str, int, int], ...]
"""Names of files, each with its time of change in nanoseconds and its bytes."""


class Project(Struct, frozen=True):
    """A project as its folder says it is now."""

    id: str
    """The name of its folder."""
    name: str
    """What people call it; its id where it has no name."""
    owner: str
    """Whose it is; empty: of nobody in particular."""
    folder: Path
    served: tuple[str, ...] | None = None
    """The server's teams that it uses; None: all of them."""
    own: Mapping[str, str] = {}
    """Paths of its own teams, by name."""
    rules: tuple[StandingRule, ...] = ()
    """For its runs, of its own file."""
    findings: tuple[str, ...] = ()
    """What is wrong with its file."""
    mcp_servers: tuple[str, ...] = ()
    """Names of MCP servers that its own teams may name."""
    knowledge: Mapping[str, Path] = {}
    """Folders that its own teams search beside its files, by name."""

    @property
    def files(self) -> ProjectFiles:
        """What its runs may read."""
        return ProjectFiles(self.folder / FILES)


LoadTeam = Callable[[Path, Project], HostedTeam]
"""A team of a project from a YAML file or a folder of profiles; its file tools read the project's files. It
imports no code of the project's, and raises AntiphonError for what is no such team."""


class Projects:
    """Projects in a folder, which is made when it is not there. Its methods may be called from any thread.

    load: see LoadTeam. What is known of a project is read again whenever its files have changed. Everything
    raises FilesFailed when the disk does.
    """

    def __init__(self, folder: str | os.PathLike[str], load: LoadTeam) -> None:
        self._folder, self._load = Path(folder).absolute(), load
        self._lock = threading.RLock()
        self._known: dict[str, tuple[Stamp, ProjectFile, str]] = {}
        self._teams: dict[tuple[str, str], tuple[Stamp, HostedTeam | str]] = {}
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._clear_away()
        except OSError as error:
            raise ConfigError(f"cannot be the folder of projects: {error.strerror}", str(folder)) from error

    def _clear_away(self) -> None:
        """Remove what a process that died was making or removing."""
        before = time.time() - ABANDONED_SECONDS
        for each in os.scandir(self._folder):
            old = each.stat(follow_symlinks=False).st_mtime < before
            if each.name.startswith(_GONE) or (each.name.startswith(_NEW) and old):
                shutil.rmtree(each.path, ignore_errors=True)
            elif each.is_dir(follow_symlinks=False):
                ProjectFiles(Path(each.path, FILES)).clear_away(before)

    def all(self) -> list[Project]:
        """Every project, by id, MAX_PROJECTS at most."""
        try:
            names = sorted(each for each in os.listdir(self._folder) if not each.startswith("."))
        except OSError as error:
            raise FilesFailed(f"The folder of projects cannot be read: {error.strerror}") from error
        return list(self._found(names[:MAX_PROJECTS]))

    def _found(self, names: list[str]) -> Iterator[Project]:
        for each in names:
            with suppress(UserError):
                yield self.get(each)

    def get(self, project: str) -> Project:
        """One of them. Raises UnknownName, which names no others."""
        try:
            check_project(project)
        except UserError:
            raise UnknownName("project", project) from None
        folder = self._folder / project
        file = folder / FILE
        if not _is_folder(folder) or folder.name not in os.listdir(self._folder):
            # On some systems other letters name the same folder.
            raise UnknownName("project", project)
        found, wrong = self._read(project, file)
        findings = (wrong,) if wrong else ()
        return Project(
            project,
            found.name or project,
            found.owner,
            folder,
            found.served,
            found.own,
            found.rules,
            findings,
            found.mcp_servers,
            {name: folder / each for name, each in found.knowledge.items()},
        )

    def _read(self, project: str, file: Path) -> tuple[ProjectFile, str]:
        """What project.yaml says, and what is wrong with it."""
        try:
            status = file.lstat()
        except OSError:
            raise UnknownName("project", project) from None
        if not stat.S_ISREG(status.st_mode):
            return ProjectFile(), f"{project}/{FILE} is not a regular file"
        stamp: Stamp = ((FILE, status.st_mtime_ns, status.st_size),)
        with self._lock:
            known = self._known.get(project)
        if known is not None and known[0] == stamp:
            return known[1], known[2]
        shown = f"{project}/{FILE}"
        try:
            found, wrong = parse(_text_of(file, shown), project, shown), ""
        except ConfigError as error:
            found, wrong = ProjectFile(), str(error)
        with self._lock:
            self._known[project] = stamp, found, wrong
        return found, wrong

    # -- changes --------------------------------------------------------------------------------

    def create(self, project: str, name: str = "", owner: str = "") -> Project:
        """Make a project, whole or not at all. Raises NameTaken, UserError for what cannot be a name."""
        check_project(project)
        check_name(name, "A project")
        draft = self._folder / f"{_NEW}{secrets.token_hex(8)}"
        with self._lock:
            try:
                self._check_free(project, owner)
                draft.mkdir(0o700)
                (draft / FILES).mkdir()
                _write(draft / FILE, written(name, owner))
                _sync(draft)
                os.rename(draft, self._folder / project)
                _sync(self._folder)
            except OSError as error:
                if _is_folder(self._folder / project):
                    raise _taken(project) from error
                raise FilesFailed(f"The project {project} cannot be made: {error.strerror}") from error
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        return self.get(project)

    def _check_free(self, project: str, owner: str) -> None:
        if owner and sum(each.owner == owner for each in self.all()) >= MAX_OWNED:
            raise UserError(f"{owner} has {MAX_OWNED} projects, as many as may be; delete some first")
        names = os.listdir(self._folder)
        if len(names) >= MAX_PROJECTS:
            raise UserError(f"There are {MAX_PROJECTS:,} projects, as many as may be; delete some first")
        for each in names:
            if each.casefold() == project.casefold():
                raise _taken(project)

    def rename(self, project: str, name: str) -> Project:
        """Give it another name for people, and change nothing else in its file. Raises UnknownName,
        ConfigError for a file that is wrong, UserError for what is no name."""
        name = name.strip()
        check_name(name, "A project")
        with self._lock:
            found = self.get(project)
            shown = f"{project}/{FILE}"
            file = found.folder / FILE
            text = renamed(_text_of(file, shown), project, shown, name or project)
            draft = found.folder / f".{FILE}-{secrets.token_hex(8)}"
            try:
                _write(draft, text)
                os.replace(draft, file)
                _sync(found.folder)
            except OSError as error:
                raise FilesFailed(f"The project {project} cannot be changed: {error.strerror}") from error
            finally:
                draft.unlink(missing_ok=True)
            self._known.pop(project, None)
        return self.get(project)

    def delete(self, project: str) -> None:
        """Remove a project with all that is in its folder; it is gone at once. Raises UnknownName."""
        gone = self._folder / f"{_GONE}{secrets.token_hex(8)}"
        with self._lock:
            found = self.get(project)
            try:
                os.rename(found.folder, gone)
                _sync(self._folder)
            except OSError as error:
                raise FilesFailed(f"The project {project} cannot be removed: {error.strerror}") from error
            self._known.pop(project, None)
            for key in [each for each in self._teams if each[0] == project]:
                del self._teams[key]
        shutil.rmtree(gone, ignore_errors=True)

    # -- teams ----------------------------------------------------------------------------------

    def team(self, project: Project, name: str) -> HostedTeam:
        """A team of the project's own, as its files say now. Raises UnknownName, UserError for one that
        cannot be loaded."""
        if name not in project.own:
            raise UnknownName(f"team of project {project.id}", name, project.own)
        path = project.folder / project.own[name]
        try:
            stamp = (*_stamp(project, path), *_stamp(project, project.folder / FILE))
        except ConfigError as error:
            raise UserError(f"The team {name} of project {project.id} cannot be loaded: {error}") from error
        with self._lock:
            known = self._teams.get((project.id, name))
        if known is None or known[0] != stamp:
            known = stamp, self._loaded(project, name, path)
            with self._lock:
                self._teams[project.id, name] = known
        found = known[1]
        if isinstance(found, str):
            raise UserError(f"The team {name} of project {project.id} cannot be loaded: {found}")
        return found

    def _loaded(self, project: Project, name: str, path: Path) -> HostedTeam | str:
        """The team, or what is wrong with it."""
        files = project.files.folder
        try:
            with suppress(FileExistsError):
                files.mkdir()
            if not _is_folder(files):
                return f"{FILES} is no folder, or a link to one; a project's files are its own"
            return teams_of({name: self._load(path, project)})[name]
        except AntiphonError as error:
            return str(error).replace(f"{project.folder}{os.sep}", "")
        except Exception as error:  # noqa: BLE001 - a fault in one team's files is a finding of its project
            return type_and_text(error)

    def teams(self, project: Project, served: Collection[str]) -> tuple[list[str], Project]:
        """The names of teams that can be started in a project, and the project with all its findings."""
        found, wrong = list[str](), list(project.findings)
        for name in served if project.served is None else project.served:
            if name in served:
                found.append(name)
            else:
                listed = ", ".join(sorted(served)) or "(none)"
                wrong.append(f"{project.id}/{FILE}: the server has no team {name}. It has: {listed}")
        for name in project.own:
            if name in served:
                said = f"the server has a team {name} too; write NAME={project.own[name]}"
                wrong.append(f"{project.id}/{FILE}: {said}")
                continue
            try:
                wrong += [f"{name}: {each}" for each in self.team(project, name).findings]
                found.append(name)
            except UserError as error:
                wrong.append(str(error))
        return sorted(found), replace(project, findings=tuple(wrong))


def _stamp(project: Project, path: Path) -> Stamp:
    """What a team's files are now. Raises ConfigError for a link on the way to it or in it, which may lead
    out, and for what is not there."""
    shown = path.relative_to(project.folder).as_posix()
    place = project.folder
    for part in path.relative_to(project.folder).parts:
        place = place / part
        if place.is_symlink():
            raise ConfigError(f"is, or lies behind, a symbolic link; {_OWN_FILES}", shown)
    if path.is_file():
        status = path.stat()
        return ((shown, status.st_mtime_ns, status.st_size),)
    if not path.is_dir():
        raise ConfigError("is not there", shown)
    found: list[tuple[str, int, int]] = []
    for above, folders, names in os.walk(path, onerror=_raise):
        for name in sorted([*folders, *names]):
            each = Path(above, name)
            status = each.lstat()
            if stat.S_ISLNK(status.st_mode):
                place = each.relative_to(project.folder)
                raise ConfigError(f"is a symbolic link; {_OWN_FILES}", place.as_posix())
            found.append((str(each), status.st_mtime_ns, status.st_size))
        if len(found) > MAX_TEAM_FILES:
            raise ConfigError(f"has more than {MAX_TEAM_FILES:,} files", shown)
    return tuple(found)


def _raise(error: OSError) -> None:
    raise ConfigError(f"cannot be read: {error.strerror}", str(error.filename)) from error


def _text_of(file: Path, shown: str) -> str:
    try:
        return read_text(file)
    except ConfigError as error:
        raise ConfigError(str(error).replace(str(file), shown)) from None


def _is_folder(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False


def _taken(project: str) -> NameTaken:
    return NameTaken(f"There is a project {project}, perhaps in other letters; give this one another name")


def _write(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Make names in a folder durable, where the system can."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
