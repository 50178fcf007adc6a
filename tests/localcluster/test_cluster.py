"""`LocalCluster` as users start it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from informers import ExpiredError
from pysedna.localcluster import LocalCluster, NotRunningError, StartError, StateFileError

if TYPE_CHECKING:
    Json = dict[str, Any]


def test_it_starts_serves_and_leaves_nothing_behind(widgets: Json, widget: Callable[..., Json]) -> None:
    before = set(threading.enumerate())
    cluster = LocalCluster(controllers=False)
    with cluster:
        assert cluster.address.startswith("http://127.0.0.1:")
        kubeconfig = Path(cluster.kubeconfig)
        assert kubeconfig.stat().st_mode & 0o077 == 0
        cluster.install_crds([widgets])
        cluster.install_crds([widgets])
        body = widget("w")
        body["metadata"]["namespace"] = "default"
        assert cluster.client.resource("ex.io/v1", "Widget").create(body).name == "w"
    assert not kubeconfig.exists()
    assert {thread for thread in threading.enumerate() if thread not in before} == set()
    for use in (lambda: cluster.client, lambda: cluster.kubeconfig, cluster.compact):
        with pytest.raises(NotRunningError):
            use()


def test_compact_makes_old_versions_expire() -> None:
    with LocalCluster(controllers=False) as cluster:
        maps = cluster.client.resource("v1", "ConfigMap")
        maps.create({"metadata": {"name": "a", "namespace": "default"}})
        cluster.compact()
        with pytest.raises(ExpiredError), maps.watch(namespace="default", resource_version="1") as stream:
            next(stream)


def test_drop_watches_cuts_them() -> None:
    with LocalCluster(controllers=False) as cluster:
        maps = cluster.client.resource("v1", "ConfigMap")
        created = maps.create({"metadata": {"name": "a", "namespace": "default"}})
        with maps.watch(namespace="default", allow_bookmarks=False) as stream:
            assert next(stream).object == created
            cluster.drop_watches()
            with pytest.raises(Exception, match=r"."):
                next(stream)


def test_a_taken_port_is_told() -> None:
    with LocalCluster(controllers=False) as first:
        port = int(first.address.rpartition(":")[2])
        with pytest.raises(StartError, match=f"cannot listen on 127.0.0.1:{port}"):
            LocalCluster(controllers=False, port=port).start()


def test_a_damaged_state_file_is_told_and_leaves_no_thread(tmp_path: Path) -> None:
    path, before = tmp_path / "state", threading.active_count()
    path.write_text("nonsense")
    with pytest.raises(StateFileError, match=str(path)):
        LocalCluster(controllers=False, state=path).start()
    assert threading.active_count() == before


def test_pods_run_and_namespaces_empty_with_its_controllers(deployment: Json) -> None:
    with LocalCluster(nodes=["n1", "n2"]) as cluster:
        namespaces = cluster.client.resource("v1", "Namespace")
        namespaces.create({"metadata": {"name": "team"}})
        deployment["metadata"]["namespace"] = "team"
        deployments = cluster.client.resource("apps/v1", "Deployment")
        deployments.create(deployment)
        ready = deployments.wait_until(
            "team/d", lambda obj: obj is not None and obj["status"].get("readyReplicas") == 2, timeout=30
        )
        assert ready is not None
        pods = cluster.client.resource("v1", "Pod")
        assert {pod["spec"]["nodeName"] for pod in pods.list(namespace="team").items} == {"n1", "n2"}
        namespaces.delete("team")
        assert namespaces.wait_until("team", lambda obj: obj is None, timeout=30) is None
        assert pods.list(namespace="team").items == []
        begun = time.monotonic()
        assert cluster.stop(timeout=20)
        assert time.monotonic() - begun < 10


def test_clients_of_a_cluster_that_another_one_replaces_notice_it() -> None:
    with LocalCluster(controllers=False) as old:
        version = old.client.resource("v1", "ConfigMap").list().resource_version
    with LocalCluster(controllers=False) as new:
        maps = new.client.resource("v1", "ConfigMap")
        with pytest.raises(ExpiredError), maps.watch(resource_version=version) as stream:
            next(stream)


@pytest.mark.parametrize("nodes", [["A B"], [""], ["n1", "n1"], ["n" * 64], "node-1"])
def test_names_that_no_nodes_can_have_are_refused_before_anything_starts(nodes: Any) -> None:
    with pytest.raises(ValueError, match=r"node"):
        LocalCluster(nodes=nodes)


@pytest.mark.parametrize("module", ["aiohttp", "jsonpatch", "jsonschema"])
def test_a_missing_extra_is_named_by_the_import(module: str) -> None:
    code = f"import sys; sys.modules[{module!r}] = None; import pysedna.localcluster"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 1
    assert f"needs {module}" in result.stderr.splitlines()[-1]
    assert "pip install 'pysedna[localcluster]'" in result.stderr.splitlines()[-1]
