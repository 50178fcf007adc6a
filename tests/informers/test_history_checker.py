"""The shipped checks: what cannot be is found and named, and what can be is let pass."""

from __future__ import annotations

import threading

import pytest

from informers import Event, EventType, Reason
from informers.testing import FakeListWatch, HistoryChecker, assert_cache_matches

WATCH, RELIST, RESYNC = Reason.WATCH, Reason.RELIST, Reason.RESYNC


@pytest.fixture
def event(pod):
    """event("update u/1 u/2 relist unknown") -> Event; the name is "a" unless a third part says otherwise."""

    def make(text: str) -> Event:
        kind, *words = text.split()
        unknown = "unknown" in words
        reasons = [Reason(word) for word in words if word in {reason.value for reason in Reason}]
        objs = [pod(*_parts(word)) for word in words if "/" in word]
        old = objs[0] if kind != "add" else None
        new = objs[-1] if kind != "delete" else None
        return Event(EventType(kind), old, new, reasons[0] if reasons else WATCH, unknown, old)

    def _parts(word: str) -> tuple[str, str, str]:
        uid, version, *name = word.split("/")
        return (name[0] if name else "a", version, uid)

    return make


LEGAL = {
    "a whole life": ["add u/1", "update u/1 u/2", "delete u/3"],
    "the final state may be the last one shown": ["add u/1", "delete u/1"],
    "another one under the name": ["add u/1", "delete u/2", "add v/3"],
    "two names": ["add u/1", "add v/2/b", "delete u/3"],
    "a delete that was not seen": ["add u/1", "delete u/1 relist unknown"],
    "a kind that went and came back": ["add u/1", "delete u/1 relist unknown", "add u/1 relist"],
    "shown again": ["add u/1", "update u/1 u/1 resync", "update u/1 u/2"],
    "versions that are no numbers": ["add u/b", "update u/b u/a"],
    "objects without identity": ["add /", "update / /"],
}


@pytest.mark.parametrize("lines", LEGAL.values(), ids=LEGAL)
def test_what_can_be_passes(event, lines):
    checker = HistoryChecker()
    for line in lines:
        checker(event(line))
    checker.check()
    assert checker.events == len(lines)


WRONG = {
    "added twice": ["add u/1", "add u/2"],
    "added while the earlier one": ["add u/1", "add v/2"],
    "added after it was deleted": ["add u/1", "delete u/2", "add u/1"],
    "an update of what was not added": ["update u/1 u/2"],
    "an update of another version": ["add u/1", "update u/2 u/3"],
    "an update of one object to another": ["add u/1", "update u/1 v/3"],
    "told twice": ["add u/1", "update u/1 u/2", "update u/2 u/2"],
    "went back": ["add u/5", "update u/5 u/4"],
    "a resync with something new": ["add u/1", "update u/1 u/2 resync"],
    "a delete of what was not added": ["delete u/1"],
    "a delete of another object": ["add u/1", "delete v/2"],
    "a final state older": ["add u/5", "delete u/4"],
}


@pytest.mark.parametrize(("why", "lines"), WRONG.items(), ids=WRONG)
def test_what_cannot_be_is_named(event, why, lines):
    checker = HistoryChecker()
    for line in lines:
        checker(event(line))
    assert len(checker.wrong) == 1
    assert checker.wrong[0].startswith(why)
    with pytest.raises(AssertionError, match=why):
        checker.check()


def test_with_a_filter_objects_come_back_and_a_restored_server_goes_back(event):
    filtered, restored = HistoryChecker(filtered=True), HistoryChecker(restored=True)
    for line in ("add u/1", "delete u/1", "add u/4"):
        filtered(event(line))
    for line in ("add u/5", "update u/5 u/4 relist", "delete u/3"):
        restored(event(line))
    filtered.check()
    restored.check()


def test_deletes_that_nobody_saw_are_kept(event):
    checker = HistoryChecker()
    checker(event("add u/1"))
    checker(event("delete u/1 relist unknown"))
    assert [obj.uid for obj in checker.unknown_deletes] == ["u"]
    assert checker.shown == {}


def test_waiting_ends_when_the_history_has_come_to_what_is_there(source, informers):
    informer, checker = informers(source), HistoryChecker()
    informer.add_event_handler(on_event=checker)
    threading.Timer(0.01, informer.start).start()
    checker.wait_for(lambda: source.objects().values())
    assert checker.shown == source.objects()
    source.delete("ns/a")
    checker.wait_for(lambda: source.objects().values())


def test_waiting_in_vain_says_what_differs(source, event):
    checker = HistoryChecker()
    checker(event("add u/1/stray"))
    with pytest.raises(AssertionError, match=r"ns/a \(uid-1\) at 1 is missing.* ns/stray \(u\) at 1 is not there"):
        checker.wait_for(lambda: source.objects().values(), timeout=0.01)
    checker.wait_for(lambda: checker.shown.values(), timeout=0.01)  # being late was no event
    checker.check()


def test_a_cache_is_compared_with_a_fresh_list(source, informers, pod):
    informer = informers(source)
    informer.start()
    assert_cache_matches(informer, source)
    source.add(pod("c"))
    source.delete("ns/b")
    assert_cache_matches(informer, source)
    source.stall()
    source.modify(pod("a", app="x"))
    with pytest.raises(AssertionError, match=r"ns/a \(uid-1\) at 1 should be ns/a \(uid-1\) at 5"):
        assert_cache_matches(informer, source, timeout=0.01)
    many = FakeListWatch([pod(f"p{number}") for number in range(600)])
    with pytest.raises(AssertionError, match="and 592 more"):
        assert_cache_matches(informer, many, timeout=0.0)
    source.resume()
