"""The queue of deltas, rule by rule; many names are those of client-go's own tests."""

from __future__ import annotations

import threading

import pytest

from informers import Delta, DeltaFIFO, DeltaType, FIFOClosed, Indexer, ObjectKey, Timeout, Tombstone

ADDED, UPDATED, DELETED = DeltaType.ADDED, DeltaType.UPDATED, DeltaType.DELETED
REPLACED, SYNC = DeltaType.REPLACED, DeltaType.SYNC


def show(deltas) -> list[str]:
    shown = []
    for delta in deltas:
        obj = delta.object
        if isinstance(obj, Tombstone):
            last = obj.object.resource_version if obj.object is not None else "-"
            shown.append(f"{delta.type.value} tomb {obj.key.name}@{last}")
        else:
            shown.append(f"{delta.type.value} {obj.name}@{obj.resource_version}")
    return shown


def pop(fifo: DeltaFIFO) -> list[str]:
    return show(fifo.pop(lambda deltas, initial: None, timeout=0))


def drain(fifo: DeltaFIFO) -> list[list[str]]:
    popped = []
    while len(fifo):
        popped.append(pop(fifo))
    return popped


@pytest.fixture
def known(pod) -> Indexer:
    store = Indexer()
    for name, version in (("foo", 5), ("bar", 6), ("baz", 7)):
        store.add(pod(name, version))
    return store


@pytest.fixture
def fifo() -> DeltaFIFO:
    return DeltaFIFO()


