"""The story: six steps, each a small function that does something by hand and checks what the controllers make of it.

It speaks through `informers.Client` alone and knows neither the embedded cluster nor the controllers' code, so it
judges them from outside and is the same on a real cluster. A step returns one line that says what was checked, or
raises StepFailed. Nothing here sleeps: steps wait for events, up to `Story.timeout` seconds a wait (for the garbage
collector longer).
"""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Protocol

from informers import Client, NotFoundError, Object, ObjectKey, Resource
from pysedna.demo import objects
from pysedna.demo.errors import StepFailed
from pysedna.demo.history import History, is_running
from pysedna.demo.objects import API_VERSION, JOB, SERVICE, environment
from pysedna.demo.recorder import Recorder

JOB_LABELS = {"federatedlearningjob.sedna.io/name": JOB}
SERVICE_LABELS = {"jointinferenceservice.sedna.io/name": SERVICE}
EDGE_LABELS = {**SERVICE_LABELS, "jointinferenceservice.sedna.io/worker-type": "edge"}
CLOUD_LABELS = {**SERVICE_LABELS, "jointinferenceservice.sedna.io/worker-type": "cloud"}
WORKERS = ("aggregation-0", "train-0", "train-1")
CHILD_KINDS = {"Pod": "v1", "Service": "v1", "Deployment": "apps/v1", "ReplicaSet": "apps/v1"}
IMPOSSIBLE_COUNT = 99
# A garbage collector looks for new kinds every half minute, and until then does not see that their objects are gone.
COLLECTION_SECONDS = 60.0


class Managers(Protocol):
    """The manager replicas, as far as the story is concerned."""

    def holder(self) -> str:
        """The identity that the Lease names, or ""."""

    def kill(self, identity: str) -> None:
        """Ends that replica without warning."""

    def wait_for_other_holder(self, identity: str, timeout: float) -> str:
        """Waits until the Lease names somebody else, and returns that name."""


@dataclass(frozen=True)
class Story:
    """What a step works with. `pin`: write node names into the pod templates."""

    client: Client
    namespace: str
    nodes: Sequence[str]
    recorder: Recorder
    managers: Managers
    timeout: float
    pin: bool
    note: Callable[[str], None]

    def resource(self, kind: str) -> Resource:
        """Access to one of the kinds that the story touches."""
        return self.client.resource(CHILD_KINDS.get(kind, API_VERSION), kind)

    def key(self, name: str) -> ObjectKey:
        """A key in the story's namespace."""
        return ObjectKey(self.namespace, name)

    def wait_for(self, what: str, question: Callable[[History], Any]) -> Any:
        """`Recorder.wait_for` with the story's time-out."""
        return self.recorder.wait_for(what, question, self.timeout)


@dataclass(frozen=True)
class Step:
    """One step: what the reader is told before, and the function that plays it."""

    title: str
    play: Callable[[Story], str]


def everything_runs(story: Story) -> str:
    """Applies models, datasets, the job and the service; all their workers run."""
    manifests = [
        *objects.models(story.namespace),
        *objects.datasets(story.namespace, story.nodes),
        objects.federated_learning_job(story.namespace, story.nodes, batch_size="32", pin=story.pin),
        objects.joint_inference_service(story.namespace, story.nodes, parameter="value1", pin=story.pin),
    ]
    for manifest in manifests:
        story.resource(manifest["kind"]).create(manifest)
    for worker in WORKERS:
        _wait_for_worker(story, worker)
    for labels in (CLOUD_LABELS, EDGE_LABELS):
        _wait_for_service_pod(story, labels)
    story.wait_for("the job's status to count 3 active workers", lambda seen: _active(seen, JOB) == len(WORKERS))
    story.wait_for("the service's status to count 2 active workers", lambda seen: _active(seen, SERVICE) == 2)
    _check_no_surplus(story)
    return "1 aggregator, 2 trainers, cloud and edge run, the statuses say so"


def trainer_is_deleted(story: Story) -> str:
    """Deletes a trainer once, then twice within a second: each time exactly one comes back, in the same place."""
    mark = story.recorder.ask(History.mark)
    first = _wait_for_worker(story, "train-0")
    story.note(f"deleting pod {first.name}")
    hit = _delete_pod(story, first.name)
    second = _wait_for_worker(story, "train-0", unlike=hit)
    _check_same_place(story, first, second)

    for _ in range(3):
        again, took = _delete_twice(story, first.name)
        hit |= again
        if took < 1:
            break
    else:
        raise StepFailed(f"this machine is too slow: two deletes took {took:.2f} s, they must fall within one second")
    _wait_for_worker(story, "train-0", unlike=hit)
    _settle(story, "FederatedLearningJob", JOB)
    _check_same_place(story, first, _wait_for_worker(story, "train-0", unlike=hit))
    _check_no_surplus(story)
    _check_created(story, mark, {first.name: len(hit)})
    _check_untouched(story, mark, allowed=[first.name])
    return f"each time exactly one came back, in its place (2 deletes in {took:.2f} s)"


