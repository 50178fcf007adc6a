"""Discovery documents as careless servers write them."""

from __future__ import annotations

import pytest

from informers import MalformedResponseError
from informers.discovery import Discovery

PODS = b'{"resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":null,"shortNames":null}]}'
TWO_GROUPS = b"""{"groups":[
    {"name":"odd","versions":%s},
    {"name":"good","versions":[{"groupVersion":"good/v1"}],"preferredVersion":{"groupVersion":"good/v1"}}
]}"""
DEEP = b'{"resources":[],"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"


def discovery(**answers: bytes) -> Discovery:
    return Discovery(lambda path, timeout: answers[path.replace("/", "_")])


@pytest.mark.parametrize("versions", [b"[]", b"null", b'[{"groupVersion":"odd/v1"}]'])
@pytest.mark.parametrize("answer", [b"<html>", b"[]", DEEP])
def test_a_group_that_answers_nonsense_does_not_hide_the_others(versions, answer):
    found = discovery(
        _api=b'{"versions":["v1"]}', _apis=TWO_GROUPS % versions,
        _api_v1=PODS, _apis_good_v1=PODS, _apis_odd_v1=answer,
    ).resources(1.0)  # fmt: skip
    assert [info.qualified for info in found] == ["pods", "pods.good"]


def test_null_verbs_are_no_verbs():
    assert discovery(_api_v1=PODS).resolve("v1", kind="Pod", timeout=1.0).verbs == ()


def test_a_document_nested_too_deeply_is_malformed():
    with pytest.raises(MalformedResponseError):
        discovery(_api_v1=DEEP).resolve("v1", kind="Pod", timeout=1.0)
