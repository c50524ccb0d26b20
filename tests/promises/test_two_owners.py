"""Whatever owners, pauses, clocks and crashes do: nothing acts twice, or in a run that another has."""

import random
from collections import Counter
from contextlib import suppress

import pytest

from antiphon import Agent, ToolContext, tool
from antiphon.journal.owner import HeldLeases
from antiphon.kernel.run.rows import read
from antiphon.kernel.run.tools.start_token import LeaseStale, NotBegun, StartToken
from antiphon.models.script import Script, call
from antiphon.testing.invariants import check_run
from tests.promises.two_owners import REQUEST, RUN, Machine, Owner, held_threads

HOUR = 3_600.0
PAUSES = (0.5, 4.0, 9.0, 14.0, 15.0, 16.0, 31.0, 600.0)
"""Seconds that pass at once: around the 15 s after which a silent owner is replaced, and far beyond."""
STEPS = (-5 * HOUR, -600.0, -60.0, 60.0, 600.0, 5 * HOUR)
"""Seconds by which somebody sets a wall clock."""


@tool
async def pay(ctx: ToolContext, amount: int) -> str:
    "Pay at once."
    ctx.deps.begins_to_act(ctx, "pay")
    return "paid"


@tool(timeout=40.0)
async def wire(ctx: ToolContext, amount: int) -> str:
    "Wire money, which takes a while."
    ctx.deps.begins_to_act(ctx, "wire")
    await ctx.deps.takes(amount)
    return "wired"


@tool
def charge(ctx: ToolContext, amount: int) -> str:
    "Charge a card, in a thread."
    ctx.deps.begins_to_act(ctx, "charge")
    ctx.deps.hold_here()
    return "charged"


@tool(timeout=10.0)
def ship(ctx: ToolContext, amount: int) -> str:
    "Ship something, in a thread, soon or never."
    ctx.deps.begins_to_act(ctx, "ship")
    ctx.deps.hold_here()
    return "shipped"


@tool(effect="idempotent")
def rate(ctx: ToolContext, amount: int) -> str:
    "Set a rate, in a thread, as often as it takes."
    ctx.deps.begins_to_act(ctx, "rate")
    ctx.deps.hold_here()
    return "rated"


@tool(effect="read")
def look(ctx: ToolContext, amount: int) -> str:
    "Look something up, in a thread."
    ctx.deps.hold_here()
    return "seen"


TOOLS = [pay, wire, charge, ship, rate, look]


def planned(dice):
    """What the model asks for: a few turns of a few calls."""
    names = ["pay", "wire", "charge", "charge", "ship", "rate", "look"]
    return [
        [call(dice.choice(names), amount=dice.randint(1, 30)) for _ in range(dice.randint(1, 5))]
        for _ in range(dice.randint(1, 3))
    ]


class Play:
    """One script of events around one run, drawn from a seed."""

    def __init__(self, seed, folder):
        self.dice = random.Random(seed)
        self.machine = Machine(folder / f"{seed}.db")
        order = self.dice.choice(["parallel", "parallel", "sequential"])
        model = Script([*planned(self.dice), "done"], by="turn")
        self._agent = Agent("payer", model=model, tools=TOOLS, tool_execution=order)
        for name in "AB" if self.dice.random() < 0.75 else "ABC":
            self._join(name)

    def _join(self, name):
        return Owner(self.machine, name, self._agent)

    def go(self):
        """Play it to its end: afterwards whoever owned the run has gone on, and its request has ended."""
        dice, machine = self.dice, self.machine
        first = machine.owners[0]
        if dice.random() < 0.7:
            first.begin_gate.shut()
        first.open()
        first.go_on(answers=dice.randint(2, 14))
        for _ in range(dice.randint(6, 16)):
            living = [each for each in machine.owners if not each.dead]
            what = dice.choices(list(EVENTS), list(EVENTS.values()))[0]
            what(self, dice.choice(living))
        self._finish()

    # What happens to an owner.

    def pass_time(self, owner):
        self.machine.wait(self.dice.choice(PAUSES))

    def go_on_and_stop(self, owner):
        """It stands still in the middle of something, its threads with it or without."""
        owner.stands_still = False
        owner.go_on(answers=self.dice.randint(1, 8))
        self.stop(owner)

    def stop(self, owner):
        owner.stands_still = True
        if self.dice.random() < 0.7:
            owner.begin_gate.shut()

    def go_on(self, owner):
        """It goes on, its threads first or its event loop."""
        if self.dice.random() < 0.5:
            self.let_threads_begin(owner)
        owner.stands_still = False
        owner.go_on()
        self.let_threads_begin(owner)

    def let_threads_begin(self, owner):
        owner.begin_gate.open()
        owner.await_threads()

    def let_threads_return(self, owner):
        owner.act_gate.open()
        owner.await_threads()

    def hold_threads(self, owner):
        self.dice.choice([owner.begin_gate, owner.act_gate]).shut()

    def open(self, owner):
        owner.open()
        if not owner.stands_still:
            owner.go_on()

    def take_over(self, owner):
        """Whoever has the run stands still for so long that another gets it."""
        holder = self.machine.holder
        others = [each for each in self.machine.owners if each is not holder and not each.dead]
        if holder is None or not others or holder.dead:
            return
        self.stop(holder)
        self.machine.wait(self.dice.choice(PAUSES[3:]))
        other = self.dice.choice(others)
        other.stands_still = False
        other.open()
        other.go_on(answers=self.dice.choice([None, 3, 6]))

    def set_clock(self, owner):
        owner.wall_ahead += self.dice.choice(STEPS)

    def cancel(self, owner):
        if owner.run is not None and not owner.stands_still:
            opened = [effect for view in owner.run.activations() for effect in view.in_flight]
            owner.cancel(self.dice.choice([REQUEST, *opened * 3]))
            owner.go_on()

    def leave(self, owner):
        owner.leave()
        if not owner.stands_still:
            owner.go_on()

    def kill(self, owner):
        """Its process dies, and another is started in its place."""
        if len(self.machine.owners) < 4:
            self.machine.kill(owner)
            self.open(self._join("ABCDEFG"[len(self.machine.owners)]))

    def _finish(self):
        """Everybody goes on, in any order, until the request has ended."""
        machine = self.machine
        self.dice.shuffle(machine.owners)
        living = [each for each in machine.owners if not each.dead]
        for owner in living:
            owner.act_gate.open()
            self.go_on(owner)
        for _ in range(20):
            if machine.ended:
                return
            for owner in living:
                owner.open()
            machine.wait(16.0)
        raise AssertionError("the run cannot be finished")


