"""No informer at all: the bytes read by http.client (the floor); with `--parse 1` parsed by orjson, and kept by key.

The floor keeps a page or an event until it has read the next one. It is what no client over http.client can beat.
"""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import meter
from meter import Meter

PAGE = 500
ACCEPT = {"Accept": "application/json"}
Take = Callable[[bytes], object]


class Parsed:
    """Keeps whole objects, as dicts."""

    def __init__(self) -> None:
        import orjson

        self._loads = orjson.loads
        self.objects: dict[tuple[str, str], Any] = {}

    def page(self, body: bytes) -> None:
        """Take a page of a list."""
        for item in self._loads(body)["items"]:
            self._keep(item)

    def event(self, line: bytes) -> None:
        """Take an event."""
        self._keep(self._loads(line)["object"])

    def _keep(self, item: Any) -> None:
        metadata = item["metadata"]
        self.objects[metadata["namespace"], metadata["name"]] = item


def list_pages(connection: http.client.HTTPConnection, take: Take) -> str:
    """Read the list page by page; give its version."""
    token = ""
    while True:
        connection.request("GET", f"/api/v1/pods?limit={PAGE}&continue={token}", headers=ACCEPT)
        body = connection.getresponse().read()
        take(body)
        head = body[: body.index(b'"items"')].decode()
        if (found := re.search(r'"continue":"([^"]+)"', head)) is None:
            version = re.search(r'"resourceVersion":"(\d+)"', head)
            assert version is not None
            return version[1]
        token = found[1]


def main() -> None:
    """List page by page, then read the events."""
    told = meter.arguments(parse=0)
    measured = Meter(told.server, told.pods, told.events)
    connection = http.client.HTTPConnection(urlsplit(told.server).netloc)
    parsed = Parsed() if told.parse else None
    take_page: Take = parsed.page if parsed is not None else lambda body: None
    take_event: Take = parsed.event if parsed is not None else lambda line: None
    measured.begin()
    version = list_pages(connection, take_page)
    connection.request("GET", f"/api/v1/pods?watch=true&resourceVersion={version}", headers=ACCEPT)
    answer = connection.getresponse()
    measured.listed()
    for _ in range(told.events):
        take_event(answer.readline())
    measured.done()
    measured.report()


if __name__ == "__main__":
    main()