def service_is_damaged(story: Story) -> str:
    """Deletes a pod of the service, then its edge deployment: both come back, and the cloud worker never notices."""
    mark = story.recorder.ask(History.mark)
    pod = _wait_for_service_pod(story, EDGE_LABELS)
    story.note(f"deleting pod {pod.name}")
    hit = _delete_pod(story, pod.name)
    hit |= {_wait_for_service_pod(story, EDGE_LABELS, unlike=hit).uid}

    name = f"{SERVICE}-deployment-edge"
    deployment = story.wait_for(f"deployment {name}", lambda seen: seen.get("Deployment", name))
    story.note(f"deleting deployment {name}")
    story.resource("Deployment").delete(deployment.key)
    story.wait_for(f"deployment {name} to come back", lambda seen: _replaced(seen, deployment))
    _wait_for_service_pod(story, EDGE_LABELS, unlike=hit)
    _settle(story, "JointInferenceService", SERVICE)
    _check_no_surplus(story)
    _check_created(story, mark, {name: 1}, kind="Deployment", labels=SERVICE_LABELS)
    _check_untouched(story, mark, allowed_labels=EDGE_LABELS)
    return "both came back, once each; the cloud worker kept its pod"


def specs_are_edited(story: Story) -> str:
    """Edits the job and the service: every worker that must change is replaced. Labels and status replace nothing."""
    mark = story.recorder.ask(History.mark)
    before = {worker: _wait_for_worker(story, worker) for worker in WORKERS}
    edge, cloud = (_wait_for_service_pod(story, labels) for labels in (EDGE_LABELS, CLOUD_LABELS))
    story.note("batch size 32 -> 16, hard example mining parameter value1 -> value2")
    job = objects.federated_learning_job(story.namespace, story.nodes, batch_size="16", pin=story.pin)
    _merge(story, "FederatedLearningJob", JOB, {"spec": {"trainingWorkers": job["spec"]["trainingWorkers"]}})
    mining = {"parameters": [{"key": "key1", "value": "value2"}]}
    _merge(story, "JointInferenceService", SERVICE, {"spec": {"edgeWorker": {"hardExampleMining": mining}}})

    after = {worker: _wait_for_worker(story, worker, unlike={pod.uid}) for worker, pod in before.items()}
    new_edge = _wait_for_service_pod(story, EDGE_LABELS, unlike={edge.uid})
    _settle(story, "FederatedLearningJob", JOB)
    _settle(story, "JointInferenceService", SERVICE)
    _check_no_surplus(story)
    _check_created(story, mark, {pod.name: 1 for pod in before.values()})
    _check_new_specs(story, [after["train-0"], after["train-1"]], new_edge)
    if _wait_for_service_pod(story, CLOUD_LABELS).uid != cloud.uid:
        raise StepFailed("the cloud worker was replaced though only the edge worker's parameter changed")

    mark = story.recorder.ask(History.mark)
    story.note("changing labels and status only")
    for kind, name in (("FederatedLearningJob", JOB), ("JointInferenceService", SERVICE)):
        _merge(story, kind, name, {"metadata": {"labels": {"demo.pysedna.io/edited": "yes"}}})
        _settle(story, kind, name)
    _check_untouched(story, mark)
    return "the 4 that must were replaced; labels and status replace nothing"


def manager_dies(story: Story) -> str:
    """Kills the active manager and deletes a trainer at once: the other one takes over and does only what is due."""
    mark = story.recorder.ask(History.mark)
    victim = _wait_for_worker(story, "train-1")
    leader = story.managers.holder()
    story.note(f"SIGKILL to {leader}; deleting pod {victim.name}")
    began = story.recorder.seconds()
    story.managers.kill(leader)
    hit = _delete_pod(story, victim.name)
    successor = story.managers.wait_for_other_holder(leader, story.timeout)
    took = story.recorder.seconds() - began
    story.note(f"{successor} leads after {took:.1f} s")
    _check_same_place(story, victim, _wait_for_worker(story, "train-1", unlike=hit))
    for kind, name in (("FederatedLearningJob", JOB), ("JointInferenceService", SERVICE)):
        _settle(story, kind, name)
    _check_no_surplus(story)
    _check_created(story, mark, {victim.name: 1})
    _check_untouched(story, mark, allowed=[victim.name])
    return f"{successor} took over after {took:.1f} s, created only what was missing"


