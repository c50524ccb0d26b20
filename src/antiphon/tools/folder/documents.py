"""Search over the documents of one folder: passages ranked by BM25, quoted with file and lines.

The index lives in memory. It is built at the first search; later searches look at sizes and times of
change, and read again what differs. Markdown, reStructuredText, plain text and code are read.
"""

from __future__ import annotations

import math
import re
import threading
from collections import Counter
from pathlib import PurePosixPath

from msgspec import Struct

from antiphon.errors import ToolError
from antiphon.tools.folder.root import FolderEntry, Root, decoded
from antiphon.values.model import Example
from antiphon.values.tool import Tool, tool

MAX_DOCUMENTS = 5000
MAX_DOCUMENT = 1_000_000
"""Bytes of one document; larger ones are left out."""
MAX_TOTAL = 32_000_000
"""Bytes of all documents together; what comes after is left out, and the answer says so."""
PASSAGE = 1000
"""Characters after which a passage ends at the next line."""

_PROSE_TEXT = "md markdown mdx rst txt text adoc org tex"
_PROSE = frozenset(_PROSE_TEXT.split())
_OTHER_TEXT = (
    "py pyi js ts tsx jsx java go rs c h cc cpp hpp cs rb php swift kt scala sh bash lua sql r jl "
    "html css toml yaml yml ini cfg conf json xml csv"
)
_OTHER = frozenset(_OTHER_TEXT.split())
_NAMELESS_TEXT = "readme license licence copying notice authors changelog contributing makefile dockerfile"
_NAMELESS = frozenset(_NAMELESS_TEXT.split())
_CODE_WEIGHT = 0.5
"""What a passage of code counts beside one of prose: people ask for what is said, seldom for its source."""
_K1, _B = 1.3, 0.7
_STOP_TEXT = (
    "a about above according after all an and any are as at be been before being between but by can "
    "could did do does doc docs document documentation documents explain find for from give had has "
    "have how i if in into is it its look manual me mention mentions meaning my no not of on or our "
    "out passage please project quotation quote read said say says section should show so some "
    "summarise summarize tell than that the their them then there these they this those to up was we "
    "were what when where which who whose why will with would write written you your"
)
_STOP = frozenset(_STOP_TEXT.split())
_HEADING = re.compile(r"#{1,6}\s+(.+)")
_UNDERLINE = re.compile(r"([=\-~^\"'*+#])\1{2,}\s*$")
_TERM = re.compile(r"[^\W_]+")
_ASIAN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


class Passage(Struct, frozen=True, eq=False):
    """Consecutive lines of a document; `first` and `last` count from 1."""

    path: str
    first: int
    last: int
    heading: str
    text: str


class Match(Struct, frozen=True):
    """A passage and how well it fits; only the order of scores means something."""

    score: float
    passage: Passage


def terms(text: str) -> list[str]:
    """What is compared: folded words without endings; Chinese, Japanese and Korean by pairs of letters."""
    found: list[str] = []
    for word in _TERM.findall(text):
        if _ASIAN.search(word):
            found.extend(word[at : at + 2] for at in range(max(len(word) - 1, 1)))
            continue
        parts = re.findall(r"[A-Z]?[^\WA-Z_]+|[A-Z]+(?![^\WA-Z_])", word)
        found.append(stem(word.lower()))
        if len(parts) > 1:
            found.extend(stem(part.lower()) for part in parts)
    return found


