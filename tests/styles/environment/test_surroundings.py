"""What stands around the roles: costs, subscriptions, what can be read and written."""

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from decimal import Decimal
from typing import Any

import pytest

from antiphon import UserError
from antiphon.errors import UnknownName
from antiphon.styles.environment.api import ExtEnv, UnknownAPI, mark_as_readable, mark_as_writeable
from antiphon.styles.environment.metagpt.cost import CostManager, NoMoneyException
from antiphon.styles.environment.metagpt.subscription import SubscriptionRunner

PRICES = {"priced": {"prompt": 0.01, "completion": 0.03}}

# -- costs --------------------------------------------------------------------------------------


def test_costs_add_up() -> None:
    costs = CostManager(token_costs=PRICES)
    costs.update_cost(1000, 100, "priced")
    assert costs.total_cost == 0.013
    costs.update_cost(100, 10, "priced")
    assert costs.total_cost == 0.0143
    assert costs.get_costs() == (1100, 110, 0.0143, 0.0)


def test_sums_are_exact() -> None:
    costs = CostManager(max_budget=2.1, token_costs={"m": {"prompt": 0.7, "completion": Decimal(0)}})
    for _ in range(3):
        costs.check_balance()
        costs.update_cost(1000, 0, "m")
    assert costs.total_cost == 2.1
    with pytest.raises(NoMoneyException, match=r"2\.1 USD are spent of 2\.1 USD; invest more") as raised:
        costs.check_balance()
    assert (raised.value.amount, raised.value.budget) == (2.1, 2.1)
    costs.max_budget = None
    costs.check_balance()


def test_a_model_without_a_price_is_counted_and_named() -> None:
    costs = CostManager(token_costs=PRICES)
    costs.update_cost(10, 1, "secret")
    costs.update_cost(10, 1, "secret")
    assert costs.get_costs()[:3] == (20, 2, 0.0)
    assert costs.unpriced == {"secret": 22}


def test_costs_go_on_from_what_was_spent() -> None:
    costs = CostManager(5.0, PRICES, total_budget=5.0, total_prompt_tokens=1, total_cost=4.9)
    costs.update_cost(9999, 0, "priced")
    assert costs.get_costs() == (10_000, 0, 4.99999, 5.0)


def test_what_makes_no_sense_is_refused_and_not_counted() -> None:
    costs = CostManager(token_costs={"half": {"prompt": 0.1}})
    with pytest.raises(UserError, match="half has prompt; it needs prompt and completion"):
        costs.update_cost(1, 1, "half")
    with pytest.raises(UserError, match=r"-1 \+ 0 tokens"):
        costs.update_cost(-1, 0, "half")
    assert costs.get_costs() == (0, 0, 0.0, 0.0)


# -- subscriptions ------------------------------------------------------------------------------


class Echo:
    """A role that answers with what it was told; `bad` makes it fail."""

    def __init__(self, name: str = "Echo") -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    async def run(self, with_message: str) -> str:
        if with_message == "bad":
            raise ValueError("cannot answer")
        return f"re: {with_message}"


async def saying(*texts: str) -> AsyncGenerator[str, None]:
    for text in texts:
        yield text


def test_a_callback_gets_every_answer_of_an_endless_trigger() -> None:
    async def playing() -> list[str]:
        runner, role, heard = SubscriptionRunner(), Echo(), []
        closed = False

        async def endless() -> AsyncGenerator[str, None]:
            nonlocal closed
            try:
                number = 0
                while True:
                    yield str(number)
                    number += 1
            finally:
                closed = True

        async def callback(answer: str) -> None:
            heard.append(answer)
            if len(heard) == 3:
                await runner.unsubscribe(role)
                await asyncio.sleep(0)

        await runner.subscribe(role, endless(), callback)
        await runner.run()
        assert closed
        return heard

    assert asyncio.run(playing()) == ["re: 0", "re: 1", "re: 2"]


