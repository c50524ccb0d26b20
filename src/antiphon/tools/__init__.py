"""Tools that ship with Antiphon. All of them only read, but for `edit_tools` and those that run commands.

folder_tools(path)   search_documents, list_files, folder_statistics, read_lines, count_text, grep_files,
                     find_files, view_image, attach_file
edit_tools(path)     edit_file, write_file, move_file, delete_file
shell_tools(path)    shell, list_jobs, read_job, stop_job: lines for bash, from `antiphon.tools.shell`
program_tools(path, allow=…)   run_program in place of shell: programs by an allowlist, from there too
date_tools(clock)    today, weekday, days_between, date_add
calculate, convert   exact arithmetic, units of measure
read_output, grep_output   tool results of the run that were too long to be shown whole
"""

from antiphon.tools.arithmetic import calculate
from antiphon.tools.dates import date_tools
from antiphon.tools.folder import edit_tools, folder_tools
from antiphon.tools.outputs import grep_output, read_output
from antiphon.tools.units import convert

__all__ = ["calculate", "convert", "date_tools", "edit_tools", "folder_tools", "grep_output", "read_output"]
