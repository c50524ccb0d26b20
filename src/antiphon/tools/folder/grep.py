"""Tools that find files by their names and by what is in them."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterable, Iterator

from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.tools.child import run_on_bytes
from antiphon.tools.folder.listing import matching, searched
from antiphon.tools.folder.root import Root, decoded
from antiphon.values.model import Example
from antiphon.values.tool import Tool, tool

MAX_FILE = 4_000_000
"""Bytes; larger files are not searched, and the answer says how many there were."""
BATCH = 32_000_000
"""Bytes that are searched for a regular expression at once, in a process of its own."""
SECONDS = 10.0
"""For which a regular expression may take, a batch."""
LINE = 300
"""Characters of a line that are shown."""
ANSWER = 40_000
"""Characters of one answer."""
LISTED = 200
"""Names in one answer."""

_GREPS = {
    "Where is the function parse_config defined?": "def parse_config",
    "Which files mention TODO?": "TODO",
    "Find all uses of MAX_RETRIES": "MAX_RETRIES",
}
_FINDS = {
    "Which Python files are there?": "*.py",
    "Where is the file settings.toml?": "settings.toml",
    "Find the tests of the parser": "test_parser*",
}


class _Hit(Struct, frozen=True):
    """Lines of a file that match, by number from 1."""

    path: str
    data: bytes
    lines: list[int]


def grep_tools(root: Root) -> list[Tool]:
    """The tools `grep_files` and `find_files` over one folder."""
    return [_grep(root), _find(root)]


def _grep(root: Root) -> Tool:
    examples = tuple(Example(asked, "grep_files", {"pattern": each}) for asked, each in _GREPS.items())

    @tool(effect="read", kind="search", timeout=60, examples=examples)
    def grep_files(
        pattern: str, path: str = ".", files: str = "", regex: bool = False, ignore_case: bool = False,
        around: int = 0, most: int = 50,
    ) -> str:  # fmt: skip
        """Search the text of files; gives matching lines with file and number. Ignored files are left out.

        Args:
            pattern: what to look for.
            path: a folder or file, relative; "." is the whole.
            files: only in files of this name, such as *.py or src/**/test_*.py; empty for all.
            regex: whether the pattern is a regular expression.
            ignore_case: whether small and capital letters are the same.
            around: lines shown before and after each match, at most 10.
            most: how many matches are shown, at most 200.
        """
        if not pattern or len(pattern) > 1000:
            raise ToolError("A pattern has 1 to 1000 characters")
        paths = searched(root, path)
        paths = matching(paths, files) if files else paths
        large: list[str] = []
        contents = _texts(root.contents(paths, MAX_FILE, large))
        found = (
            _by_regex(contents, pattern, ignore_case) if regex else _by_text(contents, pattern, ignore_case)
        )
        return _told(found, len(paths), large, pattern, min(max(around, 0), 10), min(max(most, 1), 200))

    return grep_files


def _find(root: Root) -> Tool:
    examples = tuple(Example(asked, "find_files", {"pattern": each}) for asked, each in _FINDS.items())

    @tool(effect="read", kind="search", timeout=30, examples=examples)
    def find_files(pattern: str, path: str = ".") -> str:
        """Find files by name. Ignored files are left out.

        Args:
            pattern: a name, such as *.py; or a path, such as src/**/test_*.py.
            path: a folder, relative; "." is the whole.
        """
        if not pattern:
            raise ToolError("A pattern is a name such as *.py, or a path such as src/**/*.py")
        paths = searched(root, path)
        found = root.regular(matching(paths, pattern))
        if not found:
            return f"None of {len(paths)} files is named {pattern}"
        more = [f"… and {len(found) - LISTED} more"] if len(found) > LISTED else []
        return "\n".join([*found[:LISTED], *more])

    return find_files


def _texts(contents: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """Without binary files, and all in UTF-8 or Latin-1."""
    for path, data in contents:
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            try:
                yield path, data.decode("utf-16").encode("utf-8", "replace")
            except UnicodeDecodeError:
                continue
        elif b"\0" not in data[:8192]:
            yield path, data


def _by_text(contents: Iterable[tuple[str, bytes]], pattern: str, ignore_case: bool) -> Iterator[_Hit]:
    plain = pattern.isascii()
    needle = pattern.encode("utf-8", "replace")
    needle = needle.lower() if ignore_case else needle
    for path, data in contents:
        if plain:
            within = data.lower() if ignore_case else data
        elif data.isascii():
            continue
        else:
            text = decoded(data, path)
            within = (text.lower() if ignore_case else text).encode("utf-8", "replace")
            needle = (pattern.lower() if ignore_case else pattern).encode("utf-8", "replace")
        if needle in within:
            yield _Hit(path, data, _lines_with(within, needle))


def _lines_with(data: bytes, needle: bytes) -> list[int]:
    found: list[int] = []
    line, counted, at = 1, 0, data.find(needle)
    while at >= 0:
        line += data.count(b"\n", counted, at)
        found.append(line)
        counted = at
        end = data.find(b"\n", at + len(needle) - 1)
        at = data.find(needle, end + 1) if end >= 0 else -1
    return found


_PROGRAM = """
import json, re
asked = json.loads(sys.stdin.buffer.readline())
try:
    found = re.compile(asked["pattern"], re.MULTILINE | (re.IGNORECASE if asked["ignore_case"] else 0))
