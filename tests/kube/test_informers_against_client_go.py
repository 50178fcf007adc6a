"""Our informer against the original: seeded sessions of a server with faults are played to both.

Each side gets its own run of the same script. When the faults are over both caches must hold what the server does, and
each handler must have been shown a history that leads there. One session again, with all that was asked and shown:
``python -m informer_sessions SEED``, in this folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from informer_sessions import ours
from informer_sessions.clientgo import ClientGo
from informer_sessions.history import OTHER_ORDER, SAME_AGAIN, UID_CHANGED, UNKNOWN_DELETED, Shown, deviations
from informer_sessions.play import judge_ours, play, play_seeds
from informer_sessions.script import ENDS, EXTRAS, RARE, REFUSALS, SLOW_REFUSALS, Act, Script, generate
from informer_sessions.server import Server
from informer_sessions.session import Request, Session

SESSIONS = 200
BLOCK = 25


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as server:
        yield server
    assert server.strays == []


@pytest.fixture(scope="module")
def client_go(build_program: Callable[..., Path]) -> Iterator[ClientGo]:
    with ClientGo(build_program("build", package="./informer")) as running:
        yield running


@pytest.mark.kube
@pytest.mark.timeout(900)  # the first build compiles client-go
@pytest.mark.parametrize("first", range(0, SESSIONS, BLOCK))
def test_both_end_equal_by_legal_histories(first: int, server: Server, client_go: ClientGo) -> None:
    for outcome in play_seeds(range(first, first + BLOCK), server, client_go):
        assert not outcome.wrong, f"cd tests/kube; python -m informer_sessions {outcome.script.seed}\n{outcome}"


@pytest.mark.kube
@pytest.mark.timeout(900)
@pytest.mark.parametrize("script", RARE, ids=lambda script: script.seed)
def test_what_is_rare(script: Script, server: Server, client_go: ClientGo) -> None:
    outcome = play(script, server, client_go)
    assert not outcome.wrong, str(outcome)


@pytest.mark.parametrize("seed", range(SESSIONS, SESSIONS + 20))
def test_ours_alone(seed: int, server: Server) -> None:
    """A few where there is no Go."""
    script = generate(seed)
    session = Session(script)
    played = ours.play(server.add(f"/alone-{seed}/ours", session), script, 60)
    assert [*judge_ours(session, played)] == [], "\n".join([str(script), *session.log])


def test_the_sessions_have_every_fault() -> None:
    """So that the generator cannot lose one unseen."""
    acts = [act for seed in range(SESSIONS) for act in generate(seed).acts]
    assert {act.answer for act in acts} >= {"", *REFUSALS, *SLOW_REFUSALS}
    items = {item.split()[0] for act in acts for item in (*act.before, *act.stream)}
    assert items >= {"write", "delete", "recreate", "compact", "garble", "maim", "end", "no", "false"}
    assert items >= {extra.split()[0] for extra in EXTRAS}
    assert {act.end for act in acts} == {*ENDS}


# Of a session with an object a, and b created and deleted on a watch that surely was read; "x was y" is an update.
ADDS = "add a-1@101 initial, add b-1@102, delete b-1@103, "
WRONG = {
    "an add of what is there": ADDS + "add zz-1@104, add a-1@101",
    "a version told twice": ADDS + "add zz-1@104, add a-1@101",
    "an object that was deleted comes back": ADDS + "add b-1@105, add zz-1@104",
    "an update of what was not shown": "add a-1@101 initial, update b-1@102 was b-1@102, add zz-1@104",
    "an update from another state than was shown": ADDS + "update a-1@105 was a-1@100, add zz-1@104",
    "an update back in time": ADDS + "update a-1@100 was a-1@101, add zz-1@104",
    "a tombstone with a state before the one that was shown": "add a-1@101, delete a-1@100 unknown",
    "a tombstone although the deletion was told": "add b-1@102, delete b-1@102 unknown",
    "a final state that nobody told": "add a-1@101 initial, delete a-1@105",
    "a delete of another object than was shown": "add a-1@101 initial, delete a-2@105",
    "an object of the first list after something else of that name": ADDS + "delete a-1@105, add a-2@106 initial",
    "another end than the server's": "add a-1@101 initial",
    "no end": "add a-1@101 initial",
    UID_CHANGED: ADDS + "update a-2@105 was a-1@101",
    SAME_AGAIN: ADDS + "update a-1@101 was a-1@101",
    UNKNOWN_DELETED: ADDS + "delete b-1@103",
    OTHER_ORDER: "add b-1@102, add a-1@101 initial",
}


def shown(text: str) -> Shown:
    event, this, *rest = text.split()
    uid, rv = this.split("@")
    old_uid, old_rv = rest[rest.index("was") + 1].split("@") if "was" in rest else ("", "")
    key = "ns/" + uid.split("-")[0]
    return Shown(event, key, uid, rv, old_uid, old_rv, unknown="unknown" in rest, initial="initial" in rest)


def checked(text: str) -> dict[str, list[str]]:
    session = Session(Script("check", (Act(stream=("write b", "delete b")),), "a"))
    session.answer(Request("watch", "101"))
    session.answer(Request("watch", "103"))
    return deviations(map(shown, text.split(", ")), session)


@pytest.mark.parametrize("rule", WRONG)
def test_the_checker_finds(rule: str) -> None:
    assert rule in checked(WRONG[rule])


def test_the_checker_finds_nothing_in_what_is_right() -> None:
    assert checked(ADDS + "add zz-1@104") == {}
