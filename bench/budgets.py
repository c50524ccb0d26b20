"""The lines of the results table: what is shown of each cell, and what it may cost."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.cell import Params


@dataclass(frozen=True)
class Line:
    """One line: a metric of a cell, its unit and its budget (None: shown only).

    cpu: the metric of the same in CPU time. bare: the metric of bare Python that it is compared to,
    the same one if empty. more: more is better. elsewhere: how the others' cell differs in its
    parameters (a peer brings its own store, bare Python has one kind of commit).
    """

    title: str
    workload: str
    params: Params
    metric: str
    unit: str
    budget: float | None = None
    cpu: str = ""
    bare: str = ""
    more: bool = False
    elsewhere: dict[str, Params] = field(default_factory=dict)


def _turns(n: int) -> Line:
    title = f"Tool turn, N = {n:,}"
    return Line(title, "W2", {"n": n}, "us_per_turn", "µs", 20, "cpu_us_per_turn")


def _calls(title: str, kind: str, params: Params, budget: float) -> Line:
    return Line(title, f"W4.{kind}", params, "us_per_agent_call", "µs", budget, "cpu_us_per_agent_call")


def _crowd(n: int, gc: str, budget: float | None) -> tuple[Line, Line]:
    title, params = f"{n:,} runs of 5 × 50 ms, collector {gc}", {"n": n, "gc": gc}
    return (
        Line(title, "W6", params, "wall_s", "s", budget, "cpu_s"),
        Line(f"{title}: per run", "W6", params, "kb_per_run", "KB", 11 if gc == "tuned" else None),
    )


def _loops(n: int, budget: float | None, memory: float | None) -> tuple[Line, Line]:
    title, params = f"{n:,} loops of 5 × 50 ms, collector tuned", {"n": n, "gc": "tuned"}
    return (
        Line(title, "W6.loop", params, "wall_s", "s", budget, "cpu_s"),
        Line(f"{title}: memory", "W6.loop", params, "peak_rss_mb", "MB", memory),
    )


def _delta(burst: int, beside: str, budget: float | None) -> Line:
    title, params = f"Text delta through the stream, {beside}", {"n": 100_000, "burst": burst}
    # The peers' models are not made to wait.
    elsewhere: dict[str, Params] = {"peer": {"n": 100_000}} if budget else {}
    return Line(title, "W8", params, "us_per_delta", "µs", budget, "cpu_us_per_delta", elsewhere=elsewhere)


def _durable(n: int, sync: str) -> tuple[Line, Line]:
    params: Params = {"n": n, "sync": sync}
    elsewhere: dict[str, Params] = {"bare": {"n": 1000, "sync": sync}, "peer": {"n": n, "sync": "own"}}
    title = f"Durable turn, {sync}, N = {n:,}"
    return (
        Line(title, "W7.turn", params, "us_per_turn", "µs", None, "cpu_us_per_turn", elsewhere=elsewhere),
        Line(f"{title}: beyond one commit", "W7.turn", params, "added_to_commit_us", "µs", 90, bare="-"),
    )


def _stored(n: int) -> Line:
    title, params = f"Journal bytes per turn, N = {n:,}", {"n": n}
    return Line(title, "W7.bytes", params, "bytes_per_turn", "B", 602)


MANY: Params = {"runs": 1000, "turns": 20, "sync": "FULL"}
_FOLD = "Load, verify and fold"
LINES = (
    Line("Import", "W1", {}, "import_s", "s", 0.06, "import_cpu_s"),
    Line("Import: memory over asyncio", "W1", {}, "rss_mb_over_asyncio", "MB", 6),
    Line("Distributions", "W1", {}, "dists", "", 18),
    *(_turns(n) for n in (10, 50, 200, 1000, 5000)),
    Line("Late turn / early turn, N = 1,000", "W2", {"n": 1000}, "cpu_growth", "×", 1.05),
    Line("Late turn / early turn, N = 5,000", "W2", {"n": 5000}, "cpu_growth", "×", 1.05),
    Line("100 parallel tools of 10 ms", "W3", {"n": 100}, "wall_ms", "ms", 12),
    _calls("Agent call, 50 deep", "depth", {"depth": 50}, 38),
    _calls("Agent call, 200 deep", "depth", {"depth": 200}, 38),
    _calls("Agent call, 1 to 100", "fanout", {"n": 100}, 25),
    Line("Token ring of 100 roles: a hop", "W5.ring", {"agents": 100, "hops": 10_000}, "us_per_hop", "µs", 28,
         "cpu_us_per_hop"),
    *(
        Line(f"1 to 100 roles, {msgs:,} messages at once", "W5.fanout", {"subs": 100, "msgs": msgs},
             "deliveries_per_s", "/s", 300_000, more=True)
        for msgs in (20, 200, 2000)
    ),
    *_crowd(1000, "tuned", 0.33),
    *_crowd(1000, "default", None),
    *_crowd(10000, "tuned", 1.9),
    *_crowd(10000, "default", None),
    *_loops(1000, None, None),
    *_loops(10000, 30, 400),
    *_durable(50, "NORMAL"),
    *_durable(200, "NORMAL"),
    *_durable(1000, "NORMAL"),
    *_durable(50, "FULL"),
    *_durable(200, "FULL"),
    *_durable(1000, "FULL"),
    Line(
        "Durable turns/s, 1,000 runs at once, FULL", "W7.many", MANY, "turns_per_s", "/s", 20_000, more=True
    ),
    Line("Journal alone, FULL, one run: an append", "W7.journal", {"sync": "FULL"}, "append_us", "µs"),
    Line(
        "Journal alone, FULL, 1,000 runs: rows/s", "W7.journal", {"sync": "FULL"},
        "rows_of_many_runs_per_s", "/s", more=True,
    ),
    _stored(50),
    _stored(1000),
    Line(f"{_FOLD}, 1,000 turns", "W7.load", {"n": 1000}, "load_ms", "ms", 5.5, "process_cpu_ms"),
    *(
        Line(
            f"{_FOLD}, a million events{note}", "W7.fold", {"events": events}, "s_per_million_events", "s", 1,
            "cpu_s_per_million_events",
        )
        for events, note in ((60_000, " (from 60,000)"), (1_000_000, ""))
    ),
    _delta(100, "100 at a time", 1),
    _delta(1, "one at a time", None),
    Line(
        "Prompt that begins as the last one did, least of 200 turns", "W10", {"turns": 200},
        "least_kept_percent", "%", 95, more=True,
    ),
    Line("200 profiles that inherit, read", "W11.load", {"profiles": 200}, "load_s", "s", 1),
    Line(
        "Profile turn, ten observers and ten rules / plain turn", "W11.turn", {"observers": 10, "n": 200},
        "times_a_plain_turn", "×", 3,
    ),
    Line("Start token, a call of a reading tool", "W12", {"acts": False}, "token_us", "µs", 1),
    Line("Start token, a call of an acting tool", "W12", {"acts": True}, "token_us", "µs", 4),
    *(
        Line(f"A delta more, {many:,} readers", "W13.delta", {"readers": many, "n": 50_000}, "us_per_delta",
             "µs", 3)
        for many in (0, 1, 100, 1000)
    ),
    *(
        Line(f"Run watched by {many:,} / by nobody", "W13.run", {"readers": many, "turns": 40}, "times_alone",
             "×", 1.05)
        for many in (1, 100, 1000)
    ),
    Line("Run watched by 1,000: memory", "W13.run", {"readers": 1000, "turns": 40}, "mb_more", "MB", 128),
    Line("Agent with one tool", "W9", {}, "us_per_object", "µs", 2, "cpu_us_per_object"),
    Line("Agent with one tool: memory", "W9", {}, "bytes_per_object", "B", 512),
)  # fmt: skip
