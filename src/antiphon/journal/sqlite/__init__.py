"""The journal in an SQLite file: one thread writes, one reads; an anchor outside SQLite says how far it goes.

`journal` is the port's implementation, `file` the tables and their numbered formats, `writer` and `reader`
the threads, `pages` and `listing` what they find by index, `runs` whole runs that come and go, `owners` who
holds them, `anchored` what the anchor proves. May import: the port, `journal.files`.
"""

from antiphon.journal.sqlite.journal import SqliteJournal

__all__ = ["SqliteJournal"]
