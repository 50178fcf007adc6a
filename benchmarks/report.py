"""What all benchmarks share: interleaved rounds, ratios within one run, goals, one table to read, one JSON file.

A benchmark is a script in this folder that fills a `Report`:

    @click.command()
    @report.options(rounds=5)
    def main(quick: bool, rounds: int, json_file: Path | None) -> None:
        result = Report("workqueue", "Work queues", script=__file__, rounds=rounds, quick=quick)
        group = result.measure("add, get, done on one thread", {
            "WorkQueue": lambda: {"ops/s": ..., "CPU us/op": ...},       # one run: a figure for each column
            "queue.Queue": lambda: {"ops/s": ..., "CPU us/op": ...},     # may raise LeftOut("no Go on this machine")
        })
        result.goal("add, get, done", group.ratio("WorkQueue", "queue.Queue", "ops/s"), at_least=0.7)
        result.finish(json_file)

Machines drift: a figure means something beside the other figures of its group only, which were measured turn by turn.
So a ratio is formed within each round, and its median over the rounds is what counts. `document.py` makes
docs/benchmarks.md of the JSON files.
"""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import click

Figures = Mapping[str, float]
"""What one run measured: a figure for each column, whose name has the unit."""

Run = Callable[[], Figures]
"""One run of one contender: sets up, measures, tidies up."""


class LeftOut(Exception):
    """Raised by a run whose contender cannot be had on this machine; the text says why."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The median of several rounds, and the lowest and the highest of them."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread:
        found = sorted(values)
        return cls(statistics.median(found), found[0], found[-1])


@dataclass(frozen=True, slots=True)
class Goal:
    """What a ratio, or a figure, should reach; `value` is None where it could not be measured."""

    text: str
    value: Spread | None
    sense: Literal["at least", "at most"]
    limit: float

    @property
    def reached(self) -> bool | None:
        """Whether the median of the rounds reaches the limit; None if it was not measured."""
        if self.value is None:
            return None
        median = self.value.median
        return median >= self.limit if self.sense == "at least" else median <= self.limit


@dataclass(frozen=True, slots=True)
class Group:
    """Contenders that did the same work turn by turn: for each, the figures of each round."""

    title: str
    rounds: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    against: tuple[str, str] | None = None
    """A contender and a column: one more column shows how many times that each one reaches there."""

    @property
    def columns(self) -> list[str]:
        """The names of the figures, in the order in which they came up."""
        return list(dict.fromkeys(name for runs in self.rounds.values() for figures in runs for name in figures))

    def spread(self, contender: str, column: str) -> Spread | None:
        """The figures of one contender in one column; None if there are none."""
        values = [figures[column] for figures in self.rounds.get(contender, ()) if column in figures]
        return Spread.of(values) if values else None

    def ratio(self, ours: str, theirs: str, column: str, *, their_column: str | None = None) -> Spread | None:
        """Ours by theirs, formed within each round; None if one of the two was left out."""
        pairs = zip(self.rounds.get(ours, ()), self.rounds.get(theirs, ()), strict=False)
        name = their_column or column
        return _quotients((our[column], their[name]) for our, their in pairs if column in our and name in their)


def _quotients(pairs: Iterable[tuple[float, float]]) -> Spread | None:
    quotients = [our / their for our, their in pairs if their]
    return Spread.of(quotients) if quotients else None


class Report:
    """What one benchmark found.

    :param name: of the JSON file
    :param script: the benchmark's file, for the command to repeat it
    :param rounds: how often `measure` runs each contender
    :param peers: versions that the Python packages' metadata do not tell, by name
    :param packages: Python packages whose versions matter
    """

    def __init__(
        self,
        name: str,
        title: str,
        *,
        script: str,
        rounds: int,
        quick: bool = False,
        about: str = "",
        packages: Sequence[str] = (),
        peers: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self.title = title
        self.about = about
        self.rounds = rounds
        self.quick = quick
        self.command = f"python benchmarks/{Path(script).name}" + (" --quick" if quick else "")
        self.facts = machine_facts(packages, peers or {})
        self.groups: list[Group] = []
        self.goals: list[Goal] = []
        self.notes: list[str] = []
        self._left_out: dict[str, list[str]] = {}  # by reason
        self._began = time.monotonic()

    def measure(
        self,
        title: str,
        runs: Mapping[str, Run],
        *,
        rounds: int | None = None,
        against: tuple[str, str] | None = None,
    ) -> Group:
        """Run the contenders turn by turn, `rounds` times, and keep their figures. Who goes first changes by round.

        :param rounds: other than the report's
        :param against: a contender and a column that the others are compared with in a column more
        """
        group = Group(title, against=against)
        self.groups.append(group)
        left = dict(runs)
        for turn in range(self.rounds if rounds is None else rounds):
            names = list(left)
            shift = turn % len(names) if names else 0
            for name in names[shift:] + names[:shift]:
                click.echo(f"{self.name}: {title}: {name}, round {turn + 1}", err=True)
                try:
                    figures = dict(left[name]())
                except LeftOut as reason:
                    self._left_out.setdefault(str(reason), []).append(name)
                    del left[name]
                else:
                    group.rounds.setdefault(name, []).append(figures)
        # In the order given, not in that of the first round.
        ordered = {name: group.rounds[name] for name in runs if name in group.rounds}
        group.rounds.clear()
        group.rounds.update(ordered)
        return group

    def goal(
        self, text: str, value: Spread | None, *, at_least: float | None = None, at_most: float | None = None
    ) -> Goal:
        """State a goal and how far it was reached. Give exactly one of the two limits.

        :param value: a ratio, or a figure in the unit of the limit (`Group.spread`); None if it was not measured
        """
        if at_least is not None and at_most is None:
            goal = Goal(text, value, "at least", at_least)
        elif at_most is not None and at_least is None:
            goal = Goal(text, value, "at most", at_most)
        else:
            raise ValueError("a goal has one limit: at_least or at_most")
        self.goals.append(goal)
        return goal

    def note(self, text: str) -> None:
        """Add a sentence for the reader, once."""
        if text not in self.notes:
            self.notes.append(text)

    def as_json(self) -> dict[str, Any]:
        """All of it, as `document.py` and other programs read it."""
        return {
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "command": self.command,
            "quick": self.quick,
            "seconds": round(time.monotonic() - self._began, 1),
            "facts": self.facts,
            "groups": [_group(group) for group in self.groups],
            "goals": [asdict(goal) | {"reached": goal.reached} for goal in self.goals],
            "notes": [
                *self.notes,
                *(
                    f"Left out ({reason}): {', '.join(dict.fromkeys(names))}."
                    for reason, names in self._left_out.items()
                ),
            ],
        }

    def finish(self, json_file: Path | None) -> None:
        """Print the tables, and write the JSON file if one was asked for."""
        data = self.as_json()
        click.echo(as_text(data))
        if json_file is not None:
            json_file.parent.mkdir(parents=True, exist_ok=True)
            json_file.write_text(json.dumps(data, indent=1) + "\n")


def _group(group: Group) -> dict[str, Any]:
    columns = group.columns
    rows = {name: {column: group.spread(name, column) for column in columns} for name in group.rounds}
    if group.against is not None and group.against[0] in group.rounds:
        contender, column = group.against
        columns = [*columns, f"{column} by {contender}"]
        for name, row in rows.items():
            row[columns[-1]] = group.ratio(name, contender, column)
    shown = {name: {column: one and asdict(one) for column, one in row.items()} for name, row in rows.items()}
    return {"title": group.title, "columns": columns, "rows": shown, "rounds": group.rounds}


def options(*, rounds: int) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The options that every benchmark has: `--quick`, `--rounds` and `--json`, given as quick, rounds, json_file."""
    default = rounds

    def decorate(main: Callable[..., None]) -> Callable[..., None]:
        @click.option("--quick", is_flag=True, help="A smoke run: one round, little work. Its figures say nothing.")
        @click.option("--rounds", type=click.IntRange(1), help=f"Turns of each contender.  [default: {rounds}]")
        @click.option("--json", "json_file", type=click.Path(path_type=Path), help="Write the figures here too.")
        @functools.wraps(main)
        def command(*, rounds: int | None, quick: bool, **others: Any) -> None:
            main(quick=quick, rounds=rounds or (1 if quick else default), **others)

        return command

    return decorate


