"""The list of runs of an SQLite journal, a page at a time and by index.

First the keys of a page are found, by the index that tells the most of what is asked for; then those runs
alone are read. An index is in the order of the list for one value only, so what is asked of several values
(states, owners) is found for each and put together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from heapq import nlargest
from typing import Any, get_args

import apsw

from antiphon.errors import UnknownName
from antiphon.journal.listing import Labels, RunFilter, RunInfo, RunStatus
from antiphon.journal.sqlite.file import value

_WHERE = (
    " and key < :before and key >= :first and created >= :since"
    " and (:project is null or label_project = :project)"
    " and (:owner is null or label_owner = :owner)"
    " and (:team is null or label_team = :team)"
    " and (:states is null or state in (select value from json_each(:states)))"
    " and (:outcomes is null or outcome in (select value from json_each(:outcomes)))"
    " and (:text = '' or instr(words, :text) or instr(called, :text))"
    " and (:driven is null or :driven ="
    " (runs.owner is not null and runs.owner in (select value from json_each(:living))))"
    " and (:interrupted is null or :interrupted ="
    " (runs.owner is not null and runs.owner not in (select value from json_each(:living))))"
    " and (:posted is null or :posted = (commands > heard))"
)
"""All that is asked for."""
_PAGE = " order by key desc limit :limit"
_BY: Mapping[str, str] = {
    "owner": "select key from runs where label_owner = :owner and label_owner != '' and state = :one",
    "project": "select key from runs where label_project = :project and label_project != '' and state = :one",
    "team": "select key from runs where label_team = :team and label_team != '' and state = :one",
    "owner outcome": "select key from runs where label_owner = :owner and label_owner != '' and outcome != ''"
    " and outcome = :one",
    "project outcome": "select key from runs where label_project = :project and label_project != ''"
    " and outcome != '' and outcome = :one",
    "team outcome": "select key from runs where label_team = :team and label_team != '' and outcome != ''"
    " and outcome = :one",
    "outcome": "select key from runs where outcome != '' and outcome = :one",
    "state": "select key from runs where state = :one",
    "driven": "select key from runs where runs.owner = :one",
    "interrupted": "select key from runs indexed by runs_by_owner where runs.owner is not null",
    "posted": "select key from runs indexed by runs_by_posted where commands > heard",
    "text": "select key from runs indexed by runs_by_words where key > 0",
    "all": "select key from runs not indexed where key > 0",
}
"""The index by which it is looked for."""
_KEYS: Mapping[str, str] = {by: select + _WHERE + _PAGE for by, select in _BY.items()}
_COUNTS: Mapping[str, str] = {by: select.replace("key", "count(*)", 1) + _WHERE for by, select in _BY.items()}
_FIRST = "select coalesce(min(key), 0) from runs indexed by runs_by_created where created >= ?"
_ENTRY = (
    "select run_id, created, updated, seq, epoch, owner, summary, name, origin, imported,"
    " label_project, label_owner, label_team, commands > heard, key from runs where key = ?"
)
_KEY = "select key from runs where run_id = ?"
NO_END = 1 << 62


def entry(connection: apsw.Connection, living: Mapping[int, str], run_id: str) -> RunInfo:
    """One run's line. Raises UnknownName."""
    found = connection.execute(_KEY, (run_id,)).fetchone()
    if found is None:
        raise UnknownName("run", run_id)
    return _entry(connection, living, found[0])


def entries(
    connection: apsw.Connection, living: Mapping[int, str], where: RunFilter, before: int, limit: int | None
) -> list[RunInfo]:
    """See `port.Journal.runs`. living: every owner that lives, in words, by key."""
    # One state of the file: what is described between two statements would be found by neither.
    with connection:
        keys = _keys(connection, living, where, before, NO_END if limit is None else min(limit, NO_END))
        found = [_entry(connection, living, key) for key in keys]
    return found


def count(connection: apsw.Connection, living: Mapping[int, str], where: RunFilter) -> int:
    """See `port.Journal.count`. living: as in `entries`."""
    with connection:
        asked = _asked(connection, living, where)
        ways = _ways(where, living)
        found = sum([int(value(connection, _COUNTS[by], {**asked, "one": one})) for by, one in ways])
    return found


def _keys(
    connection: apsw.Connection, living: Mapping[int, str], where: RunFilter, before: int, limit: int
) -> list[int]:
    asked = _asked(connection, living, where, before, limit)
    found: list[int] = []
    for by, one in _ways(where, living):
        found += [key for (key,) in connection.execute(_KEYS[by], {**asked, "one": one})]
    return nlargest(min(limit, len(found)), found)


def _asked(
    connection: apsw.Connection,
    living: Mapping[int, str],
    where: RunFilter,
    before: int = 0,
    limit: int = NO_END,
) -> dict[str, Any]:
    """What the statements are given."""
    first = value(connection, _FIRST, (where.since,)) if where.since > 0 else 0
    return {
        "before": min(before, NO_END) or NO_END,
        "first": first,
        "since": where.since,
        "project": where.project,
        "owner": where.owner,
        "team": where.team,
        "states": json.dumps(where.states) if where.states else None,
        "outcomes": json.dumps(where.outcomes) if where.outcomes else None,
        "text": where.text.casefold(),
        "driven": None if where.driven is None else int(where.driven),
        "interrupted": None if where.interrupted is None else int(where.interrupted),
        "posted": None if where.posted is None else int(where.posted),
        "living": json.dumps(list(living)),
        "limit": limit,
    }


def _ways(where: RunFilter, living: Mapping[int, str]) -> Iterator[tuple[str, Any]]:
    """The statements that together find what is asked for, each with its one value."""
    states = where.states or get_args(RunStatus)
    if where.posted:
        yield "posted", None
        return
    if where.interrupted:
        yield "interrupted", None
        return
    by = next((label for label in ("owner", "project", "team") if getattr(where, label)), "")
    if where.outcomes and "" not in where.outcomes:
        of_label = f"{by} outcome" if by else "outcome"
        yield from ((of_label, outcome) for outcome in dict.fromkeys(where.outcomes))
    elif by:
        yield from ((by, state) for state in states)
    elif where.driven:
        yield from (("driven", owner) for owner in living)
    elif where.text:
        yield "text", None
    elif where.states:
        yield from (("state", state) for state in where.states)
    else:
        yield "all", None


def _entry(connection: apsw.Connection, living: Mapping[int, str], key: int) -> RunInfo:
    (found,) = connection.execute(_ENTRY, (key,))
    row: tuple[Any, ...] = found
    run_id, created, updated, seq, epoch, owner, summary, name, origin, imported, *labels, posted, number = (
        row
    )
    return RunInfo(
        run_id, created, updated, seq, epoch, living.get(owner, ""), summary, name, origin, bool(imported),
        Labels(*labels), number, owner is not None and owner not in living, bool(posted),
    )  # fmt: skip
