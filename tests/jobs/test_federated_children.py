"""What a federated learning job wants: names, labels, environment, storage, and why it may want nothing."""

from __future__ import annotations

from typing import Any

import pytest

from pysedna.jobs import JobOptions
from pysedna.jobs.federated_learning.children import Children, desired, job_hash
from pysedna.jobs.problems import Problem

OPTIONS = JobOptions(local_controller_server="http://lc:9100")
PREFIX = "federatedlearningjob.sedna.io/"


def references(make: Any, **more: Any) -> Any:
    return make.found(make.model("model"), make.dataset("data-0"), make.dataset("data-1", url="/other/d.csv"), **more)


def wanted(make: Any, manifest: Any = None, found: Any = None) -> Children:
    result = desired(make.federated_job(manifest), found or references(make), OPTIONS)
    assert isinstance(result, Children), result
    return result


def problem(make: Any, manifest: Any = None, found: Any = None) -> Problem:
    result = desired(make.federated_job(manifest), found or references(make), OPTIONS)
    assert isinstance(result, Problem), result
    return result


def environment(pod: Any) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    return {variable["name"]: variable.get("value", variable.get("valueFrom")) for variable in container["env"]}


def test_a_job_is_an_aggregator_a_service_and_a_pod_for_each_trainer(make: Any) -> None:
    children = wanted(make)
    assert list(children.pods) == ["defects-aggregation-0", "defects-train-0", "defects-train-1"]
    assert list(children.services) == ["defects-aggregation"]
    for child in [*children.pods.values(), *children.services.values()]:
        assert child["metadata"]["namespace"] == "ns"
        assert child["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "sedna.io/v1alpha1",
                "kind": "FederatedLearningJob",
                "name": "defects",
                "uid": make.UID,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]


def test_pods_carry_upstreams_labels_and_what_they_were_made_of(make: Any) -> None:
    pod = wanted(make).pods["defects-train-1"]
    assert pod["metadata"]["labels"] == {
        PREFIX + "name": "defects",
        PREFIX + "uid": make.UID,
        PREFIX + "worker-type": "train",
        PREFIX + "worker-index": "1",
        PREFIX + "spec-hash": job_hash(make.federated_job().spec),
    }
    assert pod["metadata"]["annotations"] == {"sedna.io/job-generation": "1"}


def test_the_aggregators_environment_is_the_contract(make: Any) -> None:
    assert list(environment(wanted(make).pods["defects-aggregation-0"]).items()) == [
        ("NAMESPACE", "ns"),
        ("WORKER_NAME", "aggworker-defects-0"),
        ("JOB_NAME", "defects"),
        ("AGG_BIND_PORT", "7363"),
        ("PARTICIPANTS_COUNT", "2"),
        ("TRANSMITTER", "ws"),
        ("MODEL_URL", "/home/data/models/m.pb"),
        ("DATA_PATH_PREFIX", "/home/data"),
    ]


def test_a_trainers_environment_is_the_contract_after_the_users_own(make: Any) -> None:
    assert list(environment(wanted(make).pods["defects-train-1"]).items()) == [
        ("batch_size", "32"),
        ("AGG_PORT", "7363"),
        ("AGG_IP", "defects-aggregation.ns"),
        ("WORKER_NAME", "trainworker-defects-1"),
        ("JOB_NAME", "defects"),
        ("PARTICIPANTS_COUNT", "2"),
        ("NAMESPACE", "ns"),
        ("MODEL_NAME", "model"),
        ("DATASET_NAME", "data-1"),
        ("LC_SERVER", "http://lc:9100"),
        ("TRANSMITTER", "ws"),
        ("MODEL_URL", "/home/data/models/m.pb"),
        ("TRAIN_DATASET_URL", "/home/data/other/d.csv"),
        ("DATA_PATH_PREFIX", "/home/data"),
    ]


def test_fault_2_the_aggregators_host_is_a_function_of_the_jobs_own_name(make: Any) -> None:
    for name in ("one", "two"):
        pods = wanted(make, make.federated_manifest(name)).pods
        assert environment(pods[f"{name}-train-0"])["AGG_IP"] == f"{name}-aggregation.ns"


def test_trainers_use_the_host_network_and_still_find_the_aggregator_by_name(make: Any) -> None:
    pods = wanted(make).pods
    trainer, aggregator = pods["defects-train-0"]["spec"], pods["defects-aggregation-0"]["spec"]
    assert (trainer["hostNetwork"], trainer["dnsPolicy"], trainer["restartPolicy"], trainer["nodeName"]) == (
        True,
        "ClusterFirstWithHostNet",
        "OnFailure",
        "edge-0",
    )
    assert (aggregator.get("hostNetwork"), aggregator["restartPolicy"]) == (None, "OnFailure")


