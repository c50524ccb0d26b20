"""Undoing what a run made of files, and redoing it: `undo`, `redo`.

`file_history` reads what a run's tools changed, and what its undos did, in order; `undoing` makes an undo,
which is a run of its own in the same journal: an agent of code with one call of a tool. May import: what
`host` may, and the tools of a folder.
"""

from antiphon.host.undo.undoing import UndoneRun, redo, undo
from antiphon.tools.folder.restoring import RestoredFile

__all__ = ["RestoredFile", "UndoneRun", "redo", "undo"]