EVENTS = {
    Play.pass_time: 4, Play.go_on_and_stop: 4, Play.stop: 2, Play.go_on: 4, Play.let_threads_begin: 2,
    Play.let_threads_return: 1, Play.hold_threads: 2, Play.open: 4, Play.take_over: 4, Play.set_clock: 2,
    Play.cancel: 2, Play.leave: 1, Play.kill: 1,
}  # fmt: skip


async def stored(journal):
    """The records of the run, audited."""
    await check_run(journal, RUN, reading={"look"})
    return await read(journal, RUN)


def judge(acts, records):
    """What must hold of every play: what began, against what is on record."""
    late = [act for act in acts if act.late]
    assert not late, f"began although it must not: {late}"
    began = Counter(act.effect_id for act in acts if act.tool != "rate")
    assert all(count == 1 for count in began.values()), f"began twice: {began}"
    keys = {(act.effect_id, act.key) for act in acts}
    assert len(keys) == len({effect_id for effect_id, _ in keys}), f"one effect has two keys: {acts}"

    starts = {each.event.id: each.event.detail for each in records if each.type == "EffectStarted"}
    ends = {each.event.id: each.event for each in records if each.type == "EffectFinished"}
    for effect_id, name in {act.effect_id: act.tool for act in acts}.items():
        assert starts[effect_id].name == name
        end = ends[effect_id]
        assert end.outcome in ("completed", "unknown", "cancelled"), f"{effect_id} began and is {end}"
    for effect_id, detail in starts.items():
        if getattr(detail, "name", "look") != "look" and ends[effect_id].outcome == "completed":
            assert effect_id in began or detail.name == "rate", f"{effect_id} is completed and never began"


def play(seed, folder, monkeypatch):
    """Play one seed and judge it."""
    with held_threads(monkeypatch):
        found = Play(seed, folder)
        try:
            found.go()
            last = found.machine.owners[0]
            last.loop.hear_at_once()
            records = last.loop.run_until_complete(stored(last.journal))
        finally:
            for owner in found.machine.owners:
                owner.end()
    judge(found.machine.acts, records)
    return found.machine


def play_all(seeds, folder, monkeypatch):
    for seed in seeds:
        try:
            play(seed, folder, monkeypatch)
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


@pytest.mark.unwatched  # check_run is the audit here
@pytest.mark.parametrize(
    "seeds",
    [
        range(20),
        pytest.param(range(20, 60), marks=pytest.mark.slow),
        pytest.param(range(60, 2_000), marks=pytest.mark.deep),
    ],
    ids=lambda seeds: f"{seeds.start}-{seeds.stop - 1}",
)
def test_nothing_acts_twice_or_late(seeds, tmp_path, monkeypatch):
    play_all(seeds, tmp_path, monkeypatch)


def without_freshness(redeem):
    def redeemed(token):
        with suppress(LeaseStale):
            redeem(token)
        token.begun = True

    return redeemed


def without_right(redeem):
    def redeemed(token):
        with suppress(NotBegun):
            redeem(token)
        token.begun = True

    return redeemed


def without_silence(heard):
    def heard_anew(leases, began):
        # What it is sure of is kept, however long nobody heard of it.
        known = dict(leases._epochs)
        heard(leases, began)
        leases._epochs = known

    return heard_anew


@pytest.mark.slow
@pytest.mark.unwatched  # check_run is the audit here
@pytest.mark.parametrize(
    ("of", "name", "broken"),
    [
        pytest.param(StartToken, "redeem", without_freshness, id="another owner may have the run"),
        pytest.param(StartToken, "redeem", without_right, id="its effect may be over"),
        pytest.param(HeldLeases, "heard", without_silence, id="a late heartbeat vouches for every lease"),
    ],
)
def test_control_without_one_check_the_same_seeds_find_an_act_that_came_too_late(
    of, name, broken, tmp_path, monkeypatch
):
    monkeypatch.setattr(of, name, broken(getattr(of, name)))
    with pytest.raises(AssertionError, match="began although it must not"):
        play_all(range(100), tmp_path, monkeypatch)