except (re.error, OverflowError, RecursionError) as error:
    told = str(error)
else:
    told = []
    for size in asked["sizes"]:
        data = sys.stdin.buffer.read(size)
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = data.decode("latin-1")
        lines, line, counted, match = [], 1, 0, found.search(text)
        while match:
            at = match.start()
            line += text.count("\\n", counted, at)
            counted = at
            end = text.find("\\n", at)
            if at < len(text) or not text or text[-1] != "\\n":
                lines.append(line)
            match = found.search(text, end + 1) if end >= 0 else None
        told.append(lines)
sys.stdout.buffer.write(json.dumps(told).encode())
"""


def _by_regex(contents: Iterable[tuple[str, bytes]], pattern: str, ignore_case: bool) -> Iterator[_Hit]:
    """In processes of their own: Python's matcher lets no other thread run, and some patterns never end."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ToolError(f"The pattern is not a regular expression: {error}") from error
    batch: list[tuple[str, bytes]] = []
    size = 0
    for each in contents:
        batch.append(each)
        size += len(each[1])
        if size > BATCH:
            yield from _matched(batch, pattern, ignore_case)
            batch, size = [], 0
    yield from _matched(batch, pattern, ignore_case)


def _matched(batch: list[tuple[str, bytes]], pattern: str, ignore_case: bool) -> Iterator[_Hit]:
    if not batch:
        return
    asked = {"pattern": pattern, "ignore_case": ignore_case, "sizes": [len(data) for _, data in batch]}
    given = b"".join([json.dumps(asked).encode(), b"\n", *(data for _, data in batch)])
    try:
        told = json.loads(run_on_bytes(_PROGRAM, given, seconds=SECONDS))
    except subprocess.TimeoutExpired as error:
        raise ToolError("The search took too long; use a simpler pattern, or fewer files") from error
    except subprocess.CalledProcessError as error:
        if error.returncode < 0:
            raise ToolError("The search took too long; use a simpler pattern, or fewer files") from error
        raise ToolError("The search needs too much memory; use a simpler pattern, or regex=false") from error
    except OSError as error:
        raise ToolError("Regular expressions can not be searched for here; use regex=false") from error
    if isinstance(told, str):
        raise ToolError(f"The pattern is not a regular expression: {told}")
    for (path, data), lines in zip(batch, told, strict=True):
        if lines:
            yield _Hit(path, data, lines)


def _told(found: Iterable[_Hit], files: int, large: list[str], pattern: str, around: int, most: int) -> str:
    shown: list[str] = []
    matches = hits = size = left = 0
    for hit in found:
        hits += 1
        matches += len(hit.lines)
        wanted = hit.lines[: max(most - (matches - len(hit.lines)), 0)]
        block = list(_block(hit, wanted, around)) if wanted and size < ANSWER else []
        size += sum(len(each) + 1 for each in block)
        left += len(hit.lines) - (len(wanted) if block else 0)
        if block and shown and around:
            shown.append("--")
        shown += block
    notes = [f"({len(large)} files above {MAX_FILE} bytes were not searched)"] if large else []
    if not matches:
        return "\n".join([f"No match for {pattern!r} in {files} files", *notes])
    if left:
        notes.insert(0, f"({left} more matches; {matches} in {hits} files in all)")
    return "\n".join([*shown, *notes])


def _block(hit: _Hit, wanted: list[int], around: int) -> Iterator[str]:
    """The lines of one file as `path:number: text`; those around them with hyphens in place of the colons."""
    lines = decoded(hit.data, hit.path).replace("\r\n", "\n").split("\n")
    matching_lines = set(hit.lines)
    near: set[int] = set()
    for line in wanted:
        near.update(range(max(line - around, 1), min(line + around, len(lines)) + 1))
    before = 0
    for at in sorted(near):
        if around and before and at > before + 1:
            yield "--"
        before = at
        mark = ":" if at in matching_lines else "-"
        text = lines[at - 1]
        text = text if len(text) <= LINE else f"{text[:LINE]} … ({len(text)} characters)"
        yield f"{hit.path}{mark}{at}{mark} {text}"
