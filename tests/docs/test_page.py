"""docs/ui.md says how the page is laid out: the folders of its source, the pictures of its views."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "ui.md").read_text("utf-8")


def test_the_table_names_each_folder_of_the_source_and_no_other():
    _, _, rows = TEXT.partition("| folder of `ui/src` |")
    table = [row.split("|")[1] for row in rows.splitlines()[2:] if row.startswith("|")]
    named = {name for cell in table for name in re.findall(r"`(\w+)/`", cell)}
    assert named == {each.name for each in (ROOT / "ui" / "src").iterdir() if each.is_dir()}


def test_each_picture_that_is_shown_is_there_light_or_dark_at_one_of_three_widths():
    shown = re.findall(r"\(img/([^)]+)\)", TEXT)
    assert len(shown) > 8
    for name in shown:
        assert re.fullmatch(r"[a-z]+-(1600|1280|390)-(light|dark)\.webp", name), name
        assert (ROOT / "docs" / "img" / name).is_file(), name


def test_all_pictures_together_are_small():
    assert sum(each.stat().st_size for each in (ROOT / "docs" / "img").iterdir()) < 4_500_000
