"""The page that is made of the figures."""

import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner
from document import document, main, table
from report import Report


def figures(*, quick: bool = False, ours: float = 3.0, python: str = "CPython 3.11.7") -> dict[str, Any]:
    result = Report("example", "An example", script="bench_example.py", rounds=1, quick=quick, about="About it.")
    group = result.measure("group", {"ours": lambda: {"x/s": ours}, "theirs": lambda: {"x/s": 2.0}})
    result.goal("as fast", group.ratio("ours", "theirs", "x/s"), at_least=1.0)
    result.note("Mind the gap.")
    data = result.as_json()
    data["facts"] |= {"python": python, "load at the start": 0.5}
    return data


def write(folder: Path, name: str, data: dict[str, Any]) -> None:
    (folder / f"{name}.json").write_text(json.dumps(data))


def test_a_section_has_the_command_the_machine_the_tables_the_goals_and_the_notes() -> None:
    page = document([figures()], [])
    for part in (
        "## An example\n\nAbout it.\n",
        "`python benchmarks/bench_example.py`",
        "CPython 3.11.7",
        "| group | x/s |\n| --- | ---: |\n| ours | 3 |\n| theirs | 2 |\n",
        "| as fast | 1.5 | at least 1 | yes |",
        "- Mind the gap.",
    ):
        assert part in page
    assert "Other interpreters" not in page


def test_other_interpreters_are_a_column_each() -> None:
    page = document([figures()], [figures(ours=5.0, python="CPython 3.13.0")])
    assert page.count("## An example") == 1
    assert "| An example: goal | should be | CPython 3.11.7, load 0.5 | CPython 3.13.0, load 0.5 |" in page
    assert "| as fast | at least 1 | 1.5 | 2.5 |" in page


def test_a_goal_that_another_interpreter_does_not_have_is_not_measured_there() -> None:
    other = figures(python="CPython 3.13.0") | {"goals": []}
    assert "| as fast | at least 1 | 1.5 | not measured |" in document([figures()], [other])


def test_a_bar_in_a_name_does_not_end_a_cell() -> None:
    assert table([["a | b", "c"]]) == "| a \\| b | c |\n| --- | ---: |"


def test_the_name_of_a_file_says_whether_it_is_a_section(tmp_path: Path) -> None:
    write(tmp_path, "example", figures())
    write(tmp_path, "example-3.13", figures(python="CPython 3.13.0"))
    page = tmp_path / "page.md"
    ran = CliRunner().invoke(main, [str(tmp_path), str(page)])
    assert ran.exit_code == 0
    assert page.read_text().count("## An example") == 1
    assert "CPython 3.11.7, load 0.5 | CPython 3.13.0, load 0.5" in page.read_text()


def test_smoke_runs_never_replace_the_page(tmp_path: Path) -> None:
    write(tmp_path, "example", figures(quick=True))
    page = tmp_path / "page.md"
    page.write_text("figures of a real run")
    ran = CliRunner().invoke(main, [str(tmp_path), str(page)])
    assert ran.exit_code == 0
    assert page.read_text() == "figures of a real run"
    assert "stays as it is" in ran.output
