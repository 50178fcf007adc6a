"""The worker's environment: the user's variables first, ours after, ours win."""

from __future__ import annotations

from pysedna.jobs.environment import merged, secret_variable, variables


def test_the_users_variables_come_first_in_their_order_and_ours_follow_in_theirs() -> None:
    user = [{"name": "b", "value": "1"}, {"name": "a", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]
    names = [variable["name"] for variable in merged(user, variables({"Z": "1", "Y": "2"}))]
    assert names == ["b", "a", "Z", "Y"]


def test_a_variable_of_the_contract_is_ours_and_stands_once() -> None:
    user = [{"name": "WORKER_NAME", "value": "mine"}, {"name": "other", "value": "1"}]
    assert merged(user, variables({"WORKER_NAME": "ours"})) == [
        {"name": "other", "value": "1"},
        {"name": "WORKER_NAME", "value": "ours"},
    ]


def test_a_secret_is_referred_to_and_never_copied() -> None:
    assert secret_variable("KEY", secret="s", key="k") == {
        "name": "KEY",
        "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}},
    }
