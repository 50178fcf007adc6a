"""What the documents show is run: each Python block of docs/testing.md; the README's listing is the example's text."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pysedna.testing import BinariesMissingError

ROOT = Path(__file__).parent.parent.parent
GUIDE = (ROOT / "docs/testing.md").read_text()
# With as many empty lines before it as the guide has lines, so that a traceback shows the right one.
BLOCKS = [
    "\n" * GUIDE[: found.start(1)].count("\n") + found[1]
    for found in re.finditer(r"```python\n(.*?)```", GUIDE, re.DOTALL)
]


def cases() -> Iterator[Any]:
    for number, block in enumerate(BLOCKS, 1):
        marks = [pytest.mark.kube] if "ControlPlane()" in block else []
        yield pytest.param(block, id=f"block{number}", marks=marks)


@pytest.mark.parametrize("block", list(cases()))
def test_what_the_testing_guide_shows_works(block: str) -> None:
    try:
        exec(compile(block, "docs/testing.md", "exec"), {"__name__": "example"})
    except BinariesMissingError as error:
        pytest.skip(str(error))


def test_the_readme_shows_the_example_as_it_is() -> None:
    readme = (ROOT / "README.md").read_text()
    listings = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    source = (ROOT / "examples/custom_controller.py").read_text()
    assert listings
    assert all(listing.strip() in source for listing in listings)


@pytest.mark.parametrize(
    "document", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
)
def test_no_link_leads_nowhere(document: Path) -> None:
    targets = re.findall(r"\]\((?!https?://|#)([^)#\s]+)", document.read_text())
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []
