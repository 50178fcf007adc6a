"""What a reflector asks next: Kubernetes' list-and-watch protocol as a pure state machine.

A shell (`informers.reflector`) asks `next(now)` for a step, does it, and reports what came back with `page`, `opened`,
`event`, `closed`, `silent` or `failed`. All knowledge of resourceVersions lives here: which version to list at, where
a watch resumes, when a version has become useless, and when the same question must not be asked again at once.

The rules follow the API concepts page ("Efficient detection of changes", "Streaming lists") and client-go's reflector;
`docs/informers.md` has them as a table. Nothing here reads a clock, draws randomness of its own, or blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from informers.backoff import Backoff, BackoffConfig
from informers.failure import Failure, FailureKind, classify
from informers.foreign import described
from informers.version import is_older


@dataclass(frozen=True, slots=True)
class ProtocolConfig:
    """Knobs of the protocol; durations in seconds.

    `page_size` 0 lists unpaged. `prefer_stale` accepts a first answer from a server's cache of any age (version "0").
    `watch_list` False never streams the initial list. A watch asks for `watch_timeout` (drawn from the range) and is
    given `watch_grace` more; after bookmarks were seen, `min_silence` or three times the longest gap. A streamed list
    may be quiet for `initial_silence` and take `initial_total`. A stream shorter than `short_watch` that brought
    nothing counts as a failure. A kind that was listed once and then is unknown for `gone_after` is taken as deleted.
    The waits of `backoff` end earlier where little is asked: at `not_found_cap` until a kind comes (back), at
    `refused_cap` while nobody listens, at `resume_cap` before a watch that only goes on.
    """

    page_size: int = 500
    prefer_stale: bool = False
    watch_list: bool = True
    watch_timeout: tuple[float, float] = (300.0, 600.0)
    watch_grace: float = 30.0
    min_silence: float = 180.0
    initial_silence: float = 30.0
    initial_total: float = 300.0
    short_watch: float = 1.0
    gone_after: float = 10.0
    not_found_cap: float = 5.0
    refused_cap: float = 5.0
    resume_cap: float = 10.0
    max_retry_after: float = 300.0
    backoff: BackoffConfig = field(default_factory=BackoffConfig)


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for `seconds` (0 or more), because of `reason`."""

    seconds: float
    reason: str


@dataclass(frozen=True, slots=True)
class AskList:
    """List one page."""

    resource_version: str
    resource_version_match: str | None
    limit: int | None
    continue_: str | None


@dataclass(frozen=True, slots=True)
class AskWatch:
    """Open a watch. `send_initial_events` True: the stream begins with the list (WatchList)."""

    resource_version: str
    timeout_seconds: int
    send_initial_events: bool
    resource_version_match: str | None


@dataclass(frozen=True, slots=True)
class Forget:
    """The kind is gone from the server: empty the sink."""


Step = Wait | AskList | AskWatch | Forget


class Verdict(Enum):
    """What the shell does with an answer."""

    APPLY = "apply"  # hand the event to the sink
    COLLECT = "collect"  # a piece of the list that is being read: keep it until SNAPSHOT
    SNAPSHOT = "snapshot"  # the list is complete: replace the sink's content with what was collected
    STALE = "stale"  # the list is older than what was seen before, or has no end: throw it away, close the stream
    BOOKMARK = "bookmark"  # only the version moved
    IGNORE = "ignore"


class Phase(Enum):
    """Where the protocol stands; shown in `status()`."""

    LISTING = "listing"
    STREAMING = "streaming"  # reading the initial list from a watch
    WATCHING = "watching"


_CONSISTENT = ""
_ANY = "0"
_SYNTHETIC_FROM = (_CONSISTENT, _ANY)


