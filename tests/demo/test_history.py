"""The demo's memory of what happened, which judges the controllers."""

from typing import Any

from informers import Object
from pysedna.demo.history import History, is_running, worker_place


def pod(
    name: str, uid: str, *, version: int = 1, worker: str = "trainer-0", job: str = "job-uid", **metadata: Any
) -> Object:
    labels = {"federatedlearningjob.sedna.io/uid": job, **metadata.pop("labels", {})}
    return Object.from_dict(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "namespace": "demo",
                "uid": uid,
                "resourceVersion": str(version),
                "labels": labels,
                **metadata,
            },
            "spec": {"containers": [{"name": "c", "env": [{"name": "WORKER_NAME", "value": worker}]}]},
            "status": {"phase": "Running"},
        }
    )


LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def of_replica_set(uid: str) -> dict[str, Any]:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": uid, "controller": True}
    return {"ownerReferences": [reference]}


def test_what_was_added_and_not_deleted_lives() -> None:
    seen = History()
    seen.observe("ADDED", pod("a", "1"), 0.0)
    seen.observe("ADDED", pod("b", "2", worker="trainer-1"), 0.1)
    seen.observe("DELETED", pod("a", "1", version=2), 0.2)
    assert [obj.name for obj in seen.live("Pod")] == ["b"]
    assert seen.get("Pod", "a") is None


def test_two_pods_in_one_worker_place_are_noticed_even_if_one_goes_at_once() -> None:
    seen = History()
    seen.observe("ADDED", pod("a", "1"), 0.0)
    seen.observe("ADDED", pod("a-again", "2"), 0.5)
    seen.observe("DELETED", pod("a-again", "2", version=2), 0.6)
    assert len(seen.crowds) == 1
    assert "a-again" in seen.crowds[0]
    assert "0.50 s" in seen.crowds[0]


def test_a_bare_worker_holds_its_place_until_it_is_gone() -> None:
    seen = History()
    seen.observe("ADDED", pod("a", "1"), 0.0)
    seen.observe("MODIFIED", pod("a", "1", version=2, **LEAVING), 0.1)
    seen.observe("ADDED", pod("b", "2"), 0.2)
    assert len(seen.crowds) == 1


def test_a_deployments_pod_gives_up_its_place_when_it_is_asked_to_stop() -> None:
    seen = History()
    owned = of_replica_set("rs-1")
    seen.observe("ADDED", pod("a", "1", **owned), 0.0)
    seen.observe("MODIFIED", pod("a", "1", version=2, **owned, **LEAVING), 0.1)
    seen.observe("ADDED", pod("b", "2", **owned), 0.2)
    assert seen.crowds == []
    seen.observe("ADDED", pod("c", "3", **owned), 0.3)
    assert len(seen.crowds) == 1


def test_the_pods_of_an_old_and_a_new_replica_set_may_overlap() -> None:
    seen = History()
    seen.observe("ADDED", pod("a", "1", **of_replica_set("old")), 0.0)
    seen.observe("ADDED", pod("b", "2", **of_replica_set("new")), 0.1)
    assert seen.crowds == []


def test_workers_of_two_jobs_never_crowd_each_other() -> None:
    seen = History()
    seen.observe("ADDED", pod("a", "1"), 0.0)
    seen.observe("ADDED", pod("b", "2", job="another"), 0.1)
    assert seen.crowds == []


def test_a_pod_that_is_no_worker_has_no_place() -> None:
    plain = Object.from_dict({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "demo"}})
    assert worker_place(plain) is None


def test_a_new_uid_under_an_old_name_counts_as_deleted_and_created() -> None:
    seen = History()
    seen.observe("ADDED", pod("a", "1"), 0.0)
    mark = seen.mark()
    seen.observe("MODIFIED", pod("a", "2", version=5), 0.1)
    assert [obj.uid for obj in seen.since(mark, "DELETED", "Pod")] == ["1"]
    assert seen.crowds == []


def test_a_list_becomes_the_events_that_lead_to_it() -> None:
    seen = History()
    seen.observe("ADDED", pod("gone", "1"), 0.0)
    seen.observe("ADDED", pod("same", "2", worker="w2"), 0.0)
    seen.observe("ADDED", pod("changed", "3", worker="w3"), 0.0)
    mark = seen.mark()
    seen.replace(
        "Pod",
        [
            pod("same", "2", worker="w2"),
            pod("changed", "3", version=9, worker="w3"),
            pod("new", "4", version=10, worker="w4"),
        ],
        1.0,
    )
    events = [(event.type, event.object.name) for event in seen.sightings[mark:]]
    assert events == [("DELETED", "gone"), ("MODIFIED", "changed"), ("ADDED", "new")]


def test_since_filters_by_type_kind_and_labels() -> None:
    seen = History()
    seen.observe("ADDED", pod("a", "1"), 0.0)
    mark = seen.mark()
    seen.observe("ADDED", pod("b", "2", worker="w2", labels={"team": "x"}), 0.1)
    seen.observe("ADDED", pod("c", "3", worker="w3"), 0.1)
    assert [obj.name for obj in seen.since(mark, "ADDED", "Pod")] == ["b", "c"]
    assert [obj.name for obj in seen.since(mark, "ADDED", "Pod", {"team": "x"})] == ["b"]
    assert seen.since(mark, "ADDED", "Deployment") == []


def test_a_pod_that_was_asked_to_stop_does_not_count_as_running() -> None:
    assert is_running(pod("a", "1"))
    assert not is_running(pod("a", "1", **LEAVING))
