"""The research team that ships: a question, a folder, a report with its sources."""

import asyncio

from antiphon import open_run
from antiphon.cli.commands.profiles import _installed
from antiphon.cli.target import load_target
from antiphon.kernel.facts.events import CallEffect
from antiphon.models.script import Script, call
from antiphon.styles.profiles import load_profiles, turns_of
from tests.styles.profiles.profiled import of
from tests.transcript import recorded, results_shown, shown

TEAM = "examples/research"
REPORT = "# Tides\n\nThe moon raises them [tides.md:1].\n\n## Sources\n- tides.md:1"


def assignment(module):
    return {
        "module_id_to_assign": module,
        "agent_profile_logical_name": "Reader",
        "assignment_specific_instructions": "Quote what is said.",
    }


def created(*names):
    return [{"action": "create", "name": name, "description": f"about {name}"} for name in names]


def reviewed(*modules):
    return [{"action": "status_change", "module_id": each, "status": "completed"} for each in modules]


def reads(request):
    """A reader: looks for what its briefing names, sums up, ends."""
    spoken = sum(each.role == "assistant" for each in request.messages)
    what = "moon" if "about moon" in request.messages[0].content else "sun"
    return [
        call("search_documents", query=what),
        call("generate_message_summary"),
        f"On the {what}: see tides.md.",
        call("finish_flow"),
    ][spoken]


def model():
    return Script(
        {
            "Partner": [
                call("manage_work_modules", actions=created("moon", "sun")),
                call("LaunchPrincipalExecutionTool"),
                "I am looking into moon and sun.",
                REPORT,
            ],
            "Principal": [
                call("dispatch_submodules", assignments=[assignment("WM_1"), assignment("WM_2")],
                     shared_context_for_all_assignments="For sailors."),
                call("manage_work_modules", actions=reviewed("WM_1", "WM_2")),
                "I think I am done.",
                call("generate_markdown_report", title="Tides"),
                REPORT,
            ],
            "Reader": reads,
        }
    )  # fmt: skip


def documents(folder):
    (folder / "tides.md").write_text("The moon raises the tides.\n\nThe sun helps the moon.\n")
    return load_target(TEAM, str(folder))


def test_the_files_have_no_findings(tmp_path, capsys):
    documents(tmp_path)
    assert capsys.readouterr().err == ""
    assert _installed().keys() >= {"documents", "files"}
    assert load_profiles(TEAM, toolsets=_installed()).findings == ()


def test_a_question_becomes_a_report_with_its_sources(tmp_path):
    target, script = documents(tmp_path), model()
    result, records = recorded(target.entry, "How do tides work?", agents=target.agents, model=script)
    assert (result.outcome, result.output) == ("completed", REPORT)
    found = [results_shown(each)[0] for each in of(script, "Reader")[1:] if len(each.messages) == 3]
    assert [("tides.md" in each) for each in found] == [True, True]
    started = {
        each.event.detail.agent
        for each in records
        if each.type == "EffectStarted" and isinstance(each.event.detail, CallEffect)
    }
    assert started == {"Partner", "Principal", "Principal/dispatch", "Reader"}


def test_a_reader_is_briefed_by_the_protocol(tmp_path):
    target, script = documents(tmp_path), model()
    recorded(target.entry, "How do tides work?", agents=target.agents, model=script)
    assert shown(of(script, "Reader")[0])[0] == (
        "user: ## What to do\nQuote what is said.\n\n## What everybody knows\nFor sailors.\n\n"
        "## What the user asked\nHow do tides work?\n\n## Your work module\nmoon\n\n"
        "## What it is about\nabout moon"
    )


def test_the_principal_goes_on_until_there_is_a_report(tmp_path):
    target, script = documents(tmp_path), model()
    recorded(target.entry, "How do tides work?", agents=target.agents, model=script)
    last = of(script, "Principal")[3]
    assert any("Go on with the plan" in each for each in shown(last))


def test_a_partner_that_does_not_understand_asks_back(tmp_path):
    target, script = documents(tmp_path), Script({"Partner": ["Which tides?", "Ah."]})

    async def talk():
        async with open_run(target.agents, model=script) as run:
            for said in ("Tides?", "All of them."):
                yielded = await run.result(await run.post(target.entry, said))
            return yielded, turns_of(await run.records())

    result, turns = asyncio.run(talk())
    assert result.output == "Ah."
    assert [each.turn_type for each in turns] == ["user", "agent"] * 2
