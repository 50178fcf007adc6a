"""The rules of the house that a glance at the imports can check, and the picture in docs/architecture.md."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("workqueue", "informers", "leaderelection", "pysedna")
LINES = 500


def modules() -> dict[str, Path]:
    found = {}
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imports(path: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every import of a file, those inside functions and for the type checker too: the module and the names taken."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, ()
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module, tuple(alias.name for alias in node.names)


def unit(module: str) -> str | None:
    """The box of the picture that a module is in: a top-level package, or a subpackage of pysedna."""
    if module == "pysedna.__main__":
        return "pysedna.cli"
    top, *rest = module.split(".")
    if top not in PACKAGES:
        return None
    return f"pysedna.{rest[0]}" if top == "pysedna" and rest else top


def real_arrows() -> set[tuple[str, str]]:
    arrows = set()
    for module, path in MODULES.items():
        for target, names in imports(path):
            targets = [f"{target}.{name}" for name in names if f"{target}.{name}" in MODULES] or [target]
            arrows |= {(unit(module), unit(one)) for one in targets}
    return {(a, b) for a, b in arrows if a and b and a != b}


def drawn_arrows() -> set[tuple[str, str]]:
    picture = re.search(r"```mermaid\n(.*?)```", (ROOT / "docs/architecture.md").read_text(), re.DOTALL)
    assert picture, "docs/architecture.md has no picture"
    labels = dict(re.findall(r'(\w+)\["([\w.]+)', picture[1]))
    arrows = set()
    for source, targets in re.findall(r"^\s*(\w+) --> ([\w &]+)$", picture[1], re.MULTILINE):
        arrows |= {(labels[source], labels[target]) for target in re.split(r"\s*&\s*", targets.strip())}
    return arrows


def test_the_picture_shows_the_imports_as_they_are() -> None:
    assert drawn_arrows() == real_arrows()


def test_the_imports_have_no_cycle() -> None:
    arrows = real_arrows()
    left = {one for arrow in arrows for one in arrow}
    while left:
        leaves = {one for one in left if not any(a == one and b in left for a, b in arrows)}
        assert leaves, f"a cycle among {sorted(left)}"
        left -= leaves


def test_nobody_reads_private_parts_of_another_package() -> None:
    wrong = [
        f"{module} takes {'.'.join((target, name))}"
        for module, path in MODULES.items()
        for target, names in imports(path)
        for name in names or ("",)
        if unit(target) not in (None, unit(module))
        and any(part.startswith("_") and not part.startswith("__") for part in (*target.split("."), name))
    ]
    assert wrong == []


def test_only_metrics_modules_know_prometheus() -> None:
    users = {module for module, path in MODULES.items() for target, _ in imports(path) if "prometheus_client" in target}
    assert {module for module in users if module.rpartition(".")[2] != "metrics"} == set()


@pytest.mark.parametrize("package", PACKAGES)
def test_each_package_is_typed_and_has_one_error_base(package: str) -> None:
    assert (ROOT / package / "py.typed").exists()
    if package == "pysedna":
        return  # its subpackages have an errors module each
    assert f"{package}.errors" in MODULES


def test_no_file_is_longer_than_can_be_read_in_one_sitting() -> None:
    paths = [*MODULES.values(), *(ROOT / "tests").rglob("*.py"), *(ROOT / "examples").rglob("*.py")]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in paths}
    assert {path: length for path, length in lengths.items() if length > LINES} == {}
