"""What a server does in one session, as text: writes, faults by name, and how streams end; and a seeded generator.

A script is a row of acts. Each request takes the next one, whatever it asks: the writes of `before` have happened
meanwhile, `answer` refuses the request, and a watch that is opened shows `stream` and ends as `end` says. What does not
fit the request is honest. After the last act the server serves quietly, heals what was garbled, and adds the marker.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, fields, replace

MARKER = "zz"
"""The object that is added last, on a watch: whoever was told of it was told of everything."""

REFUSALS = (
    "400", "403", "404", "429", "500", "502", "503", "410 expired", "410 gone", "410 plain", "too large cause",
    "too large cause message", "too large message", "empty 200", "html 200", "truncated", "expired continue", "slow",
)  # fmt: skip
SLOW_REFUSALS = ("429 retry", "503 retry", "hang up")
"""Those that cost a client a second."""

MAIMED = ("maim", "delete")
EXTRAS = ("bookmark", "again", "junk line", "junk type", "blank line", "pause")
ENDS = (
    "close", "close", "close", "fin", "reset", "hold", "cut line", "cut line fin", "cut line reset",
    "error 410 expired", "error 410 gone", "error 410 bare", "error 429", "error 500", "error 504 too large",
    "error without status",
)  # fmt: skip

_NAMES = "abcdef"


@dataclass(frozen=True)
class Act:
    """What one request meets.

    `before` and `stream` hold writes: "write a" (create or change), "delete a", "recreate a" (both at once), and
    "compact" (the history up to now is forgotten). `answer` is one of the refusals above, or, for tests that name them,
    "old list" (as it was two writes ago), "listed twice", "broken item" or "no version"; so is "restore 101" in
    `before` (from a backup made at that version).

    In `stream` a write may be garbled on its way ("garble write a": half a line; "maim write a": JSON that is no
    object), and there are the `EXTRAS`; "stale a" is the event before the last one of that object, "nameless" an object
    without a name. A streamed list is said to be complete after its objects, or where "end" stands, or never with
    "no end"; with "false end" its middle says so in words that do not count. Only `after` lines of a stream are sent
    before its end.
    """

    before: tuple[str, ...] = ()
    answer: str = ""
    stream: tuple[str, ...] = ()
    end: str = "close"
    after: int | None = None


@dataclass(frozen=True)
class Script:
    """One session. `initial` are the names of the first objects, made from version `version` on.

    `watch_list` False: the server refuses to stream a list. `page`: the most items that it gives at once, 0 for all.
    `lag`: how many writes its answers to lists of any age are behind. `chunk`: bytes of a piece of a stream, 0 for a
    piece a line. `padding`: bytes that an object has more. The last three say what is asked of the clients: whether
    they try to stream the list, and, of ours only, its page size and whether it takes a list of any age.
    """

    seed: int | str
    acts: tuple[Act, ...]
    initial: str = "abc"
    version: int = 100
    watch_list: bool = True
    page: int = 0
    lag: int = 0
    chunk: int = 0
    padding: int = 0
    client_watch_list: bool = True
    client_page: int = 500
    client_stale: bool = False

    @property
    def garbled(self) -> list[str]:
        """The names of which an event may have been lost for ever: these are written once more at the end.

        Not those whose deletion was maimed: a client can see that it was one.
        """
        items = [item.split() for act in self.acts for item in act.stream]
        return sorted({name for how, verb, name in (item for item in items if len(item) == 3) if (how, verb) != MAIMED})

    def __str__(self) -> str:
        traits = [f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.name != "acts"]
        acts = [f"  act {number}: {act}" for number, act in enumerate(self.acts)]
        return "\n".join(["  " + " ".join(traits), *acts])


RARE = (
    Script("deleted while listed", (Act(stream=("write b", "delete b", "delete a", "end")),)),
    Script("changed while listed", (Act(stream=("write a", "recreate b", "false end", "end")),)),
    Script("maimed deletion", (Act(), Act(stream=("maim delete a", "write b"))), client_watch_list=False),
    Script("lost between pages", (Act(), Act(before=("delete c", "compact"))), page=1, client_watch_list=False),
    Script("lost half-way", (Act(), Act(before=("delete a",), stream=("delete b",), after=1)), client_watch_list=False),
)
"""What drawn sessions meet seldom, and then often with a list behind it that makes up for it."""


def generate(seed: int) -> Script:
    """The script of a seed; always the same one."""
    choose = random.Random(seed)
    slow, calm = choose.random() < 0.15, choose.random() < 0.4
    acts = [_act(choose, slow) for _ in range(choose.choice([1, 2, 3, 5, 8, 14]))]
    if calm:  # what a client gets wrong there is not made up for by the next list: there is none
        acts = [replace(act, answer="", end=choose.choice(["close", "fin", "cut line"]), after=None) for act in acts]
    return Script(
        seed=seed,
        acts=tuple(acts),
        initial=_NAMES[: choose.randint(0, len(_NAMES))],
        version=choose.choice([1, 8, 97, 995, 2**31 - 4, 10**19 - 5]),
        watch_list=choose.random() < 0.8,
        page=choose.choice([0, 0, 1, 2, 3]),
        lag=choose.choice([0, 0, 1, 4]),
        chunk=choose.choice([0, 0, 7, 100, 5000]),
        padding=choose.choice([0, 0, 0, 300, 70_000]),
        client_watch_list=choose.random() < 0.6,
        client_page=choose.choice([0, 1, 2, 500]),
        client_stale=choose.random() < 0.3,
    )


def _act(choose: random.Random, slow: bool) -> Act:
    answer = ""
    if choose.random() < 0.3:
        answer = choose.choice(SLOW_REFUSALS if slow and choose.random() < 0.25 else REFUSALS)
    stream = [_stream_item(choose) for _ in range(choose.choice([0, 1, 2, 4, 8]))]
    if choose.random() < 0.5:
        stream.insert(choose.randint(len(stream) // 2, len(stream)), "end")
    return Act(
        before=tuple(_write(choose) for _ in range(choose.choice([0, 0, 0, 1, 2, 4]))),
        answer=answer,
        stream=tuple(stream),
        end=choose.choice(ENDS),
        after=choose.choice([None, None, None, 0, 1, 3]),
    )


def _write(choose: random.Random) -> str:
    what = choose.choices(["write", "delete", "recreate", "compact"], [45, 30, 15, 10])[0]
    return what if what == "compact" else f"{what} {choose.choice(_NAMES)}"


def _stream_item(choose: random.Random) -> str:
    luck = choose.random()
    if luck < 0.65:
        return _write(choose)
    if luck < 0.73:
        return f"{choose.choice(['garble', 'maim'])} {choose.choice(['write', 'delete'])} {choose.choice(_NAMES)}"
    if luck < 0.92:
        return choose.choice(EXTRAS)
    return choose.choice(["false end", "no end"])
