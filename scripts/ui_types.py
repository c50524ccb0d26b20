"""The types of the web page, made of the structs that it is sent.

    python -m scripts.ui_types          # writes ui/src/state/wire.ts
    python -m scripts.ui_types --check  # fails when it is not what would be written

JSON Schema in, TypeScript out: what `msgspec` says of a struct, and what a server says of itself alike.
"""

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from antiphon.view.page import PageRun

OUT = Path(__file__).resolve().parents[1] / "ui" / "src" / "state" / "wire.ts"
HEAD = "// What a run is as JSON. Written by `python -m scripts.ui_types`; do not edit.\n"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript(definitions: Mapping[str, Mapping[str, Any]]) -> str:
    """One exported type for each schema."""
    return HEAD + "".join(f"\n{declared(name, each)}" for name, each in definitions.items())


def declared(name: str, schema: Mapping[str, Any]) -> str:
    """A schema as a named type, with its description above it."""
    if "properties" not in schema:
        return f"export type {name} = {written(schema)};\n"
    told = " ".join(str(schema.get("description", "")).split())
    needed = set(schema.get("required", ()))
    lines = [f"/** {told} */", f"export interface {name} {{"] if told else [f"export interface {name} {{"]
    for key, each in schema["properties"].items():
        lines.append(f"  {key}{'' if key in needed else '?'}: {written(each)};")
    return "\n".join([*lines, "}", ""])


def written(schema: Mapping[str, Any]) -> str:
    """A schema as a type in place."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " | ".join(json.dumps(each) for each in schema["enum"])
    if "const" in schema:
        return json.dumps(schema["const"])
    for joined in ("anyOf", "oneOf"):
        if joined in schema:
            return " | ".join(dict.fromkeys(written(each) for each in schema[joined]))
    kind = schema.get("type")
    if kind == "array":
        inner = written(schema.get("items", {}))
        return f"{inner}[]" if re.fullmatch(r"\w+", inner) else f"({inner})[]"
    if kind == "object":
        extra = schema.get("additionalProperties")
        return f"Record<string, {written(extra) if isinstance(extra, Mapping) else 'unknown'}>"
    return PLAIN.get(str(kind), "unknown")


def main() -> int:
    """Write or check the file: 0, or 1 when it is out of date."""
    _, definitions = msgspec.json.schema_components([PageRun], ref_template="#/$defs/{name}")
    text = typescript(definitions) + '\nexport type ChangeFrame = Frame["changes"][number];\n'
    if "--check" not in sys.argv:
        OUT.write_text(text)
        return 0
    if OUT.exists() and OUT.read_text() == text:
        return 0
    print(f"{OUT} is not what `python -m scripts.ui_types` writes")
    return 1


if __name__ == "__main__":
    sys.exit(main())
