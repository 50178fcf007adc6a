"""Plays a session to our informer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from informer_sessions.history import Played, Shown
from informer_sessions.script import MARKER, Script

from informers import Client, Event, EventType, ProtocolConfig, SharedInformer
from informers.backoff import BackoffConfig
from informers.event import Reason
from informers.testing import HistoryChecker

_NAMES = {EventType.ADD: "add", EventType.UPDATE: "update", EventType.DELETE: "delete"}
HANDLERS = ("our handler", "our merging handler", "our late handler")
_BACKOFF = BackoffConfig(base=0.001, cap=0.01)


def protocol(script: Script, **options: Any) -> ProtocolConfig:
    """How the script wants our informer to ask, with waits as short as client-go is given."""
    config: dict[str, Any] = {
        "page_size": script.client_page,
        "prefer_stale": script.client_stale,
        "watch_list": script.client_watch_list,
        "initial_silence": 0.1,
        "not_found_cap": 0.01,
        "backoff": _BACKOFF,
    }
    return ProtocolConfig(**config | options)


class Recorder:
    """A handler that keeps its events. `marked` is set once the marker was added, `busy` after three events or then."""

    def __init__(self) -> None:
        self.history: list[Shown] = []
        self.checker = HistoryChecker()
        self.busy = threading.Event()
        self.marked = threading.Event()

    def __call__(self, event: Event) -> None:
        self.checker(event)
        obj, old = event.object, event.old
        update = event.type is EventType.UPDATE
        self.history.append(
            Shown(
                event=_NAMES[event.type],
                key=str(obj.key),
                uid=obj.uid,
                rv=obj.resource_version,
                old_uid=old.uid if update and old is not None else "",
                old_rv=old.resource_version if update and old is not None else "",
                unknown=event.final_state_unknown,
                initial=event.reason is Reason.INITIAL,
            )
        )
        if event.type is EventType.ADD and obj.name == MARKER:
            self.marked.set()
        if self.marked.is_set() or len(self.history) == 3:
            self.busy.set()


def play(url: str, script: Script, seconds: float, options: Mapping[str, Any] | None = None) -> list[Played]:
    """What `HANDLERS` were shown: one gets everything, of one the waiting events are merged at once, one joins late."""
    with Client.from_url(url, timeout=seconds) as client:
        source = client.resource("v1", "ConfigMap").list_watch(namespace="ns")
        informer = SharedInformer(source, protocol=protocol(script, **(options or {})))
        recorders = [Recorder() for _ in HANDLERS]
        registrations = [
            informer.add_event_handler(on_event=recorder, max_pending=limit)
            for recorder, limit in zip(recorders, (None, 1), strict=False)
        ]
        informer.start()
        recorders[0].busy.wait(seconds)
        registrations.append(informer.add_event_handler(on_event=recorders[-1]))
        ended = [recorder.marked.wait(seconds) for recorder in recorders]
        cache = {
            str(obj.key): (obj.uid, obj.resource_version, str(obj.get("data", {}).get("n")))
            for obj in informer.lister.list()
        }
        synced, handlers = informer.has_synced(), [registration.has_synced() for registration in registrations]
        stopped = informer.stop(10)
        status = informer.status()
    trouble = [*(f"{name} did not end" for name in status.unfinished), *([] if stopped else ["it did not stop"])]
    if status.internal_errors or any(each.failed for each in status.handlers):
        trouble.append("an internal error")
    return [
        Played(end, tuple(recorder.history), cache, synced, handler, [*trouble, *recorder.checker.wrong], str(status))
        for recorder, end, handler in zip(recorders, ended, handlers, strict=True)
    ]
