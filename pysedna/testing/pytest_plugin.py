"""Fixtures for users' own tests: ``pytest_plugins = ["pysedna.testing.pytest_plugin"]`` in the top conftest.py.

The only module of the package that needs pytest.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pysedna.testing.control_plane import ControlPlane
from pysedna.testing.errors import BinariesMissingError


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """One real control plane for all tests of the session; where its programs are missing, skips with the way to them.

    Tests share it: each keeps to names of its own, a namespace above all.
    """
    plane = ControlPlane()
    try:
        plane.start()
    except BinariesMissingError as error:
        pytest.skip(str(error))
    yield plane
    plane.stop()