def test_basic_every_key_pops_once_and_in_order_whoever_adds(fifo, pod):
    def add(prefix: str) -> None:
        for version in range(1, 501):
            fifo.add(pod(f"{prefix}{version % 7}", version))

    threads = [threading.Thread(target=add, args=(prefix,)) for prefix in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seen: dict[str, list[int]] = {}
    while len(fifo):
        for delta in fifo.pop(lambda deltas, initial: None):
            seen.setdefault(delta.key.name, []).append(int(delta.object.resource_version))
    assert sum(map(len, seen.values())) == 1000
    assert all(versions == sorted(versions) for versions in seen.values())


def test_add_update_delete_of_one_key_are_one_entry(fifo, pod):
    fifo.add(pod("foo", 10))
    fifo.update(pod("foo", 12))
    fifo.delete(pod("foo", 15))
    assert len(fifo) == 1
    assert pop(fifo) == ["Added foo@10", "Updated foo@12", "Deleted foo@15"]
    with pytest.raises(Timeout):
        pop(fifo)


def test_enqueueing_without_a_store_drops_deletes_of_what_is_not_queued(fifo, pod):
    fifo.add(pod("foo", 10))
    fifo.update(pod("bar", 15))
    fifo.add(pod("qux", 17))
    fifo.delete(pod("qux", 18))
    fifo.delete(pod("baz", 20))
    assert drain(fifo) == [["Added foo@10"], ["Updated bar@15"], ["Added qux@17", "Deleted qux@18"]]


def test_enqueueing_with_a_store_queues_deletes_of_what_is_known(known, pod):
    fifo = DeltaFIFO(known)
    fifo.add(pod("foo", 10))
    fifo.update(pod("bar", 15))
    fifo.delete(pod("baz", 20))
    fifo.delete(pod("unknown", 21))
    assert drain(fifo) == [["Added foo@10"], ["Updated bar@15"], ["Deleted baz@20"]]


def test_two_consecutive_deletes_are_one_and_the_more_telling_one_stays(fifo, pod):
    fifo.add(pod("a", 1))
    fifo.delete(pod("a", 2))
    fifo.delete(pod("a", 3))
    assert pop(fifo) == ["Added a@1", "Deleted a@2"]
    fifo.add(pod("a", 1))
    fifo.replace([])
    fifo.delete(pod("a", 2))
    assert pop(fifo) == ["Added a@1", "Deleted a@2"]


def test_detect_line_jumpers_a_queued_key_keeps_its_place(fifo, pod):
    fifo.add(pod("foo", 10))
    fifo.add(pod("bar", 1))
    fifo.add(pod("foo", 11))
    fifo.add(pod("foo", 13))
    fifo.add(pod("zab", 30))
    assert [entry[-1] for entry in drain(fifo)] == ["Added foo@13", "Added bar@1", "Added zab@30"]
    fifo.add(pod("foo", 14))
    assert drain(fifo) == [["Added foo@14"]]


# ---- replace


def test_add_replace_gives_both_in_order(fifo, pod):
    fifo.add(pod("foo", 10))
    fifo.replace([pod("foo", 15)], "15")
    assert pop(fifo) == ["Added foo@10", "Replaced foo@15"]


def test_replace_with_a_delete_delta_in_the_queue_loses_neither(known, pod):
    fifo = DeltaFIFO(known)
    fifo.delete(pod("foo", 8))
    fifo.replace([pod("foo", 9), pod("bar", 6), pod("baz", 7)])
    assert pop(fifo) == ["Deleted foo@8", "Replaced foo@9"]


REPLACE_ONLY_QUEUED = {
    "added": ([("add", 1)], ["Added a@1", "Deleted tomb a@1"]),
    "updated": ([("add", 1), ("update", 2)], ["Added a@1", "Updated a@2", "Deleted tomb a@2"]),
    "deleted": ([("add", 1), ("delete", 2)], ["Added a@1", "Deleted a@2"]),
    "replaced": ([("replace", 3)], ["Replaced a@3", "Deleted tomb a@3"]),
    "replaced twice": ([("replace", 3), ("replace", 4)], ["Replaced a@3", "Replaced a@4", "Deleted tomb a@4"]),
    "added, deleted, added": (
        [("add", 1), ("delete", 2), ("add", 3)],
        ["Added a@1", "Deleted a@2", "Added a@3", "Deleted tomb a@3"],
    ),
}


@pytest.mark.parametrize(("calls", "expected"), REPLACE_ONLY_QUEUED.values(), ids=REPLACE_ONLY_QUEUED)
def test_replace_makes_deletions_for_objects_only_in_the_queue(fifo, pod, calls, expected):
    for call, version in calls:
        obj = pod("a", version)
        getattr(fifo, call)([obj] if call == "replace" else obj)
    fifo.replace([pod("b", 9)])
    assert drain(fifo) == [expected, ["Replaced b@9"]]


def test_replace_makes_deletions_for_known_objects_first_then_the_list(known, pod):
    fifo = DeltaFIFO(known)
    fifo.replace([pod("new", 8), pod("foo", 5)])
    assert drain(fifo) == [
        ["Deleted tomb bar@6"], ["Deleted tomb baz@7"], ["Replaced new@8"], ["Replaced foo@5"],
    ]  # fmt: skip


def test_a_tombstone_carries_the_newest_state_queued_or_known(known, pod):
    fifo = DeltaFIFO(known)
    fifo.update(pod("foo", 20))
    fifo.replace([])
    assert drain(fifo)[0] == ["Updated foo@20", "Deleted tomb foo@20"]


def test_a_tombstone_of_a_tombstone_carries_the_object(fifo, pod):
    fifo.add(pod("a", 1))
    fifo.replace([])
    fifo.replace([])
    assert pop(fifo) == ["Added a@1", "Deleted tomb a@1"]


def test_a_key_listed_twice_counts_once(fifo, pod):
    fifo.replace([pod("a", 1), pod("b", 1), pod("a", 2)])
    assert drain(fifo) == [["Replaced a@2"], ["Replaced b@1"]]
    assert fifo.has_synced()


def test_replace_keeps_what_could_not_be_read(known, pod):
    fifo = DeltaFIFO(known)
    fifo.replace([pod("foo", 5)], keep=[ObjectKey("ns", "bar")])
    assert drain(fifo) == [["Deleted tomb baz@7"], ["Replaced foo@5"]]


def test_replace_of_one_namespace_leaves_the_others_alone(pod):
    known = Indexer()
    for namespace in ("one", "two"):
        known.add(pod("a", 1, namespace=namespace))
    fifo = DeltaFIFO(known, namespaces=["one", "two"])
    fifo.replace([], namespace="one")
    assert not fifo.has_synced()
    assert drain(fifo) == [["Deleted tomb a@1"]]
    assert not fifo.has_synced(), "the other namespace was not listed yet"
    fifo.add(pod("b", 2, namespace="one"))
    assert not fifo.has_synced()
    fifo.replace([pod("a", 1, namespace="two")], namespace="two")
    assert drain(fifo) == [["Added b@2"], ["Replaced a@1"]]
    assert fifo.has_synced()


# ---- resync


def test_resync_emits_one_sync_for_each_known_object(known):
    fifo = DeltaFIFO(known)
    fifo.resync()
    fifo.resync()
    assert drain(fifo) == [["Sync foo@5"], ["Sync bar@6"], ["Sync baz@7"]]


def test_resync_of_nothing_known_emits_nothing(fifo, pod):
    fifo.resync()
    assert len(fifo) == 0
    fifo = DeltaFIFO(Indexer())
    fifo.resync()
    assert len(fifo) == 0


def test_update_resync_race_a_pending_change_is_not_followed_by_a_stale_sync(known, pod):
    fifo = DeltaFIFO(known)
    fifo.update(pod("foo", 10))
    fifo.resync()
    assert drain(fifo)[0] == ["Updated foo@10"]


# ---- transform


def test_the_transform_runs_once_on_entry_and_not_on_tombstones_or_sync(pod):
    seen: list[str] = []

    def transform(obj):
        seen.append(f"{obj.name}@{obj.resource_version}")
        return pod(obj.name, obj.resource_version, mark="yes")

    known = Indexer()
    fifo = DeltaFIFO(known, transform=transform)
    fifo.add(pod("a", 1))
    fifo.update(pod("a", 2))
    fifo.replace([pod("b", 3)])
    fifo.pop(lambda deltas, initial: [known.add(deltas[1].object)], timeout=0)
    deltas = fifo.pop(lambda deltas, initial: None, timeout=0)
    assert deltas[0].object.labels == {"mark": "yes"}
    fifo.resync()
    pop(fifo)
    assert seen == ["a@1", "a@2", "b@3"]


def failing(obj):
    if "bad" in obj.labels:
        raise ValueError("bad object")
    return obj


def test_a_failing_transform_raises_before_anything_changes(pod):
    fifo = DeltaFIFO(transform=failing)
    with pytest.raises(ValueError, match="bad object"):
        fifo.extend([Delta(ADDED, pod("a")), Delta(ADDED, pod("b", bad="yes"))])
    assert len(fifo) == 0
    assert not fifo.has_synced()


def test_with_a_hook_a_failing_transform_leaves_the_change_out(pod):
    poisoned: list[str] = []
    known = Indexer()
    known.add(pod("b", 1))
    fifo = DeltaFIFO(known, transform=failing, on_poison=lambda key, error: poisoned.append(str(key)))
    fifo.extend([Delta(ADDED, pod("a", 1)), Delta(UPDATED, pod("b", 2, bad="yes"))])
    fifo.replace([pod("a", 1), pod("b", 2, bad="yes")])
    assert drain(fifo) == [["Added a@1", "Replaced a@1"]], "b is neither changed nor deleted"
    assert poisoned == ["ns/b", "ns/b"]


@pytest.mark.parametrize("result", [None, {"metadata": {"name": "a"}}])
def test_a_transform_must_give_an_object(pod, result):
    with pytest.raises(TypeError, match="transform"):
        DeltaFIFO(transform=lambda obj: result).add(pod("a"))


def test_a_transform_must_keep_the_key(pod):
    with pytest.raises(ValueError, match="changed the key from ns/a to ns/b"):
        DeltaFIFO(transform=lambda obj: pod("b")).add(pod("a"))


# ---- has_synced

SYNCED = {
    "nothing": ([], 0, False),
    "add": ([("add", "a")], 0, True),
    "empty list": ([("replace", "")], 0, True),
    "two, none popped": ([("replace", "ab")], 0, False),
    "two, one popped": ([("replace", "ab")], 1, False),
    "two, both popped": ([("replace", "ab")], 2, True),
    "one listed twice, one popped": ([("replace", "aa")], 1, True),
}


@pytest.mark.parametrize(("calls", "pops", "expected"), SYNCED.values(), ids=SYNCED)
def test_has_synced(fifo, pod, calls, pops, expected):
    for call, names in calls:
        objs = [pod(name, 1) for name in names]
        if call == "replace":
            fifo.replace(objs)
        else:
            fifo.add(objs[0])
    for _ in range(pops):
        pop(fifo)
    assert fifo.has_synced() is expected


def test_derived_deletions_belong_to_the_first_list(known, pod):
    fifo = DeltaFIFO(known)
    fifo.replace([pod("foo", 5)])
    for expected in (False, False, True):
        pop(fifo)
        assert fifo.has_synced() is expected


def test_has_synced_turns_true_after_process_returned_even_if_it_raised(fifo, pod):
    during: list[bool] = []

    def process(deltas, initial):
        during.append((fifo.has_synced(), initial))
        raise RuntimeError("handler")

    fifo.replace([pod("a", 1)])
    with pytest.raises(RuntimeError, match="handler"):
        fifo.pop(process, timeout=0)
    assert during == [(False, True)]
    assert fifo.has_synced()
    with pytest.raises(Timeout):
        pop(fifo)


def test_later_changes_are_not_initial(fifo, pod):
    flags: list[bool] = []
    fifo.replace([pod("a", 1)])
    fifo.add(pod("b", 2))
    while len(fifo):
        fifo.pop(lambda deltas, initial: flags.append(initial))
    assert flags == [True, False]


# ---- popping


def batches(fifo: DeltaFIFO, limit: int = 1000) -> list[tuple[list[list[str]], bool]]:
    found: list[tuple[list[list[str]], bool]] = []
    while len(fifo):
        fifo.pop_batch(lambda batch, initial: found.append(([show(deltas) for deltas in batch], initial)), limit, 0)
    return found


def test_a_batch_takes_all_that_is_there_up_to_its_limit(fifo, pod):
    for name in "abcde":
        fifo.add(pod(name, 1))
    sizes: list[int] = []
    while len(fifo):
        sizes.append(fifo.pop_batch(lambda batch, initial: None, limit=2))
    assert sizes == [2, 2, 1]


def test_a_batch_ends_where_the_first_list_ends(fifo, pod):
    fifo.replace([pod("a", 1), pod("b", 1)])
    fifo.add(pod("c", 2))
    fifo.update(pod("b", 3))
    assert batches(fifo) == [
        ([["Replaced a@1"], ["Replaced b@1", "Updated b@3"]], True),
        ([["Added c@2"]], False),
    ]


def test_process_may_add_but_not_pop(fifo, pod):
    def process(deltas, initial):
        fifo.add(pod("b", 2))
        with pytest.raises(RuntimeError, match="must not pop"):
            fifo.pop(lambda deltas, initial: None, timeout=0)

    fifo.add(pod("a", 1))
    fifo.pop(process, timeout=0)
    assert drain(fifo) == [["Added b@2"]]


def test_an_exception_passes_to_the_caller_and_the_deltas_are_gone(fifo, pod):
    fifo.add(pod("a", 1))
    fifo.add(pod("b", 1))

    def fail(batch, initial):
        raise KeyError("x")

    with pytest.raises(KeyError):
        fifo.pop_batch(fail, limit=1)
    assert drain(fifo) == [["Added b@1"]]


def test_after_close_what_is_queued_is_still_handed_out(fifo, pod):
    fifo.add(pod("a", 1))
    fifo.close()
    assert pop(fifo) == ["Added a@1"]
    with pytest.raises(FIFOClosed):
        pop(fifo)
    fifo.add(pod("b", 1))
    assert pop(fifo) == ["Added b@1"]


def test_pop_unblocks_when_closed(fifo):
    errors: list[BaseException] = []

    def popper():
        try:
            fifo.pop(lambda deltas, initial: None)
        except FIFOClosed as error:
            errors.append(error)

    threads = [threading.Thread(target=popper) for _ in range(10)]
    for thread in threads:
        thread.start()
    fifo.close()
    for thread in threads:
        thread.join(10)
    assert len(errors) == 10


def test_an_interrupt_ends_one_wait(fifo):
    fifo.interrupt()
    with pytest.raises(Timeout):
        fifo.pop(lambda deltas, initial: None, timeout=60)


def test_an_empty_queue_times_out_at_once_when_polled(fifo):
    with pytest.raises(TimeoutError):
        fifo.pop(lambda deltas, initial: None, timeout=0)


# ---- many deltas of one key


def hot(pod, *steps: str):
    """ "A1/u", "M2/u", "D3/u": what happened, the version, the uid."""
    types = {"A": ADDED, "M": UPDATED, "D": DELETED}
    return [Delta(types[step[0]], pod("a", *step[1:].split("/"))) for step in steps]


def test_what_one_object_goes_through_is_kept_to_a_bound_and_its_last_state_always(fifo, pod):
    fifo.extend(hot(pod, "A1/t", *(f"M{version}/u" for version in range(2, 5001))))
    (deltas,) = drain(fifo)
    assert len(deltas) <= 1000
    assert (deltas[0], deltas[-1]) == ("Added a@1", "Updated a@5000")


def test_objects_that_come_and_go_under_one_name_are_kept_to_a_bound(pod):
    fifo = DeltaFIFO(Indexer())
    lives = [
        step
        for number in range(2, 5000, 3)
        for step in (f"A{number}/{number}", f"M{number + 1}/{number}", f"D{number + 2}/{number}")
    ]
    fifo.extend(hot(pod, "A1/u", "D2/u", *lives))
    (deltas,) = drain(fifo)
    assert len(deltas) <= 1001
    assert deltas[:2] == ["Added a@1", "Deleted a@2"]
    fifo.extend(hot(pod, *lives, "A9999/w"))
    assert drain(fifo)[0][-1] == "Added a@9999"


def test_an_older_state_never_replaces_a_newer_one(fifo, pod):
    fifo.extend(hot(pod, *(f"M{version}/u" for version in range(10, 2000)), "M5/u"))
    (deltas,) = drain(fifo)
    assert deltas[-2:] == ["Updated a@1999", "Updated a@5"]


def test_the_first_list_ends_with_its_last_item_wherever_that_was_queued(pod):
    fifo = DeltaFIFO(namespaces=["one", "two"])
    fifo.add(pod("x", 1, namespace="two"))
    fifo.replace([pod("y", 2, namespace="one")], namespace="one")
    fifo.replace([pod("x", 3, namespace="two")], namespace="two")
    fifo.add(pod("z", 4, namespace="two"))
    assert batches(fifo) == [
        ([["Added x@1", "Replaced x@3"], ["Replaced y@2"]], True),
        ([["Added z@4"]], False),
    ]
