"""`antiphon models`: what is known of models, and what is configured here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from fnmatch import fnmatchcase
from typing import Any

import click

from antiphon.cli import exit_codes
from antiphon.cli.commands.runs import terminal_width
from antiphon.cli.display import output, terminal_escape
from antiphon.cli.store import json_option
from antiphon.config.dotenv import environment
from antiphon.models.catalog import Catalog, ModelSpec, Prices, load_catalog

UNKNOWN = "unknown"
SETTINGS = ("ANTIPHON_MODEL", "OPENAI_DEFAULT_MODEL")
COLUMNS = ("MODEL", "WINDOW", "OUTPUT", "IN $/M", "OUT $/M", "CACHED $/M", "ABLE")


@click.group(epilog="A file of your own figures is named by ANTIPHON_MODELS; see docs/models.md.")
def models() -> None:
    """Show model prices in USD per million tokens, context windows and features. Nothing is asked
    over the network.
    """


@models.command("ls", short_help="List models; PATTERN is a part of the name.")
@click.argument("pattern", required=False, default="")
@click.option("--provider", metavar="NAME", default="", help="Only this provider's, such as anthropic.")
@json_option
def ls(pattern: str, provider: str, as_json: bool) -> int:
    """List the models that the catalog knows. PATTERN is a part of the name, or a pattern with * and ?."""
    env = environment()
    catalog = load_catalog(env=env)
    found = [spec for spec in catalog.models(provider) if _matches(spec, pattern)]
    if as_json:
        output.say(terminal_escape.json_text([_plain(spec) for spec in found]))
        return exit_codes.COMPLETED
    if not found:
        names = ", ".join(dict.fromkeys(spec.provider for spec in catalog.models()))
        raise exit_codes.NotFound(f"No model is called like that. Providers: {names}")
    for line in _table([list(COLUMNS), *map(_row, found)]):
        output.say(line)
    output.say(f"\n{len(found):,} models, as of {catalog.as_of}")
    for line in _configured(catalog, env):
        output.say(line)
    return exit_codes.COMPLETED


@models.command("show", short_help="Show one model.")
@click.argument("model_id", metavar="ID")
@json_option
def show(model_id: str, as_json: bool) -> int:
    """Show what is known of a model: a model string, a provider's id, or an alias."""
    env = environment()
    catalog = load_catalog(env=env)
    spec = catalog.find(model_id)
    if spec is None:
        near = [f"{each.provider}:{each.id}" for each in catalog.models() if _matches(each, model_id)][:8]
        more = f" Like it: {', '.join(near)}." if near else ""
        raise exit_codes.NotFound(
            f"Nothing is known of {model_id!r}.{more} ANTIPHON_MODELS names a file with your own figures"
        )
    if as_json:
        output.say(terminal_escape.json_text({**_plain(spec), "as_of": catalog.as_of}))
        return exit_codes.COMPLETED
    rows = [*_facts(spec), *_prices(spec.prices), ("prices as of", catalog.as_of)]
    width = max(len(name) for name, _ in rows)
    output.say(f"{spec.provider}:{spec.id}")
    for name, text in rows:
        output.say(f"  {name.ljust(width)}  {terminal_escape.line(text, 400)}")
    return exit_codes.COMPLETED


def _matches(spec: ModelSpec, pattern: str) -> bool:
    name, wanted = f"{spec.provider}:{spec.id}".lower(), pattern.lower()
    if "*" in wanted or "?" in wanted:
        return fnmatchcase(name, wanted) or fnmatchcase(spec.id.lower(), wanted)
    return wanted in name or any(wanted == alias.lower() for alias in spec.aliases)


def _row(spec: ModelSpec) -> list[str]:
    able = [
        word
        for word, known in (
            ("tools", spec.tools),
            ("reasoning", spec.reasoning),
            ("json", spec.structured_output),
            ("images", "image" in spec.modalities),
        )
        if known
    ]
    prices = spec.prices
    numbers = (_count(spec.input_limit), _count(spec.max_output))
    costs = (_dollars(each) for each in (prices.input, prices.output, prices.cached_input))
    return [
        terminal_escape.line(f"{spec.provider}:{spec.id}", 60),
        *numbers,
        *costs,
        ",".join(able),
    ]


