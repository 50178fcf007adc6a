"""The environment of a worker: the contract with Sedna's worker library.

The user's variables come first, in their order; ours follow, in a fixed order, so that the same job always gives the
same pod. Where the user sets a variable of the contract, ours wins and the user's is left out: with the other order a
worker would report under a wrong name, or ask a port where nobody listens. Names within one list are unique then,
which patches by name rely on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

Variable: TypeAlias = dict[str, Any]


def variables(values: Mapping[str, str]) -> list[Variable]:
    """Plain variables, in the order of the mapping."""
    return [{"name": name, "value": value} for name, value in values.items()]


def secret_variable(name: str, *, secret: str, key: str) -> Variable:
    """A variable whose value the kubelet takes from a Secret; it never passes through us."""
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}}


def merged(user: Iterable[Mapping[str, Any]], ours: Sequence[Variable]) -> list[dict[str, Any]]:
    """The user's variables without those that are ours, then ours."""
    names = {variable["name"] for variable in ours}
    return [dict(variable) for variable in user if variable.get("name") not in names] + list(ours)
