"""docs/architecture.md shows the house as it stands: no room is missing, none is invented."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
HOUSE = ROOT / "src" / "antiphon"


def test_every_room_is_on_the_plan():
    table = (
        (ROOT / "docs" / "architecture.md").read_text().partition("## Words")[0].partition("## The rooms")[2]
    )
    named = set(re.findall(r"`([a-z_]+(?:\.py|/))`", table))
    rooms = {path.name for path in HOUSE.glob("*.py") if path.name != "__init__.py"}
    rooms |= {
        f"{path.parent.name}/" for path in (*HOUSE.glob("*/__init__.py"), *HOUSE.glob("kernel/*/__init__.py"))
    }
    assert rooms - named == set(), "not on the plan"
    assert named - rooms == {"target.py"}, "on the plan only"  # a room of cli, named for its privilege
