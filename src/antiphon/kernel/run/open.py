"""Opening a run: a new one, or one that a journal holds; and cancelling one that nobody drives."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Literal

import msgspec

from antiphon.errors import AgentsMissing, ConfigError, RunIsClosed, UnknownName, UserError
from antiphon.journal import ONE_SHOT, Journal, open_journal
from antiphon.journal.listing import NO_LABELS, Labels
from antiphon.journal.port import Lease
from antiphon.kernel.facts import summary
from antiphon.kernel.facts.events import CancelRequested, Event, RunResumed, RunStarted
from antiphon.kernel.facts.options import Options
from antiphon.kernel.facts.records import ActivationIndex
from antiphon.kernel.facts.state import RunState
from antiphon.kernel.rules.next import Emit
from antiphon.kernel.rules.team.compile import make_team
from antiphon.kernel.rules.team.compiled import CompiledTeam, ModelOption
from antiphon.kernel.rules.team.differences import differences
from antiphon.kernel.rules.team.manifest import manifest_of
from antiphon.kernel.run.clock import STEADY, Clock, SystemClock
from antiphon.kernel.run.rows import fold
from antiphon.kernel.run.run import Run
from antiphon.kernel.run.runtime import Runtime
from antiphon.kernel.run.snapshots.keeping import EVERY, LatestState, SnapshotKeeper, latest_state
from antiphon.kernel.run.tools.readers import readers
from antiphon.kernel.run.toolsets.uses import ToolsetUses
from antiphon.values.agent import Agent, AnyAgent, EndpointOptions, RetryPolicy, agents_of
from antiphon.values.codec import clean_text, encode_shallow, encode_value
from antiphon.values.fields import check_fields, fit, shown
from antiphon.values.limits import DEFAULTS, OUTPUTS, Limits, OutputLimits, RunLimits
from antiphon.values.message import new_id
from antiphon.values.model import Model
from antiphon.values.policy import OPEN, Policy, Preset, StandingRule
from antiphon.values.result import Difference
from antiphon.values.tool import ToolContext


@asynccontextmanager
async def open_run(
    agents: Iterable[AnyAgent] = (), *,
    journal: Journal | str | None = None, run_id: str | None = None, create: bool = False,
    model: str | Model | None = None, context_windows: Mapping[str, int] | None = None,
    limits: Limits | None = None, run_limits: RunLimits | None = None, policy: Policy | Preset | None = None,
    interactive: bool = True, background: bool = False,
    extra_instructions: str | Mapping[str, str] = "", extra_scope: Literal["entry", "all"] = "entry",
    disabled_tools: Iterable[str] = (), output_limits: OutputLimits | None = None,
    endpoints: Mapping[str, EndpointOptions] | None = None, deps: Any = None,
    dependency_overrides: Mapping[str, Callable[[ToolContext], Any]] | None = None,
    data: Any = None, labels: Labels = NO_LABELS, rules: Iterable[StandingRule] = (),
    renamed: Mapping[str, str] | None = None, missing: Literal["rest", "drop", "refuse"] = "rest",
    clock: Clock | None = None, env: Mapping[str, str] | None = None,
) -> AsyncIterator[Run]:  # fmt: skip
    """Open a new run; or with `run_id` one that the journal holds, and go on with it as it was started.

    agents: the team, or what stands for one, such as a LoopAgent. journal: a Journal, `sqlite:///path`, or
    None for memory (ANTIPHON_HOME makes it durable). model: for every agent, instead of its own. limits: of
    each request; run_limits: of all, and a run that is there takes new ones. interactive: somebody answers.
    background: agents may call and go on. extra_instructions: added to the prompt of the agents that the user
    asks, or of `all`; a mapping has a text for each it names. deps: handed to tools. dependency_overrides:
    what `ctx.resolve` makes instead, by dependency id. data: JSON kept with the run. labels: project, owner
    and team of a new run, for lists. rules: kept beside the runs, in force in this one until it is opened
    again. create: start it under `run_id` if the journal has none. context_windows: tokens that models take,
    by name. endpoints: how models from strings are asked (`EndpointOptions`), by provider, model string or
    `*`. output_limits: tool results shown to a model. policy: rules on tools, or the name of a preset; of a
    run that is there beside its first one. renamed: new names of its agents, by their old ones. missing: what
    becomes of those at rest that the team lacks: they stay so, are forgotten (`drop`), or it is refused.
    """
    options = _options(
        limits, policy, interactive, background, disabled_tools, output_limits, extra_instructions,
        extra_scope, run_limits, model,
    )  # fmt: skip
    roster = _Roster(agents, model, env, context_windows or {}, endpoints)
    store, owned, kept = _journal(journal, os.environ if env is None else env)
    standing = fit(_names(rules), tuple[StandingRule, ...], "open_run(rules=...)") if rules else ()
    try:
        await roster.open(options)
        lease, (state, cast, _), snapshots = await _reopen(store, run_id, create, labels, kept)
        runtime = Runtime(
            store, lease, roster.known_team, state, cast, clock or system_clock(state.at), deps,
            dependency_overrides, roster.toolsets, snapshots,
        )  # fmt: skip
        # A process can die between its claim and its first record: then nothing was started yet.
        try:
            first: RunStarted | RunResumed = RunStarted(lease.run_id, options, data, rules=standing)
            if lease.seq or renamed or missing != "rest":
                again = _again(lease, state, options, options.policy if policy else None, standing)
                again = _resumed(state, cast, lease.seq, runtime.team.members, again, renamed or {}, missing)
                first = again if lease.seq else first
            runtime.start(_as_read(first))
            if kept:
                runtime.open_commands()
            yield Run(runtime, store)
        finally:
            await runtime.leave(_summary(runtime) if kept else b"")
    finally:
        await roster.close()
        if owned:
            await store.close()


def _as_read(first: RunStarted | RunResumed) -> RunStarted | RunResumed:
    """The first event of an ownership as it will be read. Raises UserError for one that JSON cannot hold."""
    if isinstance(first, RunStarted) and first.data is None:
        # Its id and its options were checked, and made what they are read as.
        return first
    try:
        encode_first = encode_value if getattr(first, "data", None) is None else encode_shallow
        found: RunStarted | RunResumed = _read_first(encode_first(first))
        return found
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"Not started: options and data must be what JSON can hold: {error}") from error


_read_first = msgspec.json.Decoder(RunStarted | RunResumed).decode


def _again(
    lease: Lease, run: RunState, given: Options, policy: Policy | None, rules: tuple[StandingRule, ...]
) -> RunResumed:
    """A run that came from elsewhere is guarded, unless somebody here says what it may do."""
    guarded = Policy("guarded") if lease.imported and policy is None else policy
    imported = lease.imported and not run.owner.imported
    limits = _other_limits(run, given.run_limits) if lease.seq else None
    return RunResumed(given.interactive, policy=guarded, imported=imported, run_limits=limits, rules=rules)


def _other_limits(run: RunState, given: RunLimits | None) -> RunLimits | None:
    """What all requests of a run may use from now on, if that is something else: of each limit the new one.

    Raises UserError for limits of a run that was started without.
    """
    names = () if given is None else given.__struct_fields__
    named = {name: limit for name in names if (limit := getattr(given, name)) is not None}
    if named.keys() <= {"on_breach"}:
        return None
    known = run.options.run_limits
    if known is None:
        raise UserError(
            f"Run {run.run_id} was started without run_limits, and so has not counted what they limit. Start "
            "the next one with them, or give each request its limits: post(..., limits=Limits(...))"
        )
    limits = msgspec.structs.replace(known, **named)
    return limits if limits != known else None


def _resumed(
    run: RunState, cast: ActivationIndex, seq: int, known: Collection[str], again: RunResumed,
    renamed: Mapping[str, str], missing: str,
) -> RunResumed:  # fmt: skip
    """The first event of a run that is opened again, perhaps with another team that `known` names.

    Raises UnknownName, UserError, AgentsMissing: names that nobody has, or that two would have, and agents
    that are missing where that is refused.
    """
    if missing not in ("rest", "drop", "refuse"):
        raise UserError(f"open_run(missing=...) is 'rest', 'drop' or 'refuse'; got {missing!r}")
    present = {each.agent for each in run.activations.values() if each.id}
    for old, new in renamed.items():
        if old not in present:
            raise UnknownName("agent of the run in renamed", old, present)
        if new not in known:
            raise UnknownName("agent of the team in renamed", new, known)
        if new in present or list(renamed.values()).count(new) > 1:
            raise UserError(f"{old} cannot become {new}: another agent of the run has that name")
    gone = sorted(present - set(known) - renamed.keys())
    if gone and missing == "refuse":
        raise AgentsMissing(run.run_id, gone)
    dropped = tuple(gone) if missing == "drop" else ()
    resumed = msgspec.structs.replace(again, renamed=dict(renamed), dropped=dropped)
    cast.learn(resumed, seq + 1)
    return resumed


_ARGUMENTS = {
    "extra": "extra_instructions", "extra_for": "extra_instructions",
    "disabled": "disabled_tools", "outputs": "output_limits",
}  # fmt: skip
"""What options are called that a run is opened with."""


def _names(names: Any) -> Any:
    # A text is a list of texts, one for each letter: it stays one, and is refused.
    return tuple(names) if isinstance(names, Iterable) and not isinstance(names, str) else names


def _options(
    limits: Limits | None, policy: Policy | Preset | None, interactive: bool, background: bool,
    disabled: Iterable[str], outputs: OutputLimits | None, extra: str | Mapping[str, str],
    scope: Literal["entry", "all"], run_limits: RunLimits | None,
    model: str | Model | None,
) -> Options:  # fmt: skip
    """What a run is opened with, checked."""
    found = Options(
        DEFAULTS if limits is None else limits,
        OPEN,
        interactive,
        background,
        extra_scope=scope,
        disabled=_names(disabled),
        outputs=OUTPUTS if outputs is None else outputs,
        run_limits=run_limits,
        model=clean_text(model) if isinstance(model, str) else "",
    )
    told: dict[str, Any] = (
        {"extra_for": tuple(extra.items())} if isinstance(extra, Mapping) else {"extra": extra}
    )
    if policy is not None:
        told["policy"] = Policy(policy) if isinstance(policy, str) else policy
    found = msgspec.structs.replace(found, **told)
    check_fields(found, "open_run", _ARGUMENTS)
    return found


def _run_id(given: str) -> str:
    kept: str = fit(given, str | None, "open_run(run_id=...)")
    if kept != given or "\0" in kept:
        raise UserError(f"open_run(run_id=...) takes a text of whole characters; got {shown(given)}")
    return kept


async def _reopen(
    store: Journal, run_id: str | None, create: bool = False, labels: Labels = NO_LABELS, kept: bool = True
) -> tuple[Lease, LatestState, SnapshotKeeper]:
    """Claim a stored run, without an id a new one, and fold it; the claim is given back if that fails."""
    run_id, create = _run_id(run_id) if run_id else new_id(), create or run_id is None
    lease = await store.claim(run_id, create=create, labels=labels)
    found = LatestState(RunState(), ActivationIndex())
    try:
        if lease.seq:
            found = await latest_state(store, run_id)
        if found.state.closed:
            raise RunIsClosed(run_id)
    except BaseException:
        await store.release(lease)
        raise
    if not kept:
        return lease, found, SnapshotKeeper(store, lease)
    return lease, found, SnapshotKeeper(store, lease, found, found.kept, found.kept + EVERY)


def system_clock(not_before: float = 0.0, steady: Callable[[], float] = STEADY) -> SystemClock:
    """The machine's clock, looked at once: from then on setting it neither stretches nor shortens a limit.

    not_before: the time of the last record; where the machine's clock says less, time goes on from there.
    """
    anchor = max(time.time(), not_before) - steady()
    # Without a call of Python's: every record asks for the time.
    return SystemClock(map(anchor.__add__, iter(steady, None)).__next__)


async def cancel_run(journal: Journal, run_id: str, reason: str = "") -> None:
    """Cancel every request of a run that nobody drives, and close it; its agents are not needed.

    Raises RunInUse when somebody drives it (post a `command.Cancel` then), UnknownName, UserError when
    it is closed.
    """
    lease, (state, cast, _), snapshots = await _reopen(journal, run_id)
    team = CompiledTeam({}, {}, False)
    runtime = Runtime(
        journal, lease, lambda _: team, state, cast, system_clock(state.at), None, snapshots=snapshots
    )
    try:
        # In one append: nothing that was in flight is taken up again in between.
        first: RunStarted | RunResumed = RunResumed() if lease.seq else RunStarted(run_id)
        runtime.record(partial(_resumed_to_cancel, first, reason))
        await runtime.close(reason)
    finally:
        await runtime.leave(_summary(runtime))


async def compare_team(
    journal: Journal, run_id: str, agents: Iterable[AnyAgent], *, model: str | Model | None = None,
    endpoints: Mapping[str, EndpointOptions] | None = None, env: Mapping[str, str] | None = None,
) -> list[Difference] | None:  # fmt: skip
    """What opening a stored run with these agents would meet, against its last team; nothing is changed.

    None when the run never had a team. Raises UnknownName, JournalCorrupt; UserError for a team that
    cannot be.
    """
    manifests: list[str] = []

    def note(event: Event, seq: int) -> None:
        if isinstance(event, RunStarted | RunResumed) and event.manifest:
            manifests.append(event.manifest)

    state, roster = await fold(journal, run_id, note), _Roster(tuple(agents), model, env, {}, endpoints)
    try:
        given = manifest_of(roster.known_team(state.options)).data
    finally:
        await roster.close()
    if not manifests:
        return None
    known = await journal.blob(run_id, manifests[-1])
    return differences(state, msgspec.json.decode(known), msgspec.json.decode(given))


def _resumed_to_cancel(first: Event, reason: str, emit: Emit) -> None:
    emit(first)
    emit(CancelRequested("", clean_text(reason)))


def _summary(runtime: Runtime) -> bytes:
    return summary.encode(summary.summary_of(runtime.state, runtime.seq))


def _journal(journal: Journal | str | None, env: Mapping[str, str]) -> tuple[Journal, bool, bool]:
    """The journal, whether it was opened here, and whether anybody can come to it when this run is left."""
    if journal in (None, ONE_SHOT) and env.get("ANTIPHON_HOME"):
        journal = "sqlite:///" + os.path.join(env["ANTIPHON_HOME"], "antiphon.db")
    if journal is None or isinstance(journal, str):
        store = open_journal(journal)
        return store, True, store.durability != "none"
    return journal, False, True


def _option(model: Model, windows: Mapping[str, int], env: Mapping[str, str]) -> ModelOption:
    """What is known of a model: what the caller says of its window, its own word, else the catalog's."""
    # Not at import: the first lookup reads the catalog, and a model in this process needs none.
    from antiphon.models.rates import rates_of

    name: Any = model.name
    if type(name) is not str or not name.isascii():
        name = fit(name, str, "The name of a model")
    known = rates_of(model, env)
    window = windows.get(name) or known.window
    if window is not None and type(window) is not int:
        window = fit(window, int | None, f"The context window of {name}")
    prices = known.max_input_price, known.max_output_price
    said: Any = getattr(model, "retry", None)
    retry = said if isinstance(said, RetryPolicy) else None
    return ModelOption(model, window, *prices, known.bill, known.cached_share, name=name, retry=retry)


