"""Cases of the conformance suite about the list of runs: its pages, what it is asked for, and labels."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from antiphon.errors import JournalError, UnknownName, UserError
from antiphon.journal.check.whole_runs import BAD_IDS, Case, OpenStore, story
from antiphon.journal.listing import (
    EVERY_RUN,
    MAX_NAME,
    Labels,
    RunFilter,
    RunInfo,
    RunStatus,
    is_listed,
    listed,
)
from antiphon.journal.port import Journal
from antiphon.journal.row_writer import RowWriter, raises, same

STATES: tuple[RunStatus, ...] = ("open", "waiting", "idle", "closed")
OUTCOMES = ("completed", "failed", "")


async def pages_of_runs(open_store: OpenStore) -> None:
    """Pages of any size are the list, newest first, whatever is made or deleted between them."""
    names = [f"pages_of_runs {n:02}" for n in range(23)]
    mine = RunFilter(project="pages_of_runs")
    async with open_store() as journal:
        for name in names:
            await journal.release(await journal.claim(name, create=True, labels=Labels("pages_of_runs")))
        for limit in (1, 2, 7, 23, 100):
            found = await _all(journal, mine, limit)
            same([each.run_id for each in found], names[::-1], f"the list in pages of {limit}")
        numbers = [each.number for each in await journal.runs(mine)]
        same(sorted(numbers, reverse=True), numbers, "numbers fall")
        same(len(set(numbers)), len(names), "each has its own")
        first = await journal.runs(mine, limit=5)
        for gone in (names[-5], names[-6]):
            await journal.delete(gone)
        await journal.claim("pages_of_runs late", create=True, labels=Labels("pages_of_runs"))
        same(
            [each.run_id for each in await journal.runs(mine, first[-1].number, 3)],
            [names[-7], names[-8], names[-9]],
            "the page after one whose last run is gone",
        )
        same(list(await journal.runs(mine, numbers[-1], 5)), [], "the page after the last")
        newest = (await journal.runs(limit=1))[0]
        same(newest.run_id, "pages_of_runs late", "the newest of all")
        same(await journal.info(newest.run_id), newest, "one run's line")
        await raises(UnknownName, "the line of a run that is not there", journal.info(names[-5]))
        for limit in (0, -1):
            await raises(UserError, f"a page of {limit} runs", journal.runs(limit=limit))


async def filters(open_store: OpenStore) -> None:
    """Every filter, alone and beside others, finds the runs that it says and no others, page by page."""
    async with open_store() as journal:
        await _many(journal)
        everyone = [each for each in await journal.runs() if each.run_id.startswith("filters")]
        odd = [listed(each.summary).state for each in everyone if "odd" in each.run_id]
        same(odd, ["open", "open", "open", "open", "idle"], "states of odd summaries")
        for where in _filters(everyone):
            wanted = [each.run_id for each in everyone if is_listed(each, where)]
            for limit in (3, 100):
                found = await _all(journal, where, limit)
                got = [each.run_id for each in found if each.run_id.startswith("filters")]
                same(got, wanted, f"{where} in pages of {limit}")
                same(await journal.count(where), len(found), f"how many {where} finds")
    async with open_store() as journal:
        if journal.durability != "none":
            waiting = await journal.runs(RunFilter("filters p1", states=("waiting",)))
            same({listed(each.summary).state for each in waiting}, {"waiting"}, "states, opened again")


async def _many(journal: Journal) -> None:
    """Runs of every state, project, owner, team and name; a third of them held."""
    for n, (project, state) in enumerate(itertools.product(("", "filters p1", "filters p2"), STATES * 2)):
        labels = Labels(project, ("filters \u00c4", "")[n % 2], ("", "filters t")[n % 3 == 0])
        lease = await journal.claim(f"filters {n}", create=True, labels=labels)
        await RowWriter(journal, lease).write(b"x")
        told = f'{{"state":"{state}","title":"Ask {n}, \u00dcBER it","outcome":"{OUTCOMES[n % 3]}"'
        journal.describe(lease, f'{told},"command":{n % 2}}}'.encode())
        if n % 5 < 2:
            await journal.post(lease.run_id, "a", b"{}")
        if n % 4 == 0:
            await journal.rename(lease.run_id, f"Called {n}%")
        if n % 3:
            await journal.release(lease)
    # Those that said nothing, or nothing that can be read, are open.
    for n, summary in enumerate((b"{}", b"", b"no JSON", b'{"state":"new"}', b'{"state":"idle","title":7}')):
        await journal.release(await journal.claim(f"filters odd {n}", create=True), summary)


def _filters(known: Sequence[RunInfo]) -> list[RunFilter]:
    made = sorted(each.created_at for each in known)
    alone: list[dict[str, Any]] = [
        *({"project": each} for each in ("filters p1", "filters p2", "filters", "")),
        *({"owner": each} for each in ("filters \u00c4", "filters \u00e4", "")),
        *({"team": each} for each in ("filters t", "")),
        *({"outcomes": each} for each in (("completed",), ("failed", "limit"), ("completed", ""))),
        *({"states": each} for each in (("waiting",), ("idle", "open"), STATES)),
        *({"driven": each} for each in (True, False)),
        *({"interrupted": each} for each in (True, False)),
        *({"posted": each} for each in (True, False)),
        *(
            {"text": each}
            for each in ("ask 1", "\u00fcber", "\u00dcBER", "CALLED", "d 4%", "%", "_", "nothing")
        ),
        *({"since": each} for each in (made[0], made[len(made) // 2], made[-1] + 1, 1.0)),
    ]
    pairs = [{**one, **two} for one, two in itertools.combinations(alone, 2) if one.keys() != two.keys()]
    return [RunFilter(**each) for each in [*alone, *pairs]]


async def posted(open_store: OpenStore) -> None:
    """A run is found by what was posted in it until a summary says that it was taken in."""
    where = RunFilter(project="posted", posted=True)
    async with open_store() as journal:

        async def wanted(*names: str, after: str) -> None:
            same([each.run_id for each in await journal.runs(where)], list(names), after)
            same(await journal.count(where), len(names), f"how many {after}")

        lease = await journal.claim("posted", create=True, labels=Labels("posted"))
        await RowWriter(journal, lease).write(b"a")
        await journal.release(lease, b'{"command":0}')
        await wanted(after="before anything is posted")
        for key in "ab":
            await journal.post("posted", key, b"{}")
        await wanted("posted", after="after two commands")
        same((await journal.info("posted")).posted, True, "its line")
        for summary, names in (
            (b'{"command":1}', ("posted",)),
            (b'{"command":2}', ()),
            (b'{"command":-1}', ()),
            (b"", ()),
        ):
            lease = await journal.claim("posted")
            await journal.release(lease, summary)
            await wanted(*names, after=f"after the summary {summary!r}")
        await journal.post("posted", "c", b"{}")
        await wanted("posted", after="after a third")
        moved = replace(story("posted moved"), labels=Labels("posted"), commands=7)
        await journal.restore(replace(moved, summary=b'{"command":7}'))
        await wanted("posted", after="after a run was taken in")
        await journal.post("posted moved", "a", b"{}")
        await wanted("posted moved", "posted", after="after a command in it")
    async with open_store() as journal:
        if journal.durability != "none":
            same(await journal.count(where), 2, "opened again")


async def described_in_vain(open_store: OpenStore) -> None:
    """A summary that follows a refused row is not kept: it may tell of what was never stored."""
    async with open_store() as journal:
        pen = RowWriter(journal, await journal.claim("described_in_vain", create=True))
        await pen.write(b"a")
        journal.describe(pen.lease, b'{"seq":1}')
        pen.seq += 1
        await raises(JournalError, "a row after a gap", pen.put(pen.row(b"c")))
        journal.describe(pen.lease, b'{"seq":3}')
        await raises(JournalError, "a row after a refused one", pen.put(pen.row(b"d")))
        same((await _entry(journal, "described_in_vain")).summary, b'{"seq":1}', "its summary")


async def labels(open_store: OpenStore) -> None:
    """A run has the labels it was made with until it is given others, beside its records; they move along."""
    async with open_store() as journal:
        made = Labels("tides", "\u00c4da", "'; drop table runs; --")
        lease = await journal.claim("labels", create=True, labels=made)
        rows = await RowWriter(journal, lease).write(b"a")
        same((await _entry(journal, "labels")).labels, made, "as it was made")
        await raises(UnknownName, "labels for nobody", journal.relabel("labels nobody", made))
        for bad in (*(bad for bad in BAD_IDS if bad), "x" * (MAX_NAME + 1)):
            for what in Labels.__struct_fields__:
                wrong = replace(Labels(), **{what: bad})
                await raises(UserError, f"{what} {bad[:20]!a}", journal.relabel("labels", wrong))
                await raises(
                    UserError,
                    f"made with {bad[:20]!a}",
                    journal.claim("labels no", create=True, labels=wrong),
                )
                await raises(
                    UserError,
                    "taken in with them",
                    journal.restore(replace(story("labels no"), labels=wrong)),
                )
        same([each for each in await journal.runs() if each.run_id == "labels no"], [], "what was refused")
        other = Labels("", "Bo", "x" * MAX_NAME)
        await journal.relabel("labels", other)
        await journal.release(lease)
        lease = await journal.claim("labels", create=True, labels=made)
        await journal.release(lease)
        same((await _entry(journal, "labels")).labels, other, "when it was given others")
        same(list(await journal.read("labels")), rows, "its rows")
        await journal.restore(replace(story("labels moved"), labels=made))
    async with open_store() as journal:
        if journal.durability == "none":
            return
        for name, wanted in (("labels", other), ("labels moved", made)):
            same((await _entry(journal, name)).labels, wanted, f"{name}, opened again")
        await journal.relabel("labels", Labels())
        same((await _entry(journal, "labels")).labels, Labels(), "when they were taken away")
        found = await journal.runs(RunFilter(project="tides"))
        same([each.run_id for each in found], ["labels moved"], "found by what it was taken in with")


async def _all(journal: Journal, where: RunFilter, limit: int) -> list[RunInfo]:
    found, before = list[RunInfo](), 0
    while page := await journal.runs(where, before, limit):
        same(len(page) <= limit, True, f"a page of {len(page)} runs has at most {limit}")
        found += page
        before = page[-1].number
    return found


async def _entry(journal: Journal, run_id: str) -> RunInfo:
    return next(entry for entry in await journal.runs(EVERY_RUN) if entry.run_id == run_id)


CASES: tuple[Case, ...] = (pages_of_runs, filters, posted, described_in_vain, labels)
