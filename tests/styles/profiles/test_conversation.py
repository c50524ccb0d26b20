"""A whole conversation in the documented generation, and a model that follows the words of its prompts.

The script has no arguments of its own. It takes every call from the prompt that it is shown, where one stands
under the name of its tool, and so fails when a prompt teaches what a tool refuses.
"""

import asyncio
import re
from contextlib import aclosing

from antiphon import open_run
from antiphon.models.script import Script
from antiphon.styles.profiles import ProfileTeam, turns_of
from antiphon.values.message import ToolCall
from antiphon.values.model import Reply
from tests.styles.profiles.profiled import of
from tests.transcript import PATIENCE, Gate, line, results_shown, shown

FOLDER = "tests/styles/profiles/conversation"
REPORT = "# Tides\n\nThe moon leads, the sun helps."
SUMMARY = '{"primary_summary": "The moon pulls the sea."}'
TAUGHT = re.compile(r"`(\w+)`\n```json\n(.*?)\n```", re.DOTALL)


def taught(tool, said=""):
    """A reply with the call of a tool as the prompt teaches it, with some words before it."""

    def reply(request):
        arguments = dict(TAUGHT.findall(request.system))[tool]
        return Reply(said, (ToolCall(f"call_{tool}_{len(request.messages)}", tool, arguments),))

    return reply


def model(gate):
    return Script(
        {
            "Partner": [
                "I propose to look at the moon and the sun. Do you agree?",
                "Very well.",
                taught("manage_work_modules", "The plan:"),
                taught("LaunchPrincipalExecutionTool", "I start it."),
                "It is looked into.",
                taught("GetPrincipalStatusSummaryTool"),
                taught("SendDirectiveToPrincipalTool", "I pass it on."),
                "I told it.",
                "The Principal found: the moon leads.",
            ],
            "Principal": [
                taught("dispatch_submodules", "I give out both."),
                gate,
                taught("generate_markdown_report", "All is done."),
                REPORT,
                taught("finish_flow", "The report is there; I end."),
            ],
            "Associate_Searcher": searches,
        }
    )


def searches(request):
    """An associate: has found it, sums up, ends."""
    spoken = sum(each.role == "assistant" for each in request.messages)
    found = taught("generate_message_summary", "I found it.")
    return [found, SUMMARY, taught("finish_flow", "My summary is written.")][spoken]


async def heard(run, said):
    """Read a run's records until one holds these words."""
    async with asyncio.timeout(PATIENCE), aclosing(run.events(deltas=False)) as events:
        async for record in events:
            if said in line(record):
                return


def talk():
    team = ProfileTeam(FOLDER, env={})
    gate = Gate(taught("manage_work_modules", "Both are good."))
    script = model(gate)

    async def all_of_it():
        async with open_run(team.agents(), model=script) as run:
            await run.result(await run.post(team.entry, "How do tides work?"))
            await run.result(await run.post(team.entry, "Agreed"))
            asked = await run.post(team.entry, "And now?")
            await heard(run, "It is looked into.")
            await heard(run, "2/2.m1 model started")
            await run.post(asked, "It is for sailors. How far is it?")
            await heard(run, "I told it.")
            gate.open.set()
            return await run.result(asked), await run.records()

    return *asyncio.run(all_of_it()), script, team


def test_partner_principal_associates_report_without_one_refused_argument():
    result, records, _, team = talk()
    assert (result.outcome, result.output) == ("completed", "The Principal found: the moon leads.")
    assert [str(each) for each in team.findings if each.severity == "error"] == []
    ends = {
        each.event.outcome for each in records if each.type == "EffectFinished" and ".d" not in each.event.id
    }
    assert ends == {"completed"}
    turns = turns_of(records, team.library.profiles)
    tools = [tool.tool_name for turn in turns for tool in turn.tool_interactions]
    assert {name: tools.count(name) for name in dict.fromkeys(tools)} == {
        "manage_work_modules": 2, "LaunchPrincipalExecutionTool": 1, "dispatch_submodules": 1,
        "call_agent": 2, "generate_message_summary": 2, "finish_flow": 3,
        "GetPrincipalStatusSummaryTool": 1, "SendDirectiveToPrincipalTool": 1, "generate_markdown_report": 1,
    }  # fmt: skip


def test_what_is_said_arrives():
    _, _, script, _ = talk()
    principal = ["\n".join(shown(each)) for each in of(script, "Principal")]
    assert (
        "## Project briefing\n- The user's query: How do tides work?\n- Notes of the Partner: Two"
        in principal[0]
    )
    assert "Old sources too." in principal[0]
    assert "The mandate: {{ commander_mandate }}" in principal[0]
    assert "### Associates for dispatch\n- Associate_Searcher: Searches." in principal[0]
    assert "It is for sailors.\nNotes for you alone: Be brief." in principal[2]
    moon, sun = sorted(shown(each)[0] for each in of(script, "Associate_Searcher") if len(each.messages) == 1)
    assert moon.startswith(
        "user: ## Shared context\nIt is about tides.\n\n## Instructions\nLook at the moon."
    )
    assert sun.startswith("user: ## Shared context\nIt is about tides.\n\n## Instructions\nLook at the sun.")
    assert "Old sources too." in moon
    partner = of(script, "Partner")
    assert any("The user has approved. Call `manage_work_modules` now." in each for each in shown(partner[2]))
    last = "\n".join(shown(partner[-1]))
    assert f"Principal has ended (completed).\n{REPORT}" in last
    assert "The Principal has just completed its task." in last


def test_the_associates_hand_back_their_summaries_and_the_notes_are_kept():
    _, _, script, _ = talk()
    (dispatched,) = results_shown(of(script, "Principal")[1])
    assert dispatched.count('{"primary_summary":"The moon pulls the sea."}') == 2
    assert "notes_from_principal: Good." in "\n".join(shown(of(script, "Principal")[2]))
