"""What a model is shown of calls and results, and who has the last word on a turn."""

import asyncio

import apsw
import pytest

from antiphon import ToolError, ToolResult, UserError, open_run, tool
from antiphon.journal import MemoryJournal
from antiphon.kernel.run.commands import AnswerInput, encode
from antiphon.models.script import call
from antiphon.styles.profiles.history.turns import turns_of
from tests.styles.profiles.profiled import ASSOCIATE, PARTNER, of, one, script, team
from tests.transcript import Gate, lines, recorded, results_shown, shown, until
from tests.unit.journal.writing import opened

ALLOWED = "allowed_toolsets: [flow_control_end, flow_control_summary]"
WITH_OWN = ASSOCIATE.replace(ALLOWED, "allowed_toolsets: [flow_control_end, own]")
FINISH = call("finish_flow", summary="over")


def tooled(folder, lines, *tools, text=WITH_OWN):
    """One associate with tools of its own: the team, its model."""
    return one(folder, text, lines, tools={"own": tools})


def asked(found, model, **options):
    return recorded(found.entry, "go", agents=found.agents(), model=model, **options)


@tool(effect="read")
async def search(words: str) -> str:
    """Search."""
    return f"found {words}"


# -- the history -----------------------------------------------------------------------------------


def test_a_result_that_never_came_is_an_error_with_the_tools_name(tmp_path):
    @tool(timeout=0.01)
    async def slow() -> str:
        """Take for ever."""
        await asyncio.Event().wait()

    found, model = tooled(tmp_path, [call("slow"), FINISH], slow)
    asked(found, model)
    (said,) = results_shown(model.requests[1])
    assert said == "Error: [slow] no result after 0.01 s; it may or may not have taken effect"
    assert model.requests[1].messages[-1].name == "slow"


def test_what_is_said_between_a_call_and_its_result_stands_after_them(tmp_path):
    begun, done = asyncio.Event(), asyncio.Event()

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        begun.set()
        await done.wait()
        return "seen"

    found, model = tooled(tmp_path, [call("look"), FINISH], look)

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            asked = await run.post("Associate", "go")
            await begun.wait()
            await run.post(asked, "and hurry")
            done.set()
            return await run.result(asked)

    assert asyncio.run(talk()).output == "over"
    assert shown(model.requests[1]) == [
        "user: go", "assistant: [look]", "tool: seen", "user: and hurry",
    ]  # fmt: skip


def test_a_result_without_its_call_is_a_dead_letter(tmp_path):
    """A result is the end of an effect of the journal; one for an effect that is none changes nothing."""
    gate = Gate(FINISH)
    found, model = tooled(tmp_path, [gate])

    async def talk():
        journal = MemoryJournal()
        async with open_run(found.agents(), model=model, journal=journal, interactive=True) as run:
            asked = await run.post("Associate", "go")
            await until(run, "1/1.m1 model started")
            with pytest.raises(UserError, match="c7 is not an open question"):
                await run.answer("1/1.c7", "from nowhere")
            await journal.post(run.run_id, "stale", encode(AnswerInput("1/1.c7", "from nowhere")))
            gate.open.set()
            await run.result(asked)
            return lines(await run.records())

    said = asyncio.run(talk())
    assert [line for line in said if "nowhere" in line] == [
        "dead letter for 1/1.c7: from nowhere (1/1.c7 is not an open question)"
    ]
    assert not [line for line in said if line.startswith("1/1.c7")]


def test_a_valid_history_of_many_calls_goes_on_unchanged(tmp_path):
    """What was shown once is shown again as the same objects: a prefix that a provider may keep."""
    several = [call("search", words=each) for each in "abc"]
    found, model = tooled(tmp_path, [several, several, FINISH], search)
    asked(found, model)
    first, second, third = (list(each.messages) for each in model.requests)
    assert len(first) < len(second) < len(third)
    assert all(one is other for one, other in zip(second, third, strict=False))
    assert all(one is other for one, other in zip(first, second, strict=False))
    assert results_shown(model.requests[2]) == ["found a", "found b", "found c"] * 2


# -- who has the last word -------------------------------------------------------------------------


