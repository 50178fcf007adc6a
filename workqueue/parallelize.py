"""`parallelize`: do a known number of independent pieces of work on a few threads."""

from __future__ import annotations

import threading
from collections.abc import Callable

__all__ = ["parallelize"]


def parallelize(
    workers: int,
    pieces: int,
    fn: Callable[[int], object],
    *,
    chunk_size: int = 1,
    stop: threading.Event | None = None,
) -> None:
    """Call `fn(piece)` once for each piece in `range(pieces)` on at most `workers` threads; blocks until all are done.

    A piece that fails does not keep others from being tried. Nothing new is started once `stop` is set.

    :param chunk_size: how many consecutive pieces a thread takes at a time
    :raises ExceptionGroup: what the failed pieces raised, in the order of the pieces
    """
    for name, value, least in (("workers", workers, 1), ("pieces", pieces, 0), ("chunk_size", chunk_size, 1)):
        if value < least:
            raise ValueError(f"{name} must be at least {least}, not {value!r}")
    chunks = iter(range(0, pieces, chunk_size))
    failures: dict[int, BaseException] = {}
    lock = threading.Lock()
    given_up = threading.Event()

    def stopped() -> bool:
        return given_up.is_set() or (stop is not None and stop.is_set())

    def work() -> None:
        while not stopped():
            with lock:
                first = next(chunks, None)
            if first is None:
                return
            for piece in range(first, min(first + chunk_size, pieces)):
                if stopped():
                    return
                try:
                    fn(piece)
                except BaseException as error:  # noqa: BLE001  # all are reported together to the caller
                    failures[piece] = error

    count = min(workers, -(-pieces // chunk_size))
    threads = [threading.Thread(target=work, name=f"parallelize-{index}", daemon=True) for index in range(count)]
    started: list[threading.Thread] = []
    try:
        for thread in threads:
            thread.start()
            started.append(thread)
        for thread in started:
            thread.join()
    except BaseException:  # interrupted: leave no thread behind
        given_up.set()
        for thread in started:
            thread.join()
        raise
    if failures:
        raise BaseExceptionGroup(
            f"{len(failures)} of {pieces} pieces failed", [failures[piece] for piece in sorted(failures)]
        )
