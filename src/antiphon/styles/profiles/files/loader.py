"""loader: a folder of profiles, LLM configs and handover protocols.

    profiles/*.yaml              agents
    llm_configs/*.yaml           how models are asked; may be missing
    handover_protocols/*.yaml    what is handed over; may be missing

Every file is read, and everything that is wrong with it is found. Only what needs a file with errors is
refused, and nothing ever stands in for it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from antiphon.config.yaml import compose, meant, read_text
from antiphon.errors import ConfigError, UnknownName
from antiphon.styles.profiles.files.checks import check
from antiphon.styles.profiles.files.diagnostics import Diagnostic, SourceLocation
from antiphon.styles.profiles.files.fields import LLM_CONFIG, PROFILE, PROTOCOL, MappingShape
from antiphon.styles.profiles.files.inheritance import bases_first, inherit
from antiphon.styles.profiles.files.llm_config import LlmConfig, sourced
from antiphon.styles.profiles.files.profile import Profile, ToolAccess
from antiphon.styles.profiles.files.protocol import Protocol
from antiphon.styles.profiles.files.reader import FileIndex, Page, Reference
from antiphon.styles.profiles.files.vocabulary import INGESTORS, TOOLSETS

ENDINGS = (".yaml", ".yml")


class Library(Struct, frozen=True):
    """All that a folder holds.

    profiles, llm_configs, protocols: those that can be used, by name. refused: those that cannot, by kind and
    name, with the errors that are the reason. refused_roles: of each refused profile its role, as far as its
    file says one; empty when it cannot be known. findings: every error and warning, in order of files and
    lines.
    """

    profiles: Mapping[str, Profile]
    llm_configs: Mapping[str, LlmConfig]
    protocols: Mapping[str, Protocol]
    refused: Mapping[tuple[str, str], tuple[Diagnostic, ...]] = {}
    findings: tuple[Diagnostic, ...] = ()
    refused_roles: Mapping[str, str] = {}

    def profile(self, name: str) -> Profile:
        """The active profile of a name.

        Raises UnknownName, and ConfigError with all errors that it is refused for.
        """
        self._let("profile", name, self.profiles)
        return self.profiles[name]

    def llm_config(self, name: str) -> LlmConfig:
        """The active LLM config of a name. Raises as `profile`."""
        self._let("LLM config", name, self.llm_configs)
        return self.llm_configs[name]

    def protocol(self, name: str) -> Protocol:
        """The handover protocol of a name. Raises as `profile`."""
        self._let("handover protocol", name, self.protocols)
        return self.protocols[name]

    def _let(self, what: str, name: str, usable: Mapping[str, Any]) -> None:
        if errors := self.refused.get((what, name)):
            place = errors[0].place
            said = "".join(f"\n  {error}" for error in errors)
            raise ConfigError(f"{what} {name!r} cannot be used:{said}", place.file, place.line, place.column)
        if name not in usable:
            raise UnknownName(what, name, usable)


class _Draft(Struct, frozen=True):
    """A file that was read. errors: that keep it from being used. text: as it stands there."""

    name: str
    place: SourceLocation
    fields: Mapping[str, Any]
    errors: tuple[Diagnostic, ...]
    text: str = ""

    @property
    def rank(self) -> int:
        return int(self.fields.get("rev") or 1)


def load_profiles(
    folder: str | os.PathLike[str],
    *,
    toolsets: Mapping[str, Sequence[str] | None] = TOOLSETS,
    ingestors: Sequence[str] = INGESTORS,
) -> Library:
    """Read a folder. toolsets: those that are installed, and the tools in each; None of one whose provider
    says what there is when it is reached.

    Raises ConfigError when it has no folder `profiles`; what is wrong with files is among the findings.
    """
    root = Path(folder)
    if not (root / "profiles").is_dir():
        raise ConfigError("has no folder `profiles`; expected profiles/*.yaml in it", os.fspath(folder))
    return _Loading(root, FileIndex(toolsets, ingestors)).library()


class _Loading:
    """One folder while it is loaded."""

    def __init__(self, root: Path, known: FileIndex) -> None:
        self._root, self._known = root, known
        self._findings: dict[Diagnostic, None] = {}
        self._refused: dict[tuple[str, str], tuple[Diagnostic, ...]] = {}
        self._roles: dict[str, str] = {}

    def library(self) -> Library:
        protocols = self._protocols()
        configs = self._llm_configs()
        profiles = self._profiles(configs)
        findings = tuple(sorted(self._findings))
        return Library(profiles, configs, protocols, self._refused, findings, self._roles)

    def _drafts(self, folder: str, shape: MappingShape, name_key: str = "name") -> Iterator[_Draft]:
        """The files of a folder, by their names."""
        where = self._root / folder
        paths = sorted(where.iterdir()) if where.is_dir() else []
        for path in paths:
            if path.suffix in ENDINGS:
                yield self._draft(path, shape, name_key)

    def _draft(self, path: Path, shape: MappingShape, name_key: str) -> _Draft:
        file, text = os.fspath(path), ""
        try:
            text = read_text(path)
            root = compose(text, file)
            if root is None:
                raise ConfigError(f"is empty; expected {shape.what}", file, 1, 1)
        except ConfigError as error:
            findings = [Diagnostic(SourceLocation(file, error.line, error.column), error.text)]
            fields: Mapping[str, Any] = {}
        else:
            page = Page(file, text, self._known)
            fields = page.whole(root, shape)
            findings = page.findings
        self._findings.update(dict.fromkeys(findings))
        errors = tuple(finding for finding in findings if finding.severity == "error")
        named = fields.get(name_key) or (_line(text, name_key) if errors else "") or path.stem
        return _Draft(str(named), SourceLocation(file, 1, 1), fields, errors, text if errors else "")

    def _active(self, what: str, drafts: Iterator[_Draft]) -> dict[str, _Draft]:
        """Of every name the draft that counts: the active one with the highest `rev`."""
        found: dict[str, _Draft] = {}
        for draft in drafts:
            if draft.fields.get("is_active") is False or draft.fields.get("is_deleted"):
                continue
            other = found.get(draft.name)
            if other is not None and other.rank == draft.rank:
                said = (
                    f"{what} {draft.name!r} stands in {other.place.file} too; rename one, or raise its `rev`"
                )
                self._refuse(what, draft.name, Diagnostic(draft.place, said))
            if other is None or draft.rank > other.rank:
                found[draft.name] = draft
        for draft in found.values():
            self._refuse(what, draft.name, *draft.errors)
        return found

    def _refuse(self, what: str, name: str, *errors: Diagnostic) -> None:
        if errors:
            self._findings.update(dict.fromkeys(errors))
            self._refused[what, name] = (*self._refused.get((what, name), ()), *errors)

    def _resolved(
        self, what: str, drafts: Mapping[str, _Draft], key: str
    ) -> Iterator[tuple[_Draft, dict[str, Any], tuple[str, ...]]]:
        """Drafts that can be used, with their bases merged in and the names of these; bases come first."""
        references: dict[str, Reference | None] = {
            name: each.fields.get(key) for name, each in drafts.items()
        }
        bases = {name: base.name if base else "" for name, base in references.items()}
        order, circles = bases_first(bases)
        for circle in circles:
            for index, name in enumerate(circle):
                way = " -> ".join((*circle[index:], *circle[:index], name))
                said = f"a circle of bases: {way}; take one of them out"
                place = reference.place if (reference := references[name]) else drafts[name].place
                self._refuse(what, name, Diagnostic(place, said))
        merged: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {}
        for name in order:
            draft, reference = drafts[name], references[name]
            fields, above = dict(draft.fields), _NO_BASES
            if reference and reference.name not in drafts:
                self._refuse(what, name, self._missing(what, reference, drafts))
            elif reference and reference.name in merged:
                inherited, above = merged[reference.name]
                fields, above = inherit(inherited, fields), (reference.name, *above)
            elif reference and (what, name) not in self._refused:
                self._refuse(what, name, *self._refused[what, reference.name])
            if (what, name) not in self._refused:
                merged[name] = fields, above
                yield draft, fields, above
                if (what, name) in self._refused:
                    del merged[name]

    def _missing(self, what: str, reference: Reference, known: Mapping[str, Any]) -> Diagnostic:
        said = meant(reference.name, sorted(known)) if known else "; there are none"
        return Diagnostic(reference.place, f"there is no active {what} {reference.name!r}{said}")

    def _profiles(self, configs: Mapping[str, LlmConfig]) -> dict[str, Profile]:
        drafts = self._active("profile", self._drafts("profiles", PROFILE))
        found: dict[str, Profile] = {}
        for draft, fields, bases in self._resolved("profile", drafts, "base_profile"):
            if not fields.get("type"):
                said = "a profile needs `type`, its own or its base's: base, partner, principal or associate"
                self._refuse("profile", draft.name, Diagnostic(draft.place, said))
                continue
            profile = _profile(draft, fields, bases)
            self._refuse("profile", draft.name, *check(profile))
            self._refuse("profile", draft.name, *self._llm_errors(fields.get("llm_config_ref"), configs))
            if ("profile", draft.name) not in self._refused:
                found[draft.name] = profile
        self._roles = {name: _role(name, drafts) for what, name in self._refused if what == "profile"}
        return found

    def _llm_errors(
        self, reference: Reference | None, configs: Mapping[str, LlmConfig]
    ) -> Sequence[Diagnostic]:
        if reference is None or reference.name in configs:
            return ()
        refused = self._refused.get(("LLM config", reference.name))
        return refused or (self._missing("LLM config", reference, configs),)

    def _llm_configs(self) -> dict[str, LlmConfig]:
        drafts = self._active("LLM config", self._drafts("llm_configs", LLM_CONFIG))
        found: dict[str, LlmConfig] = {}
        for draft, fields, bases in self._resolved("LLM config", drafts, "base_llm_config"):
            config = {key: sourced(key, value) for key, value in (fields.get("config") or {}).items()}
            said = str(fields.get("description_for_human") or "")
            found[draft.name] = LlmConfig(draft.name, draft.place, config, said, draft.rank, bases)
        return found

    def _protocols(self) -> dict[str, Protocol]:
        drafts = self._active(
            "handover protocol", self._drafts("handover_protocols", PROTOCOL, "protocol_name")
        )
        found: dict[str, Protocol] = {}
        for draft in drafts.values():
            if ("handover protocol", draft.name) not in self._refused:
                given = {key: value for key, value in draft.fields.items() if value is not None}
                source = given.pop("target_inbox_item")["source"]
                found[draft.name] = Protocol(place=draft.place, source=source, **given)
        return found


def _role(name: str, drafts: Mapping[str, _Draft]) -> str:
    """The role that a profile's file or the nearest of its bases says; empty when none can be read."""
    seen: set[str] = set()
    while name in drafts and name not in seen:
        seen.add(name)
        draft = drafts[name]
        if role := draft.fields.get("type") or _line(draft.text, "type"):
            return str(role)
        base = draft.fields.get("base_profile")
        name = base.name if isinstance(base, Reference) else _line(draft.text, "base_profile")
    return ""


