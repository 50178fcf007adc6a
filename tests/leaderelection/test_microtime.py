from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leaderelection.microtime import format_micro_time, parse_micro_time


@pytest.mark.parametrize(
    ("micros", "text"),
    [
        (0, "1970-01-01T00:00:00.000000Z"),
        (1_700_000_000_000_000, "2023-11-14T22:13:20.000000Z"),
        (1_700_000_000_000_001, "2023-11-14T22:13:20.000001Z"),
        (1_700_000_000_999_999, "2023-11-14T22:13:20.999999Z"),
    ],
)
def test_six_digits_and_z(micros: int, text: str) -> None:
    assert format_micro_time(micros) == text
    assert parse_micro_time(text) == micros


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("2023-11-14T22:13:20Z", 1_700_000_000_000_000),
        ("2023-11-14T22:13:20.5Z", 1_700_000_000_500_000),
        ("2023-11-14T22:13:20.123456789Z", 1_700_000_000_123_456),
        ("2023-11-14T23:13:20+01:00", 1_700_000_000_000_000),
        ("2023-11-14t22:13:20z", 1_700_000_000_000_000),
    ],
)
def test_other_forms_of_rfc_3339_are_read(text: str, micros: int) -> None:
    assert parse_micro_time(text) == micros


@pytest.mark.parametrize(
    "wrong", ["", "now", "2023-11-14", "2023-11-14T22:13:20", "2023-13-14T22:13:20Z", None, 5, ["x"]]
)
def test_anything_else_is_none(wrong: object) -> None:
    assert parse_micro_time(wrong) is None


@given(st.integers(0, 4_102_444_800_000_000))
def test_round_trip(micros: int) -> None:
    assert parse_micro_time(format_micro_time(micros)) == micros
