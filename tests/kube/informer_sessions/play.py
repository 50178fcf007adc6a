"""Plays one script to both sides, each on its own run of it, and says what is wrong."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from informer_sessions import ours
from informer_sessions.clientgo import ClientGo
from informer_sessions.history import CLIENT_GO_DOES, WE_DO, Played, deviations, final_cache
from informer_sessions.script import Script, generate
from informer_sessions.server import Server
from informer_sessions.session import Session

_SECONDS = 60
_number = itertools.count()


@dataclass(frozen=True)
class Outcome:
    """What came of a script on both sides; `wrong` is empty if all is well."""

    script: Script
    ours: Session
    theirs: Session
    shown_ours: list[Played]
    shown_theirs: Played | None
    wrong: list[str]

    def __str__(self) -> str:
        parts = [f"WRONG: {line}" for line in self.wrong] + ["SCRIPT", str(self.script)]
        for side, session, played in (
            ("OURS", self.ours, self.shown_ours),
            ("CLIENT-GO", self.theirs, [self.shown_theirs]),
        ):
            parts += [f"{side} ASKED", *(f"  {line}" for line in session.log)]
            for one in filter(None, played):
                parts += [f"{side} WAS SHOWN", *(f"  {shown}" for shown in one.history), f"  cache: {one.cache}"]
                parts += [f"  {one.status}"] if one.status else []
        return "\n".join(parts)


def play(script: Script, server: Server, client_go: ClientGo) -> Outcome:
    """Play it to both, at once."""
    session_id = f"{script.seed}.{next(_number)}".replace(" ", "-")
    sessions = Session(script), Session(script)
    paths = f"/{session_id}/ours", f"/{session_id}/client-go"
    urls = [server.add(path, session) for path, session in zip(paths, sessions, strict=True)]
    with ThreadPoolExecutor(1) as other:
        theirs = other.submit(
            client_go.play, session_id, urls[1], seconds=_SECONDS, watch_list=script.client_watch_list
        )
        shown_ours = ours.play(urls[0], script, _SECONDS)
        shown_theirs = theirs.result()
    for path in paths:
        server.remove(path)
    wrong = [*judge_ours(sessions[0], shown_ours), *judge_theirs(sessions[1], shown_theirs)]
    return Outcome(script, *sessions, shown_ours, shown_theirs, wrong)


def judge_ours(session: Session, each: list[Played]) -> Iterator[str]:
    wanted = final_cache(session)
    for name, played in zip(ours.HANDLERS, each, strict=True):
        if not played.ended:
            yield f"{name} never saw the end"
        if played.cache != wanted:
            yield f"our cache is {played.cache} instead of {wanted}"
        for rule, cases in deviations(played.history, session).items():
            if rule not in WE_DO:
                yield f"{name}: {rule}: {'; '.join(cases)}"
        yield from (f"{name}: {trouble}" for trouble in played.trouble)


def judge_theirs(session: Session, played: Played | None) -> Iterator[str]:
    if played is None:
        yield "client-go's process ended"
        return
    wanted = final_cache(session)
    if not played.ended:
        yield "client-go never saw the end"
    if played.cache != wanted:
        yield f"client-go's cache is {played.cache} instead of {wanted}"
    for rule, cases in deviations(played.history, session).items():
        if rule not in CLIENT_GO_DOES:
            yield f"client-go: {rule}: {'; '.join(cases)}"


def play_seeds(seeds: Iterable[int], server: Server, client_go: ClientGo, side_by_side: int = 24) -> Iterator[Outcome]:
    """Play the sessions of these seeds, so many at once; in their order."""
    with ThreadPoolExecutor(side_by_side) as pool:
        yield from pool.map(lambda seed: play(generate(seed), server, client_go), seeds)
