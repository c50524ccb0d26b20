"""What the books charge: nano-USD from the catalog, a user's file, or the model's own word."""

import subprocess
import sys
from decimal import Decimal
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from antiphon import Agent, Limits, ModelOptions, run_sync
from antiphon.errors import ConfigError
from antiphon.models.catalog import Prices, load_catalog
from antiphon.models.rates import rates_of
from antiphon.models.script import Script
from antiphon.values.model import Reply, Usage

NOTHING = Usage()


class Named:
    def __init__(self, name, usage=NOTHING, **known):
        self.name, self.usage = name, usage
        for key, value in known.items():
            setattr(self, key, value)

    async def complete(self, request, emit):
        return Reply("done", usage=self.usage)


def test_a_known_model():
    rates = rates_of(Named("openai:gpt-4.1"), {})
    assert (rates.window, rates.max_input_price, rates.max_output_price) == (1_047_576, 2000.0, 8000.0)
    assert rates.bill(Usage(1000, 100, 500)) == 2_050_000


def test_a_dearer_tier_is_held():
    rates = rates_of(Named("anthropic:claude-sonnet-4-5"), {})
    assert rates.max_output_price == 22_500.0
    assert rates.max_input_price >= 6000.0


@pytest.mark.parametrize("name", ["script", "script:any.yaml", "local:smollm2"])
def test_what_runs_in_this_process_is_free(name):
    rates = rates_of(Named(name), {})
    assert (rates.max_input_price, rates.max_output_price, rates.bill(Usage(1000, 1000))) == (0.0, 0.0, 0)


def test_what_nobody_knows_is_unknown():
    rates = rates_of(Named("nobody-knows-me"), {})
    assert (rates.window, rates.max_input_price, rates.max_output_price, rates.bill) == (
        None,
        None,
        None,
        None,
    )


def test_the_model_s_own_word_wins():
    own = Prices(input=Decimal(1), output=Decimal(3))
    rates = rates_of(Named("openai:gpt-4.1", window=9, prices=own), {})
    assert (rates.window, rates.max_input_price, rates.bill(Usage(10, 10))) == (9, 1000.0, 40_000)
    assert rates_of(Named("nobody-knows-me", prices=own), {}).bill(Usage(1)) == 1000
    assert rates_of(Named("openai:gpt-4.1", prices=own), {}).window == 1_047_576


def test_the_user_s_file_is_respected(tmp_path):
    path = tmp_path / "models.yaml"
    path.write_text("mine:one: {context_window: 100, prices: {input: 1, output: 2}}\n")
    rates = rates_of(Named("mine:one"), {"ANTIPHON_MODELS": str(path)})
    assert (rates.window, rates.bill(Usage(10, 10))) == (100, 30_000)
    path = tmp_path / "wrong.yaml"
    path.write_text("[")
    with pytest.raises(ConfigError):
        rates_of(Named("mine:one"), {"ANTIPHON_MODELS": str(path)})


COSTLY = [spec for spec in load_catalog(env={}).models() if spec.prices.input is not None][::40]


@given(
    st.sampled_from(COSTLY),
    *[st.integers(0, 400_000) for _ in range(5)],
)
def test_no_bill_is_above_the_most_that_was_held(spec, taken, made, cached, thought, written):
    rates = rates_of(Named(f"{spec.provider}:{spec.id}"), {})
    found = rates.bill(Usage(taken, made, cached, thought, written)) if rates.bill is not None else None
    if found is not None and rates.max_input_price is not None and rates.max_output_price is not None:
        assert found <= ceil(taken * rates.max_input_price + made * rates.max_output_price)


def test_a_run_is_charged_and_held_to_its_limit():
    agent = Agent(
        "one", model=Named("openai:gpt-4.1", Usage(1000, 100)), asking=ModelOptions(max_output_tokens=100)
    )
    done = run_sync(agent, "go", limits=Limits(usd=1.0))
    assert done.outcome == "completed"
    refused = run_sync(agent, "go", limits=Limits(usd=0.000001))
    assert refused.outcome == "budget"
    unknown = run_sync(Agent("one", model=Named("nobody-knows-me")), "go", limits=Limits(usd=1.0))
    assert unknown.outcome == "budget"
    free = run_sync(Agent("one", model=Script(["done"])), "go", limits=Limits(usd=0.0))
    assert free.outcome == "completed"


def test_a_scripted_run_reads_no_catalog():
    program = (
        "import sys\nfrom antiphon import Agent, run_sync\nfrom antiphon.models.script import Script\n"
        "run_sync(Agent('one', model=Script(['done'])), 'go')\n"
        "from antiphon.models.catalog.snapshot import figures\n"
        "sys.exit(figures.cache_info().currsize or 'yaml' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
