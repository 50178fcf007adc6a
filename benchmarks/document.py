"""Makes docs/benchmarks.md of the JSON files that the benchmarks wrote.

    python benchmarks/document.py build/benchmarks docs/benchmarks.md

`NAME.json` gives a section. `NAME-ANYTHING.json`, the same benchmark on another interpreter, gives a column in the
table of other interpreters. Smoke runs are left out, and without a file that is none the document stays as it is.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from report import GOAL_HEADING, cells, goal_cells, spread_text

HEAD = """\
# Benchmarks

`make bench` measures, prints the tables, and writes this page; do not edit it by hand. A single benchmark is a
command, which stands in its section; with `--json FILE` it writes every round's figures.

## How to read the figures
- Contenders of one table took turns, round by round, in one run on one machine. Compare them with each other, never
  with figures from elsewhere: the speed of a shared machine drifts by more than most differences here.
- A figure is the median of the rounds, with the lowest and the highest in brackets. "X by Y" is X divided by Y, formed
  in each round.
- "Reached" says whether the median reaches the goal that was set before measuring. What is missed stays in the table.
- Python runs one core's worth of code at a time, Go as many as there are. So processor time stands beside wall time:
  `/s` is by the clock on the wall, `/CPU s` for each second of processor time of all threads together.
- Garbage collectors are on everywhere, as they are in production.
"""


def document(reports: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> str:
    """The page: a section for each of `reports`, and the goals on other interpreters beside the first."""
    blocks = [HEAD.rstrip()]
    for data in reports:
        blocks += _section(data)
    blocks += _other_interpreters(reports, others)
    return "\n\n".join(blocks) + "\n"


def _section(data: Mapping[str, Any]) -> Iterator[str]:
    facts = data["facts"]
    yield f"## {data['title']}"
    if data["about"]:
        yield _wrapped(data["about"])
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    yield _wrapped(
        f"`{data['command']}`, {data['seconds']:.0f} s, on {facts['date']}: {facts['python']}, {facts['cpu']}, "
        f"{facts['cores']} cores, {facts['system']}, load {facts['load at the start']} before the start"
        + (f"; {versions}" if versions else "")
        + "."
    )
    yield from (table(cells(group)) for group in data["groups"] if group["rows"])
    if data["goals"]:
        yield table([GOAL_HEADING, *map(goal_cells, data["goals"])])
    if data["notes"]:
        yield "\n".join(f"- {note}" for note in data["notes"])


def _wrapped(text: str) -> str:
    return textwrap.fill(text, 120, break_long_words=False, break_on_hyphens=False)


def _other_interpreters(reports: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if others:
        yield "## Other interpreters"
        yield _wrapped(
            "Each interpreter had a run of its own, so compare the ratios only. Those of four workers are by the clock "
            "on the wall, which says little where the load before the start was not near 0. A column more: "
            "`.venv-3.12/bin/python benchmarks/bench_NAME.py --json build/benchmarks/NAME-3.12.json`, then "
            "`python benchmarks/document.py build/benchmarks docs/benchmarks.md`."
        )
    for data in reports:
        runs = [data, *(other for other in others if other["name"] == data["name"])]
        if len(runs) > 1:
            by_text = [{goal["text"]: goal for goal in run["goals"]} for run in runs]
            lines = [[f"{data['title']}: goal", "should be", *map(_interpreter, runs)]]
            for goal in data["goals"]:
                measured = [goals.get(goal["text"]) for goals in by_text]
                lines.append(
                    [
                        *goal_cells(goal)[:1],
                        goal_cells(goal)[2],
                        *(spread_text(one and one["value"]) for one in measured),
                    ]
                )
            yield table(lines)


def _interpreter(data: Mapping[str, Any]) -> str:
    return f"{data['facts']['python']}, load {data['facts']['load at the start']}"


def table(lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown, its heading first; figures to the right."""
    head, *rest = ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]
    return "\n".join([head, "| --- |" + " ---: |" * (len(lines[0]) - 1), *rest])


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("page", type=click.Path(dir_okay=False, path_type=Path))
def main(folder: Path, page: Path) -> None:
    """Write PAGE from the JSON files in FOLDER."""
    found = [(path, json.loads(path.read_text())) for path in sorted(folder.glob("*.json"))]
    real = [(path, data) for path, data in found if not data["quick"]]
    reports = [data for path, data in real if path.stem == data["name"]]
    others = [data for path, data in real if path.stem != data["name"]]
    if not reports:
        click.echo(f"{page} stays as it is: {folder} holds no figures but those of smoke runs", err=True)
        return
    page.write_text(document(reports, others))


if __name__ == "__main__":
    main()
