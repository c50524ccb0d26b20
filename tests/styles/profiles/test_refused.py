"""Refused is refused: nobody stands in for a partner or a principal whose file has errors."""

import pytest

from antiphon.errors import ConfigError, UnknownName
from antiphon.styles.profiles import ProfileTeam
from tests.styles.profiles.profiled import ASSOCIATE, PARTNER, PRINCIPAL, profile

WRONG = "\npre_turn_observers:\n- {id: a, condition: nothing, action: {type: update_state, updates: []}}\n"


def folder(path, **profiles):
    (path / "profiles").mkdir()
    for name, text in profiles.items():
        (path / f"profiles/{name}.yaml").write_text(text)
    return path


def whole(**changed):
    given = {"Partner": profile(PARTNER), "Principal": profile(PRINCIPAL), "Helper": profile(ASSOCIATE)}
    return given | changed


@pytest.mark.parametrize(
    ("role", "text"),
    [
        ("Partner", profile(PARTNER) + WRONG),
        ("Partner", "type: partner\nrev: ["),
        ("Partner", "name: Partner\nrev: ["),
        ("Partner", "type: partnr"),
        ("Partner", "type: partner\nllm_config_ref: missing"),
        ("Partner", "base_profile: Helper\ntype: partner\nunknown: 1"),
        ("Principal", profile(PRINCIPAL) + WRONG),
    ],
)
def test_a_refused_partner_or_principal_stops_the_team_with_its_errors_first(role, text, tmp_path):
    with pytest.raises(ConfigError) as refused:
        ProfileTeam(folder(tmp_path, **whole(**{role: text})))
    first, *_, last = str(refused.value).splitlines()
    assert first.startswith(f"{tmp_path}/profiles/{role}.yaml:")
    assert ": error: " in first
    assert last.startswith(f"The team cannot start without '{role}': nobody stands in.")


def test_a_role_that_a_base_says_counts(tmp_path):
    profiles = {"Lead": "type: partner", "Talker": "base_profile: Lead\nunknown: 1"}
    with pytest.raises(ConfigError, match="cannot start without 'Talker'"):
        ProfileTeam(folder(tmp_path, **whole(**profiles)))


def test_another_entry_may_be_named(tmp_path):
    files = folder(tmp_path, **whole(Partner=profile(PARTNER) + WRONG))
    team = ProfileTeam(files, entry="Principal")
    assert [each.name for each in team.agents()] == ["Principal", "Principal/dispatch", "Helper"]
    assert team.entry.name == "Principal"
    assert any(each.severity == "error" for each in team.findings)
    with pytest.raises(ConfigError, match="profile 'Partner' cannot be used"):
        ProfileTeam(files, entry="Partner")
    with pytest.raises(UnknownName, match=r"Known: Helper, Principal"):
        ProfileTeam(files, entry="Nobody")


def test_the_named_entry_comes_first(tmp_path):
    team = ProfileTeam(folder(tmp_path, **whole()), entry="Helper")
    assert team.entry.name == "Helper"
    assert {each.name for each in team.agents()} == {"Helper", "Partner", "Principal", "Principal/dispatch"}


def test_a_base_is_no_entry(tmp_path):
    with pytest.raises(UnknownName, match="Unknown entry: Shared"):
        ProfileTeam(folder(tmp_path, **whole(Shared="type: base")), entry="Shared")


@pytest.mark.parametrize(
    "text", ["type: associate\nunknown: 1", "type: associate\nrev: [", "type: [", "type: x"]
)
def test_an_associate_with_errors_keeps_only_itself_from_starting(text, tmp_path):
    team = ProfileTeam(folder(tmp_path, **whole(Second=text)))
    assert team.entry.name == "Partner"
    assert "Second" not in [each.name for each in team.agents()]
