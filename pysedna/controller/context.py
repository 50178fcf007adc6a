"""What a reconcile is given for one run.

The context knows until when the run may act: its deadline, whether the manager stops, whether it still leads. Its
client sends each request with what is left of the time, and none at all once the run may not act any more.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

from informers import Object, ObjectKey, ObjectList, WatchStream
from pysedna.controller.errors import Cancelled
from workqueue import Clock

if TYPE_CHECKING:
    from informers import Client

Gate = Callable[[], None]


class Context:
    """One run of a reconcile. Made by the controller; used by that run, and by threads that the run starts and joins.

    `client`: the manager's client, bound to this run. `stop`: set when the manager begins to stop. `deadline`:
    when the run's time is up, on the controller's clock (None: no limit). `log`: a logger that carries controller,
    key and reconcile_id. `priority`: of this key when it was taken from the queue. `reconcile_id`: a new one each
    run.
    """

    def __init__(
        self,
        *,
        client: Client,
        stop: threading.Event,
        clock: Clock,
        gate: Gate,
        deadline: float | None = None,
        priority: int = 0,
        reconcile_id: str = "",
        log: logging.Logger | logging.LoggerAdapter[Any] | None = None,
    ) -> None:
        self.client = BoundClient(client, self)
        self.stop = stop
        self.deadline = deadline
        self.priority = priority
        self.reconcile_id = reconcile_id
        self.log = log if log is not None else logging.getLogger(__name__)
        self._clock = clock
        self._gate = gate

    def remaining(self) -> float | None:
        """Seconds until the deadline, never below 0; None when there is none."""
        return None if self.deadline is None else max(0.0, self.deadline - self._clock.now())

    def check(self) -> None:
        """Raise `Cancelled` when the manager stops or the time is up, `NotLeading` when it may not act. Call it in
        loops.
        """
        if self.stop.is_set():
            raise Cancelled("the manager is stopping")
        self.check_may_act()

    def check_may_act(self) -> None:
        """Like `check`, but a stop is no reason: a run may finish what it began. The context's client asks this
        each time.
        """
        if self.remaining() == 0.0:
            raise Cancelled("the reconcile's time is up", overrun=True)
        self._gate()


class BoundClient:
    """The manager's client as one run sees it: the same `resource` calls, each within what the run has left."""

    def __init__(self, client: Client, context: Context) -> None:
        self._client = client
        self._context = context

    def resource(self, api_version: str, kind: str) -> BoundResource:
        """The resource of that kind. No I/O."""
        return BoundResource(self._client.resource(api_version, kind), self._context)

    def resource_by_plural(self, api_version: str, plural: str) -> BoundResource:
        """The resource of that plural name. No I/O."""
        return BoundResource(self._client.resource_by_plural(api_version, plural), self._context)


class BoundResource:
    """An `informers.Resource` whose requests end with the run.

    Each call takes what the call of `informers.Resource` takes; `timeout` is cut to the time the run has left.
    Raises `Cancelled` or `NotLeading` instead of sending when the run may not act.
    """

    def __init__(self, resource: Any, context: Context) -> None:
        self._resource = resource
        self._context = context

    def _limits(self, options: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        self._context.check_may_act()
        left = self._context.remaining()
        if left is not None:
            asked = options.get("timeout")
            options["timeout"] = left if asked is None else min(asked, left)
        return options

    def get(self, key: ObjectKey | str, **options: Any) -> Object:
        result: Object = self._resource.get(key, **self._limits(options))
        return result

    def list(self, **options: Any) -> ObjectList:
        result: ObjectList = self._resource.list(**self._limits(options))
        return result

    def iterate(self, **options: Any) -> Iterator[Object]:
        result: Iterator[Object] = self._resource.iterate(**self._limits(options))
        return result

    def watch(self, **options: Any) -> WatchStream:
        result: WatchStream = self._resource.watch(**self._limits(options))
        return result

    def create(self, obj: Any, **options: Any) -> Object:
        result: Object = self._resource.create(obj, **self._limits(options))
        return result

    def replace(self, obj: Any, **options: Any) -> Object:
        result: Object = self._resource.replace(obj, **self._limits(options))
        return result

    def patch(self, key: ObjectKey | str, patch: Any, **options: Any) -> Object:
        result: Object = self._resource.patch(key, patch, **self._limits(options))
        return result

    def apply(self, obj: Any, **options: Any) -> Object:
        result: Object = self._resource.apply(obj, **self._limits(options))
        return result

    def delete(self, key: ObjectKey | str, **options: Any) -> Object | None:
        result: Object | None = self._resource.delete(key, **self._limits(options))
        return result

    def delete_collection(self, **options: Any) -> None:
        self._resource.delete_collection(**self._limits(options))

    def wait_until(
        self, key: ObjectKey | str, predicate: Callable[[Object | None], bool], **options: Any
    ) -> Object | None:
        result: Object | None = self._resource.wait_until(key, predicate, **self._limits(options))
        return result
