"""After a real SIGKILL: wherever the process dies, all that is sent afterwards is valid."""

import pytest
from msgspec.structs import replace

from antiphon.testing.crash import Scenario, enumerate_crashes
from tests.promises.crash_scenarios import LOOP
from tests.promises.test_random_conversations import anthropic_shape


class Strict:
    """A model that ends the process over a request that its provider would refuse."""

    def __init__(self, model, wrong=anthropic_shape):
        self.name, self.window = model.name, getattr(model, "window", None)
        self._model, self._wrong = model, wrong

    async def complete(self, request, emit):
        try:
            self._wrong(request)
        except AssertionError as error:
            # Any other exception would be one more failed call, and asked again.
            raise SystemExit(f"{request.effect_id}: {error}") from error
        return await self._model.complete(request, emit)


def strict(scenario: Scenario, wrong=anthropic_shape) -> Scenario:
    """The scenario with every model of it checked."""

    def agents(world):
        return [
            replace(
                agent,
                asking=replace(
                    agent.asking,
                    fallback_models=tuple(Strict(each, wrong) for each in agent.asking.fallback_models),
                ),
            )
            for agent in scenario.agents(world)
        ]

    return replace(scenario, agents=agents, model=lambda: Strict(scenario.model(), wrong))


@pytest.mark.deep
@pytest.mark.parametrize("commit", ["at once", "deferred"])
def test_a_loop_that_was_killed_sends_what_is_valid(tmp_path, commit):
    report = enumerate_crashes(strict(LOOP), tmp_path, commit=commit, every=3, pairs=20)
    assert report.points >= 20
    assert report.pairs == 20
    assert not report.bad, str(report)


@pytest.mark.deep
def test_control_what_is_invalid_only_after_a_crash_is_found(tmp_path):
    def wrong(request):
        said = [each.content for each in request.messages if each.role == "tool"]
        assert not any("may or may not have taken effect" in text for text in said), "an unknown result"

    report = enumerate_crashes(strict(LOOP, wrong), tmp_path, every=2)
    assert any("an unknown result" in text for bad in report.bad for text in bad.wrong), str(report)
