"""Projects: folders with teams, rules and files that runs share.

    DIR/tides/project.yaml     name, owner, teams, rules
    DIR/tides/team.yaml        a team of the project's own, where project.yaml names it
    DIR/tides/files/           what its runs may read, and what people upload

`store` is the folder of all projects, `project_file` reads and edits project.yaml, `files` is one project's
`files/`, `names` says what may be a name. Nothing in a project is ever imported as code.
"""

from antiphon.host.projects.files import FileEntry, ProjectFiles, Upload
from antiphon.host.projects.store import LoadTeam, Project, Projects

__all__ = ["FileEntry", "LoadTeam", "Project", "ProjectFiles", "Projects", "Upload"]
