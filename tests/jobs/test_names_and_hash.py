"""Names that are functions of the job, and the hash that says whether a worker is up to date."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pysedna.jobs import names
from pysedna.jobs.spec_hash import spec_hash

LONG = "a" * 51


def check(job: str) -> Any:
    return names.check_names(job, services=[names.service_name(job, "aggregation")], labels=[job])


def test_names_are_those_of_upstream_with_the_index_as_suffix() -> None:
    assert names.pod_name("job", "train", 3) == "job-train-3"
    assert names.deployment_name("svc", "cloud") == "svc-deployment-cloud"
    assert names.autoscaler_name("svc-deployment-cloud") == "hpa-svc-deployment-cloud"
    assert names.service_host(names.service_name("svc", "cloud"), "ns") == "svc-cloud.ns"
    assert names.app_label("svc", "cloud") == "svc-Cloud-svc"


def test_the_longest_name_that_fits_is_accepted_and_one_more_is_told_how_long_it_may_be() -> None:
    assert check(LONG) is None
    problem = check(LONG + "a")
    assert problem.reason == "NameTooLong"
    assert "at most 51 characters" in problem.message


@pytest.mark.parametrize("name", ["yolo.v5", "5g", "Upper"])
def test_a_name_that_makes_no_service_is_refused(name: str) -> None:
    assert check(name).reason == "InvalidName"


def test_a_label_that_is_longer_than_the_service_decides() -> None:
    name = "a" * 54
    problem = names.check_names(name, services=[name + "-cloud"], labels=[names.app_label(name, "cloud")])
    assert problem is not None
    assert "at most 53 characters" in problem.message


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=3),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3),
    max_leaves=10,
)


def shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shuffled(value[key]) for key in reversed(value)} | {"absent": None}
    return [shuffled(part) for part in value] if isinstance(value, list) else value


@given(JSON)
def test_the_hash_does_not_depend_on_the_order_of_fields_nor_on_nulls(value: Any) -> None:
    assert spec_hash(value) == spec_hash(shuffled(value))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"a": "1"}),
        ({"a": True}, {"a": 1}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": {}}, {}),
        ({"a": []}, {"a": {}}),
        ({"a": ""}, {}),
    ],
)
def test_what_differs_has_another_hash(one: Any, other: Any) -> None:
    assert spec_hash(one) != spec_hash(other)


def test_a_whole_number_is_the_same_however_it_was_written() -> None:
    assert spec_hash({"a": 2.0}) == spec_hash({"a": 2})


def test_the_hash_is_the_same_in_every_process_and_release() -> None:
    assert spec_hash({"name": "ß", "list": [1, True, None]}) == "f9e9bd1dfccf732d"
    assert len(spec_hash({})) == 16
