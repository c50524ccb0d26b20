"""Observers, the inbox, its order, and how the model is shown what is in it."""

import asyncio

import pytest

from antiphon import Attachment, Message, open_run, tool
from antiphon.models.script import call
from antiphon.styles.profiles.files.vocabulary import INGESTORS as NAMES
from antiphon.styles.profiles.files.vocabulary import SOURCES
from antiphon.styles.profiles.limits import ProfileLimits
from antiphon.styles.profiles.turns.ingestors import INGESTORS, ingestor
from antiphon.styles.profiles.turns.item import Item, in_order
from tests.styles.profiles.profiled import one
from tests.transcript import Gate, recorded, results_shown, shown


@tool(effect="read")
async def look(page: int) -> str:
    """Look at a page."""
    return f"page {page} " + "x" * (60_000 if page == 2 else 0)


PLAIN = "type: associate\ntool_access_policy: {allowed_toolsets: [pages]}"


def asked(team, model, message="go", **options):
    return recorded(team.entry, message, agents=team.agents(), model=model, **options)


def told(tmp_path, text, lines=("done",), message="go", mail=(), **options):
    """What the model of one associate is shown, request by request."""
    found, model = one(tmp_path, text, list(lines), **options)

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            await run.result(await run.post("Associate", message, inbox=mail))

    asyncio.run(talk())
    return [shown(each) for each in model.requests]


def post(source, data=None, content=""):
    return Message("forward", "system", "Associate", content, source=source, data=data)


def states(records, key):
    """The values that a key of the agent's state had, one after the other."""
    found = [each.event.set for each in records if each.type == "StateChanged" and each.activation]
    return [each[key] for each in found if key in each]


# -- what is read, in which order, how long --------------------------------------------------------


def test_an_empty_inbox_changes_nothing(tmp_path):
    found, model = one(tmp_path, PLAIN, [call("look", page=1), "done"], tools={"pages": [look]})
    _, records = asked(found, model)
    assert [each.role for each in model.requests[1].messages] == ["user", "assistant", "tool"]
    assert states(records, "_processed")[-1] == []


def test_a_tool_result_comes_before_a_prompt(tmp_path):
    """The kernel puts a result right behind its call, whatever waits in the inbox."""
    gate = Gate(call("look", page=1))
    found, model = one(tmp_path, PLAIN, [gate, "done"], tools={"pages": [look]})

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            asked = await run.post("Associate", "first")
            await run.post(asked, "second")
            gate.open.set()
            await run.result(asked)

    asyncio.run(talk())
    assert shown(model.requests[-1]) == ["user: first", "assistant: [look]", "tool: page 1 ", "user: second"]


def test_items_are_read_by_priority_then_age():
    items = [
        Item(str(number), source) for number, source in enumerate([*reversed(SOURCES), "MINE", "TOOL_RESULT"])
    ]
    assert [each.source for each in in_order(items)] == [
        "TOOL_RESULT", "TOOL_RESULT", "OBSERVER_FAILURE", "AGENT_STARTUP_BRIEFING", "PRINCIPAL_COMPLETED",
        "PARTNER_DIRECTIVE", "INTERNAL_DIRECTIVE", "SELF_REFLECTION_PROMPT", "PRINCIPAL_ACTIVITY_UPDATE",
        "WORK_MODULES_STATUS_UPDATE", "TOOL_INPUTS_BRIEFING", "PROFILES_UPDATED_NOTIFICATION",
        "ORIGINAL_QUESTION", "JSON_HISTORY_FOR_LLM", "FIM_INSTRUCTION", "ALL_WORK_COMPLETED_PROMPT", "MINE",
        "USER_PROMPT",
    ]  # fmt: skip


def test_mail_is_read_by_its_source(tmp_path):
    mail = [
        post("MINE", content="third"),
        post("INTERNAL_DIRECTIVE", content="second"),
        post("PARTNER_DIRECTIVE", content="first"),
    ]
    (request,) = told(tmp_path, PLAIN, mail=mail, message="last", tools={"pages": [look]})
    assert request == ["user: first", "user: [system] second", "user: - content: third", "user: last"]