def stem(word: str) -> str:
    """A word without its commonest English endings: "retries", "retrying" and "retried" meet "retry"."""
    for ending, instead in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            word = word[: -len(ending)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


class Index:
    """The passages of a folder and the words in them. Safe to search from several threads."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._files: dict[str, tuple[FolderEntry, list[int]]] = {}
        self._passages: dict[int, Passage] = {}
        self._bags: dict[int, Counter[str]] = {}
        self._lengths: dict[int, int] = {}
        self._postings: dict[str, set[int]] = {}
        self._next = 0
        self.left_out = 0

    @property
    def documents(self) -> int:
        """How many documents are indexed."""
        return len(self._files)

    def search(self, query: str, count: int) -> list[Match]:
        """The best passages, best first, at most one per place; empty when no word of `query` occurs."""
        with self._lock:
            self._refresh()
            wanted = list(dict.fromkeys(terms(" ".join(kept(query)))))
            scores: dict[int, float] = {}
            average = sum(self._lengths.values()) / max(len(self._lengths), 1)
            for term in wanted:
                holding = self._postings.get(term, set())
                weight = math.log(1 + (len(self._passages) - len(holding) + 0.5) / (len(holding) + 0.5))
                for number in holding:
                    seen = self._bags[number][term]
                    norm = _K1 * (1 - _B + _B * self._lengths[number] / average)
                    rank = weight * seen * (_K1 + 1) / (seen + norm) * _weight(self._passages[number].path)
                    scores[number] = scores.get(number, 0.0) + rank
            order = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
            return [Match(score, self._passages[number]) for number, score in order[:count]]

    def _refresh(self) -> None:
        now = {entry.path: entry for entry in self._root.files(limit=20_000) if _readable(entry)}
        for path in [path for path, (entry, _) in self._files.items() if now.get(path) != entry]:
            self._forget(path)
        total = sum(entry.size for entry, _ in self._files.values())
        self.left_out = 0
        # Prose first, so that a limit leaves code out before documents.
        for entry in sorted(now.values(), key=lambda entry: (-_weight(entry.path), entry.path)):
            if entry.path in self._files:
                continue
            if len(self._files) >= MAX_DOCUMENTS or total + entry.size > MAX_TOTAL:
                self.left_out += 1
                continue
            total += entry.size
            self._learn(entry)

    def _learn(self, entry: FolderEntry) -> None:
        try:
            text = decoded(self._root.read(entry.path, MAX_DOCUMENT), entry.path)
        except ToolError:
            # Binary in spite of its name, or gone since it was listed: known, and without passages.
            text = ""
        numbers: list[int] = []
        for passage in passages(entry.path, text):
            bag = Counter(terms(passage.text))
            for term in terms(f"{passage.heading} {PurePosixPath(entry.path).stem}"):
                bag[term] += 2
            self._passages[self._next], self._bags[self._next] = passage, bag
            self._lengths[self._next] = sum(bag.values())
            for term in bag:
                self._postings.setdefault(term, set()).add(self._next)
            numbers.append(self._next)
            self._next += 1
        self._files[entry.path] = (entry, numbers)

    def _forget(self, path: str) -> None:
        for number in self._files.pop(path)[1]:
            for term in self._bags.pop(number):
                self._postings[term].discard(number)
            del self._passages[number], self._lengths[number]


def kept(query: str) -> list[str]:
    """The words of a question that are worth looking for; all of them when none is."""
    words = _TERM.findall(query)
    return [word for word in words if word.lower() not in _STOP] or words


def passages(path: str, text: str) -> list[Passage]:
    """A document cut at headings and, beyond `PASSAGE` characters, at blank lines or else any line."""
    found: list[Passage] = []
    lines = text.splitlines()
    prose = _weight(path) == 1.0
    heading, start, size, fenced = "", 0, 0, False
    cuts: list[tuple[int, int, str]] = []
    for at, line in enumerate(lines):
        fenced ^= prose and line.lstrip().startswith("```")
        new = _heading(lines, at) if prose and not fenced else ""
        full = size > PASSAGE * 2 or (size > PASSAGE and not line.strip())
        if (new or full) and at > start:
            cuts.append((start, at, heading))
            start, size = at, 0
        heading = new or heading
        size += len(line) + 1
    cuts.append((start, len(lines), heading))
    for first, end, title in cuts:
        while first < end and not lines[first].strip():
            first += 1
        while end > first and not lines[end - 1].strip():
            end -= 1
        body = "\n".join(lines[first:end])
        # A heading alone says nothing; its words are kept as the heading of what follows.
        if body and (end - first > 1 or _heading(lines, first) == ""):
            found.append(Passage(path, first + 1, end, title, body))
    return found


def _heading(lines: list[str], at: int) -> str:
    line = lines[at]
    if match := _HEADING.match(line):
        return match[1].strip("# ")
    following = lines[at + 1] if at + 1 < len(lines) else ""
    underlined = (
        line.strip() and len(line) <= 120 and _UNDERLINE.match(following) and len(following) >= len(line) - 2
    )
    before = lines[at - 1].strip() if at else ""
    return line.strip() if underlined and not before and not _UNDERLINE.match(line) else ""


def _weight(path: str) -> float:
    name = PurePosixPath(path)
    return (
        1.0
        if name.suffix[1:].lower() in _PROSE or (not name.suffix and name.name.lower() in _NAMELESS)
        else _CODE_WEIGHT
    )


def _readable(entry: FolderEntry) -> bool:
    name = PurePosixPath(entry.path)
    ending = name.suffix[1:].lower()
    known = ending in _PROSE or ending in _OTHER or (not ending and name.name.lower() in _NAMELESS)
    return known and 0 < entry.size <= MAX_DOCUMENT


def quoted(match: Match) -> str:
    """The passage as an answer may cite it: file and lines, then the lines themselves."""
    passage = match.passage
    lines = passage.text.splitlines()
    shown: list[str] = []
    size = 0
    for line in lines:
        size += len(line)
        if size > PASSAGE * 2 and shown:
            break
        shown.append(f"> {line[: PASSAGE * 2]}")
    last = passage.first + len(shown) - 1
    return "\n".join([f"{passage.path}:{passage.first}-{last}", *shown])


_QUERIES = [
    "What does the documentation say about logging?",
    "How do I install it?",
    "Find the passage about error codes.",
    "Where is the configuration file described?",
    "Which document explains the build process?",
    "What is a scheduler, according to the docs?",
    "Why was this design chosen?",
    "Quote what is written on security.",
    "Look for anything about backups",
    "Who maintains this project?",
    "How does authentication work?",
    "Explain the cache and quote the text.",
    "What are the requirements?",
    "Is there a note on performance?",
    "Search the documents for 'rate limit'",
    "Under which conditions may I copy the software?",
    "Describe the architecture.",
    "What happens when a connection is lost?",
    "Where can I read about versioning?",
    "Tell me about the plugin system.",
    "What is meant by a shard?",
    "Which section covers deployment?",
    "In which document are the colours defined?",
    "Can it run without a network?",
    "What does it say about access rights?",
    "Look up the word 'quorum' in the manual",
    "What is promised about uptime?",
    "Show me the section on encryption.",
    "How do the parts communicate with each other?",
    "What is the best way to extend it?",
    "Find out what a tenant is.",
    "Give me the quotation on fairness.",
    "I would like to read about migrations",
    "Why is only one thread used?",
    "Does the tutorial cover uploads?",
    "When is a cache emptied?",
    "Summarise the chapter on events.",
    "How does the parser recover from errors?",
    "Whom is this made for?",
    "Which rules hold for names?",
    "Are there known problems on macOS?",
]


def document_tools(root: Root) -> list[Tool]:
    """The tool `search_documents` over one folder, with an index of its own."""
    index = Index(root)

    @tool(
        effect="read",
        kind="search",
        timeout=60,
        examples=tuple(Example(query, "search_documents", {"query": query}) for query in _QUERIES),
    )
    def search_documents(query: str, count: int = 2) -> str:
        """Search the documents; gives passages word for word with their file and lines, best first.

        Args:
            query: a question or words to look for.
            count: how many passages, 1 to 10.
        """
        if not query.strip() or len(query) > 1000:
            raise ToolError("A query has 1 to 1000 characters")
        found = index.search(query, min(max(count, 1), 10))
        partial = (
            f"\n({index.left_out} more documents were beyond the limits and not searched)"
            if index.left_out
            else ""
        )
        if not found:
            words = ", ".join(kept(query)[:12])
            return f"None of {index.documents} documents mentions: {words}{partial}"
        return "\n\n".join(quoted(match) for match in found) + partial

    return [search_documents]
