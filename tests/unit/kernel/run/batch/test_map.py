"""`map`: one agent, many items, one budget, one run that is gone on with by item."""

import asyncio

import pytest

import antiphon
from antiphon import (
    Agent,
    Attachment,
    Limits,
    ModelError,
    ModelOptions,
    RunLimits,
    Usage,
    UserError,
    map_sync,
    open_journal,
    tool,
)
from antiphon.errors import UnknownName
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run
from antiphon.values.model import Reply

CLERK = Agent("clerk", "You sort letters.", asking=ModelOptions(max_output_tokens=1_000))
LETTERS = [f"letter {number}" for number in range(12)]


def sorts(request):
    return Reply(f"sorted {request.messages[-1].content}", usage=Usage(800, 200))


def outputs(results):
    return [each.output for each in results]


def outcomes(results):
    return [each.outcome for each in results]


class Slow(Script):
    """Answers once as many as `together` wait for it; knows how many waited at most."""

    def __init__(self, together):
        super().__init__(sorts)
        self.waiting, self.most, self._together = 0, 0, together
        self._go = asyncio.Event()

    async def complete(self, request, emit):
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        if self.waiting == self._together:
            self._go.set()
        await self._go.wait()
        self.waiting -= 1
        return await super().complete(request, emit)


class Stopped(Exception):
    """The program ends here."""


def stop_after(count):
    """Ends a `map` when so many items are done."""
    done = []

    def on_result(number, result):
        done.append(number)
        if len(done) == count:
            raise Stopped

    return on_result


def test_the_results_stand_in_the_order_of_the_items():
    results = map_sync(CLERK, LETTERS, model=Script(sorts))
    assert outputs(results) == [f"sorted {letter}" for letter in LETTERS]
    assert len({each.run_id for each in results}) == 1


def test_no_items_have_no_results():
    assert map_sync(CLERK, [], model=Script(sorts)) == []


@pytest.mark.parametrize("concurrency", [1, 5])
def test_so_many_items_are_asked_at_the_same_time(concurrency):
    model = Slow(concurrency)
    map_sync(CLERK, LETTERS, model=model, concurrency=concurrency)
    assert model.most == concurrency


def test_items_are_taken_as_they_are_needed():
    taken = []

    def letters():
        for letter in LETTERS:
            taken.append(letter)
            yield letter

    def on_result(number, result):
        assert len(taken) <= number + 3

    results = map_sync(CLERK, letters(), model=Script(sorts), concurrency=2, on_result=on_result)
    assert len(results) == len(taken) == 12


def test_what_is_no_text_is_told_as_json_or_in_words_of_ones_own():
    items = [{"sku": 7}, ["a", 1]]
    assert outputs(map_sync(CLERK, items, model=Script(sorts))) == ['sorted {"sku":7}', 'sorted ["a",1]']
    told = map_sync(CLERK, items, message=lambda item: f"about {len(item)}", model=Script(sorts))
    assert outputs(told) == ["sorted about 1", "sorted about 2"]


def test_files_go_with_an_item():
    def reads(request):
        return request.messages[-1].attachments[0].name

    results = map_sync(
        CLERK, ["a", "b"], attachments=lambda item: [Attachment("text/plain", item.encode(), name=item)],
        model=Script(reads),
    )  # fmt: skip
    assert outputs(results) == ["a", "b"]


@pytest.mark.parametrize("kind", ["function", "coroutine function"])
def test_each_result_is_told_as_it_ends(kind):
    heard = []

    def function(number, result):
        heard.append((number, result.output))

    async def coroutine_function(number, result):
        await asyncio.sleep(0)
        function(number, result)

    told = function if kind == "function" else coroutine_function
    map_sync(CLERK, LETTERS, model=Script(sorts), concurrency=3, on_result=told)
    assert sorted(heard) == [(number, f"sorted {letter}") for number, letter in enumerate(LETTERS)]


@pytest.mark.parametrize("item", [float("nan"), {"prices": [1.0, float("inf")]}])
def test_a_number_that_json_has_as_null_is_refused(item):
    with pytest.raises(UserError, match=r"^Item 1 of map .* is no number in JSON"):
        map_sync(CLERK, [{"price": None}, item], model=Script(lambda request: "done"))


def test_an_item_that_fails_is_a_result_among_the_others():
    def some(request):
        if request.messages[-1].content == "letter 3":
            raise ModelError("validation", "no such letter")
        return sorts(request)

    results = map_sync(CLERK, LETTERS[:6], model=Script(some))
    assert outcomes(results) == ["completed"] * 3 + ["failed"] + ["completed"] * 2
    assert "no such letter" in results[3].reason


