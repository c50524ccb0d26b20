"""The manifest of a team: what it was made of, as a blob that a run's records name.

Facts say what happened; the manifest says what else decided it: declared fields, contracts of tools,
models with their windows and prices, and digests of the code of tools and hooks. Two manifests tell what
changed between them.
"""

from __future__ import annotations

import functools
from hashlib import blake2b
from types import CodeType
from typing import Any

import msgspec
from msgspec import Struct

from antiphon.kernel.facts.events import FORMAT
from antiphon.kernel.rules.team.compiled import CompiledAgent, CompiledTeam, ModelOption
from antiphon.values.agent import Agent, ModelOptions
from antiphon.values.hooks import Hooks
from antiphon.values.tool import Tool

_TOOLSET_TOKENS = ModelOptions().toolset_tokens
RULES_VERSION = 7
"""Grows when the same facts are answered by other events."""


class Manifest(Struct, frozen=True):
    """A manifest, ready to be stored."""

    digest: str
    """The name of the blob that `data` is."""
    data: bytes
    """JSON."""


def manifest_of(team: CompiledTeam) -> Manifest:
    """The manifest of a team."""
    agents = tuple([(name, member.declared) for name, member in team.members.items()])
    models = tuple([(name, tuple(map(_model, options))) for name, options in team.models.items()])
    return _joined(agents, models)


@functools.lru_cache(maxsize=256)
def _joined(agents: tuple[tuple[str, bytes], ...], models: tuple[tuple[str, Any], ...]) -> Manifest:
    data = msgspec.json.encode(
        {
            "format": FORMAT,
            "rules": RULES_VERSION,
            "agents": {name: msgspec.Raw(declared) for name, declared in agents},
            "models": dict(models),
        }
    )
    return Manifest(blake2b(data, digest_size=32).hexdigest(), data)


def _model(option: ModelOption) -> tuple[Any, ...]:
    """A model's identity and what is known of it: these decide costs, compaction and retries."""
    kind = type(option.model if option.adapter is None else option.adapter)
    known = (
        option.name, f"{kind.__module__}.{kind.__qualname__}", option.window,
        option.max_input_price, option.max_output_price, option.spare,
    )  # fmt: skip
    return known if option.retry is None else (*known, option.retry)


def declared(member: CompiledAgent) -> bytes:
    """What one agent's developer declared, as JSON; functions as the digests of their code."""
    agent = member.agent
    fields = msgspec.structs.asdict(agent)
    del fields["model"], fields["output_type"]
    fields["tools"] = {name: _tool(tool) for name, tool in member.tools.items()}
    for name, (default, written) in _GROUPS.items():
        # Most agents leave a group as it is.
        fields[name] = written if fields[name] is default else _group(fields[name])
    if member.toolsets:
        fields["toolsets"] = [(each.name, each.only) for each in agent.toolsets]
    fields["prefix"], fields["entry_prefix"] = member.prefix.digest, member.entry_prefix.digest
    return _encode(fields)


def _group(options: Struct) -> Any:
    """A group of an agent's fields as the manifest has it: code as digests, models as their number."""
    fields = msgspec.structs.asdict(options)
    if isinstance(options, Hooks):
        return {name: code_digest(hook) for name, hook in fields.items() if hook is not None}
    if isinstance(options, ModelOptions):
        if options.toolset_tokens == _TOOLSET_TOKENS:
            # What says nothing new is left out, so that a team's manifest stays what it was.
            del fields["toolset_tokens"]
        return fields | {"fallback_models": len(options.fallback_models)}
    return options


def _tool(tool: Tool) -> dict[str, str]:
    found = {"digest": tool.digest, "code": code_digest(tool.function)}
    # What says nothing new is left out, so that a team's manifest stays what it was.
    shown = {"kind": tool.kind, "title": tool._shown.title}
    return found | {name: said for name, said in shown.items() if said not in ("", "other")}


def _named(value: Any) -> str:
    """What JSON cannot hold: a function by its code, anything else by its type."""
    return code_digest(value) if callable(value) else f"{type(value).__module__}.{type(value).__qualname__}"


_encode = msgspec.json.Encoder(enc_hook=_named, order="sorted").encode
_GROUPS = {
    each.name: (each.default, msgspec.Raw(_encode(_group(each.default))))
    for each in msgspec.structs.fields(Agent)
    if each.name in ("loop", "asking", "hooks", "topics")
}
"""The groups of an agent's fields: what they are unless given, as an object and as JSON."""


def code_digest(function: Any) -> str:
    """32 hex characters that change with the code of a function; of an object its type's `__call__`."""
    target = getattr(function, "func", function)
    target = getattr(target, "__func__", target)
    code = getattr(target, "__code__", None) or getattr(type(target).__call__, "__code__", None)
    digest = blake2b(getattr(target, "__qualname__", type(target).__qualname__).encode(), digest_size=16)
    if isinstance(code, CodeType):
        _add(digest, code)
    return digest.hexdigest()


def _add(digest: Any, code: CodeType) -> None:
    """Add what a function does, without where it stands."""
    digest.update(code.co_code)
    digest.update(repr((code.co_names, code.co_varnames)).encode("utf-8", "replace"))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _add(digest, constant)
        else:
            digest.update(repr(_ordered(constant)).encode("utf-8", "replace"))


def _ordered(constant: object) -> object:
    """A constant whose text is the same in every process."""
    return sorted(map(repr, constant)) if isinstance(constant, frozenset) else constant
