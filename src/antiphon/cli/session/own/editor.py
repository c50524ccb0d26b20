"""What the editor of a conversation works with: the person's keys, what they sent before, the files here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from antiphon.cli.screen.keys.editor import EditorTools
from antiphon.cli.screen.keys.history import FILE as HISTORY
from antiphon.cli.screen.keys.history import KeptHistory
from antiphon.cli.screen.keys.keymap import FILE as KEYS
from antiphon.cli.screen.keys.keymap import read_keymap
from antiphon.cli.user import settings_folder, state_folder
from antiphon.errors import AntiphonError


def editor_tools(folder: str) -> EditorTools:
    """The person's own, for a conversation about the files of a folder."""
    keymap = read_keymap(settings_folder() / KEYS)
    return EditorTools(keymap, KeptHistory(state_folder() / HISTORY), partial(files_of, folder))


def files_of(folder: str) -> Sequence[str]:
    """The files of a folder that git does not ignore, bounded; none where it cannot be read."""
    # Only where one is mentioned, on a thread of its own: it takes long to import.
    from antiphon.tools.folder.listing import searched
    from antiphon.tools.folder.root import Root

    try:
        return searched(Root(folder))
    except AntiphonError:
        return []