def children_are_collected(story: Story) -> str:
    """Deletes the job and the service: all their children go, and nothing else does."""
    children = story.recorder.ask(_children)
    for kind, name in (("FederatedLearningJob", JOB), ("JointInferenceService", SERVICE)):
        story.note(f"deleting {kind} {name}")
        story.resource(kind).delete(story.key(name), propagation="Background")
    patience = max(story.timeout, COLLECTION_SECONDS)
    story.recorder.wait_for("every child to be collected", lambda seen: not _children(seen), patience)
    for kind, count in (("Model", 3), ("Dataset", objects.TRAINERS)):
        left = len(story.resource(kind).list(namespace=story.namespace).items)
        if left != count:
            raise StepFailed(f"{count} objects of kind {kind} should remain, {left} do")
    crowds, gaps = story.recorder.ask(lambda seen: (list(seen.crowds), seen.gaps))
    if crowds:
        raise StepFailed("; ".join(crowds))
    text = f"{len(children)} children collected; at no moment two workers in one place"
    return text if not gaps else f"{text} (the watch was interrupted {gaps} times)"


STEPS = (
    Step("Apply a job and a service", everything_runs),
    Step("Delete a trainer, then twice more at once", trainer_is_deleted),
    Step("Delete a service pod, then a deployment", service_is_damaged),
    Step("Edit the job and the service", specs_are_edited),
    Step("Kill the active manager", manager_dies),
    Step("Delete the job and the service", children_are_collected),
)


def _wait_for_worker(story: Story, worker: str, *, unlike: Set[str] = frozenset()) -> Object:
    # unlike: uids of pods that it must not be
    name = f"{JOB}-{worker}"

    def running(seen: History) -> Object | None:
        pod = seen.get("Pod", name)
        return pod if pod and is_running(pod) and pod.uid not in unlike else None

    found: Object = story.wait_for(f"pod {name} to {'be replaced and ' if unlike else ''}run", running)
    return found


def _wait_for_service_pod(story: Story, labels: Mapping[str, str], *, unlike: Set[str] = frozenset()) -> Object:
    def only_one_running(seen: History) -> Object | None:
        pods = seen.live("Pod", labels)
        return pods[0] if len(pods) == 1 and is_running(pods[0]) and pods[0].uid not in unlike else None

    kind = labels["jointinferenceservice.sedna.io/worker-type"]
    what = f"exactly one {'new ' if unlike else ''}{kind} pod of the service to run"
    found: Object = story.wait_for(what, only_one_running)
    return found


def _settle(story: Story, kind: str, name: str) -> None:
    # A wrong count in the status can only be put right by a pass of the manager that has seen this very write, and with
    # it all that was written to the object before. So this waits for the manager without a sleep.
    written = story.resource(kind).patch(
        story.key(name), {"status": {"active": IMPOSSIBLE_COUNT}}, subresource="status"
    )
    story.wait_for(
        f"the manager to correct the status of {name}",
        lambda seen: _newer(seen.get(kind, name), written) and _active(seen, name) != IMPOSSIBLE_COUNT,
    )


def _newer(obj: Object | None, than: Object) -> bool:
    return obj is not None and int(obj.resource_version) > int(than.resource_version)


def _replaced(seen: History, old: Object) -> bool:
    now = seen.get(old.kind, old.name)
    return now is not None and now.uid != old.uid


def _active(seen: History, name: str) -> int | None:
    obj = seen.get("FederatedLearningJob", name) or seen.get("JointInferenceService", name)
    active = obj.get("status", {}).get("active") if obj else None
    return active if isinstance(active, int) else None


def _children(seen: History) -> list[Object]:
    return [obj for obj in seen.all_live() if obj.owner_references]


def _delete_pod(story: Story, name: str) -> set[str]:
    # Returns the uid of the pod that was hit, if there was one: each must be answered by one creation, no more.
    pods = story.resource("Pod")
    try:
        uid = pods.get(story.key(name)).uid
        pods.delete(story.key(name), uid=uid)
    except NotFoundError:
        story.note(f"pod {name} is between two lives")
        return set()
    return {uid}


