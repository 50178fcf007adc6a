"""A joint inference service: what it wants, what it does, what its status says, as tables."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pysedna.jobs import JobOptions
from pysedna.jobs import conditions as c
from pysedna.jobs.actions import AUTOSCALER, DEPLOYMENT, Create, Delete, Replace
from pysedna.jobs.joint_inference.changes import diff, names_taken
from pysedna.jobs.joint_inference.children import Children, desired, worker_hash
from pysedna.jobs.joint_inference.progress import status
from pysedna.jobs.problems import Problem

NOW = "2026-01-02T03:04:05Z"
PREFIX = "jointinferenceservice.sedna.io/"
AVAILABLE = {
    "observedGeneration": 1,
    "updatedReplicas": 1,
    "availableReplicas": 1,
    "conditions": [{"type": "Progressing", "status": "True"}, {"type": "Available", "status": "True"}],
}


def wanted(make: Any, manifest: Any = None, found: Any = None, options: JobOptions | None = None) -> Children:
    everything = found or make.found(make.model("little", url="/small/m.pb"), make.model("big", url="s3://b/m.pb"))
    result = desired(make.inference_service(manifest), everything, options or JobOptions())
    assert isinstance(result, Children), result
    return result


def environment(deployment: Any) -> dict[str, Any]:
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    return {variable["name"]: variable.get("value") for variable in container["env"]}


def everything(make: Any, children: Children, *, status: Any = None, **metadata: Any) -> list[Any]:
    deployments = [make.live(m, status=status, generation=1, **metadata) for m in children.deployments.values()]
    return [*deployments, *(make.live(manifest) for manifest in children.services.values())]


def names(actions: list[Any]) -> list[tuple[str, str]]:
    return [
        (type(a).__name__, a.manifest["metadata"]["name"] if isinstance(a, Create | Replace) else a.key.name)
        for a in actions
    ]


# What it wants


def test_a_service_is_two_deployments_and_a_service_in_front_of_the_cloud_worker(make: Any) -> None:
    children = wanted(make)
    assert list(children.deployments) == ["helmets-deployment-cloud", "helmets-deployment-edge"]
    assert list(children.services) == ["helmets-cloud"]
    assert children.services["helmets-cloud"]["spec"]["ports"][0]["port"] == 5000
    cloud = children.deployments["helmets-deployment-cloud"]
    selector = {
        PREFIX + "name": "helmets",
        PREFIX + "uid": make.UID,
        PREFIX + "worker-type": "cloud",
        "app.sedna.io": "helmets-Cloud-svc",
    }
    assert cloud["spec"]["selector"]["matchLabels"] == selector
    digest = worker_hash(make.inference_service().spec, "cloud")
    assert cloud["metadata"]["labels"] == {**selector, PREFIX + "spec-hash": digest}
    assert cloud["spec"]["template"]["metadata"]["labels"] == cloud["metadata"]["labels"]
    assert "replicas" not in cloud["spec"]


def test_the_environments_are_the_contract(make: Any) -> None:
    children = wanted(make, options=JobOptions(local_controller_server="http://lc:1"))
    assert list(environment(children.deployments["helmets-deployment-cloud"]).items()) == [
        ("BIG_MODEL_BIND_PORT", "5000"),
        ("NAMESPACE", "ns"),
        ("SERVICE_NAME", "helmets"),
        ("WORKER_NAME", "cloudworker-helmets"),
        ("MODEL_URL", "/downloads/b/m.pb"),
    ]
    edge = environment(children.deployments["helmets-deployment-edge"])
    parameters = edge.pop("HEM_PARAMETERS")
    assert json.loads(parameters) == [{"key": "threshold_img", "value": "0.9"}]
    assert list(edge.items()) == [
        ("BIG_MODEL_IP", "helmets-cloud.ns"),
        ("BIG_MODEL_PORT", "5000"),
        ("HEM_NAME", "IBT"),
        ("LC_SERVER", "http://lc:1"),
        ("NAMESPACE", "ns"),
        ("SERVICE_NAME", "helmets"),
        ("WORKER_NAME", "edgeworker-helmets"),
        ("MODEL_URL", "/home/data/small/m.pb"),
        ("DATA_PATH_PREFIX", "/home/data"),
    ]


def test_two_edge_workers_never_run_at_once_nor_do_two_on_the_host_network(make: Any) -> None:
    manifest = make.inference_manifest()
    strategies = [d["spec"]["strategy"]["type"] for d in wanted(make, manifest).deployments.values()]
    assert strategies == ["RollingUpdate", "Recreate"]
    manifest["spec"]["cloudWorker"]["template"]["spec"]["hostNetwork"] = True
    cloud = wanted(make, manifest).deployments["helmets-deployment-cloud"]["spec"]
    assert cloud["strategy"] == {"type": "Recreate"}
    assert cloud["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


@pytest.mark.parametrize(
    ("edit", "rolls"),
    [
        (lambda s: s["edgeWorker"]["hardExampleMining"]["parameters"][0].update(value="0.5"), {"edge"}),
        (lambda s: s["edgeWorker"]["hardExampleMining"].update(name="CrossEntropy"), {"edge"}),
        (lambda s: s["edgeWorker"]["template"]["spec"].update(nodeName="edge-1"), {"edge"}),
        (lambda s: s["cloudWorker"]["model"].update(name="bigger"), {"cloud"}),
        (lambda s: s["cloudWorker"].update(hpa={"maxReplicas": 3}), set()),
    ],
)
def test_a_worker_rolls_for_its_own_part_of_the_spec_only(make: Any, edit: Any, rolls: set[str]) -> None:
    manifest = make.inference_manifest()
    edit(manifest["spec"])
    before, after = make.inference_service().spec, make.inference_service(manifest).spec
    assert {kind for kind in ("cloud", "edge") if worker_hash(before, kind) != worker_hash(after, kind)} == rolls


def test_fault_14_a_missing_model_holds_back_its_own_worker_only(make: Any) -> None:
    children = wanted(make, found=make.found(make.model("big")))
    assert list(children.deployments) == ["helmets-deployment-cloud"]
    assert {kind: problem.reason for kind, problem in children.problems.items()} == {"edge": "ModelNotFound"}


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (lambda m: m["metadata"].update(name="a" * 54), "NameTooLong"),
        (lambda m: m["metadata"].update(name="a.b"), "InvalidName"),
        (lambda m: m["spec"]["edgeWorker"].update(hpa={"minReplicas": 3, "maxReplicas": 2}), "InvalidSpec"),
    ],
)
def test_a_service_that_cannot_work_wants_nothing_and_says_why(make: Any, edit: Any, reason: str) -> None:
    manifest = make.inference_manifest()
    edit(manifest)
    result = desired(make.inference_service(manifest), make.found(), JobOptions())
    assert isinstance(result, Problem)
    assert result.reason == reason


def test_the_port_of_the_cloud_worker_may_not_be_taken_by_the_edge_worker_on_its_node(make: Any) -> None:
    manifest = make.inference_manifest()
    for part in ("cloudWorker", "edgeWorker"):
        manifest["spec"][part]["template"]["spec"].update(nodeName="one", hostNetwork=True)
    container = manifest["spec"]["edgeWorker"]["template"]["spec"]["containers"][0]
    assert wanted(make, manifest)
    container["ports"] = [{"containerPort": 5000}]
    result = desired(make.inference_service(manifest), make.found(), JobOptions())
    assert isinstance(result, Problem)
    assert "the cloud worker and the edge worker both need TCP port 5000 of node one" in result.message


# What it does


def test_everything_is_created_when_nothing_is_there_and_nothing_when_all_is(make: Any) -> None:
    service, children = make.inference_service(), wanted(make)
    assert names(diff(children, make.observed(), service)) == [
        ("Create", "helmets-cloud"),
        ("Create", "helmets-deployment-cloud"),
        ("Create", "helmets-deployment-edge"),
    ]
    assert diff(children, make.observed(*everything(make, children)), service) == []


def test_fault_17_a_change_of_the_spec_is_applied_whenever_it_is_seen_and_keeps_what_others_set(make: Any) -> None:
    manifest = make.inference_manifest(generation=2)
    manifest["spec"]["edgeWorker"]["hardExampleMining"]["parameters"][0]["value"] = "0.5"
    service = make.inference_service(manifest)
    old = wanted(make)
    live = everything(make, old)
    edge = live[1].to_dict()
    edge["metadata"]["labels"]["kept"] = "yes"
    edge["metadata"]["annotations"]["deployment.kubernetes.io/revision"] = "3"
    edge["spec"].update(replicas=4, progressDeadlineSeconds=600)
    edge["status"] = AVAILABLE
    actions = diff(wanted(make, manifest), make.observed(live[0], make.live(edge, version=9), live[2]), service)
    assert names(actions) == [("Replace", "helmets-deployment-edge")]
    (action,) = actions
    assert isinstance(action, Replace)
    written = action.manifest
    assert written["metadata"]["resourceVersion"] == "9"
    assert written["metadata"]["labels"]["kept"] == "yes"
    assert written["metadata"]["annotations"] == {
        "deployment.kubernetes.io/revision": "3",
        "sedna.io/job-generation": "2",
    }
    assert (written["spec"]["replicas"], written["spec"]["progressDeadlineSeconds"]) == (4, 600)
    assert json.loads(environment(written)["HEM_PARAMETERS"]) == [{"key": "threshold_img", "value": "0.5"}]
    assert "status" not in written


def test_a_deployment_on_its_way_out_and_one_of_a_later_generation_are_left_alone(make: Any) -> None:
    manifest = make.inference_manifest(generation=2)
    manifest["spec"]["edgeWorker"]["model"]["name"] = "big"
    newer, older = wanted(make, manifest), wanted(make)
    live = everything(make, newer)
    assert diff(older, make.observed(*live), make.inference_service()) == []
    leaving = everything(make, older, deletionTimestamp="2026-01-01T00:00:00Z")
    assert diff(newer, make.observed(*leaving), make.inference_service(manifest)) == []


def test_fault_16_nothing_is_created_while_the_service_is_being_deleted(make: Any) -> None:
    manifest = make.inference_manifest()
    manifest["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert diff(wanted(make, manifest), make.observed(), make.inference_service(manifest)) == []


def test_somebody_elses_deployment_under_our_name_is_told_and_left_alone(make: Any) -> None:
    children = wanted(make)
    foreign = make.live(children.deployments["helmets-deployment-edge"], ownerReferences=[])
    live = [child for child in everything(make, children) if child.name != foreign.name]
    seen = make.observed(*live, taken={(DEPLOYMENT, foreign.name): foreign})
    assert diff(children, seen, make.inference_service()) == []
    assert [problem.reason for problem in names_taken(children, seen)] == ["NameTaken"]


def test_limits_make_change_and_unmake_an_autoscaler(make: Any) -> None:
    manifest = make.inference_manifest()
    manifest["spec"]["cloudWorker"]["hpa"] = {"maxReplicas": 3, "metrics": [{"type": "Resource"}]}
    service, children = make.inference_service(manifest), wanted(make, manifest)
    others = everything(make, children)
    (create,) = diff(children, make.observed(*others), service)
    assert isinstance(create, Create)
    assert create.kind == AUTOSCALER
    assert create.manifest["metadata"]["name"] == "hpa-helmets-deployment-cloud"
    assert create.manifest["spec"] == {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "helmets-deployment-cloud"},
        "maxReplicas": 3,
        "metrics": [{"type": "Resource"}],
    }
    live = make.live(create.manifest, version=4)
    assert diff(children, make.observed(*others, live), service) == []
    manifest["spec"]["cloudWorker"]["hpa"]["maxReplicas"] = 5
    (replace,) = diff(wanted(make, manifest), make.observed(*others, live), make.inference_service(manifest))
    assert isinstance(replace, Replace)
    assert (replace.manifest["metadata"]["resourceVersion"], replace.manifest["spec"]["maxReplicas"]) == ("4", 5)
    (delete,) = diff(wanted(make), make.observed(*others, live), make.inference_service())
    assert delete == Delete(AUTOSCALER, live.key, live.uid, "the spec has no limits for this worker any more")


# What its status says


def state(make: Any, *deployments: Any, pods: Any = (), problem: Any = None, job: Any = None) -> Any:
    live = {deployment.name: deployment for deployment in deployments}
    return status(job or make.inference_service(), live, list(pods), problem=problem, now=NOW)


def said(change: Any, type: str) -> tuple[Any, ...]:
    found = c.find(change.conditions, type) or {}
    return found.get("status"), found.get("reason"), found.get("message")


def test_a_service_runs_when_both_deployments_are_available(make: Any) -> None:
    change = state(make, *everything(make, wanted(make), status=AVAILABLE)[:2])
    assert change.fields == {"active": 2, "failed": 0, "observedGeneration": 1, "startTime": NOW}
    assert said(change, "Running") == ("True", "WorkersAvailable", "both workers are available")
    assert said(change, "Failed") == (None, None, None)


@pytest.mark.parametrize(
    "unready",
    [
        None,
        {},
        {**AVAILABLE, "observedGeneration": 0},
        {**AVAILABLE, "availableReplicas": 0},
        {**AVAILABLE, "updatedReplicas": 0},
        {**AVAILABLE, "conditions": list(reversed(AVAILABLE["conditions"]))},  # type: ignore[call-overload]
    ],
)
def test_fault_13_a_deployment_that_is_not_ready_yet_is_no_failure(make: Any, unready: Any) -> None:
    cloud, edge, _ = everything(make, wanted(make), status=AVAILABLE)
    late = edge.to_dict()
    late["status"] = unready
    change = state(make, cloud, make.live(late))
    assert change.fields["failed"] == 0
    assert said(change, "Failed")[0] is None
    ready = unready is not None and unready.get("availableReplicas") == unready.get("updatedReplicas") == 1
    ready = ready and unready["observedGeneration"] == 1
    assert (change.fields["active"] == 2) == ready
    if not ready:
        assert said(change, "Running") == ("False", "WorkersUnavailable", "not available: the edge worker")


def test_a_deployment_of_the_old_spec_is_not_active(make: Any) -> None:
    manifest = make.inference_manifest(generation=2)
    manifest["spec"]["edgeWorker"]["model"]["name"] = "big"
    live = everything(make, wanted(make), status=AVAILABLE)[:2]
    assert state(make, *live, job=make.inference_service(manifest)).fields["active"] == 1


def crashing_pod(make: Any, children: Children, kind: str, **more: Any) -> Any:
    template = children.deployments[f"helmets-deployment-{kind}"]["spec"]["template"]
    status = {
        "phase": "Running",
        "containerStatuses": [
            {
                "name": "worker",
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
                "lastState": {"terminated": {"exitCode": 1}},
            }
        ],
    }
    labels = {**template["metadata"]["labels"], **more.pop("labels", {})}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{kind}-pod", "namespace": "ns", "labels": labels}}
    return make.live(pod, status=status, **more)


def test_a_crash_looping_edge_worker_shows_and_is_forgotten_when_it_is_well(make: Any) -> None:
    children = wanted(make)
    cloud, edge, _ = everything(make, children, status=AVAILABLE)
    stuck = edge.to_dict()
    stuck["status"] = {**AVAILABLE, "availableReplicas": 0}
    change = state(make, cloud, make.live(stuck), pods=[crashing_pod(make, children, "edge")])
    message = "edge worker: pod edge-pod: container worker is in CrashLoopBackOff: ended with exit code 1"
    assert (change.fields["active"], change.fields["failed"]) == (1, 1)
    assert said(change, "Failed") == ("True", "CrashLoopBackOff", message)
    assert [(note.type, note.reason, note.message) for note in change.notes] == [("Warning", "workerFailed", message)]
    job = make.inference_service().with_status({**change.fields, "conditions": change.conditions})
    assert state(make, cloud, make.live(stuck), pods=[crashing_pod(make, children, "edge")], job=job).notes == []
    well = state(make, cloud, edge, job=job)
    assert said(well, "Failed")[0] == "False"
    assert said(well, "Running")[0] == "True"
    assert "startTime" not in well.fields


def test_pods_that_are_leaving_or_of_an_old_spec_do_not_count(make: Any) -> None:
    children = wanted(make)
    live = everything(make, children, status=AVAILABLE)[:2]
    pods = [
        crashing_pod(make, children, "edge", deletionTimestamp="2026-01-01T00:00:00Z"),
        crashing_pod(make, children, "edge", labels={PREFIX + "spec-hash": "old"}),
    ]
    assert state(make, *live, pods=pods).fields["failed"] == 0


def test_a_rollout_that_is_stuck_is_a_failure_with_the_deployments_own_words(make: Any) -> None:
    cloud, edge, _ = everything(make, wanted(make), status=AVAILABLE)
    stuck = edge.to_dict()
    stuck["status"] = {
        "observedGeneration": 1,
        "conditions": [
            {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "too long"}
        ],
    }
    change = state(make, cloud, make.live(stuck))
    assert said(change, "Failed")[1] == "ProgressDeadlineExceeded"
    assert "too long" in said(change, "Failed")[2]


def test_metrics_and_conditions_of_others_are_not_touched(make: Any) -> None:
    others = [{"type": "Custom", "status": "True"}]
    job = make.inference_service().with_status({"metrics": [{"key": "a", "value": "1"}], "conditions": others})
    change = state(make, *everything(make, wanted(make), status=AVAILABLE)[:2], job=job)
    assert "metrics" not in change.fields
    assert others[0] in change.conditions


def test_services_are_kept_right_too(make: Any) -> None:
    children = wanted(make)
    live = everything(make, children)[:2]
    assert names(diff(children, make.observed(*live), make.inference_service())) == [("Create", "helmets-cloud")]
