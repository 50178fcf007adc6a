"""envtest's environment variables: what they are called, and what they say here.

Reading them is the only thing that this module does; who needs them is handed a `Settings`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pysedna.testing.errors import SettingError

PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager")
"""What a control plane consists of, in the order of starting."""

ASSETS = "KUBEBUILDER_ASSETS"
EXISTING = "USE_EXISTING_CLUSTER"
START_TIMEOUT = "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT"
STOP_TIMEOUT = "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT"

START_SECONDS = 60.0
STOP_SECONDS = 20.0

_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_DURATION_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h)")


@dataclass(frozen=True, slots=True)
class Settings:
    """What the environment says about the control plane."""

    cache: Path
    """Where programs are built into; they lie in a folder below it that is named after the hash of go.sum."""
    assets: Path | None = None
    """A folder with programs, as setup-envtest makes it."""
    programs: Mapping[str, Path] = field(default_factory=dict)
    """Programs that have a variable of their own, by name."""
    use_existing_cluster: bool = False
    start_timeout: float = START_SECONDS
    """Seconds until all servers must be ready."""
    stop_timeout: float = STOP_SECONDS
    """Seconds that a server has to end by itself before it is killed."""

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """Read os.environ, or `environment`. Raises SettingError."""
        env = os.environ if environment is None else environment
        cache_home = env.get("XDG_CACHE_HOME") or ""
        # the specification of XDG says that a relative path is to be ignored
        home = Path(cache_home) if cache_home.startswith("/") else Path(env.get("HOME") or Path.home()) / ".cache"
        return cls(
            cache=home / "pysedna" / "kube",
            assets=Path(env[ASSETS]) if env.get(ASSETS) else None,
            programs={name: Path(env[variable(name)]) for name in PROGRAMS if env.get(variable(name))},
            use_existing_cluster=_flag(env, EXISTING),
            start_timeout=_duration(env, START_TIMEOUT, START_SECONDS),
            stop_timeout=_duration(env, STOP_TIMEOUT, STOP_SECONDS),
        )


def variable(program: str) -> str:
    """The environment variable that names the path of one program: ``TEST_ASSET_KUBE_APISERVER``."""
    return "TEST_ASSET_" + program.upper().replace("-", "_")


def _flag(env: Mapping[str, str], name: str) -> bool:
    value = env.get(name, "").lower()
    if value not in ("", "true", "false"):
        raise SettingError(f"{name}={env[name]}: must be true or false")
    return value == "true"


def _duration(env: Mapping[str, str], name: str, default: float) -> float:
    """A duration in Go's spelling ("90s", "1m30s"), in seconds."""
    value = env.get(name, "")
    if not value:
        return default
    parts = _DURATION_PART.findall(value)
    if "".join(number + unit for number, unit in parts) != value:
        raise SettingError(f"{name}={value}: must be a duration such as 90s or 1m30s")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
