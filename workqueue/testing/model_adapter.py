"""`ModelAdapter`: the model as a queue of its own, for `queue_machine`. It is right: whoever breaks it must be found.

Also an adapter to copy from: nothing in it runs in another thread, and calls that wait are asked whether they still do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from workqueue.testing.adapter import QueueAdapter
from workqueue.testing.model import QueueModel

__all__ = ["ModelAdapter", "Polled"]

R = TypeVar("R")


class Polled(Generic[R]):
    """A `Call` that goes on whenever it is looked at: `answer` gives [] while it waits, else its result in a list."""

    def __init__(self, answer: Callable[[], list[R]]) -> None:
        self._answer = answer
        self._results = answer()

    def finished(self, timeout: float) -> bool:
        """See `Call.finished`."""
        self._results = self._results or self._answer()
        return bool(self._results)

    def result(self) -> R:
        """See `Call.result`."""
        return self._results[0]


class ModelAdapter(QueueAdapter):
    """A `QueueModel`, or what `make` makes when it is called as the class is."""

    def __init__(self, make: Callable[..., QueueModel] = QueueModel, max_priority_age: float | None = 6.0) -> None:
        self.model = make(max_priority_age=max_priority_age)
        self.shut_downs = 0

    def add(self, item: int, priority: int | None) -> None:
        self.model.add(item, priority)

    def add_after(self, item: int, delay: float, priority: int | None) -> None:
        self.model.add_after(item, delay, priority)

    def add_rate_limited(self, item: int, priority: int | None) -> None:
        self.model.add_rate_limited(item, priority)

    def get(self, limit: int) -> list[int] | None:
        items: list[int] = []
        while len(items) < limit and (item := self.model.next()) is not None:
            self.model.take(item)
            items.append(item)
        return None if not items and self.model.shutting_down else items

    def done(self, item: int) -> bool:
        if item not in self.model.running:
            return False
        self.model.done(item)
        return True

    def forget(self, item: int) -> None:
        self.model.forget(item)

    def num_requeues(self, item: int) -> int:
        return self.model.num_requeues(item)

    def priority(self, item: int) -> int | None:
        return self.model.priority(item)

    def cancel(self, item: int) -> bool:
        return self.model.cancel(item)

    def shut_down(self) -> None:
        self.shut_downs += 1
        self.model.shut_down()

    def advance(self, seconds: float) -> None:
        self.model.advance(seconds)

    def start_get(self, limit: int, timeout: float | None) -> Polled[list[int] | None]:
        over = self._over(timeout)

        def answer() -> list[list[int] | None]:
            items = self.get(limit)
            return [] if items == [] and not over() else [items]

        return Polled(answer)

    def start_drain(self, timeout: float | None) -> Polled[bool]:
        self.model.shut_down()
        over, shut_downs = self._over(timeout), self.shut_downs

        def answer() -> list[bool]:
            idle = self.model.idle
            return [idle] if idle or over() or self.shut_downs != shut_downs else []

        return Polled(answer)

    def _over(self, timeout: float | None) -> Callable[[], bool]:
        started = self.model.now
        return lambda: timeout is not None and self.model.now >= started + timeout

    def numbers(self) -> Mapping[str, float]:
        return self.model.numbers()
