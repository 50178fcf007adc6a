"""The server of prebuilt bytes for machines without Go: what ../clientgo/server does, in JSON only.

It says where it is in one line of JSON on its standard output, and ends when its standard input does. A thread serves
one connection; the bytes are ready before the first request and go out in large pieces, so Python has little to do.
"""

from __future__ import annotations

import argparse
import json
import random
import socketserver
import sys
import threading
import time
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

FIRST_VERSION = 10_000_000  # of pod number 0 as it is listed
LIST_VERSION = 20_000_000  # of the list; events follow it
END = b"0\r\n\r\n"
KIND = {"kind": "Pod", "apiVersion": "v1"}
PODS = {"name": "pods", "singularName": "pod", "namespaced": True, "kind": "Pod", "verbs": ["get", "list", "watch"]}
NAMESPACES = {"name": "namespaces", "singularName": "namespace", "namespaced": False, "kind": "Namespace"}
DISCOVERY: dict[str, Any] = {
    "/version": {"major": "1", "minor": "37", "gitVersion": "v1.37.2"},
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [PODS, NAMESPACES | {"verbs": ["get"]}],
    },
}


def compact(document: object) -> bytes:
    """JSON without spaces."""
    return json.dumps(document, separators=(",", ":")).encode()


def chunk(body: bytes) -> bytes:
    """A chunk of HTTP."""
    return b"%x\r\n%b\r\n" % (len(body), body)


class Data:
    """The bytes of everything. The values are those of ../clientgo/server/pods.go."""

    def __init__(self, template: str, pods: int, events: int, *, watch_list: bool) -> None:
        self.pods, self.events = pods, events
        whole = json.loads(template)
        item = {name: value for name, value in whole.items() if name not in KIND}
        self._item = compact(item).decode().replace("{changed}", "2026-05-04T08:00:05Z")
        self._whole = compact(whole).decode()
        self.items = [self._filled(self._item, n, FIRST_VERSION + n) for n in range(pods)]
        self.changes = [chunk(self.change(n)) for n in range(events)]
        added = [b'{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1",%b}\n' % each[1:] for each in self.items]
        self.initial = b"".join(map(chunk, added)) if watch_list else b""

    def _filled(self, text: str, n: int, version: int, sent: int = 0) -> bytes:
        values = {
            "{name}": f"app-{n % 97:02}-5d8f7c9b64-{n:06}",
            "{app}": f"app-{n % 97:02}",
            "{namespace}": f"team-{n % 20:02}",
            "{uid}": f"00000000-0000-4000-8000-{n:012x}",
            "{owner_uid}": f"00000000-0000-4000-9000-{n % 97:012x}",
            "{node}": f"node-{n % 250:03}",
            "{ip}": f"10.{100 + n // 22500 % 150}.{100 + n // 150 % 150}.{100 + n % 150}",
            "{version}": f"{version:08}",
            "{sent}": f"{sent:020}",
        }
        for place, value in values.items():
            text = text.replace(place, value)
        return text.encode()

    def change(self, number: int, sent: int = 0) -> bytes:
        """The MODIFIED event of that number."""
        text = self._whole.replace("{changed}", "2026-05-04T09:30:00Z")
        filled = self._filled(text, number % self.pods, LIST_VERSION + 1 + number, sent)
        return b'{"type":"MODIFIED","object":%b}\n' % filled

    def page(self, first: int, limit: int) -> bytes:
        """A list from an item on, as it is sent."""
        last = min(first + limit, self.pods) if limit else self.pods
        metadata: dict[str, object] = {"resourceVersion": str(LIST_VERSION)}
        if last < self.pods:
            metadata |= {"continue": str(last), "remainingItemCount": self.pods - last}
        head = b'{"kind":"PodList","apiVersion":"v1","metadata":%b,"items":[' % compact(metadata)
        items = [chunk(item + b",") for item in self.items[first : last - 1]]
        return b"".join([chunk(head), *items, chunk(self.items[last - 1]), chunk(b"]}\n"), END])


def bookmark(version: int, *, initial_end: bool = False) -> bytes:
    """The event that says how far a watch has come."""
    metadata: dict[str, object] = {"resourceVersion": str(version)}
    if initial_end:
        metadata["annotations"] = {"k8s.io/initial-events-end": "true"}
    pod = KIND | {"metadata": metadata, "spec": {"containers": None}, "status": {}}
    return chunk(compact({"type": "BOOKMARK", "object": pod}) + b"\n")


