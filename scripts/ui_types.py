"""The types of the web page, made of the structs that it is sent.

    python -m scripts.ui_types          # writes ui/src/state/wire.ts and ui/src/server/wire.ts
    python -m scripts.ui_types --check  # fails when they are not what would be written

The second file is the server's, and is left alone where the server's packages are not installed.

JSON Schema in, TypeScript out: what `msgspec` says of a struct, and what a server says of itself alike.
"""

import importlib
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from antiphon.kernel.facts.records import ReplyDelta
from antiphon.view import StoredRequest
from antiphon.view.page import PageRun

SOURCE = Path(__file__).resolve().parents[1] / "ui" / "src"
SERVED = (
    "AnswerBody", "AskBody", "CancelBody", "ChangeRun", "CommandReceipt", "CreateRun", "FramePage", "Inbox",
    "ModuleReceipt", "PageToken", "ResumeBody", "RunCreated", "RunLine", "RunPage", "RunView", "SessionView",
    "StoredRequest", "TeamSourceView", "TeamView", "Teams", "TellBody", "WorkModuleChange",
)  # fmt: skip
"""What the page sends to the server and is answered, of `antiphon.server.routes.bodies`."""
SERVED_OF_PROJECTS = (
    "ChangeProject", "CreateProject", "FileBody", "FileList", "ModelChoices", "ProjectBody", "ProjectList",
    "ProjectView",
)  # fmt: skip
"""The same of `antiphon.server.routes.bodies.projects`."""
CHANGE = '\nexport type ChangeFrame = Frame["changes"][number];\n'
HEAD = "// What a run is as JSON. Written by `python -m scripts.ui_types`; do not edit.\n"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript(definitions: Mapping[str, Mapping[str, Any]], known: Mapping[str, Any] = {}) -> str:
    """One exported type for each schema. known: those of the page's own file, which are taken from there."""
    parts = [f"\n{declared(name, each)}" for name, each in definitions.items() if name not in known]
    shared = sorted({*definitions} & {*known})
    used = [each for each in shared if re.search(rf"\b{each}\b", "".join(parts))]
    taken = f'import type {{ {", ".join(used)} }} from "../state/wire";\n' if used else ""
    return HEAD + taken + "".join(parts)


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
    if "prefixItems" in schema:
        return f"[{', '.join(written(each) for each in schema['prefixItems'])}]"
    if kind == "array" and isinstance(schema.get("items"), bool):
        return "unknown[]"
    if kind == "array":
        inner = written(schema.get("items", {}))
        return f"{inner}[]" if re.fullmatch(r"\w+", inner) else f"({inner})[]"
    if kind == "object":
        extra = schema.get("additionalProperties")
        return f"Record<string, {written(extra) if isinstance(extra, Mapping) else 'unknown'}>"
    return PLAIN.get(str(kind), "unknown")


def files() -> dict[Path, str]:
    """Each file, and what belongs in it."""
    own = definitions_of([PageRun, ReplyDelta])
    found = {SOURCE / "state" / "wire.ts": typescript(own) + CHANGE}
    try:
        bodies = importlib.import_module("antiphon.server.routes.bodies")
    except ModuleNotFoundError:
        return found
    projects = importlib.import_module("antiphon.server.routes.bodies.projects")
    served = [StoredRequest if name == "StoredRequest" else getattr(bodies, name) for name in SERVED]
    served += [getattr(projects, name) for name in SERVED_OF_PROJECTS]
    found[SOURCE / "server" / "wire.ts"] = typescript(definitions_of(served), own)
    return found


def definitions_of(structs: list[Any]) -> dict[str, Any]:
    """The schemas of these structs and of all that they hold, by name."""
    return msgspec.json.schema_components(structs, ref_template="#/$defs/{name}")[1]


def main() -> int:
    """Write or check the files: 0, or 1 when one is out of date."""
    stale = 0
    for path, text in files().items():
        if "--check" not in sys.argv:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            print(f"{path} is not what `python -m scripts.ui_types` writes")
            stale = 1
    return stale


if __name__ == "__main__":
    sys.exit(main())