def test_one_budget_holds_for_all_items():
    results = map_sync(CLERK, LETTERS, model=Script(sorts), run_limits=RunLimits(tokens=6_000))
    done = outcomes(results).count("completed")
    assert sorted(outcomes(results)) == ["budget"] * (12 - done) + ["completed"] * done
    assert 3 <= done <= 6
    assert sum(each.usage.total for each in results) == done * 1_000


def test_limits_are_those_of_each_item():
    results = map_sync(CLERK, LETTERS, model=Script(sorts), limits=Limits(tokens=2_500))
    assert outcomes(results) == ["completed"] * 12


def test_each_item_begins_anew_and_may_call_the_team():
    def hands_on(request):
        if len(request.messages) == 1:
            return call("call_agent", agent_name="writer", message=request.messages[0].content)
        return request.messages[-1].content

    writer = Agent("writer", "You write.", model=Script(sorts))
    clerk = Agent("clerk", "You sort letters.", model=Script(hands_on))
    results = map_sync("clerk", ["a", "b"], agents=[clerk, writer], concurrency=1)
    assert outputs(results) == ["sorted a", "sorted b"]


def test_tools_are_handed_in_as_for_a_run():
    @tool(effect="read")
    def look() -> str:
        """Look."""
        return "seen"

    looks = Script(lambda request: "done" if len(request.messages) > 1 else call("look"))
    assert outputs(map_sync(CLERK, ["a"], tools=[look], model=looks)) == ["done"]


