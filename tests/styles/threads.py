"""What tests with many threads share."""

import sys
import threading
from collections.abc import Callable


def at_once(work: Callable[[int], None], threads: int = 100) -> None:
    """Call `work` with a number of its own in every thread, all at the same moment, switching often."""
    go, failed = threading.Event(), []

    def start(number: int) -> None:
        go.wait()
        try:
            work(number)
        except BaseException as error:
            failed.append(error)

    started = [threading.Thread(target=start, args=(number,), daemon=True) for number in range(threads)]
    interval = sys.getswitchinterval()
    try:
        for each in started:
            each.start()
        sys.setswitchinterval(1e-6)
        go.set()
        for each in started:
            each.join()
    finally:
        go.set()
        sys.setswitchinterval(interval)
    if failed:
        raise failed[0]