PERSISTENT = """
    type: associate
    tool_access_policy: {allowed_toolsets: [pages]}
    pre_turn_observers:
    - id: both
      condition: "not v['flags.done']"
      action:
        type: add_to_inbox
        inbox_item:
          source: REMINDER
          payload: {content: eat}
          consumption_policy: persistent_until_consumed
    - id: once
      condition: "not v['flags.done']"
      action: {type: add_to_inbox, inbox_item: {source: NOTE, payload: {content: drink}}}
    - id: done
      action: {type: update_state, updates: [{operation: set, path: flags.done, value: true}]}
"""
LOOKS = [call("look", page=1)] * 4 + ["done"]


def test_a_persistent_item_stays_a_consumed_one_goes(tmp_path):
    found, model = one(tmp_path, PERSISTENT, LOOKS, tools={"pages": [look]})
    _, records = asked(found, model)
    assert [each["source"] for each in states(records, "inbox")[0]] == ["REMINDER"]
    requests = [shown(each) for each in model.requests]
    assert [each[-1] for each in requests] == ["tail: - content: eat"] * 5
    assert [sum("drink" in text for text in each) for each in requests] == [1] * 5
    assert [sum("eat" in text for text in each) for each in requests] == [1] * 5


def test_a_persistent_item_goes_after_its_turns(tmp_path):
    found, model = one(
        tmp_path, PERSISTENT, LOOKS, tools={"pages": [look]}, bounds=ProfileLimits(item_turns=2)
    )
    _, records = asked(found, model)
    counts = [[item["metadata"]["turn_count_in_inbox"] for item in each] for each in states(records, "inbox")]
    assert counts == [[1], [2], []]
    assert ["eat" in shown(each)[-1] for each in model.requests] == [True, True, True, False, False]


def test_the_startup_briefing_sets_a_flag_and_is_not_for_handover(tmp_path):
    briefing = {"briefing": {"source": "AGENT_STARTUP_BRIEFING", "payload": {"data": {"task": "tides"}}}}
    text = """
        type: associate
        flow_decider:
        - id: end
          condition: >-
            v['flags.initial_briefing_delivered'] and v['initial_params.task'] == 'tides'
            and v['state.messages[0]._internal._no_handover']
          action: {type: end_agent_turn, outcome: success}
    """
    found, model = one(tmp_path, text, ["done"])

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            asked = await run.post("Associate", data=briefing)
            return await run.result(asked), await run.records()

    result, records = asyncio.run(talk())
    assert (result.output, states(records, "flags")) == ("done", [{"initial_briefing_delivered": True}])
    assert shown(model.requests[0]) == ["user: ## task\ntides"]


def test_an_item_that_cannot_be_formatted_is_one_error_and_is_gone(tmp_path):
    @ingestor
    def broken(payload, params, context):
        raise KeyError("no title")

    text = PERSISTENT + "    inbox_handling_strategies: [{source: REMINDER, ingestor: broken}]\n"
    requests = told(tmp_path, text, LOOKS, tools={"pages": [look]}, ingestors=[broken])
    said = "user: [system] [error] An item of REMINDER could not be shown: KeyError: 'no title'"
    assert [each.count(said) for each in requests] == [1] * 5


def test_an_empty_prompt_says_nothing(tmp_path):
    """The origin makes no user turn of it; here it makes no message, and the model is asked all the same."""
    (request,) = told(tmp_path, PLAIN, message="", mail=[post("NOTE", content="x")], tools={"pages": [look]})
    assert request == ["user: - content: x"]


def test_a_large_result_is_stored_by_reference_a_small_one_stands_there(tmp_path):
    """The design: the kernel's own handles take the place of the origin's knowledge tokens."""
    found, model = one(
        tmp_path, PLAIN, [[call("look", page=1), call("look", page=2)], "done"], tools={"pages": [look]}
    )
    asked(found, model)
    small, large = results_shown(model.requests[1])
    assert small == "page 1 "
    assert len(large) < 60_000
    assert 'read_output(handle="1/1.c2")' in large


def test_files_of_a_prompt_go_with_it(tmp_path):
    found, model = one(tmp_path, PLAIN, ["done"], tools={"pages": [look]})

    async def talk():
        async with open_run(found.agents(), model=model) as run:
            picture = Attachment("image/png", "aGk=")
            await run.result(await run.post("Associate", "see", attachments=[picture]))

    asyncio.run(talk())
    (message,) = model.requests[0].messages
    assert (message.content, message.attachments[0].data) == ("see", "aGk=")


# -- observers -----------------------------------------------------------------------------------


