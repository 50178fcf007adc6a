"""`ResourceListWatch`: a resource in one scope, as a `Reflector` reads it."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from informers.cancellation import Cancellation
from informers.source import ObjectList, StreamedLists, WatchStream

if TYPE_CHECKING:
    from informers.resource import Resource

__all__ = ["ResourceListWatch"]

_PACE = 64 << 10
"""Bytes a second. A list in one piece may have any size, and the time for it cannot be known; but a line that is slower
than this is of no use to a cache, and a peer that sends a byte now and then must not hold it up for ever."""


class ResourceListWatch:
    """Implements `InterruptibleListWatch`. Made by `Resource.list_watch`; `description` names it in messages.

    Other than with `Resource.list`, `timeout` is the time for a list without progress: every 64 KiB that come give it
    another second, so that a huge one is not cut off while it comes, and one that drips is.
    """

    def __init__(
        self,
        resource: Resource,
        *,
        namespace: str | None,
        label_selector: str | None,
        field_selector: str | None,
        metadata_only: bool,
    ) -> None:
        self.description = _describe(resource, namespace, label_selector, field_selector)
        self._resource = resource
        self._namespace = namespace
        self._label_selector = label_selector
        self._field_selector = field_selector
        self._metadata_only = metadata_only
        self._cancellation = Cancellation(_PACE)

    @property
    def streamed_lists(self) -> StreamedLists | None:
        """See `ListWatch`."""
        known = getattr(self._resource._backend, "streamed_lists", None)
        found: StreamedLists | None = None if known is None else known(self._resource.description)
        return found

    def for_one_reader(self) -> ResourceListWatch:
        """The same scope again, to be interrupted without harm to other readers of this one."""
        return ResourceListWatch(
            self._resource,
            namespace=self._namespace,
            label_selector=self._label_selector,
            field_selector=self._field_selector,
            metadata_only=self._metadata_only,
        )

    def interrupt(self) -> None:
        """End the requests in flight, and let all later ones fail. Open watches are not touched: close those."""
        self._cancellation.cancel()

    def list(
        self,
        *,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        limit: int | None = None,
        continue_: str | None = None,
        timeout: float | None = None,
    ) -> ObjectList:
        """See `Resource.list`."""
        with self._interruptible():
            return self._resource.list(
                namespace=self._namespace,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
                metadata_only=self._metadata_only,
                resource_version=resource_version,
                resource_version_match=resource_version_match,
                limit=limit,
                continue_=continue_,
                timeout=timeout,
            )

    def watch(
        self,
        *,
        resource_version: str | None = None,
        timeout_seconds: float | None = None,
        allow_bookmarks: bool = True,
        send_initial_events: bool | None = None,
        resource_version_match: str | None = None,
        timeout: float | None = None,
    ) -> WatchStream:
        """See `Resource.watch`."""
        with self._interruptible():
            return self._resource.watch(
                namespace=self._namespace,
                label_selector=self._label_selector,
                field_selector=self._field_selector,
                metadata_only=self._metadata_only,
                resource_version=resource_version,
                timeout_seconds=timeout_seconds,
                allow_bookmarks=allow_bookmarks,
                send_initial_events=send_initial_events,
                resource_version_match=resource_version_match,
                timeout=timeout,
            )

    def _interruptible(self) -> AbstractContextManager[None]:
        # A backend that never waits (a store in memory) has nothing to interrupt.
        under = getattr(self._resource._backend, "under", None)
        context: AbstractContextManager[None] = nullcontext() if under is None else under(self._cancellation)
        return context

    def __repr__(self) -> str:
        return f"<ResourceListWatch {self.description}>"


def _describe(resource: Resource, namespace: str | None, labels: str | None, fields: str | None) -> str:
    what, at, server = resource.description.rpartition(" at ")
    scope = f" in namespace {namespace}" if namespace else ""
    selected = "".join(f" ({name} {text})" for name, text in (("labels", labels), ("fields", fields)) if text)
    return f"{what}{scope}{selected}{at}{server}"
