"""What the documents show is run: each Python block of the guides below; the README's listing is the example's text."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from informers.testing import FakeListWatch
from pysedna.testing import BinariesMissingError

ROOT = Path(__file__).parent.parent.parent
GUIDES = ("docs/testing.md", "docs/leader-election.md", "docs/workqueue.md", "docs/informers.md", "docs/performance.md")


def cases() -> Iterator[Any]:
    for guide in GUIDES:
        text = (ROOT / guide).read_text()
        for number, found in enumerate(re.finditer(r"```python\n(.*?)```", text, re.DOTALL), 1):
            marks = [pytest.mark.kube] if "ControlPlane()" in found[1] else []
            # With the guide's lines before it as empty ones, so that a traceback shows the right line.
            block = "\n" * text[: found.start(1)].count("\n") + found[1]
            yield pytest.param(guide, block, id=f"{Path(guide).stem}-{number}", marks=marks)


@pytest.mark.parametrize(("guide", "block"), list(cases()))
def test_what_a_guide_shows_works(guide: str, block: str) -> None:
    try:
        exec(compile(block, ROOT / guide, "exec"), {"__name__": "example"})
    except BinariesMissingError as error:
        pytest.skip(str(error))


def test_the_index_function_that_is_shown_reads_pods_as_servers_give_them() -> None:
    source = next(block for _, block in (case.values for case in cases()) if "def by_config_map" in block)
    shown: dict[str, Any] = {"__name__": "example"}
    exec(source, shown)
    volumes = [
        {"name": "a", "configMap": {"name": "settings", "defaultMode": 420, "items": [{"key": "k", "path": "p"}]}},
        {"name": "b", "emptyDir": {}},
    ]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "default"}}
    pods = [{**pod, "spec": {"volumes": volumes}}, {**pod, "spec": {}}]
    assert [shown["by_config_map"](FakeListWatch([each]).list().items[0]) for each in pods] == [["settings"], []]


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