class _Roster:
    """Agents, and the models they name, shared with other runs and let go of with this one."""

    def __init__(
        self,
        agents: Iterable[AnyAgent],
        model: str | Model | None,
        env: Mapping[str, str] | None,
        windows: Mapping[str, int],
        endpoints: Mapping[str, EndpointOptions] | None = None,
    ) -> None:
        given: Any = agents
        team = tuple(given) if isinstance(given, Iterable) else ()
        if not all(isinstance(each, Agent) for each in team):
            team = tuple(each for one in team for each in agents_of(one))
        if not isinstance(given, Iterable) or not all(isinstance(each, Agent) for each in team):
            raise UserError(f"open_run(agents=...) takes a list, each item an Agent; got {shown(agents)}")
        self.agents, self._model, self._env, self._windows = team, model, env, windows
        self._models: dict[str | int, Model] = {}
        self._adapters: dict[int, Model] = {}
        self._endpoints = endpoints
        self.toolsets: ToolsetUses | None = None
        self._asked: tuple[str, ...] | None = None
        self._team: tuple[Options, CompiledTeam] | None = None

    async def open(self, options: Options) -> None:
        """Compile the team and have the providers of its toolsets opened. Raises ToolsetUnavailable."""
        if toolsets := self.team(options).toolsets:
            self.toolsets = ToolsetUses(toolsets)
            await self.toolsets.open(self.agents)

    def team(self, options: Options) -> CompiledTeam:
        """Compile the team, once for the same options."""
        if self._team is None and self._endpoints is not None:
            self._check_endpoints(options, self._endpoints)
        if self._team is None or self._team[0] != options:
            models_of = partial(self._models_of, options)
            self._team = options, make_team(self.agents, options, models_of, readers)
        return self._team[1]

    def known_team(self, options: Options) -> CompiledTeam:
        """The team for the options that a stored run was started with, but for agents that are gone."""
        names = {agent.name for agent in self.agents}
        limits, extra = options.limits, tuple(each for each in options.extra_for if each[0] in names)
        if limits.on_breach == "handoff" and limits.breach_target not in names:
            limits = msgspec.structs.replace(limits, on_breach="stop")
        return self.team(msgspec.structs.replace(options, limits=limits, extra_for=extra))

    def _models_of(self, options: Options, agent: Agent) -> tuple[ModelOption, ...]:
        first = self._model if self._model is not None else agent.model
        try:
            models = [self._resolve(options, spec) for spec in (first, *agent.asking.fallback_models)]
        except UserError:
            if first is None and (agent.hooks.plan_turn is not None or agent.hooks.act is not None):
                # It may never ask one; if it does, it is told so then.
                return ()
            raise
        choices = [self._option(model) for model in models]
        for limits in (agent.limits, options.limits):
            if limits is not None and limits.on_breach == "degrade":
                spare = self._option(self._resolve(options, limits.breach_target))
                choices.append(msgspec.structs.replace(spare, spare=limits.breach_target))
        return tuple(choices)

    def _option(self, model: Model) -> ModelOption:
        env = os.environ if self._env is None else self._env
        found = _option(model, self._windows, env)
        adapter = self._adapters.get(id(model))
        return found if adapter is None else msgspec.structs.replace(found, adapter=adapter)

    def _resolve(self, options: Options, spec: str | Model | None) -> Model:
        if spec is not None and not isinstance(spec, str) and not hasattr(spec, "model_string"):
            return spec
        key = spec if isinstance(spec, str) else id(spec)
        if key not in self._models:
            # Only a model string needs these, and they are slow to import.
            from antiphon.config.dotenv import environment
            from antiphon.models.endpoints.shared import share

            if self._env is None:
                self._env = environment()
            made, adapter = share(spec, self._env, self._endpoints or {}, self._strings(options))
            if made is spec:
                return made
            self._models[key] = made
            if adapter is not made:
                self._adapters[id(made)] = adapter
        return self._models[key]

    def _check_endpoints(self, options: Options, given: Mapping[str, EndpointOptions]) -> None:
        """Refuse endpoints that cannot be, and tell of those that nobody asks."""
        from antiphon.models.endpoints.choice import checked, unused

        strings = self._strings(options)
        self._endpoints = checked(given, strings, "open_run(endpoints=...)")
        if idle := unused(self._endpoints, strings):
            asked = ", ".join(strings) or "model objects only, which have no endpoint"
            told = f"endpoints: nobody asks {', '.join(idle)}; the agents ask {asked}"
            warnings.warn(told, stacklevel=2)

    def _strings(self, options: Options) -> tuple[str, ...]:
        """The model strings that the agents may ask."""
        if self._asked is None:
            from antiphon.config.dotenv import environment
            from antiphon.models import default_model

            specs: list[str | Model | None] = []
            for agent in self.agents:
                specs += [agent.model if self._model is None else self._model, *agent.asking.fallback_models]
                limits = [each for each in (agent.limits, options.limits) if each is not None]
                specs += [each.breach_target for each in limits if each.on_breach == "degrade"]
            if None in specs:
                self._env = environment() if self._env is None else self._env
                with suppress(ConfigError):
                    specs.append(default_model(self._env))
            strings = (
                spec if isinstance(spec, str) else getattr(spec, "model_string", None) for spec in specs
            )
            self._asked = tuple(dict.fromkeys(each for each in strings if isinstance(each, str)))
        return self._asked

    async def close(self) -> None:
        """Let go of the toolsets, and of the models that were made here."""
        if self.toolsets is not None:
            self.toolsets.close()
        models, self._models = self._models, {}
        for model in models.values():
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()
