"""Where a reflector reads from: the small face of a list and a watch that `Resource.list_watch` and fakes share.

Nothing here speaks HTTP. A `ListWatch` stands for one kind in one scope (namespace, selectors); its methods block until
the answer is there and raise `ApiError` or `TransportError`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Protocol, Self

import msgspec

from informers.key import ObjectKey
from informers.object import Object

__all__ = ["InterruptibleListWatch", "ListWatch", "ObjectList", "StreamedLists", "WatchEvent", "WatchStream"]


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """One event of a watch. `type` is ADDED, MODIFIED, DELETED or BOOKMARK (then only the metadata means anything)."""

    type: str
    object: Object


class ObjectList(msgspec.Struct, frozen=True):
    """One page of a list.

    `continue_` is the token for the next page, "" on the last; `remaining` the server's guess of what follows it.
    `unreadable` has an entry for each item that could not be taken for an object: its key if that could be read.
    `size` is the length of the body in bytes, 0 where there was none. Iterates over its items.
    """

    items: Sequence[Object]
    resource_version: str
    continue_: str = ""
    remaining: int | None = None
    unreadable: Sequence[ObjectKey | None] = ()
    size: int = 0

    def __iter__(self) -> Iterator[Object]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class WatchStream(Protocol):
    """An open watch: an iterator of events that ends when the server ends it, or when it is closed.

    Raises `ApiError` for an ERROR event, `TransportError` when the connection breaks. `close` may be called from any
    thread and more than once; it ends a read that blocks, which then raises nothing but StopIteration. An
    attribute `unreadable` (int), where there is one, counts events that were left out because they were no objects,
    and `last_unreadable` (str) names the last of them; `unreadable_keys` has the keys of those that had one.
    A method `read_batch() -> list[WatchEvent]`, where there is one, gives what has come at once, waits for the first
    event, and gives an empty list at the end; reading so is much cheaper.
    """

    def __iter__(self) -> Iterator[WatchEvent]: ...
    def __next__(self) -> WatchEvent: ...
    def close(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class StreamedLists:
    """Whether a server streams the initial list of one resource, for all who read it. May be used from any thread."""

    def __init__(self) -> None:
        self.work = True
        """Until somebody finds that they are refused, or do not end."""


class ListWatch(Protocol):
    """Source of a reflector. `timeout` is the time for a list, or for the opening of a watch; a list may take longer
    while it makes progress.

    An attribute `description` (str), where there is one, names the source in messages. A method `for_one_reader`,
    where there is one, gives an `InterruptibleListWatch` of the same scope, so that a reader can be stopped while a
    request is in flight. Those with an attribute `streamed_lists` (`StreamedLists`) in common share that knowledge.
    """

    def list(
        self,
        *,
        resource_version: str | None = None,
        resource_version_match: str | None = None,
        limit: int | None = None,
        continue_: str | None = None,
        timeout: float | None = None,
    ) -> ObjectList:
        """Read the objects, or a page of at most `limit`; `continue_` is what the page before gave. Blocks.

        `resource_version` "" asks for the present state, "0" for any, another one for a state not older (or, as
        `resource_version_match` says, for that one). Raises `ApiError` for what a server answers (`ExpiredError` for a
        version or a token that is too old) and `TransportError` where no whole answer came.
        """
        ...

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
        """Follow what happens after `resource_version`. Blocks until the source has agreed; the stream has the events.

        `timeout_seconds` is when the source is to end the stream. `send_initial_events` asks for the present objects as
        ADDED events first, and for a bookmark that ends them. Raises as `list` does; who cannot send initial events
        raises `InvalidError`, and is then asked for lists.
        """
        ...


class InterruptibleListWatch(ListWatch, Protocol):
    """A source that belongs to one reader and can be taken away from it."""

    def interrupt(self) -> None:
        """End the requests in flight, and let all later ones fail. From any thread; does not block."""