# -- the machine -------------------------------------------------------------------------------------------------------


def machine_facts(packages: Sequence[str], peers: Mapping[str, str]) -> dict[str, Any]:
    """Where and with what the figures were measured."""
    gil: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "cpu": _cpu_model(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "load at the start": round(os.getloadavg()[0], 2),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "python": python if gil() else f"{python} free-threaded",
        "versions": {name: version for name in packages if (version := package_version(name))} | dict(peers),
    }


def package_version(name: str) -> str | None:
    """The version of an installed package; None if it is not there."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


# -- text --------------------------------------------------------------------------------------------------------------


def number(value: float) -> str:
    """Three significant digits: more would be noise."""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    digits = 2 - math.floor(math.log10(abs(value)))
    rounded = round(value, digits)
    return f"{rounded:,.0f}" if abs(rounded) >= 100 else f"{rounded:.3g}"


def spread_text(spread: Mapping[str, float] | None) -> str:
    """The median, and the range where the rounds differ."""
    if spread is None:
        return "not measured"
    low, median, high = number(spread["low"]), number(spread["median"]), number(spread["high"])
    return median if low == high else f"{median} ({low} - {high})"


def cells(group: Mapping[str, Any]) -> list[list[str]]:
    """A group of the JSON file as the lines of a table, the heading first."""
    columns = group["columns"]
    lines = [[group["title"], *columns]]
    for name, row in group["rows"].items():
        lines.append([name, *(spread_text(row[column]) if row[column] else "" for column in columns)])
    return lines


def goal_cells(goal: Mapping[str, Any]) -> list[str]:
    """A goal of the JSON file as a line of a table: what, ratio, limit, verdict."""
    verdict = {True: "yes", False: "NO", None: "not measured"}[goal["reached"]]
    return [goal["text"], spread_text(goal["value"]), f"{goal['sense']} {goal['limit']:,g}", verdict]


GOAL_HEADING = ["goal", "measured", "should be", "reached"]


def as_text(data: Mapping[str, Any]) -> str:
    """The JSON file's content for a terminal."""
    facts = data["facts"]
    head = f"{data['title']}: {facts['python']}, {facts['cpu']}, {facts['cores']} cores, {facts['date']}"
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    blocks = [head + (f"\n{versions}" if versions else "")]
    blocks += [aligned(cells(group)) for group in data["groups"] if group["rows"]]
    if data["goals"]:
        blocks.append(aligned([GOAL_HEADING, *map(goal_cells, data["goals"])]))
    if data["notes"]:
        blocks.append("\n".join(data["notes"]))
    if data["quick"]:
        blocks.append("This was a smoke run: neither its figures nor what they reach say anything. Leave --quick out.")
    return "\n\n".join(blocks)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """A table of monospaced text: the first column to the left, the others to the right."""
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
