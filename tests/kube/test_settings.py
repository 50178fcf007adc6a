"""envtest's environment variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from pysedna.testing import SettingError, Settings


def test_an_empty_environment_gives_the_defaults() -> None:
    settings = Settings.from_environment({"HOME": "/home/me"})
    assert settings == Settings(cache=Path("/home/me/.cache/pysedna/kube"))
    assert (settings.start_timeout, settings.stop_timeout, settings.use_existing_cluster) == (60.0, 20.0, False)


@pytest.mark.parametrize(("value", "cache"), [("/c", "/c"), ("relative", "/home/me/.cache"), ("", "/home/me/.cache")])
def test_the_cache_is_below_an_absolute_xdg_cache_home(value: str, cache: str) -> None:
    settings = Settings.from_environment({"HOME": "/home/me", "XDG_CACHE_HOME": value})
    assert settings.cache == Path(cache, "pysedna/kube")


def test_programs_are_named_one_by_one_or_by_folder() -> None:
    env = {
        "HOME": "/",
        "KUBEBUILDER_ASSETS": "/assets",
        "TEST_ASSET_ETCD": "/e",
        "TEST_ASSET_KUBE_APISERVER": "/a",
        "TEST_ASSET_KUBE_CONTROLLER_MANAGER": "/m",
    }
    settings = Settings.from_environment(env)
    assert settings.assets == Path("/assets")
    assert settings.programs == {
        "etcd": Path("/e"),
        "kube-apiserver": Path("/a"),
        "kube-controller-manager": Path("/m"),
    }


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("20s", 20.0), ("1m30s", 90.0), ("1.5s", 1.5), ("250ms", 0.25), ("1h", 3600.0), (".5m", 30.0), ("", 60.0)],
)
def test_time_outs_are_in_the_spelling_of_go(text: str, seconds: float) -> None:
    settings = Settings.from_environment({"HOME": "/", "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT": text})
    assert settings.start_timeout == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["20", "s", "-5s", "1 m", "20s!", "1d"])
def test_another_time_out_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(SettingError, match=r"KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT=.*90s"):
        Settings.from_environment({"HOME": "/", "KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT": text})


@pytest.mark.parametrize(("text", "existing"), [("true", True), ("TRUE", True), ("false", False), ("", False)])
def test_an_existing_cluster_is_used_when_asked_for(text: str, existing: bool) -> None:
    assert Settings.from_environment({"HOME": "/", "USE_EXISTING_CLUSTER": text}).use_existing_cluster is existing


def test_an_unclear_flag_is_refused() -> None:
    with pytest.raises(SettingError, match="USE_EXISTING_CLUSTER=perhaps"):
        Settings.from_environment({"HOME": "/", "USE_EXISTING_CLUSTER": "perhaps"})