def test_an_observer_that_fails_is_an_item_and_the_agent_goes_on(tmp_path):
    text = """
        type: associate
        pre_turn_observers:
        - {id: broken, condition: "len(v['flags.none']) > 1", action: {type: update_state, updates: []}}
        - {id: fine, action: {type: add_to_inbox, inbox_item: {source: NOTE, payload: "{{ team.question }}"}}}
    """
    (request,) = told(tmp_path, text, message="tides")
    assert request[0].startswith("user: [system] The rule broken of your profile failed: ")
    assert request[-1] == "user: tides"


def test_a_later_observer_sees_what_an_earlier_one_changed(tmp_path):
    text = """
        type: associate
        pre_turn_observers:
        - id: a
          action:
            type: update_state
            updates:
            - {operation: set, path: flags.deep.er, value: 2}
            - {operation: increment, path: flags.deep.er}
        - id: b
          condition: "v['flags.deep.er'] == 3"
          action: {type: add_to_inbox, inbox_item: {source: NOTE, payload: "{{ flags.deep }}"}}
        - id: c
          condition: "any(item.get('source') == 'NOTE' for item in v['state.inbox'])"
          action: {type: add_to_inbox, inbox_item: {source: NOTE, payload: seen}}
    """
    (request,) = told(tmp_path, text)
    assert request == ["user: - er: 3", "user: seen", "user: go"]


def test_post_turn_observers_speak_in_the_next_turn(tmp_path):
    text = """
        type: associate
        tool_access_policy: {allowed_toolsets: [pages]}
        text_definitions: {think: "Was {{ state.current_action.tool_name }} of use? {{ flags.none }}"}
        post_turn_observers:
        - id: reflect
          condition: "v['state.current_action.tool_name'] == 'look'"
          action:
            type: add_to_inbox
            inbox_item: {source: SELF_REFLECTION_PROMPT, payload: {content_key: think}}
    """
    requests = told(tmp_path, text, [call("look", page=1), "done"], tools={"pages": [look]})
    assert requests[1][-1] == (
        "user: [system] Was {{ state.current_action.tool_name }} of use? {{ flags.none }}"
    )


def test_a_payload_whose_path_leads_nowhere_says_nothing(tmp_path):
    text = """
        type: associate
        pre_turn_observers:
        - {id: lost, action: {type: add_to_inbox, inbox_item: {source: NOTE, payload: "{{ state.nothing }}"}}}
    """
    assert told(tmp_path, text) == [["user: go"]]


# -- strategies ----------------------------------------------------------------------------------


def strategy(**fields):
    listed = ", ".join(f"{name}: {value}" for name, value in fields.items())
    return PLAIN + f"\ninbox_handling_strategies: [{{source: NOTE, {listed}}}]"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"ingestor": "generic_message"}, "user: eat"),
        ({"ingestor": "tagged_content", "params": "{tag: note}"}, "user: <note>\neat\n</note>"),
        ({"ingestor": "generic_message", "params": "{role: system}"}, "user: [system] eat"),
        ({"ingestor": "generic_message", "params": "{role: assistant}"}, "assistant: eat"),
        (
            {"ingestor": "markdown_formatter_ingestor", "params": "{title: Mind}"},
            "user: ## Mind\n- content: eat",
        ),
    ],
)
def test_a_strategy_says_how_items_are_shown(fields, said, tmp_path):
    (request,) = told(
        tmp_path, strategy(**fields), mail=[post("NOTE", content="eat")], tools={"pages": [look]}
    )
    assert request == [said, "user: go"]


def test_an_item_that_is_not_to_stay_is_shown_in_one_turn(tmp_path):
    text = strategy(ingestor="generic_message", params="{is_persistent_in_memory: false}")
    requests = told(
        tmp_path,
        text,
        [call("look", page=1), "done"],
        mail=[post("NOTE", content="eat")],
        tools={"pages": [look]},
    )
    assert requests == [["user: go", "tail: eat"], ["user: go", "assistant: [look]", "tool: page 1 "]]


def test_an_item_may_be_put_before_the_last_message_of_its_role(tmp_path):
    text = strategy(ingestor="generic_message", injection_mode="prepend_to_role")
    mail = [post("PARTNER_DIRECTIVE", content="hear"), post("NOTE", content="eat")]
    (request,) = told(tmp_path, text, mail=mail, tools={"pages": [look]})
    assert request == ["user: eat\n\nhear", "user: go"]


