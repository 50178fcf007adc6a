"""What a report makes of the figures that it is given."""

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest
from report import Goal, Group, LeftOut, Report, Spread, aligned, as_text, machine_facts, number, options

Figures = dict[str, float]


def report(rounds: int = 3) -> Report:
    return Report("example", "An example", script="/somewhere/bench_example.py", rounds=rounds)


def playing(*figures: float, column: str = "x/s") -> Callable[[], Figures]:
    """A run that measures one figure after the other."""
    left = iter(figures)
    return lambda: {column: next(left)}


def test_a_spread_is_the_median_and_the_range() -> None:
    assert Spread.of([5.0, 1.0, 2.0]) == Spread(2.0, 1.0, 5.0)
    assert Spread.of([4.0, 2.0]) == Spread(3.0, 2.0, 4.0)


def test_contenders_take_turns_and_each_goes_first_once() -> None:
    order: list[str] = []

    def run(name: str) -> Callable[[], Figures]:
        def once() -> Figures:
            order.append(name)
            return {}

        return once

    report().measure("turns", {name: run(name) for name in "abc"})
    assert order == [*"abc", *"bca", *"cab"]


def test_rows_stand_in_the_order_given_whoever_went_first() -> None:
    result = report(rounds=2)
    result.measure("order", {"b": playing(1, 1), "a": playing(1, 1)})
    assert list(result.as_json()["groups"][0]["rows"]) == ["b", "a"]


def test_a_ratio_is_formed_within_each_round() -> None:
    """The machine was ten times slower in the second round, which says nothing about the two."""
    group = report().measure("drift", {"ours": playing(200, 20, 300), "theirs": playing(100, 10, 100)})
    assert group.ratio("ours", "theirs", "x/s") == Spread(2.0, 2.0, 3.0)


def test_a_ratio_may_be_of_two_columns() -> None:
    group = Group("two", {"ours": [{"list": 6.0}], "theirs": [{"watch": 3.0}]})
    assert group.ratio("ours", "theirs", "list", their_column="watch") == Spread(2.0, 2.0, 2.0)


@pytest.mark.parametrize("theirs", [[], [{}], [{"x/s": 0.0}]], ids=["left out", "no such column", "zero"])
def test_there_is_no_ratio_to_what_was_not_measured(theirs: list[Figures]) -> None:
    group = Group("gap", {"ours": [{"x/s": 1.0}], "theirs": theirs})
    assert group.ratio("ours", "theirs", "x/s") is None
    assert group.ratio("ours", "nobody", "x/s") is None


def missing() -> Figures:
    raise LeftOut("there is no Go here")


def test_what_cannot_be_had_is_left_out_and_not_asked_again() -> None:
    asked: list[str] = []

    def asking() -> Figures:
        asked.append("once")
        return missing()

    result = report()
    group = result.measure("gap", {"ours": playing(1, 2, 3), "theirs": asking}, against=("theirs", "x/s"))
    assert list(group.rounds) == ["ours"]
    assert asked == ["once"]
    assert result.as_json()["groups"][0]["columns"] == ["x/s"]


def test_a_note_says_for_each_reason_what_was_left_out() -> None:
    result = report(rounds=1)
    result.note("Mind the gap.")
    for title in ("one", "two"):
        result.measure(title, {"ours": playing(1), "theirs": missing, f"theirs, {title}": missing})
    assert result.as_json()["notes"] == [
        "Mind the gap.",
        "Left out (there is no Go here): theirs, theirs, one, theirs, two.",
    ]


def test_any_other_failure_of_a_run_ends_the_benchmark() -> None:
    def broken() -> Figures:
        raise AssertionError("only 7 of 8 items came through")

    with pytest.raises(AssertionError, match="7 of 8"):
        report().measure("broken", {"ours": broken})


def test_a_table_compares_with_one_contender_where_asked() -> None:
    result = report(rounds=1)
    result.measure("compared", {"ours": playing(3), "theirs": playing(2)}, against=("theirs", "x/s"))
    group = result.as_json()["groups"][0]
    assert group["columns"] == ["x/s", "x/s by theirs"]
    assert [row["x/s by theirs"]["median"] for row in group["rows"].values()] == [1.5, 1.0]


