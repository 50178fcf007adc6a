"""Watches some kinds in one namespace and keeps every event: the story's eyes, and the only place where it waits.

One thread a kind, on plain list and watch rather than on an informer, because an informer may merge events that nobody
has read yet and here each one counts.
"""

import logging
import threading
from collections.abc import Callable, Sequence
from typing import TypeVar

from informers import Client, InformersError, Object, Resource, WatchStream
from informers.errors import GoneError
from pysedna.demo.errors import StepFailed
from pysedna.demo.history import History, phase
from workqueue import Clock
from workqueue.clock import MonotonicClock

T = TypeVar("T")
log = logging.getLogger(__name__)

RETRY_SECONDS = 0.2


class Recorder:
    """Keeps a History of `kinds` in `namespace` from `start` to `stop`. Its methods may be called from any thread."""

    def __init__(
        self, client: Client, kinds: Sequence[tuple[str, str]], namespace: str, *, clock: Clock | None = None
    ) -> None:
        self._client = client
        self._kinds = kinds
        self._namespace = namespace
        self._clock = clock or MonotonicClock()
        self._started = self._clock.now()
        self._changed = threading.Condition()
        self._history = History()
        self._stop = threading.Event()
        self._given_up = False
        self._streams: dict[str, WatchStream] = {}
        self._versions: dict[str, str] = {}  # each written by the thread of its kind
        self._threads: list[threading.Thread] = []

    def start(self) -> None:
        """Lists every kind, then watches each from there. Blocks for the lists; raises what they raise."""
        for api_version, kind in self._kinds:
            resource = self._client.resource(api_version, kind)
            self._list(resource, kind)
            thread = threading.Thread(target=self._follow, args=(resource, kind), name=f"demo-watch-{kind}")
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """Ends the watches and joins their threads."""
        self._stop.set()
        with self._changed:
            streams = list(self._streams.values())
        for stream in streams:
            stream.close()
        for thread in self._threads:
            thread.join()

    def seconds(self) -> float:
        """Seconds since this recorder was made."""
        return self._clock.now() - self._started

    def ask(self, question: Callable[[History], T]) -> T:
        """The answer to a question about the history as it is now."""
        with self._changed:
            return question(self._history)

    def wait_for(self, what: str, question: Callable[[History], T], timeout: float) -> T:
        """Asks again after each event until the answer is true, and returns it.

        Raises StepFailed, which names `what` and shows the pods that live, after `timeout` seconds or `give_up`.
        """
        deadline = self._clock.now() + timeout
        with self._changed:
            while not (answer := question(self._history)):
                if self._given_up:
                    raise StepFailed(f"waited for {what} until it was interrupted")
                left = deadline - self._clock.now()
                if left <= 0:
                    raise StepFailed(f"waited {timeout:g} s for {what}; seen: {_summary(self._history)}")
                self._clock.wait(self._changed, left)
            return answer

    def give_up(self) -> None:
        """Let all waits fail, now and from now on."""
        with self._changed:
            self._given_up = True
            self._changed.notify_all()

    def _list(self, resource: Resource, kind: str) -> None:
        listed = resource.list(namespace=self._namespace)
        with self._changed:
            self._history.replace(kind, list(listed.items), self.seconds())
            self._versions[kind] = listed.resource_version
            self._changed.notify_all()

    def _follow(self, resource: Resource, kind: str) -> None:
        while not self._stop.is_set():
            try:
                self._watch(resource, kind)
            except GoneError:
                with self._changed:
                    self._history.gaps += 1
                    self._versions.pop(kind, None)
            except InformersError as error:
                if not self._stop.is_set():
                    log.info("watching %s: %s", kind, error)
                    self._stop.wait(RETRY_SECONDS)

    def _watch(self, resource: Resource, kind: str) -> None:
        if kind not in self._versions:
            self._list(resource, kind)
        with resource.watch(namespace=self._namespace, resource_version=self._versions[kind]) as stream:
            with self._changed:
                self._streams[kind] = stream
            if self._stop.is_set():
                return
            for event in stream:
                self._versions[kind] = event.object.resource_version
                if event.type != "BOOKMARK":
                    self._observe(event.type, event.object)

    def _observe(self, type: str, obj: Object) -> None:
        with self._changed:
            self._history.observe(type, obj, self.seconds())
            self._changed.notify_all()


def _summary(history: History) -> str:
    pods = [f"{pod.name} {'leaving' if pod.deletion_timestamp else phase(pod)}" for pod in history.live("Pod")]
    owned = [f"{obj.kind} {obj.name}" for obj in history.all_live() if obj.owner_references]
    return ", ".join(pods or owned) or "no pods"
