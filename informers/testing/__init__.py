"""What the package ships for testing code that is built on it."""

from informers.testing.fake_client import Action, FakeClient
from informers.testing.fake_list_watch import FakeListWatch, Request
from informers.testing.faults import Fault
from informers.testing.history import HistoryChecker, assert_cache_matches

__all__ = ["Action", "FakeClient", "FakeListWatch", "Fault", "HistoryChecker", "Request", "assert_cache_matches"]
