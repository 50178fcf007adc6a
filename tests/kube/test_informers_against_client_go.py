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
from informer_sessions.play import judge_ours, play_seeds
from informer_sessions.script import ENDS, EXTRAS, REFUSALS, SLOW_REFUSALS, generate
from informer_sessions.server import Server
from informer_sessions.session import Session

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
        assert not outcome.wrong, f"python -m informer_sessions {outcome.script.seed}\n{outcome}"


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
    assert items >= {"write", "delete", "recreate", "compact", "garble", "end", "no", "false"}
    assert items >= {extra.split()[0] for extra in EXTRAS}
    assert {act.end for act in acts} == {*ENDS}
