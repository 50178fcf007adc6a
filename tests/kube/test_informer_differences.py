"""Where our informer decides differently from client-go's: each case is played to both, and both are held to it.

docs/informers.md has these as a table, with the reasons; what is not about events and requests has a test of its own
below the cases. Events are written "add a-1@101": the uid is the name and the
number of its life, the version counts the writes; the first object of a session is at version 101.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from informer_sessions import ours
from informer_sessions.clientgo import ClientGo
from informer_sessions.history import Played
from informer_sessions.script import MARKER, Act, Script
from informer_sessions.server import Server
from informer_sessions.session import Session

from informers import Client, SharedInformer, SharedInformerFactory

pytestmark = [
    pytest.mark.kube,
    pytest.mark.timeout(900),  # the first build compiles client-go
]

SECONDS = 30
FIRST_LIST = Act()
LOST = Act(end="error 410 expired")  # a watch that lost its place, so that a list follows


@dataclass(frozen=True)
class Case:
    """A session, what both handlers are shown (without the marker), and what both ask where that matters."""

    acts: tuple[Act, ...]
    here: list[str]
    there: list[str]
    asked_here: list[str] = field(default_factory=list)
    asked_there: list[str] = field(default_factory=list)
    initial: str = "a"
    traits: Mapping[str, Any] = field(default_factory=dict)
    protocol: Mapping[str, Any] = field(default_factory=dict)
    cached_there: Mapping[str, str] = field(default_factory=dict)  # versions that differ from the server's

    @property
    def script(self) -> Script:
        plain = Script("case", self.acts, initial=self.initial, client_watch_list=False, client_page=0)
        return replace(plain, **self.traits)


CASES = {
    "a list shows an object that did not change": Case(
        acts=(FIRST_LIST, LOST),
        here=["add a-1@101 initial"],
        there=["add a-1@101 initial", "update a-1@101 was a-1@101"],
    ),
    "deleted and re-created while nobody watched": Case(
        acts=(FIRST_LIST, LOST, Act(before=("recreate a",))),
        here=["add a-1@101 initial", "delete a-1@101 unknown", "add a-2@103"],
        there=["add a-1@101 initial", "update a-2@103 was a-1@101"],
    ),
    "an event comes twice": Case(
        acts=(FIRST_LIST, Act(stream=("write a", "again"))),
        here=["add a-1@101 initial", "update a-1@102 was a-1@101"],
        there=["add a-1@101 initial", "update a-1@102 was a-1@101", "update a-1@102 was a-1@102"],
    ),
    "a deletion comes twice": Case(
        acts=(FIRST_LIST, Act(stream=("delete a", "again"))),
        here=["add a-1@101 initial", "delete a-1@102"],
        there=["add a-1@101 initial", "delete a-1@102", "delete a-1@102"],
    ),
    "an event is older than the cache": Case(
        acts=(FIRST_LIST, Act(stream=("write a", "write a", "stale a", "bookmark"))),
        here=["add a-1@101 initial", "update a-1@102 was a-1@101", "update a-1@103 was a-1@102"],
        there=[
            "add a-1@101 initial", "update a-1@102 was a-1@101", "update a-1@103 was a-1@102",
            "update a-1@102 was a-1@103",
        ],
        cached_there={"ns/a": "102"},
    ),
    "a list is older than what was seen": Case(
        acts=(FIRST_LIST, Act(stream=("write a", "write b"), end="error 410 expired"), Act(answer="old list")),
        here=["add a-1@101 initial", "update a-1@102 was a-1@101", "add b-1@103"],
        there=[
            "add a-1@101 initial", "update a-1@102 was a-1@101", "add b-1@103",
            "delete b-1@103 unknown", "update a-1@101 was a-1@102", "update a-1@102 was a-1@101", "add b-1@103",
        ],
        asked_here=["list '0'", "watch '101'", "list '103'", "list ''", "watch '103'"],
        asked_there=["list '0' limit=500", "watch '101'", "list '103'", "watch '101'"],
        traits={"client_stale": True},
    ),
    "a list without a version": Case(
        acts=(FIRST_LIST, LOST, Act(answer="no version")),
        here=["add a-1@101 initial"],
        there=["add a-1@101 initial", "update a-1@101 was a-1@101", "update a-1@101 was a-1@101"],
        asked_here=["list ''", "watch '101'", "list ''", "list ''", "watch '101'"],
        asked_there=["list '0' limit=500", "watch '101'", "list '101'", "watch ''"],
    ),
    "the first list may be of any age": Case(
        acts=(Act(before=("write a", "write a")),),
        here=["add a-1@103 initial"],
        there=["add a-1@101 initial", "update a-1@102 was a-1@101", "update a-1@103 was a-1@102"],
        traits={"lag": 2},
    ),
    "an event that cannot be read": Case(
        acts=(FIRST_LIST, Act(stream=("junk line", "write b"))),
        here=["add a-1@101 initial", "add b-1@102"],
        there=["add a-1@101 initial", "update a-1@101 was a-1@101", "add b-1@102"],
        asked_here=["list ''", "watch '101'", "watch '102'"],
        asked_there=["list '0' limit=500", "watch '101'", "list '101'", "watch '102'"],
    ),
    "an object without a name": Case(
        acts=(FIRST_LIST, Act(stream=("nameless", "write a"))),
        here=["add a-1@101 initial", "update a-1@102 was a-1@101"],
        there=["add a-1@101 initial", "add @999", "update a-1@102 was a-1@101"],
        cached_there={"": "999"},
    ),
    "an item of a list that is no object": Case(
        acts=(Act(answer="broken item", stream=("bookmark",)),) * 3,
        here=["add a-1@101 initial"],
        there=["add a-1@101 initial"],
        asked_here=["list ''", "watch '101'", "watch '101'", "watch '101'"],
        asked_there=[*["list '0' limit=500"] * 4, "watch '101'"],
    ),
    "a key that is listed twice": Case(
        acts=(Act(answer="listed twice"),),
        here=["add a-1@101 initial"],
        there=["add a-1@101 initial", "add a-1@101 initial"],
    ),
    "a streamed list that is never said to be complete": Case(
        acts=(Act(stream=("no end",), end="hold"), Act(stream=("no end",), end="hold")),
        here=["add a-1@101 initial"],
        there=["add a-1@101 initial"],
        asked_here=["stream ''", "list ''", "watch '101'"],
        asked_there=["stream ''", "stream ''", "stream ''"],
        traits={"client_watch_list": True},
    ),
    "a server that refuses to stream the list": Case(
        acts=(Act(), Act(), LOST),
        here=["add a-1@101 initial"],
        there=["add a-1@101 initial", "update a-1@101 was a-1@101"],
        asked_here=["stream ''", "list ''", "watch '101'", "list ''", "watch '101'"],
        asked_there=["stream ''", "list '0' limit=500", "watch '101'", "stream '101'", "list '101'", "watch '101'"],
        traits={"client_watch_list": True, "watch_list": False},
    ),
    "a watch is answered with 503": Case(
        acts=(FIRST_LIST, Act(answer="503")),
        here=["add a-1@101 initial"],
        there=["add a-1@101 initial", "update a-1@101 was a-1@101"],
        asked_here=["list ''", "watch '101'", "watch '101'"],
        asked_there=["list '0' limit=500", "watch '101'", "list '101'", "watch '101'"],
    ),
    "the kind is gone for a while": Case(
        acts=(FIRST_LIST, LOST, *[Act(answer="404")] * 4),
        here=["add a-1@101 initial", "delete a-1@101 unknown", "add a-1@101"],
        there=["add a-1@101 initial", "update a-1@101 was a-1@101"],
        protocol={"gone_after": 0.0},
    ),
}  # fmt: skip

BEHAVIOURS = (
    "a handler that fails on the first list",
    "an index function that fails",
    "a handler that is slower than the events",
    "a handler asks for a resync, the informer for none",
    "an informer asked of a running factory",
)
"""What is done with events and informers, each a test of its own at the end."""


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server
    assert server.strays == []


@pytest.fixture(scope="module")
def program(build_program: Callable[..., Path]) -> Path:
    return build_program("build", package="./informer")


@pytest.fixture(scope="module")
def client_go(program: Path) -> Iterator[ClientGo]:
    with ClientGo(program, "-survive-panics") as running:
        yield running


class Stage:
    """A session for each side of one test, and how it is played there."""

    def __init__(self, server: Server, client_go: ClientGo, name: str) -> None:
        self._server, self._client_go, self._name = server, client_go, name

    def open(self, script: Script, side: str) -> tuple[Session, str]:
        session = Session(script)
        return session, self._server.add(f"/{self._name}/{side}", session)

    def theirs(self, script: Script, **options: Any) -> tuple[Session, Played]:
        session, url = self.open(script, "there")
        options = {"seconds": SECONDS, "watch_list": script.client_watch_list} | options
        played = self._client_go.play(self._name, url, **options)
        assert played is not None, self._client_go.errors
        return session, played


@pytest.fixture
def stage(server: Server, client_go: ClientGo, request: pytest.FixtureRequest) -> Stage:
    return Stage(server, client_go, request.node.name.replace(" ", "-").replace("[", "-").replace("]", ""))


def lines(played: Played) -> list[str]:
    return [str(shown) for shown in played.history if shown.key != f"ns/{MARKER}"]


def asked(session: Session) -> list[str]:
    return [line.split(": ", 1)[1].split(" ->")[0] for line in session.log]


def versions(played: Played) -> dict[str, str]:
    return {key: version for key, (_, version, _) in played.cache.items()}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_case(case: Case, stage: Stage) -> None:
    session, url = stage.open(case.script, "here")
    here, *_ = ours.play(url, case.script, SECONDS, case.protocol)
    assert here.ended, session.log
    assert lines(here) == case.here
    assert asked(session) == case.asked_here or not case.asked_here
    wanted = {f"ns/{name}": body["metadata"]["resourceVersion"] for name, body in session.world.now().items()}
    assert versions(here) == wanted

    session, there = stage.theirs(case.script)
    assert there.ended, session.log
    assert lines(there) == case.there
    assert asked(session) == case.asked_there or not case.asked_there
    assert versions(there) == wanted | dict(case.cached_there)


def test_the_document_has_every_case() -> None:
    text = (Path(__file__).parents[2] / "docs" / "informers.md").read_text()
    table = text.partition("## Differences from client-go")[2].partition("What cannot be played")[0]
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert rows == ["situation", "---", *CASES, *BEHAVIOURS]
    assert {f"test_{name.replace(',', '').replace(' ', '_')}" for name in BEHAVIOURS} <= globals().keys()


def test_both_follow_a_server_that_was_restored_from_a_backup(stage: Stage) -> None:
    acts = (FIRST_LIST, Act(stream=("write a", "write b")), Act(before=("restore 101",)), *[Act()] * 2)
    script = Script("case", acts, "a", client_watch_list=False)
    _, url = stage.open(script, "here")
    here, there = ours.play(url, script, SECONDS)[0], stage.theirs(script)[1]
    assert lines(here)[3:5] == lines(there)[3:5] == ["delete b-1@103 unknown", "update a-1@101 was a-1@102"]
    assert here.cache == there.cache
    assert versions(here) == {"ns/a": "101", f"ns/{MARKER}": "102"}


def test_both_show_deletions_before_what_is_new(stage: Stage) -> None:
    script = Script("case", (FIRST_LIST, LOST, Act(before=("delete b", "write c"))), "ab", client_watch_list=False)
    shown = ["delete b-1@102 unknown", "add c-1@104"]
    _, url = stage.open(script, "here")
    assert lines(ours.play(url, script, SECONDS)[0])[2:] == shown
    assert [line for line in lines(stage.theirs(script)[1])[2:] if "was" not in line] == shown


@pytest.fixture
def informer(stage: Stage) -> Iterator[Callable[[Script], SharedInformer]]:
    """informer(script) is one of ours that follows a session; not started."""
    made: list[tuple[Client, SharedInformer]] = []

    def make(script: Script, **options: Any) -> SharedInformer:
        _, url = stage.open(script, "here")
        client = Client.from_url(url, timeout=SECONDS)
        source = client.resource("v1", "ConfigMap").list_watch(namespace="ns")
        made.append((client, SharedInformer(source, protocol=ours.protocol(script), **options)))
        return made[-1][1]

    yield make
    for client, one in made:
        assert one.stop(10), one.status().unfinished
        client.close()


TWO = Script("case", (FIRST_LIST,), "ab", client_watch_list=False)


def test_a_handler_that_fails_on_the_first_list(stage: Stage, informer: Callable[..., SharedInformer]) -> None:
    recorder = ours.Recorder()

    def fails(event: Any) -> None:
        recorder(event)
        if event.object.name == "a":
            raise RuntimeError("handler: a")

    one = informer(TWO)
    registration = one.add_event_handler(on_event=fails)
    one.start()
    assert recorder.marked.wait(SECONDS)
    registration.wait_for_sync(SECONDS)
    assert registration.statistics().failed == 1

    _, there = stage.theirs(TWO, panicOn="a", lingerMillis=200)
    assert lines(there) == ["add a-1@101 initial", "add b-1@102 initial"]
    assert there.synced
    assert not there.handler_synced


def test_an_index_function_that_fails(server: Server, program: Path, informer: Callable[..., SharedInformer]) -> None:
    def fails(obj: Any) -> list[str]:
        if obj.name == "a":
            raise RuntimeError("index function: a")
        return [obj.name]

    recorder = ours.Recorder()
    one = informer(TWO, indexers={"fails": fails})
    one.add_event_handler(on_event=recorder)
    one.start()
    assert recorder.marked.wait(SECONDS)
    assert one.lister.get("ns/a").uid == "a-1"
    assert [obj.name for obj in one.lister.by_index("fails", "b")] == ["b"]
    assert one.status().index_errors == {"fails": 1}

    url = server.add("/index/there", Session(TWO))
    with ClientGo(program) as mortal:
        assert mortal.play("index", url, seconds=SECONDS, watch_list=False, indexPanicOn="a") is None
        assert mortal.close() == 2
    assert "panic: index function: a" in mortal.errors


def test_a_handler_that_is_slower_than_the_events(stage: Stage, informer: Callable[..., SharedInformer]) -> None:
    script = replace(TWO, acts=(FIRST_LIST, Act(stream=("write a",) * 50)))
    recorder = ours.Recorder()
    one = informer(script)

    def waits(event: Any) -> None:
        assert marked.wait(SECONDS)
        recorder(event)

    marked = threading.Event()
    one.add_event_handler(on_event=waits, max_pending=4)
    one.add_event_handler(on_add=lambda obj, _: marked.set() if obj.name == MARKER else None)
    one.start()
    assert recorder.marked.wait(SECONDS)
    assert len(recorder.history) <= 5  # what it was called with, and four that waited
    assert {shown.uid: shown.rv for shown in recorder.history} == {"a-1": "152", "b-1": "102", "zz-1": "153"}

    _, there = stage.theirs(script, hold=True)
    assert len(lines(there)) == 2 + 50


def test_a_handler_asks_for_a_resync_the_informer_for_none(
    stage: Stage, informer: Callable[..., SharedInformer]
) -> None:
    recorder, again = ours.Recorder(), threading.Event()
    one = informer(TWO)
    one.add_event_handler(on_event=recorder, on_update=lambda old, new: again.set(), resync=1.0)
    one.start()
    assert again.wait(SECONDS)

    _, there = stage.theirs(TWO, resyncMillis=1000, lingerMillis=2500)
    assert lines(there) == ["add a-1@101 initial", "add b-1@102 initial"]


def test_an_informer_asked_of_a_running_factory(server: Server, stage: Stage) -> None:
    _, url = stage.open(TWO, "here")
    with Client.from_url(url, timeout=SECONDS) as client, SharedInformerFactory(client, namespace="ns") as factory:
        factory.start()
        one = factory.informer("v1", "ConfigMap")
        one.wait_for_sync(SECONDS)
        assert one.lister.get("ns/a").uid == "a-1"

    session, there = stage.theirs(TWO, late=True, seconds=1)
    assert (there.synced, there.cache, session.log) == (False, {}, [])