class Protocol:
    """One source's list-and-watch state. Not thread-safe: one shell drives it.

    `version` is the version of the last answer applied ("" before the first one), as the server spelled it. `gone`
    says that the kind was listed once and has been deleted from the server since. `opened_at` is when the open stream
    was opened. These may be read from other threads.
    """

    def __init__(self, config: ProtocolConfig, random: Callable[[], float]) -> None:
        self._config = config
        self._random = random
        self._backoff = Backoff(config.backoff, random)
        self.version = ""
        self.phase = Phase.LISTING
        self.failure: Failure | None = None
        self.snapshots = 0
        self.gone = False
        self.watch_list = config.watch_list
        self.opened_at: float | None = None
        self._wait_until: float | None = None
        self._asked: Step | None = None
        # Listing
        self._continue: str | None = None
        self._first_page = ""  # its version: what changes between two pages must still come on the watch
        self._unavailable = False  # the last version is of no use to the server: ask for a consistent list
        self._unpaged = False  # a continue token expired or led nowhere: read the list in one piece
        self._list_once = False  # the streamed list failed: try the plain one this time
        self._cut_short = 0  # streamed lists in a row that ended before they were complete
        self._snapshot_at: float | None = None
        self._listed_version = ""  # of the last list that was complete
        self._not_found_since: float | None = None
        self._forget = False
        # The open stream
        self._collecting = False
        self._synthetic = False  # the stream replays the present state with versions out of order
        self._received = 0
        self._opened_version = ""
        self._short_watches = 0
        self._last_sign = 0.0
        self._current_at: float | None = None  # of the watch before the list that is being read
        self._last_initial = 0.0
        self._longest_gap = 0.0
        self._bookmarked = False

    @property
    def current_at(self) -> float | None:
        """When the source last showed that what was handed over is all there is; None before the first list."""
        return self._last_sign if self.phase is Phase.WATCHING else self._current_at

    # ---- asking

    def next(self, now: float) -> Step:
        """The next thing to do. May be called again before the step is done: it then gives the same kind of step."""
        self.opened_at = None
        if self._forget:
            self._forget = False
            return Forget()
        if self._wait_until is not None:
            if now < self._wait_until:
                return Wait(self._wait_until - now, self.failure.message if self.failure else "")
            self._wait_until = None
        if self.phase is Phase.WATCHING:
            self._asked = self._watch_step(self.version, initial=False)
        elif self.watch_list and not self._list_once and self._continue is None:
            self.phase = Phase.STREAMING
            self._asked = self._watch_step(self._snapshot_version(), initial=True)
        else:
            self.phase = Phase.LISTING
            version = self._snapshot_version()
            # A limit with a version the server may answer from its cache is either ignored or reads past the cache.
            paged = version == _CONSISTENT and self._config.page_size > 0 and not self._unpaged
            self._asked = AskList(
                resource_version=version if self._continue is None else "",
                resource_version_match=None if version in _SYNTHETIC_FROM or self._continue else "NotOlderThan",
                limit=self._config.page_size if paged else None,
                continue_=self._continue,
            )
        return self._asked

    def _watch_step(self, version: str, *, initial: bool) -> AskWatch:
        low, high = self._config.watch_timeout
        seconds = int(low + (high - low) * self._random())
        return AskWatch(version, max(1, seconds), initial, "NotOlderThan" if initial else None)

    def _snapshot_version(self) -> str:
        if not self._config.prefer_stale or self._unavailable:
            return _CONSISTENT
        return self.version or _ANY

    # ---- answers to a list

    def page(self, now: float, resource_version: str, continue_: str | None) -> Verdict:
        """A page came: COLLECT (more to come), SNAPSHOT (that was the last) or STALE (of no use)."""
        asked = self._asked
        assert isinstance(asked, AskList)
        if self._is_stale(asked, resource_version):
            self._refuse_stale(now, resource_version)
            return Verdict.STALE
        if continue_ and continue_ == asked.continue_:
            self._list_failed(now, Failure(FailureKind.EXPIRED, "a page of the list leads to itself"), asked)
            return Verdict.STALE
        if asked.continue_ is None:
            self._first_page = resource_version
        if continue_:
            self._continue = continue_
            return Verdict.COLLECT
        self._complete(now, self._first_page)
        self.phase = Phase.WATCHING
        return Verdict.SNAPSHOT

    def _is_stale(self, asked: AskList | AskWatch, version: str) -> bool:
        if not version and self._listed_version:
            return True  # whatever answered, it was not the server that gave versions before
        return asked.resource_version != _CONSISTENT and is_older(version, self.version)

    def _complete(self, now: float, version: str) -> None:
        self.version = self._listed_version = version
        self.snapshots += 1
        self.failure = None
        self.gone = False
        self._snapshot_at = self._last_sign = now
        self._continue = None
        self._unavailable = self._unpaged = self._list_once = False
        self._not_found_since = None

    def _refuse_stale(self, now: float, version: str) -> None:
        self._continue = None
        self._unavailable = True
        said = (
            f"version {version}, older than {self.version} seen"
            if version
            else f"a list without a version after one at {self._listed_version}"
        )
        self._pause(now, Failure(FailureKind.STALE, f"the server answered with {said}"))

    # ---- answers to a watch

    def opened(self, now: float) -> None:
        """The server accepted the watch; events may follow."""
        asked = self._asked
        assert isinstance(asked, AskWatch)
        self._collecting = asked.send_initial_events
        # A list is overcome when it is complete, silence when something is heard: until then it may be silent again.
        if not self._collecting and self.failure is not None and self.failure.kind is not FailureKind.SILENT:
            self.failure = None
        self._synthetic = asked.resource_version in _SYNTHETIC_FROM and not asked.send_initial_events
        self.opened_at = self._last_sign = self._last_initial = now
        self._opened_version = self.version
        self._received = 0
        self._longest_gap = 0.0
        self._bookmarked = False

    def event(self, now: float, type_: str, version: str, *, initial_events_end: bool = False) -> Verdict:
        """An event came on the open stream. ERROR events are given to `failed` instead."""
        self._longest_gap = max(self._longest_gap, now - self._last_sign)
        self._last_sign = now
        self._received += 1
        if self.failure is not None and not self._collecting:
            self.failure = None
        if type_ == "BOOKMARK":
            return self._bookmark(now, version, initial_events_end)
        known = type_ in ("ADDED", "MODIFIED", "DELETED")
        if self._collecting:
            if type_ == "ADDED":
                self._last_initial = now
            return Verdict.COLLECT if known else Verdict.IGNORE
        if self._synthetic and type_ == "ADDED":
            return Verdict.APPLY
        self._synthetic = False
        self.version = version or self.version
        return Verdict.APPLY if known else Verdict.IGNORE

    @property
    def is_plain(self) -> bool:
        """Whether all changes that come have one verdict, until a bookmark comes."""
        return not self._synthetic

    def changes(self, now: float, count: int, version: str, *, added: bool) -> Verdict:
        """`event` for several changes in a row while `is_plain`: the last one's version, and whether one is ADDED."""
        self._longest_gap, self._last_sign = max(self._longest_gap, now - self._last_sign), now
        self._received += count
        if self._collecting:
            self._last_initial = now if added else self._last_initial
            return Verdict.COLLECT
        self.failure = None
        self.version = version or self.version
        return Verdict.APPLY

    def _bookmark(self, now: float, version: str, initial_events_end: bool) -> Verdict:
        self._bookmarked = True
        if not self._collecting:
            self._synthetic = False
            self.version = version or self.version
            return Verdict.BOOKMARK
        if not initial_events_end:
            return Verdict.IGNORE
        asked = self._asked
        assert isinstance(asked, AskWatch)
        self._collecting = False
        if self._is_stale(asked, version):
            self._refuse_stale(now, version)
            self.phase = Phase.LISTING
            return Verdict.STALE
        self._complete(now, version)
        self._opened_version = version
        self._cut_short = 0
        self.phase = Phase.WATCHING
        return Verdict.SNAPSHOT

    def deadline(self) -> float | None:
        """The moment by which the open stream must have shown a sign of life; None without a stream.

        May be read from another thread: a torn read costs one needless reconnect at worst.
        """
        opened, asked, config = self.opened_at, self._asked, self._config
        if opened is None or not isinstance(asked, AskWatch):
            return None
        if self._collecting:
            return min(self._last_initial + config.initial_silence, opened + config.initial_total)
        if self._bookmarked:
            return self._last_sign + max(config.min_silence, 3.0 * self._longest_gap)
        return opened + asked.timeout_seconds + config.watch_grace

    def silent(self, now: float) -> None:
        """The shell closed the stream because `deadline` passed."""
        self.opened_at = None
        if self._collecting:
            # The server took the request, but does not know (or loses) the bookmark that ends the list.
            self.watch_list = False
            self._list_instead(Failure(FailureKind.SILENT, "the streamed list did not end in time; listing in pages"))
            return
        quiet = now - self._last_sign
        self.failure = Failure(FailureKind.SILENT, f"the watch was silent for {quiet:.0f} s; reconnecting")

    def closed(self, now: float) -> None:
        """The stream ended without an error."""
        self._last_sign = now
        self._ended(now, None)

    def _ended(self, now: float, failure: Failure | None) -> None:
        lasted = self._lasted(now)
        self.opened_at = None
        short = lasted < self._config.short_watch
        if self._collecting:
            self._initial_cut(now, short, failure)
            return
        if not short:
            self._backoff.worked(lasted)
            self._short_watches = 0
            self.failure = failure
            return
        if not self._received:
            self._relist(now, failure or Failure(FailureKind.SHORT, "the watch ended at once without any event"))
            return
        # Events came, so the version is good; a server that cuts every stream must still not be asked in a loop.
        self._short_watches += 1
        if self.version == self._opened_version or self._short_watches > 3:
            self._pause(now, failure or Failure(FailureKind.SHORT, "the watch ended almost at once"))

    def _lasted(self, now: float) -> float:
        """How long the stream has been a watch (and not the list that it may have begun with)."""
        if self.opened_at is None:
            return 0.0
        listed = self._snapshot_at is not None and self._snapshot_at > self.opened_at and not self._collecting
        return now - (self._snapshot_at if listed else self.opened_at)  # type: ignore[operator]

    def _initial_cut(self, now: float, short: bool, failure: Failure | None) -> None:
        self._cut_short += 1
        if self._cut_short >= 3:
            self.watch_list = False
        self._list_instead(failure or Failure(FailureKind.SHORT, "the streamed list ended before it was complete"))
        if short:
            self._pause(now, self.failure)

    def _list_instead(self, failure: Failure | None) -> None:
        self._collecting = False
        self._list_once = True
        self.phase = Phase.LISTING
        self.failure = failure

    # ---- failures

    def failed(self, now: float, error: BaseException) -> None:
        """The request in flight failed: the list, the opening of a watch, or the stream (an ERROR event included)."""
        failure = classify(error)
        established = self.opened_at is not None
        asked = self._asked
        if failure.kind is not FailureKind.NOT_FOUND:
            self._not_found_since = None
        if isinstance(asked, AskList):
            self._list_failed(now, failure, asked)
        elif isinstance(asked, AskWatch) and asked.send_initial_events and (self._collecting or not established):
            self._initial_failed(now, failure, asked, established)
        else:
            self._watch_failed(now, failure, established)
        self.opened_at = None
        self._collecting = False

    def rejected(self, now: float, error: BaseException) -> None:
        """The answer was good but could not be used on this side: list again after a wait."""
        self.opened_at = None
        self._collecting = False
        self._relist(now, Failure(FailureKind.OTHER, described(error)))

    def _list_failed(self, now: float, failure: Failure, asked: AskList) -> None:
        kind = failure.kind
        if kind is FailureKind.EXPIRED and asked.continue_ and not self._unpaged:
            self._continue = None
            self._unpaged = True
            self.failure = failure
        elif kind in (FailureKind.EXPIRED, FailureKind.TOO_LARGE) and asked.resource_version != _CONSISTENT:
            self._unavailable = True
            self._pause_for(now, failure, failure.retry_after or 0.0)
        else:
            if not kind.is_passing:
                self._continue = None  # else the same page is asked again: its token is still good
            self._lost(now, failure)

    def _initial_failed(self, now: float, failure: Failure, asked: AskWatch, established: bool) -> None:
        kind = failure.kind
        if kind is FailureKind.UNSUPPORTED and not established:
            self.watch_list = False
            self._list_instead(failure)
        elif kind in (FailureKind.EXPIRED, FailureKind.TOO_LARGE) and asked.resource_version != _CONSISTENT:
            self._unavailable = True
            self._pause_for(now, failure, failure.retry_after or 0.0)
        elif kind is FailureKind.FORBIDDEN and not established:
            # The verb watch may be forbidden where list is not; what is missing then is for the watch after it to say.
            self._list_instead(self.failure)
        elif established:
            self._initial_cut(now, True, failure)
        else:
            self._lost(now, failure)
            # A proxy may choke on the stream alone; every third attempt goes without it.
            may_be_the_stream = kind in (FailureKind.CONNECTION, FailureKind.UNAVAILABLE, FailureKind.OTHER)
            self._list_once = may_be_the_stream and self._backoff.failures % 3 == 2

    def _watch_failed(self, now: float, failure: Failure, established: bool) -> None:
        kind = failure.kind
        if established:
            # Lists are dear: one that is soon of no use again must not be asked for at the pace of the first waits.
            lasted = self._lasted(now)
            self._backoff.worked(lasted if kind.is_passing else lasted - self._config.backoff.cap)
        if kind is FailureKind.EXPIRED:
            recent = self._snapshot_at is not None and now - self._snapshot_at < self._config.backoff.cap
            self._relist(now, failure, at_once=not recent)
        elif kind is FailureKind.TOO_LARGE:
            self._unavailable = True
            self._relist(now, failure)
        elif kind is FailureKind.CONNECTION and established:
            self._ended(now, failure)
        elif kind.is_passing:
            # The version is still good: no relist, which such a server could bear least.
            self._pause(now, failure, cap=self._config.resume_cap)
        else:
            self._relist(now, failure)

    def _relist(self, now: float, failure: Failure, *, at_once: bool = False) -> None:
        self._current_at = self.current_at
        self.phase = Phase.LISTING
        self._continue = None
        if at_once:
            self.failure = failure
        else:
            self._lost(now, failure)

    def _lost(self, now: float, failure: Failure) -> None:
        """Back off; notice when the kind itself has gone from the server."""
        if failure.kind is FailureKind.NOT_FOUND:
            if self._not_found_since is None:
                self._not_found_since = now
            elif self.version and now - self._not_found_since >= self._config.gone_after:
                self.version = ""
                self._forget = self.gone = True
        self._pause(now, failure)

    def _pause(self, now: float, failure: Failure | None, *, cap: float | None = None) -> None:
        if failure is not None and failure.kind is FailureKind.NOT_FOUND:
            cap = self._config.not_found_cap
        elif failure is not None and failure.kind is FailureKind.REFUSED:
            cap = self._config.refused_cap
        seconds = self._backoff.next(now, cap=cap)
        self._pause_for(now, failure, max(seconds, failure.retry_after or 0.0) if failure else seconds)

    def _pause_for(self, now: float, failure: Failure | None, seconds: float) -> None:
        self.failure = failure
        self._wait_until = now + min(seconds, self._config.max_retry_after)
