"""What users of pysedna test their own controllers with: recorders that keep what they are told, a real control plane.

The fixtures for pytest are in `pysedna.testing.pytest_plugin`.
"""

from pysedna.testing.cluster import Cluster
from pysedna.testing.control_plane import ControlPlane
from pysedna.testing.errors import (
    BinariesMissingError,
    BuildError,
    ControlPlaneError,
    NotOursError,
    NotRunningError,
    SettingError,
    StartError,
)
from pysedna.testing.fake_recorder import FakeRecorder, RecordedEvent
from pysedna.testing.recording_sink import RecordingSink, Sent
from pysedna.testing.settings import Settings
from pysedna.testing.users import User

__all__ = [
    "BinariesMissingError",
    "BuildError",
    "Cluster",
    "ControlPlane",
    "ControlPlaneError",
    "FakeRecorder",
    "NotOursError",
    "NotRunningError",
    "RecordedEvent",
    "RecordingSink",
    "Sent",
    "SettingError",
    "Settings",
    "StartError",
    "User",
]
