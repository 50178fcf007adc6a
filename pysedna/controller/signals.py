"""SIGTERM and SIGINT as a request to stop.

A Python signal handler runs between two instructions of the main thread, which may hold any lock at that moment;
so the handler here only puts a message into a `SimpleQueue`, whose `put` is reentrant.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

SIGNALS = (signal.SIGTERM, signal.SIGINT)


@contextmanager
def on_signals(tell: Callable[[str], object]) -> Iterator[None]:
    """Within the block, the first SIGTERM or SIGINT calls `tell` with its name; the second does what it did before
    the block.

    So a second Ctrl-C interrupts a stop that takes too long. Does nothing outside the main thread, where Python
    allows no handlers. `tell` must be safe in a signal handler.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    previous = {number: signal.getsignal(number) for number in SIGNALS}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)

    def handle(number: int, frame: object) -> None:
        restore()
        tell(signal.Signals(number).name)

    for number in SIGNALS:
        signal.signal(number, handle)
    try:
        yield
    finally:
        restore()