def test_what_a_template_says_about_restarts_and_names_is_kept(make: Any) -> None:
    manifest = make.federated_manifest()
    spec = manifest["spec"]["trainingWorkers"][0]["template"]["spec"]
    spec.update(restartPolicy="Never", dnsPolicy="Default", tolerations=[{"operator": "Exists"}])
    pod = wanted(make, manifest).pods["defects-train-0"]["spec"]
    assert (pod["restartPolicy"], pod["dnsPolicy"]) == ("Never", "Default")
    assert pod["tolerations"] == [{"operator": "Exists"}]


def test_labels_annotations_and_finalizers_of_a_template_reach_the_pod_and_ours_win(make: Any) -> None:
    manifest = make.federated_manifest()
    manifest["spec"]["trainingWorkers"][0]["template"]["metadata"] = {
        "name": "ignored",
        "labels": {"team": "vision", PREFIX + "name": "somebody-else"},
        "annotations": {"note": "keep", "sedna.io/job-generation": "99"},
        "finalizers": ["example.com/hold"],
    }
    metadata = wanted(make, manifest).pods["defects-train-0"]["metadata"]
    assert metadata["name"] == "defects-train-0"
    assert metadata["labels"]["team"] == "vision"
    assert metadata["labels"][PREFIX + "name"] == "defects"
    assert metadata["annotations"] == {"note": "keep", "sedna.io/job-generation": "1"}
    assert metadata["finalizers"] == ["example.com/hold"]


def test_each_container_gets_the_environment_and_a_mount_of_the_user_stands(make: Any) -> None:
    manifest = make.federated_manifest()
    manifest["spec"]["aggregationWorker"]["template"]["spec"]["containers"] = [
        make.container("one", volumeMounts=[{"name": "mine", "mountPath": "/home/data/models/"}]),
        make.container("two"),
    ]
    one, two = wanted(make, manifest).pods["defects-aggregation-0"]["spec"]["containers"]
    assert [variable["name"] for variable in one["env"]] == [variable["name"] for variable in two["env"]]
    assert [mount["name"] for mount in one["volumeMounts"]] == ["mine"]
    assert [mount["mountPath"] for mount in two["volumeMounts"]] == ["/home/data/models"]


def test_the_service_leads_to_the_aggregator_under_the_port_that_edgemesh_understands(make: Any) -> None:
    service = wanted(make).services["defects-aggregation"]
    labels = {PREFIX + "name": "defects", PREFIX + "uid": make.UID, PREFIX + "worker-type": "aggregation"}
    assert service["metadata"]["labels"] == labels
    assert service["spec"] == {
        "type": "ClusterIP",
        "selector": labels,
        "ports": [{"name": "tcp-0", "protocol": "TCP", "port": 7363, "targetPort": 7363}],
    }


def test_an_s3_transmitter_gives_its_path_and_keys_to_all_workers_and_a_pretrained_model_is_downloaded(
    make: Any,
) -> None:
    manifest = make.federated_manifest()
    manifest["spec"]["transmitter"] = {"ws": {}, "s3": {"aggDataPath": "s3://sedna/agg", "credentialName": "keys"}}
    manifest["spec"]["pretrainedModel"] = {"name": "start"}
    found = make.found(
        make.model("model"),
        make.model("start", url="https://host/start.pb"),
        make.dataset("data-0"),
        make.dataset("data-1"),
        make.secret("keys", **{"s3-endpoint": "store"}),
    )
    pods = wanted(make, manifest, found).pods
    for pod in pods.values():
        values = environment(pod)
        assert (values["TRANSMITTER"], values["AGG_DATA_PATH"]) == ("s3", "s3://sedna/agg")
        assert values["PRETRAINED_MODEL_URL"] == "/downloads/host/start.pb"
        assert values["ACCESS_KEY_ID"] == {"secretKeyRef": {"name": "keys", "key": "ACCESS_KEY_ID"}}
        assert pod["spec"]["initContainers"][0]["args"] == ["https://host/start.pb", "/downloads/host/"]


def test_the_same_job_gives_the_same_pods_each_time(make: Any) -> None:
    assert wanted(make) == wanted(make)


def test_an_edit_of_a_model_or_dataset_reaches_new_pods_but_rolls_none(make: Any) -> None:
    before, moved = wanted(make), wanted(make, found=references_moved(make))
    assert before.spec_hash == moved.spec_hash
    assert environment(moved.pods["defects-train-0"])["MODEL_URL"] == "/elsewhere/m.pb".replace("/e", "/home/data/e")


def references_moved(make: Any) -> Any:
    return make.found(make.model("model", url="/elsewhere/m.pb"), make.dataset("data-0"), make.dataset("data-1"))


