"""What users of pysedna test their own controllers with: recorders that keep what they are told."""

from pysedna.testing.fake_recorder import FakeRecorder, RecordedEvent
from pysedna.testing.recording_sink import RecordingSink, Sent

__all__ = ["FakeRecorder", "RecordedEvent", "RecordingSink", "Sent"]
