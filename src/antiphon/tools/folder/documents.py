"""Search over the documents of one folder: passages ranked by BM25, quoted with file and lines.

The index lives in memory. It is built at the first search; later searches look at sizes and times of
change, and read again what differs.
"""

from __future__ import annotations

from antiphon.errors import ToolError
from antiphon.tools.folder.index import FolderIndex, IndexBounds, Match
from antiphon.tools.folder.root import Root
from antiphon.tools.folder.text.passages import PASSAGE
from antiphon.tools.folder.text.terms import kept
from antiphon.values.model import Example
from antiphon.values.tool import Tool, tool

BOUNDS = IndexBounds(documents=5000, document_bytes=5_000_000, total_bytes=32_000_000)
"""What is kept in memory; what is beyond it is left out, and the answer says so."""


def quoted(match: Match) -> str:
    """The passage as an answer may cite it: file and lines, then the lines themselves."""
    passage = match.passage
    shown: list[str] = []
    size = 0
    for line in passage.text.split("\n"):
        size += len(line)
        if size > PASSAGE * 2 and shown:
            break
        shown.append(f"> {line[: PASSAGE * 2]}")
    last = min(passage.first + len(shown) - 1, passage.last)
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


def _unread(index: FolderIndex, count: int) -> str:
    """Which documents could not be searched, and why."""
    if not count:
        return ""
    others = f", and {count - 1} more" if count > 1 else ""
    return f"\n(not searched: {index.unreadable()[0].reason}{others})"


def document_tools(root: Root) -> list[Tool]:
    """The tool `search_documents` over one folder, with an index of its own."""
    index = FolderIndex(root, bounds=BOUNDS)

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
        index.refresh()
        found = index.search(query, min(max(count, 1), 10))
        stats = index.stats()
        partial = (
            f"\n({stats.left_out} more documents were beyond the limits and not searched)"
            if stats.left_out
            else ""
        )
        if not found:
            words, read = ", ".join(kept(query)[:12]), stats.files - stats.unreadable
            return f"None of {read} documents mentions: {words}{_unread(index, stats.unreadable)}{partial}"
        return "\n\n".join(quoted(match) for match in found) + partial

    return [search_documents]