class Server(socketserver.ThreadingTCPServer):
    """Holds what the connections share: the data, the gate, who watches."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, data: Data, *, watch_list: bool, bookmark_every: float) -> None:
        super().__init__(("127.0.0.1", 0), Connection)
        self.data = data
        self.watch_list = watch_list
        self.bookmark_every = bookmark_every
        self.gate = threading.Event()
        self.emitted = 0
        self.watchers: set[Connection] = set()

    def emit(self, count: int, interval: float) -> None:
        """Send events one at a time, each stamped with the moment before it is written, once somebody watches."""
        for _ in range(count):
            time.sleep(interval * random.uniform(0.5, 1.5))
            while not self.watchers:
                time.sleep(0.01)
            number = self.data.events + self.emitted
            self.emitted += 1
            for watcher in list(self.watchers):
                watcher.write(chunk(self.data.change(number, time.monotonic_ns())))


class Connection(socketserver.StreamRequestHandler):
    """One connection: its requests, one after the other."""

    server: Server
    disable_nagle_algorithm = True

    def setup(self) -> None:
        """A watch is written to by those who emit events too."""
        super().setup()
        self._writing = threading.Lock()

    def write(self, data: bytes) -> None:
        """Send bytes in one piece."""
        with self._writing:
            self.request.sendall(data)

    def handle(self) -> None:
        """Answer until the client goes away, or until a watch has ended."""
        try:
            while line := self.rfile.readline():
                target = line.split()[1].decode()
                while self.rfile.readline().strip():
                    pass  # headers; requests have no body here
                if not self._answer(target):
                    return
        except (ConnectionError, TimeoutError):
            return

    def _answer(self, target: str) -> bool:
        """Answer a request; False if nothing can follow it."""
        url = urlsplit(target)
        query = {name: values[0] for name, values in parse_qs(url.query).items()}
        if url.path == "/api/v1/pods":
            if query.get("watch", "").lower() in ("1", "true"):
                return self._watch(query)
            first, limit = int(query.get("continue", 0)), int(query.get("limit", 0))
            self._begin()
            self.write(self.server.data.page(first, limit))
        elif url.path.startswith("/bench/"):
            self._send(self._control(url.path, query))
        elif url.path in DISCOVERY:
            self._send(DISCOVERY[url.path])
        else:
            self._refuse(404, "NotFound", f"{url.path} not found")
        return True

    def _begin(self) -> None:
        self.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")

    def _send(self, document: object, status: bytes = b"200 OK") -> None:
        body = compact(document)
        head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self.write(head % (status, len(body)) + body)

    def _refuse(self, code: int, reason: str, message: str) -> None:
        status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
        self._send(status | {"message": message}, b"%d %b" % (code, reason.encode()))

    def _control(self, path: str, query: dict[str, str]) -> dict[str, float]:
        """/bench/gate?open=true, /bench/emit?count=100&interval=5ms, /bench/usage."""
        server = self.server
        if path == "/bench/gate":
            server.gate.set() if query["open"] == "true" else server.gate.clear()
        elif path == "/bench/emit":
            server.emit(int(query["count"]), float(query["interval"].removesuffix("ms")) / 1000)
        return {"cpu": time.process_time()}

    def _watch(self, query: dict[str, str]) -> bool:
        server = self.server
        streamed = query.get("sendInitialEvents") == "true"
        if streamed and not server.watch_list:
            self._refuse(422, "Invalid", "sendInitialEvents is forbidden for watch unless WatchList is enabled")
            return True
        version = LIST_VERSION if streamed else int(query.get("resourceVersion", 0))
        seconds = float(query.get("timeoutSeconds", 3600))
        end = time.monotonic() + seconds
        self._begin()
        if streamed:
            self.write(server.data.initial + bookmark(LIST_VERSION, initial_end=True))
        if not server.gate.wait(seconds):
            self.write(END)
            return False
        self.write(b"".join(server.data.changes[max(version - LIST_VERSION, 0) :]))
        server.watchers.add(self)
        try:
            while (left := end - time.monotonic()) > server.bookmark_every:
                time.sleep(server.bookmark_every)
                self.write(bookmark(LIST_VERSION + server.data.events + server.emitted))
            time.sleep(max(left, 0))
            self.write(END)
        finally:
            server.watchers.discard(self)
        return False


def main() -> None:
    """Prepare, serve, and end with the standard input."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--template", type=Path, required=True, help="the pod that all pods are made of")
    parser.add_argument("--pods", type=int, required=True, help="how many pods are listed")
    parser.add_argument("--events", type=int, required=True, help="how many MODIFIED events follow")
    parser.add_argument("--watch-list", action="store_true", help="stream the list to those who ask for it")
    parser.add_argument("--bookmark", default="60s", help="how often a quiet watch is sent a bookmark")
    told = parser.parse_args()
    data = Data(told.template.read_text(), told.pods, told.events, watch_list=told.watch_list)
    with Server(data, watch_list=told.watch_list, bookmark_every=float(told.bookmark.removesuffix("s"))) as server:
        threading.Thread(target=server.serve_forever, name="accept", daemon=True).start()
        print(json.dumps({"url": f"http://127.0.0.1:{server.server_address[1]}", "json": len(data.items[0])}))
        sys.stdout.flush()
        sys.stdin.read()
        server.shutdown()


if __name__ == "__main__":
    main()