def _delete_twice(story: Story, name: str) -> tuple[set[str], float]:
    # Returns the uids that were hit, and the seconds from the first delete to the second.
    story.note(f"deleting pod {name} twice more")
    old = story.recorder.ask(lambda seen: seen.get("Pod", name))
    began = story.recorder.seconds()
    hit = _delete_pod(story, name)
    try:
        # Soon enough for the second delete to fall within the second; whatever has the name by then is hit.
        story.recorder.wait_for("a successor", lambda seen: old is None or _replaced(seen, old), 0.7)
    except StepFailed:
        story.note("no successor within 0.7 s: deleting the same pod again")
    hit |= _delete_pod(story, name)
    return hit, story.recorder.seconds() - began


def _merge(story: Story, kind: str, name: str, patch: Mapping[str, Any]) -> None:
    story.resource(kind).patch(story.key(name), patch)


def _check_same_place(story: Story, old: Object, new: Object) -> None:
    for name in ("WORKER_NAME", "DATASET_NAME"):
        was, is_now = environment(old).get(name), environment(new).get(name)
        if was != is_now:
            raise StepFailed(f"{new.name} has {name}={is_now}, the pod it replaces had {was}")
    # Where the template names no node, the cluster's scheduler may choose another one.
    if story.pin and old["spec"].get("nodeName") != new["spec"].get("nodeName"):
        raise StepFailed(f"{new.name} moved from {old['spec'].get('nodeName')} to {new['spec'].get('nodeName')}")


def _check_no_surplus(story: Story) -> None:
    def look(seen: History) -> tuple[list[str], list[Object], list[Object]]:
        return list(seen.crowds), seen.live("Pod", JOB_LABELS), seen.live("Deployment", SERVICE_LABELS)

    crowds, pods, deployments = story.recorder.ask(look)
    if crowds:
        raise StepFailed("; ".join(crowds))
    for found, expected, what in (
        (pods, [f"{JOB}-{worker}" for worker in WORKERS], "workers of the job"),
        (deployments, [f"{SERVICE}-deployment-{part}" for part in ("cloud", "edge")], "deployments of the service"),
    ):
        names = [obj.name for obj in found]
        if names != expected:
            raise StepFailed(f"expected the {what} to be {expected}, saw {names}")


def _check_created(
    story: Story, mark: int, expected: Mapping[str, int], *, kind: str = "Pod", labels: Mapping[str, str] = JOB_LABELS
) -> None:
    made = Counter(obj.name for obj in story.recorder.ask(lambda seen: seen.since(mark, "ADDED", kind, labels)))
    if made != Counter(expected):
        raise StepFailed(f"expected these to be created so many times: {dict(expected)}, saw {dict(made)}")


def _check_untouched(
    story: Story, mark: int, *, allowed: Sequence[str] = (), allowed_labels: Mapping[str, str] | None = None
) -> None:
    def is_allowed(obj: Object) -> bool:
        return obj.name in allowed or (allowed_labels is not None and allowed_labels.items() <= obj.labels.items())

    def look(seen: History) -> list[str]:
        return [
            f"{kind} {obj.name} was {type.lower()}"
            for kind in CHILD_KINDS
            for type in ("ADDED", "DELETED")
            for obj in seen.since(mark, type, kind)
            if not is_allowed(obj)
        ]

    touched = story.recorder.ask(look)
    if not touched:  # the watches may be a moment behind the manager: ask the server what it is about to lose
        touched = [
            f"{kind} {obj.name} is leaving"
            for kind in CHILD_KINDS
            for obj in story.resource(kind).list(namespace=story.namespace).items
            if obj.deletion_timestamp and not is_allowed(obj)
        ]
    if touched:
        raise StepFailed(f"what had to stay as it was did not: {', '.join(touched)}")


def _check_new_specs(story: Story, trainers: Sequence[Object], edge: Object) -> None:
    def stale(seen: History) -> list[str]:
        return [pod.name for pod in seen.live("Pod") if _runs_old_spec(pod)]

    old = story.recorder.ask(stale)
    if old:
        raise StepFailed(f"still running the old spec: {', '.join(old)}")
    for pod in trainers:
        if environment(pod).get("batch_size") != "16":
            raise StepFailed(f"{pod.name} has batch_size={environment(pod).get('batch_size')}, expected 16")
    parameters = environment(edge).get("HEM_PARAMETERS", "")
    if json.loads(parameters or "[]") != [{"key": "key1", "value": "value2"}]:
        raise StepFailed(f"{edge.name} has HEM_PARAMETERS={parameters!r}, expected key1=value2")


def _runs_old_spec(pod: Object) -> bool:
    env = environment(pod)
    return env.get("batch_size") == "32" or "value1" in env.get("HEM_PARAMETERS", "")