def test_a_person_is_asked_about_an_item():
    @tool(effect="once", requires_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    async def person(message):
        return "yes" if message.data["arguments"] == '{"amount":1}' else "no"

    def pays(request):
        if len(request.messages) > 1:
            return request.messages[-1].content
        return call("pay", amount=int(request.messages[0].content))

    results = map_sync(CLERK, ["1", "2"], tools=[pay], model=Script(pays), on_input=person)
    assert results[0].output == "paid 1"
    assert "paid" not in results[1].output


# -- going on ------------------------------------------------------------------------------------


def go_on(home, model, items=LETTERS, **options):
    return map_sync(CLERK, items, model=model, journal=f"sqlite:///{home}/runs.db", run_id="sort", **options)


@pytest.mark.parametrize("count", [1, 4, 12])
def test_what_was_answered_is_not_asked_again(tmp_path, count):
    first, second = Script(sorts), Script(sorts)
    with pytest.raises(Stopped):
        go_on(tmp_path, first, on_result=stop_after(count), concurrency=2)
    results = go_on(tmp_path, second)
    assert outputs(results) == [f"sorted {letter}" for letter in LETTERS]
    # At most the two that were in flight when it stopped were asked twice.
    assert 12 <= first.asked + second.asked <= 14
    assert second.asked <= 12 - count
    third = Script(sorts)
    assert outputs(go_on(tmp_path, third)) == outputs(results)
    assert third.asked == 0


def test_items_are_known_by_what_is_asked_not_by_their_place(tmp_path):
    go_on(tmp_path, Script(sorts), LETTERS[:6])
    model = Script(sorts)
    results = go_on(tmp_path, model, [*reversed(LETTERS), "letter 1"])
    assert outputs(results) == [f"sorted {letter}" for letter in (*reversed(LETTERS), "letter 1")]
    # Six that are new, and one that is there a second time.
    assert model.asked == 7


def test_another_agent_is_asked_about_the_same_items(tmp_path):
    go_on(tmp_path, Script(sorts), ["a"])
    other, model = Agent("reader", "You read letters."), Script(sorts)
    where = f"sqlite:///{tmp_path}/runs.db"
    map_sync(other, ["a"], agents=[CLERK, other], model=model, journal=where, run_id="sort")
    assert model.asked == 1


def test_an_item_may_be_known_by_a_key(tmp_path):
    def keyed(texts, model):
        return go_on(tmp_path, model, texts, key=lambda item: item[0])

    keyed(["a first"], Script(sorts))
    model = Script(sorts)
    assert outputs(keyed(["b", "a second"], model)) == ["sorted b", "sorted a first"]
    assert model.asked == 1


@pytest.mark.parametrize("options", [{}, {"key": lambda item: item}], ids=["by its text", "by a key"])
def test_a_text_that_is_no_utf8_is_asked_once(tmp_path, options):
    """As a file is read with `errors="surrogateescape"`."""
    text = b"caf\xe9".decode("utf-8", "surrogateescape")
    first, second = Script(sorts), Script(sorts)
    (one,) = go_on(tmp_path, first, [text], **options)
    (other,) = go_on(tmp_path, second, [text], **options)
    assert one.output == other.output == "sorted caf\ufffd"
    assert (first.asked, second.asked) == (1, 0)


def test_what_failed_or_had_no_budget_is_asked_again(tmp_path):
    def fails(request):
        raise ModelError("validation", "not today")

    assert outcomes(go_on(tmp_path, Script(fails), ["a"])) == ["failed"]
    assert outcomes(go_on(tmp_path, Script(sorts), ["a"])) == ["completed"]


def test_what_had_no_budget_is_asked_with_a_larger_one(tmp_path):
    before = go_on(tmp_path, Script(sorts), run_limits=RunLimits(tokens=6_000))
    done = outcomes(before).count("completed")
    assert done < 12
    model = Script(sorts)
    after = go_on(tmp_path, model, run_limits=RunLimits(tokens=60_000))
    assert outcomes(after) == ["completed"] * 12
    assert model.asked == 12 - done


def test_one_that_was_in_flight_goes_on(tmp_path):
    """Its request is there already: it is not made a second time."""

    async def playing():
        journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
        begun = asyncio.Event()

        async def begins(request):
            begun.set()
            await asyncio.Event().wait()

        options = {"journal": journal, "run_id": "r"}
        first = asyncio.ensure_future(antiphon.map(CLERK, ["a"], model=Script([begins]), **options))
        await begun.wait()
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        (result,) = await antiphon.map(CLERK, ["a"], model=Script(sorts), **options)
        await check_run(journal, "r")
        await journal.close()
        return result

    result = asyncio.run(playing())
    assert (result.output, result.call_id) == ("sorted a", "0/1.c1")


def test_what_has_ended_in_a_run_is_listed_with_its_thread():
    async def playing():
        journal = open_journal()
        await antiphon.map(CLERK, LETTERS, model=Script(sorts), journal=journal, run_id="r")
        async with antiphon.open_run([CLERK], model=Script(sorts), journal=journal, run_id="r") as run:
            return [each async for each in run.results()]

    results = asyncio.run(playing())
    assert {each.output for each in results} == {f"sorted {letter}" for letter in LETTERS}
    assert all(each.task_id.startswith("clerk:") for each in results)
    assert all(each.messages[0].content in LETTERS for each in results)


# -- what is refused -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("items", "options", "said"),
    [
        ("a text", {}, "takes a list of items, or an iterator; got 'a text'"),
        ({"a": 1}, {}, "takes a list of items, or an iterator; got"),
        (7, {}, "takes a list of items, or an iterator; got 7"),
        (["a"], {"concurrency": 0}, "a whole number from 1 on; got 0"),
        (["a"], {"concurrency": True}, "a whole number from 1 on; got True"),
        ([object()], {}, "Item 0 of map is no text"),
        (["a", b"\xff"], {"message": lambda item: item}, "for item 1; it takes a text"),
        (["a"], {"key": lambda item: ""}, "returned '' for item 0; a key is a text"),
        (["a", "b"], {"key": lambda item: "one"}, "'one' for item 1 and for one before it"),
    ],
)
def test_what_cannot_be_asked_is_named(items, options, said):
    with pytest.raises(UserError, match=said.replace("(", r"\(")):
        map_sync(CLERK, items, model=Script(sorts), **options)


def test_an_agent_that_goes_on_with_its_conversation_is_refused():
    with pytest.raises(UserError, match="about each item anew"):
        map_sync(Agent("clerk", context="continue"), ["a"], model=Script(sorts))
    with pytest.raises(UnknownName, match="clark"):
        map_sync("clark", ["a"], agents=[CLERK], model=Script(sorts))


# -- the bar -------------------------------------------------------------------------------------


def test_a_bar_is_drawn_on_standard_error_for_those_who_ask(capsys):
    map_sync(CLERK, LETTERS, model=Script(sorts))
    assert capsys.readouterr() == ("", "")
    map_sync(CLERK, LETTERS, model=Script(sorts), progress=True, run_limits=RunLimits(tokens=6_000))
    out, err = capsys.readouterr()
    assert out == ""
    assert "12/12" in err
    assert "not completed, " in err
    assert "000 tokens" in err
