"""Lists that no good server gives: pages that lead nowhere."""

from __future__ import annotations

import pytest

from informers import MalformedResponseError
from informers.decoder import ObjectDecoder
from informers.protocol import AskList, AskWatch, Protocol, ProtocolConfig, Verdict, Wait
from informers.resource import Resource
from informers.testing import FakeClient


def test_a_page_that_leads_to_itself_is_given_up_for_the_list_in_one_piece():
    core = Protocol(ProtocolConfig(watch_list=False), random=lambda: 0.0)
    assert core.next(0.0) == AskList("", None, 500, None)
    assert core.page(0.0, "10", "token") is Verdict.COLLECT
    assert core.next(0.0) == AskList("", None, 500, "token")
    assert core.page(0.0, "10", "token") is Verdict.STALE
    assert core.failure is not None
    assert "leads to itself" in core.failure.message
    assert core.next(0.0) == AskList("", None, None, None)
    # and where the list in one piece comes in such pages too, it is not asked for in a loop
    assert core.page(0.0, "10", "token") is Verdict.COLLECT
    assert isinstance(core.next(0.0), AskList)
    assert core.page(0.0, "10", "token") is Verdict.STALE
    assert isinstance(core.next(0.0), Wait)


def test_iterating_over_a_list_ends_at_a_page_that_leads_to_itself(monkeypatch):
    monkeypatch.setattr(
        Resource, "list", lambda self, **options: ObjectDecoder("v1", "Pod").page(
            b'{"metadata":{"continue":"token"},"items":[{"metadata":{"name":"a"}}]}'
        )
    )  # fmt: skip
    objects = FakeClient().resource("v1", "Pod").iterate()
    assert [next(objects).name, next(objects).name] == ["a", "a"]
    with pytest.raises(MalformedResponseError, match="leads to itself"):
        next(objects)


def test_a_change_between_two_pages_comes_on_the_watch():
    core = Protocol(ProtocolConfig(watch_list=False), random=lambda: 0.0)
    core.next(0.0)
    assert core.page(0.0, "10", "token") is Verdict.COLLECT
    core.next(0.0)
    assert core.page(0.0, "12", None) is Verdict.SNAPSHOT  # an object of the first page may have changed at 11
    watch = core.next(0.0)
    assert isinstance(watch, AskWatch)
    assert watch.resource_version == core.version == "10"
