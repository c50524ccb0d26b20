"""`antiphon models`: what is known of models, as a table, in words, and as JSON."""


def test_ls_finds_by_a_part_a_pattern_and_a_provider(shell):
    said = shell("models", "ls", "gpt-4.1", "--provider", "openai")
    assert said.code == 0
    rows = [line.split()[0] for line in said.out.splitlines()[1:] if line.startswith("openai:")]
    assert rows == ["openai:gpt-4.1", "openai:gpt-4.1-mini", "openai:gpt-4.1-nano"]
    assert "configured here: none (ANTIPHON_MODEL is not set)" in said.out
    found = shell("models", "ls", "claude-*-4-5", "--json").value
    assert "anthropic:claude-sonnet-4-5" in [each["id"] for each in found]
    assert shell("models", "ls", "nothing-like-it").code == 4


def test_what_is_configured_is_told(shell, monkeypatch):
    monkeypatch.setenv("ANTIPHON_MODEL", "openai:gpt-4.1")
    assert "configured here: openai:gpt-4.1 (from ANTIPHON_MODEL; window 1,047,576, $2 in, $8 out)" in (
        shell("models", "ls", "gpt-4.1").out
    )
    monkeypatch.setenv("ANTIPHON_MODEL", "nobody-knows-me")
    assert "nobody-knows-me (from ANTIPHON_MODEL; nothing is known of it)" in shell("models", "ls", "o1").out


def test_show_says_what_is_not_known(shell, monkeypatch):
    shell.write("mine.yaml", "mine:one: {context_window: 100, tools: true, prices: {output: 2}}\n")
    monkeypatch.setenv("ANTIPHON_MODELS", "mine.yaml")
    said = shell("models", "show", "mine:one")
    lines = {tuple(line.split("  ")[1:2]): line for line in said.out.splitlines()}
    assert said.out.startswith("mine:one\n")
    assert lines[("context window",)].endswith("100 tokens")
    assert lines[("largest output",)].endswith("unknown")
    assert lines[("input",)].endswith("unknown")
    assert lines[("output",)].endswith("$2 per 1M tokens")
    assert lines[("reasoning output",)].endswith("as output")
    value = shell("models", "show", "mine:one", "--json").value
    assert (value["prices"]["input"], value["prices"]["output"]) == (None, "2")
    assert value["reasoning"] is None
    listed = shell("models", "ls", "one", "--provider", "mine").out
    assert "unknown" in listed


def test_show_of_a_model_with_tiers_and_of_none(shell):
    said = shell("models", "show", "google:gemini-2.5-pro")
    assert "above 200,000" in said.out
    assert shell("models", "show", "google:gemini-2.5-pro", "--json").value["tiers"][0]["above"] == 200_000
    said = shell("models", "show", "gpt-4.1-m")
    assert said.code == 4
    assert "Like it: openai:gpt-4.1-mini" in said.err
    assert "ANTIPHON_MODELS" in shell("models", "show", "nothing-like-it").err