def _table(rows: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(COLUMNS))]
    cut = terminal_width()
    for row in rows:
        first, *numbers, last = (
            cell.rjust(size) if 0 < place < len(COLUMNS) - 1 else cell.ljust(size)
            for place, (cell, size) in enumerate(zip(row, widths, strict=True))
        )
        line = "  ".join([first, *numbers, last]).rstrip()
        yield line[:cut] if cut else line


def _facts(spec: ModelSpec) -> list[tuple[str, str]]:
    def able(known: bool | None) -> str:
        return UNKNOWN if known is None else "yes" if known else "no"

    return [
        ("also called", ", ".join(spec.aliases) or "-"),
        ("context window", _tokens(spec.context_window)),
        ("largest input", _tokens(spec.input_limit)),
        ("largest output", _tokens(spec.max_output)),
        ("tools", able(spec.tools)),
        ("reasoning", able(spec.reasoning)),
        ("structured output", able(spec.structured_output)),
        ("reads", ", ".join(spec.modalities) or UNKNOWN),
        ("writes", ", ".join(spec.output_modalities) or UNKNOWN),
    ]


def _prices(prices: Prices) -> list[tuple[str, str]]:
    def told(price: Decimal | None, otherwise: str = "") -> str:
        return f"${price} per 1M tokens" if price is not None else otherwise or UNKNOWN

    rows = [
        ("input", told(prices.input)),
        ("output", told(prices.output)),
        ("cached input", told(prices.cached_input, "as input")),
        ("cache write", told(prices.cache_write, "as input")),
        ("reasoning output", told(prices.reasoning, "as output")),
    ]
    for tier in prices.tiers:
        named = (("input", tier.input), ("output", tier.output), ("cached input", tier.cached_input))
        changed = ", ".join(f"{name} ${price}" for name, price in named if price is not None)
        rows.append((f"above {tier.above:,}", changed or "the same"))
    return rows


def _configured(catalog: Catalog, env: Mapping[str, str]) -> Iterator[str]:
    """What agents without a model of their own use here."""
    named = next((name for name in SETTINGS if env.get(name, "").strip()), "")
    if not named:
        yield "configured here: none (ANTIPHON_MODEL is not set)"
        return
    model = env[named].strip()
    spec = catalog.find(model)
    known = "nothing is known of it" if spec is None else f"window {_count(spec.input_limit)}, {_per(spec)}"
    yield f"configured here: {terminal_escape.line(model, 80)} (from {named}; {known})"


def _per(spec: ModelSpec) -> str:
    if spec.prices.input is None:
        return "price unknown"
    return f"{_dollars(spec.prices.input)} in, {_dollars(spec.prices.output)} out"


def _count(tokens: int | None) -> str:
    return f"{tokens:,}" if tokens is not None else UNKNOWN


def _tokens(count: int | None) -> str:
    return f"{count:,} tokens" if count is not None else UNKNOWN


def _dollars(price: Decimal | None) -> str:
    return f"${price}" if price is not None else UNKNOWN


def _plain(spec: ModelSpec) -> dict[str, Any]:
    """A spec as JSON; what is not known is null. Prices are texts, since they are exact."""
    prices = spec.prices
    names = ("input", "output", "cached_input", "cache_write", "reasoning")
    return {
        "id": f"{spec.provider}:{spec.id}",
        "aliases": list(spec.aliases),
        **{
            name: getattr(spec, name)
            for name in (
                "context_window",
                "max_input",
                "max_output",
                "tools",
                "reasoning",
                "structured_output",
            )
        },
        "modalities": list(spec.modalities) or None,
        "output_modalities": list(spec.output_modalities) or None,
        "prices": {name: _exact(getattr(prices, name)) for name in names},
        "tiers": [
            {"above": tier.above, **{name: _exact(getattr(tier, name)) for name in names}}
            for tier in prices.tiers
        ],
    }


def _exact(price: Decimal | None) -> str | None:
    return None if price is None else str(price)
