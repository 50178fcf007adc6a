"""Helpers for the tests of the work queue."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from workqueue.testing import FakeClock

LONG = 20.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


class Background:
    """Runs functions on threads; joins them and hands back what they gave or raised."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []

    def start(self, fn: Callable[[], object]) -> Callable[[], object]:
        outcome: list[tuple[bool, object]] = []

        def run() -> None:
            try:
                outcome.append((True, fn()))
            except Exception as error:  # noqa: BLE001  # handed to the test
                outcome.append((False, error))

        thread = threading.Thread(target=run, name="test-background", daemon=True)
        thread.start()
        self.threads.append(thread)

        def result() -> object:
            thread.join(LONG)
            assert not thread.is_alive(), "the background call did not return"
            good, value = outcome[0]
            if not good:
                raise value  # type: ignore[misc]
            return value

        return result


@pytest.fixture
def background() -> Iterator[Background]:
    helper = Background()
    yield helper
    for thread in helper.threads:
        thread.join(LONG)
        assert not thread.is_alive()
