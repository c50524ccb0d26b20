"""`runs undo` and `runs redo`: files of a run made again what they were. May import: what commands may."""
