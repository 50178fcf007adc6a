"""What an operator sets for all jobs of a manager."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class JobOptions:
    """`local_controller_server`: where workers reach the local controller of their node, given to them as LC_SERVER."""

    local_controller_server: str = "http://localhost:9100"
