"""What tests with many threads share."""

import sys
import threading
from collections.abc import Callable


def at_once(work: Callable[[int], None], threads: int = 100) -> None:
    """Call `work` with a number of its own in every thread, all at the same moment, switching often."""
    barrier = threading.Barrier(threads)

    def start(number: int) -> None:
        barrier.wait()
        work(number)

    started = [threading.Thread(target=start, args=(number,)) for number in range(threads)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for each in started:
            each.start()
        for each in started:
            each.join()
    finally:
        sys.setswitchinterval(interval)
