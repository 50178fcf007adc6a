"""What the API types raise.

SednaApiError
└── InvalidResource     (also ValueError) an object does not have the form that its kind asks for
"""

from __future__ import annotations


class SednaApiError(Exception):
    """Base of everything that this package raises on purpose."""


class InvalidResource(SednaApiError, ValueError):
    """An object is not what its kind asks for. The message says what is wrong and at which path (`$.spec...`)."""
