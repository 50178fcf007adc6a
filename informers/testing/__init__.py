"""What the package ships for testing code that is built on it."""

from informers.testing.fake_client import Action, FakeClient
from informers.testing.fake_list_watch import FakeListWatch, Request

__all__ = ["Action", "FakeClient", "FakeListWatch", "Request"]
