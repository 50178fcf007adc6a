"""What the documents show is run: each Python block of docs/testing.md; the README's listing is the example's text."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/testing.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=[f"block{number}" for number in range(1, len(BLOCKS) + 1)])
def test_what_the_testing_guide_shows_works(block: str) -> None:
    exec(compile(block, "docs/testing.md", "exec"), {"__name__": "example"})


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
