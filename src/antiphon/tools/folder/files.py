"""Files of one folder: which there are, what is in them, how large they are."""

from __future__ import annotations

from collections import Counter
from pathlib import PurePosixPath

from antiphon.errors import ToolError
from antiphon.tools.folder.root import MAX_FILES, Root, decoded
from antiphon.tools.folder.seen import numbered
from antiphon.tools.folder.text.passages import lines_of
from antiphon.tools.folder.writing import version_of
from antiphon.values.model import Example
from antiphon.values.tool import Tool, tool

LISTED = 200
"""Names in one listing."""
LINES = 200
"""Lines in one reading."""

_COUNTS = {
    "How many words does CHANGELOG.md have?": "CHANGELOG.md",
    "How many lines are in src/main.py?": "src/main.py",
    "Count the words in docs/index.rst": "docs/index.rst",
    "What is the size of setup.py in bytes?": "setup.py",
    "How many characters are in notes.txt?": "notes.txt",
    "How long is the file guide/intro.md?": "guide/intro.md",
    "How large is data.csv?": "data.csv",
    "word count of CONTRIBUTING": "CONTRIBUTING",
    "How many bytes does NOTICE have?": "NOTICE",
    "What is the length of manual.txt?": "manual.txt",
    "Count the lines of build.sh please": "build.sh",
    "Has HISTORY.md more than 50 words?": "HISTORY.md",
    "Tell me the number of words in index.html": "index.html",
    "Give me the line count for lib/tool.js, please": "lib/tool.js",
}
_LISTS = {
    "Which files are there?": ".",
    "List the files.": ".",
    "What is in the folder images?": "images",
    "Show the files in src/core": "src/core",
    "List all files in the scripts directory": "scripts",
    "What files does lib/ hold?": "lib/",
    "List everything below assets/": "assets/",
    "Which files do you have?": ".",
    "Name the files in the themes folder": "themes",
}
_STATISTICS = {
    "How many files are there?": ".",
    "Give me the statistics of this folder.": ".",
    "How big is the src folder altogether?": "src",
    "How many files are in lib/core?": "lib/core",
    "What takes the most space in the assets directory?": "assets",
    "Which file is the largest here?": ".",
    "Show statistics about the folder lib.": "lib",
    "How many files does the folder build contain?": "build",
    "What is the total size of the images directory?": "images",
    "How many files has this project?": ".",
    "How much space does the fonts folder take?": "fonts",
    "What is the largest file in the project?": ".",
}
_READS = {
    "Show me the first lines of setup.py": "setup.py",
    "Read CHANGELOG.md": "CHANGELOG.md",
    "What does the file config/app.toml contain?": "config/app.toml",
    "Print notes.txt": "notes.txt",
    "Open docs/index.rst": "docs/index.rst",
    "Show the beginning of COPYING": "COPYING",
    "Let me see the inside of settings.json": "settings.json",
    "What is written in todo.md?": "todo.md",
}


def file_tools(root: Root) -> list[Tool]:
    """The tools `list_files`, `folder_statistics`, `read_lines` and `count_text` over one folder."""
    return [*_folders(root), *_texts(root)]


def _folders(root: Root) -> list[Tool]:
    @tool(effect="read", kind="read", timeout=30, examples=_examples("list_files", _LISTS))
    def list_files(path: str = ".") -> str:
        """List the files under a folder, with their sizes in bytes.

        Args:
            path: a folder, relative; "." is the whole.
        """
        found = [f"{entry.path} ({entry.size} bytes)" for entry in root.files(path, LISTED + 1)]
        if not found:
            return f"There are no files in {path}"
        more = [f"… and more; only the first {LISTED} are listed"] if len(found) > LISTED else []
        return "\n".join([*found[:LISTED], *more])

    @tool(effect="read", kind="read", timeout=30, examples=_examples("folder_statistics", _STATISTICS))
    def folder_statistics(path: str = ".") -> str:
        """Say how many files a folder holds, their total size, their kinds and the largest ones.

        Args:
            path: a folder, relative; "." is the whole.
        """
        found = list(root.files(path))
        if not found:
            return f"There are no files in {path}"
        folders = {str(PurePosixPath(entry.path).parent) for entry in found}
        kinds = Counter(PurePosixPath(entry.path).suffix or "no ending" for entry in found)
        largest = sorted(found, key=lambda entry: (-entry.size, entry.path))[:5]
        capped = f" (only the first {MAX_FILES} were counted)" if len(found) >= MAX_FILES else ""
        name = "The folder" if path.strip("./") == "" else path
        return "\n".join(
            [
                f"{name}: {many(len(found), 'file')} in {many(len(folders), 'folder')}, "
                f"{sum(entry.size for entry in found)} bytes{capped}",
                "By kind: " + ", ".join(f"{count} {kind}" for kind, count in kinds.most_common(12)),
                "Largest: " + ", ".join(f"{entry.path} ({entry.size} bytes)" for entry in largest),
            ]
        )

    return [list_files, folder_statistics]


def _texts(root: Root) -> list[Tool]:
    @tool(effect="read", kind="read", timeout=30, examples=_examples("read_lines", _READS))
    def read_lines(path: str, first: int = 1, last: int = 40) -> str:
        """Read lines of a text file, with their numbers and the file's version.

        Args:
            path: a file, relative.
            first: the first line, from 1.
            last: the last line; at most 200 lines are given at once.
        """
        data = root.read(path)
        lines = lines_of(decoded(data, path))
        if first < 1 or last < first:
            raise ToolError(f"There are no lines {first} to {last}; lines count from 1")
        if first > max(len(lines), 1):
            raise ToolError(f"{path} has only {len(lines)} lines")
        end = min(last, first + LINES - 1, len(lines))
        name = "/".join(root.parts(path))
        head = f"{name}, lines {first}-{end} of {len(lines)}, version {version_of(data)}:"
        return "\n".join([head, *numbered(lines[first - 1 : end], first)])

    @tool(effect="read", kind="read", timeout=30, examples=_examples("count_text", _COUNTS))
    def count_text(path: str) -> str:
        """Count the words, lines, characters and bytes of a text file.

        Args:
            path: a file, relative.
        """
        data = root.read(path)
        text = decoded(data, path)
        counts = {
            "word": len(text.split()),
            "line": len(lines_of(text)),
            "character": len(text),
            "byte": len(data),
        }
        return f"{path}: {', '.join(many(count, thing) for thing, count in counts.items())}"

    return [read_lines, count_text]


def many(count: int, thing: str) -> str:
    """`1 file`, `2 files`."""
    return f"{count} {thing}{'' if count == 1 else 's'}"


def _examples(call: str, paths: dict[str, str]) -> tuple[Example, ...]:
    return tuple(Example(asked, call, {"path": path}) for asked, path in paths.items())