def test_a_trigger_that_ends_is_logged_and_removed(caplog: pytest.LogCaptureFixture) -> None:
    async def playing() -> list[str]:
        runner, role, heard = SubscriptionRunner(), Echo(), []

        async def callback(answer: str) -> None:
            heard.append(answer)

        await runner.subscribe(role, saying("a", "b"), callback)
        await runner.run()
        await runner.subscribe(role, saying("c"), callback)
        await runner.run()
        return heard

    with caplog.at_level(logging.WARNING, "antiphon"):
        assert asyncio.run(playing()) == ["re: a", "re: b", "re: c"]
    assert caplog.messages == ["The subscription of Echo has ended: its trigger yields no more"] * 2


def test_triggers_do_not_wait_for_each_other() -> None:
    async def playing() -> list[str]:
        runner, heard, opened = SubscriptionRunner(), [], asyncio.Event()

        async def waiting() -> AsyncGenerator[str, None]:
            await opened.wait()
            yield "late"

        async def callback(answer: str) -> None:
            heard.append(answer)
            opened.set()

        await runner.subscribe(Echo("first"), waiting(), callback)
        await runner.subscribe(Echo("second"), saying("soon"), callback)
        await runner.run()
        return heard

    assert asyncio.run(playing()) == ["re: soon", "re: late"]


def test_an_error_is_raised_with_the_roles_name() -> None:
    async def playing() -> bool:
        runner, ended = SubscriptionRunner(), False

        async def never() -> AsyncGenerator[str, None]:
            nonlocal ended
            try:
                await asyncio.Event().wait()
                yield ""
            finally:
                ended = True

        async def callback(answer: str) -> None: ...

        ann = Echo("Ann")
        await runner.subscribe(ann, saying("bad"), callback)
        await runner.subscribe(Echo("Bob"), never(), callback)
        with pytest.raises(ValueError, match="cannot answer") as raised:
            await runner.run()
        assert raised.value.__notes__ == ["The subscription of Ann ended with this"]
        with pytest.raises(UserError, match=r"Ann is not subscribed. Subscribed: \(none\)"):
            await runner.unsubscribe(ann)
        return ended

    assert asyncio.run(playing())


def test_an_error_may_be_logged_and_the_others_go_on(caplog: pytest.LogCaptureFixture) -> None:
    async def playing() -> list[str]:
        runner, heard, failed = SubscriptionRunner(), [], asyncio.Event()

        async def raising() -> AsyncIterator[str]:
            failed.set()
            raise ValueError("no more")
            yield ""

        async def after() -> AsyncGenerator[str, None]:
            await failed.wait()
            yield "still here"

        async def callback(answer: str) -> None:
            heard.append(answer)

        await runner.subscribe(Echo("Ann"), raising(), callback)  # type: ignore[arg-type]
        await runner.subscribe(Echo("Bob"), after(), callback)
        await runner.run(raise_exception=False)
        return heard

    assert asyncio.run(playing()) == ["re: still here"]
    failures = [each for each in caplog.records if each.levelno == logging.ERROR]
    assert [each.getMessage() for each in failures] == ["The subscription of Ann has failed"]
    assert failures[0].exc_info is not None


def test_who_subscribes_while_it_runs_is_served_at_once() -> None:
    async def playing() -> list[str]:
        runner, heard = SubscriptionRunner(), []

        async def second(answer: str) -> None:
            heard.append(f"second {answer}")

        async def first(answer: str) -> None:
            heard.append(f"first {answer}")
            await runner.subscribe(Echo("late"), saying("b"), second)

        await runner.subscribe(Echo(), saying("a"), first)
        await runner.run()
        return heard

    assert asyncio.run(playing()) == ["first re: a", "second re: b"]


