"""Tools that run commands: programs by an allowlist, and lines for bash, each under a keeper and confined.

`words.py` and `hazards.py` say what a line starts, from its text alone; rules are compared with that.
`tools.py` holds the tools, `workspace.py` where commands run and what they find there, `commands.py` how one
is begun once and found again, `confinement.py` what holds them back, `changes.py` what they changed,
`keeping/` the process that keeps each.
"""

from antiphon.tools.shell.tools import program_tools, shell_tools
from antiphon.tools.shell.workspace import Workspace

__all__ = ["Workspace", "program_tools", "shell_tools"]
