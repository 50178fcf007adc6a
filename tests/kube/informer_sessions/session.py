"""One side's run of a script: pure, from the requests that come to what is answered."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from informer_sessions.answers import JUNK, Answer, Body, encoded, error_event, event, failure, refusal
from informer_sessions.script import MARKER, Act, Script
from informer_sessions.world import Change, World

_PAUSE = 0.02
_HOLD = 0.15
_QUIET = Act(end="hold")
_CUTS = {"cut line": "close", "cut line fin": "fin", "cut line reset": "reset"}


@dataclass(frozen=True)
class Request:
    """What is asked. `stream`: a watch that begins with the list (sendInitialEvents)."""

    verb: str
    version: str = ""
    stream: bool = False
    limit: int = 0
    continue_: str = ""

    def __str__(self) -> str:
        what = "stream" if self.stream else self.verb
        more = f" limit={self.limit}" * bool(self.limit) + f" continue={self.continue_}" * bool(self.continue_)
        return f"{what} {self.version!r}{more}"


@dataclass(frozen=True)
class Line:
    """One line of a stream. `deleted` is the uid that it says is gone."""

    data: bytes
    deleted: str = ""
    readable: bool = True


Lines = list[Line | float]  # with pauses, in seconds


class Session:
    """The server as one client sees it. `log` has what was asked and answered, one line each."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.world = World(script.initial, script.version, script.padding)
        self.log: list[str] = []
        self.deletes_sent: set[str] = set()
        """The uids of which a deletion was sent, in whole or in part."""
        self.deletes_read: set[str] = set()
        """Those of which it arrived for sure: no client leaves a watch before it read as far. A streamed list is left
        for many reasons, and not only in its middle."""
        self._position = 0
        self._shuffle = random.Random(str(script.seed)).shuffle
        self._ended = False

    @property
    def quiet(self) -> bool:
        """Whether all acts are over."""
        return self._position >= len(self.script.acts)

    def answer(self, request: Request) -> Answer:
        """Take the next act and answer."""
        act, said = _QUIET, "quiet"
        if not self.quiet:
            act, said = self.script.acts[self._position], f"act {self._position}"
            self._position += 1
        for write in act.before:
            self.world.write(write)
        answer = self._refuse(act, request) or (self._list if request.verb == "list" else self._watch)(request, act)
        self.log.append(f"{said}: {request} -> {answer.status} {answer.end}, at version {self.world.head}")
        return answer

    # ---- refusals, those of the act and the honest ones

    def _refuse(self, act: Act, request: Request) -> Answer | None:
        expired = refusal("410 expired")
        match act.answer:
            case "" | "slow" | "old list" | "listed twice" | "broken item" | "no version":
                pass  # not refused; `_list` does what the words say
            case "truncated":
                if request.verb == "list":
                    body = encoded(self._page(request))
                    return Answer(200, (body[: len(body) // 2],), missing=len(body) - len(body) // 2)
            case "expired continue":
                if request.continue_:
                    return expired
            case name:
                return refusal(name)
        if request.stream and not self.script.watch_list:
            return refusal("422")
        if request.version and int(request.version) > self.world.head:
            return refusal("504 too large")
        if request.continue_:
            return expired if int(request.continue_.split("-")[0]) < self.world.compacted else None
        if request.verb == "watch" and request.version not in ("", "0") and not request.stream:
            return expired if int(request.version) < self.world.compacted else None
        return None

    # ---- lists

    def _list(self, request: Request, act: Act) -> Answer:
        page = self._page(request, self.world.lagging(2) if act.answer == "old list" else None)
        items = page["items"] or []
        if act.answer == "listed twice":
            page["items"] = items * 2
        elif act.answer == "broken item":
            page["items"] = [*items, 7]
        elif act.answer == "no version":
            del page["metadata"]["resourceVersion"]
        body = encoded(page)
        for item in act.stream:  # what nobody watches happens all the same
            self._write(item)
        if act.answer == "slow":
            return Answer(200, (body[:50], _PAUSE, body[50:]))
        return Answer(200, (body,))

    def _page(self, request: Request, version: int | None = None) -> Body:
        world, start = self.world, 0
        if version is None:
            version = world.lagging(self.script.lag) if request.version == "0" else world.head
        if request.continue_:
            version, start = (int(part) for part in request.continue_.split("-"))
        items = list(world.at(version).values())
        size = min(filter(None, (request.limit, self.script.page)), default=0) if request.limit else 0
        metadata: Body = {"resourceVersion": str(version), "continue": ""}
        if size and start + size < len(items):
            metadata |= {"continue": f"{version}-{start + size}", "remainingItemCount": len(items) - start - size}
            items = items[: start + size]
        # as Go encodes a list without items, and as items of built-in kinds come
        found = [{key: value for key, value in item.items() if key not in ("kind", "apiVersion")} for item in items]
        return {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": metadata, "items": found[start:] or None}

    # ---- watches

    def _watch(self, request: Request, act: Act) -> Answer:
        lines = self._first_lines(request, act)
        items = list(act.stream)
        if request.stream and "end" not in items and "no end" not in items:
            items.insert(0, "end")
        if act is _QUIET and not self._ended:
            self._ended = True
            items += [f"write {name}" for name in [*self.script.garbled, MARKER]]
        for item in items:
            lines += self._show(item, lines, request)
        if act.after is not None:
            del lines[act.after :]
        self._note(lines, request, act)
        end = act.end
        if end in _CUTS:
            line = event("MODIFIED", self._bookmark())
            lines.append(Line(line[: len(line) // 2]))
        elif end.startswith("error "):
            lines.append(Line(error_event(end.removeprefix("error "))))
            end = "close"
        elif end == "hold" and act is not _QUIET:
            lines.append(_HOLD)
            end = "close"
        return Answer(200, tuple(self._pieces(lines)), end=_CUTS.get(end, end))

    def _first_lines(self, request: Request, act: Act) -> Lines:
        world = self.world
        if request.stream or request.version in ("", "0"):
            objects = list(world.now().values())
            self._shuffle(objects)
            lines: Lines = [Line(event("ADDED", body)) for body in objects]
            if request.stream and "false end" in act.stream:
                lines.insert(len(lines) // 2, Line(event("BOOKMARK", self._bookmark("false"))))
            return lines
        return [_line(change) for change in world.since(int(request.version))]

    def _write(self, item: str) -> Sequence[Line]:
        plain = item.removeprefix("garble ").removeprefix("maim ")
        if plain.split()[0] not in ("write", "delete", "recreate", "compact"):
            return []
        before = self.world.head
        self.world.write(plain)
        return [_line(change) for change in self.world.since(before)]

    def _show(self, item: str, shown: Lines, request: Request) -> Lines:
        """The lines that an item of a stream is."""
        if item == "end" and request.stream:
            return [Line(event("BOOKMARK", self._bookmark("true")))]
        if item == "bookmark":
            return [Line(event("BOOKMARK", self._bookmark()))]
        if item == "again":
            return [line for line in shown[-1:] if isinstance(line, Line)]
        if item.startswith("stale "):
            of_name = [each for each in self.world.log if each.body["metadata"]["name"] == item.removeprefix("stale ")]
            return [_line(of_name[-2])]
        if item in JUNK:
            return [Line(JUNK[item], readable=item == "blank line")]
        if item == "junk type":
            return [Line(event("RENAMED", failure(200, None, "what is this")), readable=False)]
        if item == "pause":
            return [_PAUSE]
        before = self.world.head
        written = self._write(item)
        if item.startswith("garble"):
            return [Line(line.data[: len(line.data) // 2] + b"\n", readable=False) for line in written]
        if item.startswith("maim"):
            return [Line(event(change.type, {"metadata": 7}), readable=False) for change in self.world.since(before)]
        return [*written]

    def _bookmark(self, end: str = "") -> Body:
        metadata: Body = {"resourceVersion": str(self.world.head), "creationTimestamp": None}
        if end:
            metadata["annotations"] = {"k8s.io/initial-events-end": end}
        return {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}

    def _note(self, lines: Lines, request: Request, act: Act) -> None:
        """Remember which deletions the lines tell."""
        read = not request.stream and "reset" not in act.end
        for line in lines:
            if isinstance(line, Line):
                read = read and line.readable
                if line.deleted:
                    self.deletes_sent.add(line.deleted)
                    if read:
                        self.deletes_read.add(line.deleted)

    def _pieces(self, lines: Lines) -> list[bytes | float]:
        size = self.script.chunk
        pieces: list[bytes | float] = []
        for line in lines:
            if isinstance(line, float):
                pieces.append(line)
            elif size and len(line.data) < 50 * size:
                pieces += [line.data[at : at + size] for at in range(0, len(line.data), size)]
            else:
                pieces.append(line.data)
        return pieces


def _line(change: Change) -> Line:
    return Line(event(change.type, change.body), change.body["metadata"]["uid"] if change.type == "DELETED" else "")