def _line(text: str, key: str) -> str:
    """What a line at the left edge says of a key, in a file that cannot be read as a whole."""
    found = re.search(rf"^{key}:[ \t]*[\"']?([\w.-]+)", text, re.MULTILINE)
    return found[1] if found else ""


_NO_BASES: tuple[str, ...] = ()
_PLAIN = ("is_active", "is_deleted", "timestamp", "available_for_staffing", "description_for_human")
_LISTS = ("pre_turn_observers", "post_turn_observers", "flow_decider", "inbox_handling_strategies")


def _profile(draft: _Draft, fields: Mapping[str, Any], bases: tuple[str, ...]) -> Profile:
    prompt = fields.get("system_prompt_construction") or {}
    tools = fields.get("tool_access_policy") or {}
    reference = fields.get("llm_config_ref")
    given = {
        key: fields[key] for key in (*_PLAIN, *_LISTS, "text_definitions") if fields.get(key) is not None
    }
    return Profile(
        name=draft.name,
        type=fields["type"],
        profile_id=fields.get("profile_id") or f"{draft.name}@{draft.rank}",
        place=draft.place,
        rev=draft.rank,
        bases=bases,
        llm_config_ref=reference.name if reference else "",
        segments=tuple(sorted(prompt.get("segments") or (), key=lambda segment: segment.order)),
        tool_access_policy=ToolAccess(**{key: names for key, names in tools.items() if names is not None}),
        **given,
    )