def test_a_role_has_one_subscription() -> None:
    async def playing() -> None:
        runner, role = SubscriptionRunner(), Echo("Ann")

        async def callback(answer: str) -> None:
            with pytest.raises(UserError, match="runs already"):
                await runner.run()

        with pytest.raises(UserError, match=r"Ann is not subscribed. Subscribed: \(none\)"):
            await runner.unsubscribe(role)
        await runner.subscribe(role, saying("a"), callback)
        with pytest.raises(UserError, match="Ann is subscribed already"):
            await runner.subscribe(role, saying("a"), callback)
        with pytest.raises(UserError, match=r"Bob is not subscribed. Subscribed: Ann"):
            await runner.unsubscribe(Echo("Bob"))
        await runner.run()
        trigger = saying("a")
        await runner.subscribe(role, trigger, callback)
        await runner.unsubscribe(role)
        await runner.run()
        assert [each async for each in trigger] == []

    asyncio.run(playing())


def test_a_role_whose_trigger_has_ended_may_subscribe_again() -> None:
    async def playing() -> list[str]:
        runner, ann, heard, ended = SubscriptionRunner(), Echo("Ann"), [], asyncio.Event()

        async def ending() -> AsyncGenerator[str, None]:
            yield "a"
            ended.set()

        async def after() -> AsyncGenerator[str, None]:
            await ended.wait()
            await runner.subscribe(ann, saying("again"), callback)
            yield "b"

        async def callback(answer: str) -> None:
            heard.append(answer)

        await runner.subscribe(ann, ending(), callback)
        await runner.subscribe(Echo("Bob"), after(), callback)
        await runner.run()
        return heard

    assert asyncio.run(playing()) == ["re: a", "re: b", "re: again"]


# -- what an environment lets be read and written -----------------------------------------------


class Adder(ExtEnv):
    """A world of one number."""

    value = 0

    @mark_as_readable
    def read_value(self) -> int:
        return self.value

    @mark_as_readable
    async def add(self, a: int, b: int) -> int:
        return a + b

    @mark_as_writeable
    def write_sum(self, a: int, b: int) -> None:
        self.value = a + b

    def destroy(self) -> None:
        self.value = -1


def call(method: Any, *args: Any, **kwargs: Any) -> Any:
    return asyncio.run(method(*args, **kwargs))


def test_write_then_read() -> None:
    env = Adder()
    assert call(env.read_from_api, "read_value") == 0
    call(env.write_thing, "write_sum", 5, 10)
    assert call(env.read_from_api, "read_value") == 15
    assert call(env.read_from_api, "add", 5, b=5) == 10
    assert env.get_all_available_apis() == ["add", "read_value"]
    assert env.get_all_available_apis("write") == ["write_sum"]
    assert Adder().value == 0


@pytest.mark.parametrize("name", ["nope", "destroy", "write_sum", "__init__"])
def test_only_what_is_marked_can_be_read(name: str) -> None:
    with pytest.raises(UnknownAPI) as raised:
        call(Adder().read_from_api, name)
    assert isinstance(raised.value, KeyError)
    assert isinstance(raised.value, UnknownName)
    assert str(raised.value) == f"Unknown read API: {name}. Known: add, read_value"


def test_reading_is_not_writing() -> None:
    with pytest.raises(KeyError, match=r"Unknown write API: add. Known: write_sum"):
        call(Adder().write_thing, "add", 1, 2)


def test_arguments_that_do_not_fit_are_refused() -> None:
    with pytest.raises(UserError, match=r"write_sum\(a: int, b: int\) -> None cannot be called so: .*'b'"):
        call(Adder().write_thing, "write_sum", 5)


def test_a_method_that_replaces_another_says_so_itself() -> None:
    class Quiet(Adder):
        def read_value(self) -> int:
            return 7

        @mark_as_writeable
        def write_sum(self, a: int, b: int) -> None:
            self.value = 1

    assert Quiet().get_all_available_apis() == ["add"]
    env = Quiet()
    call(env.write_thing, "write_sum", 5, 10)
    assert env.value == 1
