"""Whatever the faults, once they stop the cache equals the source and each handler saw a legal history of every uid."""

from __future__ import annotations

import threading

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from informers import Event, EventType, Object, ProtocolConfig, SharedInformer
from informers.backoff import BackoffConfig
from informers.errors import (
    ConnectionRefused,
    ConnectionReset,
    ExpiredError,
    ForbiddenError,
    InternalError,
    KindNotFoundError,
    ServerTimeoutError,
    TooManyRequestsError,
)
from informers.testing import FakeListWatch

FAST = BackoffConfig(base=0.0005, cap=0.002)
NAMES = st.sampled_from("abcdef")
ERRORS = st.sampled_from(
    [
        ExpiredError("too old"),
        InternalError("etcd"),
        TooManyRequestsError("slow down"),
        ConnectionRefused("nobody"),
        ConnectionReset("cut"),
        ForbiddenError("no"),
        KindNotFoundError("gone"),
        ServerTimeoutError("Too large resource version: 9, current: 1"),
    ]
)


def pod(name: str, **labels: str) -> dict[str, object]:
    return {"metadata": {"namespace": "ns", "name": name, "labels": labels}}


class History:
    """A handler that checks every event against what it was shown before."""

    def __init__(self, informer: SharedInformer, accepts: str | None, max_pending: int | None) -> None:
        self.shown: dict[str, Object] = {}
        self.wrong: list[str] = []
        self.condition = threading.Condition()
        self.accepts = accepts
        self.registration = informer.add_event_handler(
            on_event=self.on_event,
            filter=None if accepts is None else lambda obj: obj.labels.get("app") == accepts,
            max_pending=max_pending,
        )

    def on_event(self, event: Event) -> None:
        with self.condition:
            self._check(event)
            self.condition.notify_all()

    def _check(self, event: Event) -> None:
        uid = event.object.uid
        before = self.shown.get(uid)
        if event.type is EventType.ADD:
            if any(obj.key == event.object.key for obj in self.shown.values()):
                self.wrong.append(f"added twice: {event}")
            self.shown[uid] = event.object
        elif event.type is EventType.UPDATE:
            if before is None or event.old != before:
                self.wrong.append(f"update of something not shown: {event}, shown {before}")
            elif int(event.object.resource_version) <= int(before.resource_version):
                self.wrong.append(f"went back: {event}")
            self.shown[uid] = event.object
        else:
            if before is None:
                self.wrong.append(f"delete of something not shown: {event}")
            self.shown.pop(uid, None)

    def wait_equal(self, source: FakeListWatch) -> None:
        def equal() -> bool:
            wanted = {
                obj.uid: obj.resource_version
                for obj in source.objects().values()
                if self.accepts in (None, obj.labels.get("app"))
            }
            return wanted == {uid: obj.resource_version for uid, obj in self.shown.items()}

        with self.condition:
            assert self.condition.wait_for(equal, 10), (self.shown, source.objects(), self.registration.statistics())
        assert self.wrong == []


class InformerMachine(RuleBasedStateMachine):
    @initialize(
        watch_list=st.booleans(), server=st.booleans(), page_size=st.sampled_from([0, 1, 2, 500]), stale=st.booleans()
    )
    def start(self, watch_list: bool, server: bool, page_size: int, stale: bool) -> None:
        self.source = FakeListWatch([pod("a"), pod("b", app="x")], watch_list=server)
        protocol = ProtocolConfig(
            page_size=page_size, prefer_stale=stale, watch_list=watch_list, backoff=FAST, short_watch=0.0,
            gone_after=0.001, not_found_cap=0.001,
        )  # fmt: skip
        self.informer = SharedInformer(self.source, protocol=protocol)
        self.handlers = [
            History(self.informer, None, None),
            History(self.informer, None, 1),
            History(self.informer, "x", 2),
        ]
        self.informer.start()

    @rule(name=NAMES, app=st.sampled_from(["x", "y"]))
    def write(self, name: str, app: str) -> None:
        known = f"ns/{name}" in self.source
        (self.source.modify if known else self.source.add)(pod(name, app=app))

    @rule(name=NAMES)
    def delete(self, name: str) -> None:
        if f"ns/{name}" in self.source:
            self.source.delete(f"ns/{name}")

    @rule(name=NAMES)
    def poison(self, name: str) -> None:
        if f"ns/{name}" in self.source:
            self.source.poison(f"ns/{name}")

    @rule()
    def compact(self) -> None:
        self.source.compact()

    @rule(error=st.none() | ERRORS)
    def drop_watches(self, error: Exception | None) -> None:
        self.source.drop_watches(error)

    @rule(stalled=st.booleans())
    def stall(self, stalled: bool) -> None:
        (self.source.stall if stalled else self.source.resume)()

    @rule(verb=st.sampled_from(["list", "watch"]), error=ERRORS, times=st.integers(1, 4))
    def fail(self, verb: str, error: Exception, times: int) -> None:
        self.source.fail_next(verb, error, times)  # type: ignore[arg-type]

    @rule()
    def bookmark(self) -> None:
        self.source.bookmark()

    @rule(max_pending=st.sampled_from([None, 1, 3]))
    @precondition(lambda self: len(self.handlers) < 6)
    def join_late(self, max_pending: int | None) -> None:
        self.handlers.append(History(self.informer, None, max_pending))

    @rule()
    def settle(self) -> None:
        """The faults stop: everything must come right."""
        self.source.clear_failures()
        self.source.resume()
        for key in self.source.poisoned():
            self.source.modify(pod(key.name, app="healed"))
        last = self.source.modify(pod("z")) if "ns/z" in self.source else self.source.add(pod("z"))
        self.informer.wait_for(last, 10)
        for handler in self.handlers:
            handler.wait_equal(self.source)
        cached = {obj.key: obj for obj in self.informer.lister.list()}
        assert cached == self.source.objects()
        status = self.informer.status()
        assert status.internal_errors == 0
        assert all(each.failed == 0 for each in status.handlers)

    def teardown(self) -> None:
        if hasattr(self, "informer"):
            self.settle()
            assert self.informer.stop(10), self.informer.status()


InformerMachine.TestCase.settings = settings(
    max_examples=60, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestInformerMachine = InformerMachine.TestCase
