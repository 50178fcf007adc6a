"""The world of one federated learning job, for tests that move it step by step."""

from __future__ import annotations

from typing import Any

from pysedna.jobs import federated_learning
from pysedna.testing import FakeRecorder, RecordingSink

NAMES = ["defects-aggregation-0", "defects-train-0", "defects-train-1"]


class Scene:
    def __init__(self, make: Any, world: Any) -> None:
        self.make, self.world = make, world
        self.cluster = world.Cluster()
        self.recorder, self.sink = FakeRecorder(), RecordingSink()
        self.manager = world.HandManager(
            self.cluster, [federated_learning.setup], recorder=self.recorder, sink=self.sink
        )

    def references(self, *leave_out: str) -> None:
        for manifest in (self.make.model("model"), self.make.dataset("data-0"), self.make.dataset("data-1")):
            if manifest["metadata"]["name"] not in leave_out:
                self.cluster.create(manifest)

    def job(self, name: str = "defects", **more: Any) -> None:
        manifest = self.make.federated_manifest(name, **more)
        manifest["metadata"] = {"name": name, "namespace": "ns"}
        self.cluster.create(manifest)

    def settle(self, **more: Any) -> None:
        self.world.settle(self.cluster, self.manager, **more)

    def pods(self) -> dict[str, Any]:
        return {pod["metadata"]["name"]: pod for pod in self.cluster.all(self.world.POD)}

    def status(self, name: str = "defects") -> dict[str, Any]:
        found = self.cluster.find(self.world.FL, name)
        assert found is not None
        return dict(found.get("status") or {})

    def condition(self, type: str, name: str = "defects") -> dict[str, Any]:
        return next((c for c in self.status(name).get("conditions", []) if c["type"] == type), {})

    def environment(self, pod: str, name: str) -> str | None:
        variables = self.pods()[pod]["spec"]["containers"][0]["env"]
        return next((variable.get("value") for variable in variables if variable["name"] == name), None)

    def edit(self, batch_size: str, name: str = "defects") -> None:
        found = self.cluster.find(self.world.FL, name)
        assert found is not None
        for worker in found["spec"]["trainingWorkers"]:
            worker["template"]["spec"]["containers"][0]["env"][0]["value"] = batch_size
        self.cluster.patch(self.world.FL, name, {"spec": {"trainingWorkers": found["spec"]["trainingWorkers"]}})
