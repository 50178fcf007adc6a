"""A work queue by itself: duplicates are handled once, failures are tried again with a growing delay, nothing is lost.

`python examples/work_queue.py`; it needs no cluster and ends by itself.
"""

import sys
import threading
from collections import Counter

from workqueue import ItemExponentialFailureRateLimiter, ShutDown, WorkQueue

ITEMS = ("apples", "bread", "cheese")
FAILURES = 3


def say(line: str) -> None:
    sys.stdout.write(line + "\n")  # in one piece, which print from two threads is not


def main() -> None:
    queue: WorkQueue[str] = WorkQueue("shopping", rate_limiter=ItemExponentialFailureRateLimiter(0.01, 1.0))
    runs: Counter[str] = Counter()

    def work() -> None:
        while True:
            try:
                with queue.processing() as item:  # nobody else is given this item until the block ends
                    runs[item] += 1
                    if item == "cheese" and runs[item] <= FAILURES:
                        say(f"{item}: sold out, again in {0.01 * 2 ** queue.num_requeues(item):.2f} s")
                        queue.add_rate_limited(item)
                    else:
                        say(f"{item}: bought")
                        queue.forget(item)
                        bought.release()
            except ShutDown:
                return

    bought = threading.Semaphore(0)
    for item in ITEMS * 100:
        queue.add(item)
    print(f"{3 * 100} adds, {len(queue)} items in the queue")
    workers = [threading.Thread(target=work, name=f"worker-{number}") for number in range(2)]
    for worker in workers:
        worker.start()
    for _ in ITEMS:
        bought.acquire(timeout=10)
    drained = queue.shut_down_with_drain(timeout=10)
    for worker in workers:
        worker.join()
    print(f"drained: {drained}; runs: {dict(sorted(runs.items()))}")


if __name__ == "__main__":
    main()