@pytest.mark.parametrize(
    "edit",
    [
        lambda spec: spec["trainingWorkers"][0]["template"]["spec"]["containers"][0]["env"][0].update(value="16"),
        lambda spec: spec["trainingWorkers"].pop(),
        lambda spec: spec["trainingWorkers"].reverse(),
        lambda spec: spec["trainingWorkers"][1]["dataset"].update(name="data-0"),
        lambda spec: spec["aggregationWorker"]["model"].update(name="other"),
        lambda spec: spec["aggregationWorker"]["template"].update(metadata={"labels": {"a": "b"}}),
        lambda spec: spec.update(pretrainedModel={"name": "start"}),
        lambda spec: spec.update(transmitter={"s3": {"aggDataPath": "s3://x/y"}}),
    ],
)
def test_every_part_of_the_spec_rolls_the_job(make: Any, edit: Any) -> None:
    manifest = make.federated_manifest()
    edit(manifest["spec"])
    assert job_hash(make.federated_job(manifest).spec) != job_hash(make.federated_job().spec)


@pytest.mark.parametrize(
    "edit",
    [
        lambda job: job["metadata"].update(labels={"a": "b"}, annotations={"c": "d"}, generation=9),
        lambda job: job.update(status={"phase": "Running"}),
        lambda job: job["spec"].update(transmitter={"ws": {}}),
        lambda job: job["spec"].update(transmitter={}),
        lambda job: job["spec"].update(transmitter=None, pretrainedModel=None),
        lambda job: job["spec"]["aggregationWorker"]["template"].update(metadata=None),
        lambda job: job["spec"]["aggregationWorker"]["template"]["spec"].update(restartPolicy="OnFailure"),
        lambda job: job["spec"]["trainingWorkers"][0]["template"]["spec"].update(hostNetwork=True),
        lambda job: job.update(spec=dict(reversed(job["spec"].items()))),
    ],
)
def test_what_shapes_no_worker_rolls_nothing(make: Any, edit: Any) -> None:
    manifest = make.federated_manifest()
    edit(manifest)
    assert job_hash(make.federated_job(manifest).spec) == job_hash(make.federated_job().spec)


def test_fault_7_a_missing_model_or_dataset_is_a_problem_and_no_worker_without_its_url(make: Any) -> None:
    said = problem(make, found=make.found(make.dataset("data-0")))
    assert said.reason == "ModelNotFound"
    assert "Model model does not exist" in said.message
    assert "Dataset data-1 does not exist" in said.message
    assert "data-0" not in said.message


def test_a_missing_secret_is_a_problem_only_where_keys_are_of_use(make: Any) -> None:
    datasets = [make.dataset("data-0"), make.dataset("data-1", credentialName="unused")]
    said = problem(make, found=make.found(make.model("model", url="s3://b/m", credentialName="keys"), *datasets))
    assert (said.reason, "Secret keys" in said.message) == ("SecretNotFound", True)
    assert wanted(make, found=make.found(make.model("model"), *datasets))


def test_a_job_without_trainers_says_so(make: Any) -> None:
    said = problem(make, make.federated_manifest(trainers=0))
    assert (said.reason, said.message) == (
        "NoTrainingWorkers",
        "spec.trainingWorkers is empty: add at least one training worker",
    )


def test_a_name_that_is_too_long_for_the_children_says_how_long_it_may_be(make: Any) -> None:
    assert "at most 51" in problem(make, make.federated_manifest("a" * 52)).message


def test_trainers_that_want_one_port_of_one_node_are_told_apart(make: Any) -> None:
    manifest = make.federated_manifest()
    for worker in manifest["spec"]["trainingWorkers"]:
        worker["template"]["spec"].update(nodeName="edge", containers=[make.container(ports=[{"containerPort": 8080}])])
    said = problem(make, manifest)
    assert said.reason == "PortClash"
    assert "training worker 0 and training worker 1 both need TCP port 8080 of node edge" in said.message
    manifest["spec"]["trainingWorkers"][1]["template"]["spec"]["nodeName"] = "other"
    assert wanted(make, manifest)


def test_a_completion_policy_that_does_not_exist_is_a_problem(make: Any) -> None:
    manifest = make.federated_manifest()
    manifest["metadata"]["annotations"] = {"sedna.io/completion-policy": "Whenever"}
    assert problem(make, manifest).reason == "InvalidSpec"


def test_a_spec_that_its_type_refuses_is_a_problem_with_the_path(make: Any) -> None:
    from pysedna.api import FederatedLearningJobSpec
    from pysedna.jobs.job import read_job

    manifest = make.federated_manifest()
    del manifest["spec"]["trainingWorkers"][1]["dataset"]
    said = read_job(manifest, FederatedLearningJobSpec)
    assert isinstance(said, Problem)
    assert "$.spec.trainingWorkers[1]" in said.message