@pytest.mark.parametrize(
    ("sense", "limit", "reached"),
    [("at least", 2.0, True), ("at least", 2.1, False), ("at most", 2.0, True), ("at most", 1.9, False)],
)
def test_a_goal_is_reached_by_the_median(sense: str, limit: float, reached: bool) -> None:
    value = Spread(2.0, 0.1, 100.0)
    assert report().goal("goal", value, **{sense.replace(" ", "_"): limit}).reached is reached


def test_a_goal_that_was_not_measured_is_neither_reached_nor_missed() -> None:
    assert Goal("goal", None, "at least", 1.0).reached is None


@pytest.mark.parametrize("limits", [{}, {"at_least": 1.0, "at_most": 2.0}])
def test_a_goal_has_one_limit(limits: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="one limit"):
        report().goal("goal", None, **limits)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.00123456, "0.00123"),
        (0.7, "0.7"),
        (1, "1"),
        (9.999, "10"),
        (99.96, "100"),
        (412.6, "413"),
        (999.9, "1,000"),
        (1234567, "1,230,000"),
        (-1234, "-1,230"),
        (float("inf"), "inf"),
    ],
)
def test_figures_are_shown_with_three_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_a_table_is_aligned_names_to_the_left_and_figures_to_the_right() -> None:
    assert aligned([["who", "x/s"], ["queue", "1"], ["q", "1,000"]]) == "who      x/s\nqueue      1\nq      1,000"


def test_the_text_has_every_row_goal_and_note() -> None:
    result = report()
    group = result.measure("group", {"ours": playing(1, 2, 4), "theirs": playing(4, 4, 4)})
    result.goal("as fast", group.ratio("ours", "theirs", "x/s"), at_least=1.0)
    result.goal("as small", None, at_most=1500)
    result.note("Mind the gap.")
    lines = [line.split("  ") for line in as_text(result.as_json()).splitlines()]
    shown = [[cell.strip() for cell in line if cell] for line in lines]
    assert ["ours", "2 (1 - 4)"] in shown
    assert ["theirs", "4"] in shown
    assert ["as fast", "0.5 (0.25 - 1)", "at least 1", "NO"] in shown
    assert ["as small", "not measured", "at most 1,500", "not measured"] in shown
    assert ["Mind the gap."] in shown


def test_the_text_of_a_smoke_run_says_that_it_says_nothing() -> None:
    smoke = Report("example", "An example", script="bench_example.py", rounds=1, quick=True)
    assert "smoke run" in as_text(smoke.as_json()).splitlines()[-1]
    assert "smoke run" not in as_text(report().as_json())


def test_the_file_holds_every_round_and_how_to_repeat_it(tmp_path: Path) -> None:
    result = report(rounds=2)
    result.measure("group", {"ours": playing(1, 2)})
    result.finish(tmp_path / "new" / "example.json")
    data = json.loads((tmp_path / "new" / "example.json").read_text())
    assert data["groups"][0]["rounds"] == {"ours": [{"x/s": 1}, {"x/s": 2}]}
    assert data["command"] == "python benchmarks/bench_example.py"
    assert data["quick"] is False


def test_the_facts_name_what_is_installed_and_what_they_are_told() -> None:
    facts = machine_facts(["pytest", "no-such-package"], {"client-go": "0.37.2"})
    assert set(facts["versions"]) == {"pytest", "client-go"}
    assert facts["cores"] >= 1
    assert facts["cpu"]
    assert facts["python"].startswith("CPython 3.")


@pytest.mark.parametrize(
    ("words", "rounds"), [([], 5), (["--quick"], 1), (["--rounds", "2"], 2), (["--quick", "--rounds", "2"], 2)]
)
def test_a_smoke_run_has_one_round_unless_told(words: list[str], rounds: int) -> None:
    seen: dict[str, object] = {}

    @click.command()
    @options(rounds=5)
    def main(**given: object) -> None:
        seen.update(given)

    main(words, standalone_mode=False)
    assert seen == {"quick": "--quick" in words, "rounds": rounds, "json_file": None}
