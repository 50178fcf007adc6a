from __future__ import annotations

import threading

import pytest

from workqueue import parallelize


@pytest.mark.parametrize(
    ("pieces", "workers", "chunk_size"),
    [(1000, 10, 1), (1000, 10, 10), (1000, 10, 100), (999, 10, 13), (3, 10, 1), (1, 1, 5), (0, 4, 1)],
)
def test_each_piece_is_done_exactly_once(pieces: int, workers: int, chunk_size: int) -> None:
    seen: list[int] = []
    parallelize(workers, pieces, seen.append, chunk_size=chunk_size)
    assert sorted(seen) == list(range(pieces))


def test_all_pieces_are_tried_and_failures_come_as_one_group_in_order() -> None:
    seen: list[int] = []

    def fn(piece: int) -> None:
        seen.append(piece)
        if piece % 3 == 0:
            raise ValueError(piece)

    with pytest.raises(ExceptionGroup, match="4 of 10 pieces failed") as caught:
        parallelize(3, 10, fn, chunk_size=2)
    assert sorted(seen) == list(range(10))
    assert [error.args for error in caught.value.exceptions] == [(0,), (3,), (6,), (9,)]


def test_nothing_new_is_started_once_stop_is_set() -> None:
    stop = threading.Event()
    seen: list[int] = []

    def fn(piece: int) -> None:
        seen.append(piece)
        if piece == 4:
            stop.set()

    parallelize(1, 100, fn, chunk_size=10, stop=stop)
    assert seen == [0, 1, 2, 3, 4]


def test_workers_work_at_the_same_time_and_none_is_left_behind() -> None:
    together = threading.Barrier(4, timeout=20)
    parallelize(4, 4, lambda piece: together.wait())
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("parallelize")]


def test_an_exit_in_a_worker_is_not_lost() -> None:
    def fn(piece: int) -> None:
        raise SystemExit(3)

    with pytest.raises(BaseExceptionGroup) as caught:
        parallelize(2, 1, fn)
    assert not isinstance(caught.value, ExceptionGroup)


@pytest.mark.parametrize(("workers", "pieces", "chunk_size"), [(0, 1, 1), (1, -1, 1), (1, 1, 0)])
def test_numbers_that_make_no_sense_are_refused(workers: int, pieces: int, chunk_size: int) -> None:
    with pytest.raises(ValueError, match="must be at least"):
        parallelize(workers, pieces, lambda piece: None, chunk_size=chunk_size)
