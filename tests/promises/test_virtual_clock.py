"""The virtual clock: time jumps when all are asleep, sleepers wake one by one in a fixed order."""

import asyncio

from antiphon.testing.clock import VirtualClock


def test_time_jumps_when_all_are_asleep():
    clock = VirtualClock(100.0)
    woke = []

    async def sleeper(name, *instants):
        for instant in instants:
            await clock.sleep_until(instant)
            woke.append((name, clock.now()))

    async def main():
        await asyncio.gather(
            sleeper("a", 3_600.0, 3_601.0), sleeper("b", 200.0, 3_600.0), sleeper("c", 3_600.0)
        )

    asyncio.run(main())
    # Of those due at one instant the first to lie down wakes first.
    assert woke == [("b", 200.0), ("a", 3_600.0), ("c", 3_600.0), ("b", 3_600.0), ("a", 3_601.0)]
    assert clock.jumps == [200.0, 3_600.0, 3_600.0, 3_600.0, 3_601.0]


def test_it_waits_while_others_work_and_never_goes_back():
    clock = VirtualClock(100.0)
    seen = []

    async def worker():
        for _ in range(50):
            await asyncio.sleep(0)
            seen.append(clock.now())

    async def main():
        await asyncio.gather(clock.sleep_until(200.0), worker())
        await clock.sleep_until(50.0)

    asyncio.run(main())
    assert set(seen) == {100.0}
    assert clock.now() == 200.0


def test_a_sleeper_that_is_cancelled_holds_nobody():
    clock = VirtualClock(0.0)

    async def main():
        task = asyncio.ensure_future(clock.sleep_until(5.0))
        await asyncio.sleep(0)
        assert clock.sleeping == 1
        task.cancel()
        await clock.sleep_until(9.0)
        assert clock.sleeping == 0

    asyncio.run(main())
    assert clock.jumps == [9.0]


def test_without_autojump_time_moves_by_hand():
    clock = VirtualClock(0.0, autojump=False)
    woke = []

    async def main():
        async def sleeper(instant):
            await clock.sleep_until(instant)
            woke.append(clock.now())

        tasks = [asyncio.ensure_future(sleeper(instant)) for instant in (2.0, 1.0, 9.0)]
        for _ in range(20):
            await asyncio.sleep(0)
        assert not woke
        clock.advance(3.0)
        await asyncio.gather(*tasks[:2])
        assert (woke, clock.now(), clock.jumps) == ([3.0, 3.0], 3.0, [])
        clock.advance(6.0)
        await tasks[2]

    asyncio.run(main())
    assert woke == [3.0, 3.0, 9.0]


def test_one_clock_serves_one_loop_after_another():
    clock = VirtualClock(0.0)
    for end in (1.0, 2.0, 3.0):
        asyncio.run(clock.sleep_until(end))
    assert clock.jumps == [1.0, 2.0, 3.0]
