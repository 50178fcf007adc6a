"""What the edge layer raises.

EdgeError
└── SinkUnavailable     a message could not be taken now; sending it again later can help
"""

from __future__ import annotations


class EdgeError(Exception):
    """Base of everything that this package raises on purpose."""


class SinkUnavailable(EdgeError):
    """The sink cannot take this message now. A reconcile that meets it is retried with backoff."""
