"""Knowledge: documents and other sources, searched together, each passage with a citation that can be opened.

`source.py` is the port; `folder_source.py` a folder behind it; `federation.py` asks many side by side;
`spec.py` is one as it was added; `store.py` knows which there are, for whom; `library.py` opens them;
`tools.py` offers them to agents; `monitor.py` follows folders; `scripted.py` is a source for tests.
"""

from antiphon.tools.knowledge.federation import Federation, Found, FoundPassage, SourceNote
from antiphon.tools.knowledge.folder_source import FolderSource
from antiphon.tools.knowledge.library import KnowledgeLibrary
from antiphon.tools.knowledge.monitor import FolderMonitor, followed
from antiphon.tools.knowledge.source import DocumentPart, DocumentPlace, Source, SourceAnswer, SourcePassage
from antiphon.tools.knowledge.spec import McpSearch, SourceSpec
from antiphon.tools.knowledge.store import KnowledgeKey, KnowledgeStore
from antiphon.tools.knowledge.tools import knowledge_tools, rag_tools

__all__ = [
    "DocumentPart",
    "DocumentPlace",
    "Federation",
    "FolderMonitor",
    "FolderSource",
    "Found",
    "FoundPassage",
    "KnowledgeKey",
    "KnowledgeLibrary",
    "KnowledgeStore",
    "McpSearch",
    "Source",
    "SourceAnswer",
    "SourceNote",
    "SourcePassage",
    "SourceSpec",
    "followed",
    "knowledge_tools",
    "rag_tools",
]