def test_a_result_may_end_the_task_whatever_the_rules_say(tmp_path):
    @tool(effect="read")
    async def answer() -> ToolResult:
        """Answer."""
        return ToolResult("that is it", finishes=True)

    found, model = tooled(tmp_path, [call("answer")], answer)
    assert asked(found, model)[0].output == "that is it"
    assert len(model.requests) == 1


def test_a_result_may_leave_a_partner_waiting_for_its_user(tmp_path):
    """An ending result suspends who talks with the user: the conversation goes on with the next prompt."""

    @tool(effect="read")
    async def form() -> ToolResult:
        """Show the user a form."""
        return ToolResult("Please fill in the form.", finishes=True)

    partner = PARTNER.replace("[LaunchPrincipalExecutionTool,", "[own, LaunchPrincipalExecutionTool,")
    found = team(tmp_path, {"Partner": partner}, tools={"own": [form]})
    model = script(Partner=[call("form"), "Thank you."])

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            first = await run.result(await run.post("Partner", "a ticket, please"))
            second = await run.result(await run.post("Partner", "done"))
            return first.output, second.output

    assert asyncio.run(talk()) == ("Please fill in the form.", "Thank you.")
    assert shown(of(model, "Partner")[1]) == [
        "user: a ticket, please", "assistant: [form]", "tool: Please fill in the form.", "user: done",
    ]  # fmt: skip


@pytest.mark.parametrize("control", ["terminate", "suspend", "explode", {"next_action": "end"}])
def test_what_a_payload_says_about_control_is_data(control, tmp_path):
    @tool(effect="read")
    async def page() -> dict:
        """Read a page of the web."""
        return {"status": "success", "payload": "text", "control": control, "ends": True}

    found, model = tooled(tmp_path, [call("page"), FINISH], page)
    assert asked(found, model)[0].output == "over"
    assert '"control":' in results_shown(model.requests[1])[0]


def submitting(fails):
    @tool(effect="read", finishes=True)
    async def submit() -> str:
        """Hand in the work."""
        if fails:
            raise ToolError("the desk is closed")
        return "handed in"

    return submit


def test_of_two_results_that_end_the_task_the_first_counts(tmp_path):
    found, model = tooled(tmp_path, [[call("submit"), FINISH]], submitting(fails=False))
    assert asked(found, model)[0].output == "handed in"


def test_one_that_failed_ends_nothing_and_no_other_hides_that(tmp_path):
    found, model = tooled(tmp_path, [[call("submit"), FINISH], FINISH], submitting(fails=True))
    assert asked(found, model)[0].output == "over"
    assert results_shown(model.requests[1]) == [
        "Error: [submit] the desk is closed",
        "Error: finish_flow was skipped: submit ends the task in the same reply",
    ]


# -- a worker that dies ----------------------------------------------------------------------------


class Clock:
    """Unix time that passes when told to."""

    ahead = 0.0

    def __call__(self):
        return 1_000.0 + self.ahead


def test_work_of_a_worker_that_died_is_taken_up_after_its_time(tmp_path):
    """Nothing that was in an inbox is lost or read twice, and what the dead one writes late is refused."""
    found, never = team(tmp_path / "team", {"Associate": ASSOCIATE}), Gate("too late")
    path, clock = tmp_path / "journal.db", Clock()

    async def go():
        async with opened(path, wall=clock) as one, opened(path, wall=clock) as two:
            dying = open_run(found.agents(), model=script(Associate=[never]), journal=one)
            async with dying as first:
                asked = await first.post("Associate", "go")
                await until(first, "1/1.m1 model started")
                with apsw.Connection(str(path)) as other:
                    other.execute("update owners set host = 'elsewhere', boot = 'another'")
                clock.ahead = 15.1
                model = script(Associate=["I look.", FINISH])
                async with open_run(found.agents(), run_id=first.run_id, model=model, journal=two) as second:
                    result = await second.result(asked)
                    return result, model, await second.records()

    result, model, records = asyncio.run(go())
    assert result.output == "over"
    assert [shown(each)[:2] for each in model.requests] == [["user: go"], ["user: go", "assistant: I look."]]
    said = lines(records)
    assert said.count("1 Associate turn started, 1 taken") == 1
    assert not [line for line in said if "too late" in line]
    assert [each.turn_type for each in turns_of(records)][:3] == ["user", "agent", "restart_delimiter"]
