"""Whatever a server answers, and however fast, it is never asked in a loop; and a good one is always synced with."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from informers.errors import (
    ConnectionRefused,
    ConnectionReset,
    ExpiredError,
    ForbiddenError,
    InternalError,
    InvalidError,
    KindNotFoundError,
    ServerTimeoutError,
    ServiceUnavailableError,
    TooManyRequestsError,
    UnauthorizedError,
)
from informers.protocol import AskList, AskWatch, Forget, Phase, Protocol, ProtocolConfig, Verdict, Wait

ERRORS = [
    ConnectionRefused("refused"),
    ConnectionReset("reset"),
    ExpiredError("expired"),
    ForbiddenError("forbidden"),
    InternalError("internal"),
    InvalidError("invalid"),
    KindNotFoundError("no kind"),
    ServerTimeoutError("Too large resource version"),
    ServiceUnavailableError("unavailable"),
    TooManyRequestsError("throttled"),
    UnauthorizedError("unauthorized"),
]
CONFIGS = st.builds(
    ProtocolConfig, page_size=st.sampled_from([0, 500]), prefer_stale=st.booleans(), watch_list=st.booleans()
)
ANSWERS = st.one_of(
    st.sampled_from(ERRORS),
    st.sampled_from(["older", "same", "newer", "page"]),
)


class Server:
    """Answers at once, as told; goes through its answers again and again."""

    def __init__(self, answers: list[object], events: int) -> None:
        self.answers = answers
        self.events = events
        self.asked = 0
        self.version = 100

    def next(self) -> object:
        self.asked += 1
        return self.answers[self.asked % len(self.answers)]

    def serve(self, core: Protocol, step: AskList | AskWatch, now: float) -> None:
        answer = self.next()
        if isinstance(answer, Exception) and self.asked % 2:
            core.failed(now, answer)
            return
        self.version += {"older": -1, "newer": 1}.get(str(answer), 0)
        if isinstance(step, AskList):
            core.page(now, str(self.version), "token" if answer == "page" else None)
            return
        core.opened(now)
        for number in range(self.events):
            kind = ("ADDED", "BOOKMARK", "MODIFIED")[(self.asked + number) % 3]
            end = self.asked % 3 == 0 and step.send_initial_events and number == self.events - 1
            verdict = core.event(now, "BOOKMARK" if end else kind, str(self.version), initial_events_end=end)
            if verdict is Verdict.STALE:
                return
        if isinstance(answer, Exception):
            core.failed(now, answer)
        else:
            core.closed(now)


def run(core: Protocol, server: Server, until: float, now: float = 0.0) -> float:
    pages = 0
    while now < until and server.asked < 1000:
        step = core.next(now)
        if isinstance(step, Wait):
            now += step.seconds
        elif not isinstance(step, Forget):
            # Pages of one list may follow each other at once; only a server without end could use that.
            pages = pages + 1 if isinstance(step, AskList) and step.continue_ else 0
            if pages > 3:
                core.page(now, str(server.version), None)
            else:
                server.serve(core, step, now)
    return now


@settings(max_examples=300, deadline=None)
@given(CONFIGS, st.lists(ANSWERS, min_size=1, max_size=6), st.integers(0, 3), st.integers(0, 2**16))
def test_no_server_is_asked_in_a_loop(config, answers, events, seed):
    server = Server(answers, events)
    run(Protocol(config, random.Random(seed).random), server, until=120.0)
    assert server.asked <= 150, "more than one request a second, for two minutes"


@settings(max_examples=200, deadline=None)
@given(CONFIGS, st.lists(ANSWERS, min_size=1, max_size=6), st.integers(0, 3), st.integers(0, 2**16))
def test_once_the_server_is_well_the_next_minute_brings_a_watch(config, answers, events, seed):
    core = Protocol(config, random.Random(seed).random)
    server = Server(answers, events)
    now = run(core, server, until=60.0)
    for _ in range(20):
        step = core.next(now)
        if isinstance(step, Wait):
            now += step.seconds
        elif isinstance(step, AskList):
            core.page(now, "1000", None)
        elif isinstance(step, AskWatch):
            core.opened(now)
            if not step.send_initial_events:
                break
            core.event(now, "BOOKMARK", "1000", initial_events_end=True)
            break
    assert core.phase is Phase.WATCHING
    assert core.failure is None or core.snapshots
    assert now <= 60.0 + 65.0
