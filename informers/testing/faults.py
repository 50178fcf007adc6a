"""The faults of servers and networks that a `FakeListWatch` can play, by name.

A test that goes through all of them (``for fault in Fault``) has met what public bug reports about informers, in all
languages, are made of. `FakeListWatch.inject` plays one, `recover` ends whatever would go on.
"""

from __future__ import annotations

from enum import Enum

__all__ = ["Fault"]


class Fault(Enum):
    """What can go wrong between a reflector and its server."""

    GONE = "410"
    """The open watches end with 410, and so does the next request for one: the version is too old."""
    CUT = "cut"
    """The connections of the open watches break; what they had not delivered is lost."""
    HALF_OPEN = "half-open"
    """The open watches neither deliver anything nor end any more: the peer is gone and nobody said so."""
    SLOW = "slow"
    """The open watches deliver an event a second (of the clock), and no faster."""
    POISON = "poison event"
    """The open watches are sent an event that cannot be read."""
    DUPLICATE = "duplicate"
    """From now on the open watches deliver each event twice."""
    REORDER = "reorder of connections"
    """New requests are answered by a server that stays where it is while the others go on: lists are as old as it is,
    even where they asked for no older one than they know, watches from versions that it has not come to are refused,
    and what is newer is delivered only after `recover`. A list without a version is still the latest.
    """
    EMPTY = "empty 200"
    """The next request is answered with success and nothing else: a watch that ends at once, a list without a body."""
