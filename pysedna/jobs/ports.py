"""Ports of the node that workers occupy, and whether two of them want the same one.

A worker on the host network occupies each port that its containers declare (the API server copies them to `hostPort`)
and the one that it listens on by contract; others occupy their `hostPort`s. Two workers of one job that are pinned to
one node and want one port can never run side by side: the kubelet would refuse the second one for ever.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pysedna.jobs.problems import PORT_CLASH, Problem


@dataclass(frozen=True, slots=True)
class Occupant:
    """A worker: how messages call it, its pod spec as it will be created, and the port it listens on by contract."""

    name: str
    spec: Mapping[str, Any]
    listens: int | None = None


def check_ports(occupants: Sequence[Occupant]) -> Problem | None:
    """The first clash: within one worker, or between two that are pinned to one node."""
    taken: dict[tuple[str, str, int], str] = {}
    for occupant in occupants:
        node = occupant.spec.get("nodeName") or f"\0{occupant.name}"  # not pinned: clashes with itself only
        for protocol, port in _occupied(occupant):
            other = taken.setdefault((node, protocol, port), occupant.name)
            if other is not occupant.name:
                return Problem(
                    PORT_CLASH,
                    f"{other} and {occupant.name} both need {protocol} port {port} of node {node}: "
                    f"move one to another node, or change its port",
                )
        inside = _twice(_declared(occupant))
        if inside is not None:
            return Problem(
                PORT_CLASH, f"{occupant.name} needs {inside[0]} port {inside[1]} of its node twice: change one"
            )
    return None


def _occupied(occupant: Occupant) -> Iterable[tuple[str, int]]:
    ports = list(_declared(occupant))
    if occupant.listens is not None and occupant.spec.get("hostNetwork"):
        ports.append(("TCP", occupant.listens))
    return dict.fromkeys(ports)


def _declared(occupant: Occupant) -> Iterable[tuple[str, int]]:
    shared = bool(occupant.spec.get("hostNetwork"))
    for container in occupant.spec.get("containers") or ():
        for port in container.get("ports") or ():
            number = port.get("hostPort") or (port.get("containerPort") if shared else None)
            if isinstance(number, int):
                yield port.get("protocol") or "TCP", number


def _twice(ports: Iterable[tuple[str, int]]) -> tuple[str, int] | None:
    seen: set[tuple[str, int]] = set()
    for port in ports:
        if port in seen:
            return port
        seen.add(port)
    return None