def test_an_ingestor_of_ones_own_reads_the_world(tmp_path):
    @ingestor(name="headline")
    def write(payload, params, context):
        return f"{params['mark']} {payload['content']} ({context.at('meta.agent_id')})"

    text = strategy(ingestor="headline", params="{mark: '#'}")
    (request,) = told(
        tmp_path, text, mail=[post("NOTE", content="eat")], ingestors=[write], tools={"pages": [look]}
    )
    assert request[0] == "user: # eat (Associate)"


# -- ingestors -----------------------------------------------------------------------------------


class World:
    """What an ingestor may read, as a test gives it."""

    def __init__(self, **values):
        self.values = values

    def at(self, path):
        return self.values.get(path)

    def text(self, key):
        return f"the text {key}"


def formatted(name, payload, context=None, **params):
    return INGESTORS[name].write(payload, params, context or World())


def test_every_ingestor_of_the_vocabulary_is_there():
    assert sorted(INGESTORS) == sorted(NAMES)


@pytest.mark.parametrize(
    ("name", "payload", "said"),
    [
        ("templated_content", {"content_key": "k"}, "the text k"),
        ("templated_content", {"content": "c"}, "c"),
        ("generic_message", "text", "text"),
        ("generic_message", {"n": 1}, '{"n":1}'),
        ("generic_message", None, ""),
        ("user_prompt", {"prompt": "hello"}, "hello"),
        ("tool_result", {"tool_name": "look", "content": {"n": 1}}, 'Result of look:\n{"n":1}'),
        ("tool_result", "found", "found"),
        (
            "markdown_formatter",
            {"a": 1, "b": [2, {"c": "x"}], "d": None},
            "- a: 1\n- b:\n  - 2\n  -\n    - c: x\n- d:",
        ),
        ("tagged_content", {"content": "c"}, "<content>\nc\n</content>"),
        ("json_history", {"messages": [{"role": "user"}]}, '[{"role":"user"}]'),
        ("observer_failure", {"observer_id": "o", "error": "e"}, "The rule o of your profile failed: e"),
        ("protocol_aware", {"content": "c"}, "- content: c"),
        (
            "protocol_aware",
            {
                "data": {"a": {"b": 1}, "n": "", "c": "text"},
                "schema_for_rendering": {"properties": {"a": {"x-handover-title": "The A"}}},
            },
            "## The A\n- b: 1\n\n## c\ntext",
        ),
        (
            "dispatch_result",
            {
                "overall_status": "SUCCESS",
                "assignment_execution_results": [{"module_id": "WM_1", "status": "success", "message": "ok"}],
            },
            "Dispatch: SUCCESS\n- WM_1 (success): ok",
        ),
    ],
)  # fmt: skip
def test_what_an_ingestor_makes_of_a_payload(name, payload, said):
    assert formatted(name, payload) == said


def test_work_modules_are_shown_without_their_archives():
    archive = [{"messages": [{"role": "user", "content": "x" * 10_000}], "deliverables": {"s": "y" * 10_000}}]
    modules = {
        "WM_1": {
            "name": "Tides",
            "description": "why",
            "status": "pending_review",
            "context_archive": archive * 2,
        },
        "WM_2": {"name": "Moon", "description": "", "status": "pending", "context_archive": []},
    }
    said = "## Work modules\n- WM_1 [pending_review] Tides: why (2 archived)\n- WM_2 [pending] Moon"
    assert formatted("work_modules", modules) == said
    assert formatted("work_modules", None, World(**{"team.work_modules": modules})) == said
    assert formatted("work_modules", {}) == "## Work modules\nThere are no work modules yet."


def test_the_principals_history_is_its_last_ten_messages_two_hundred_characters_each():
    messages = [{"role": "assistant", "content": f"{number} " + "x" * 300} for number in range(12)]
    lines = formatted("principal_history_summary", messages).splitlines()
    assert lines[0] == "## The principal's last steps"
    assert [each.split()[2] for each in lines[1:]] == [str(number) for number in range(2, 12)]
    assert {len(each) for each in lines[1:]} == {200 + len("- assistant: ")}


def test_available_associates_are_those_of_the_list_or_all():
    known = {
        name: {"profile_id": f"{name}@1", "description_for_human": said}
        for name, said in (("Reader", "reads"), ("Writer", ""))
    }
    world = World(**{"config.agent_profiles": known})
    assert (
        formatted("available_associates", None, world) == "## Available associates\n- Reader: reads\n- Writer"
    )
    assert formatted("available_associates", ["Writer@1"], world, title="Who") == "## Who\n- Writer"
    assert formatted("available_associates", None) == "## Available associates\nThere are no associates."
