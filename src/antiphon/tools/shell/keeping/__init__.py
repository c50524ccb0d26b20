"""What a keeper's process is made of: the standard library alone, since each command starts one.

`keeper.py` is what it does, `place.py` the folder that a command has, `processes.py` ends what a command
left, `landlock.py` confines it, `repository.py` puts back what git would run, `scan.py` sees what it changed,
with what `git_index.py` reads. May import: each other.
"""
