"""The upstream cases: what client-go's tools/cache, its listers and its factories are tested for.

The docstring of a test names the case that it stands for. `ELSEWHERE` says where the others are, which are rules of the
other test files here; `NOT_HERE` which have nothing to be tested, and why. Where we decide differently from client-go,
docs/informers.md says so, and the case is ours.
"""

from __future__ import annotations

import random
import re
import threading
import tracemalloc
from pathlib import Path

import pytest

from informers import InformerStopped, Object, ProtocolConfig, Reflector
from informers.backoff import BackoffConfig
from informers.decoder import ObjectDecoder
from informers.errors import InternalError
from informers.testing import FakeListWatch, HistoryChecker, assert_cache_matches
from workqueue.testing import FakeClock

FIFO, INDEXER, EVENTS = "test_delta_fifo", "test_indexer", "test_event_rules"
PROTOCOL, RECOVERY, REFLECTOR = "test_protocol", "test_protocol_recovery", "test_reflector"
INFORMER, LIFE, HANDLERS = "test_shared_informer", "test_informer_life", "test_handlers"
STREAMED = "http/test_streamed_lists"

ELSEWHERE = {
    # store_test.go, index_test.go, thread_safe_store_test.go, listers_test.go, object-names_test.go
    "TestCache": f"{INDEXER}.test_add_get_update_delete",
    "TestFIFOCache": f"{INDEXER}.test_replace_swaps_the_whole_content",
    "TestCacheWithTransformer": f"{FIFO}.test_the_transform_runs_once_on_entry_and_not_on_tombstones_or_sync",
    "TestIndex": f"{INDEXER}.test_an_object_moves_between_index_values",
    "TestKeyError": f"{INDEXER}.test_what_is_no_object_is_refused",
    "TestCacheTransactionShouldIndexErrors": f"{INDEXER}.test_a_failing_index_function_leaves_everything_as_it_was",
    "TestThreadSafeStoreDeleteRemovesEmptySetsFromIndex":
        f"{INDEXER}.test_the_last_key_of_a_value_takes_the_value_with_it",
    "TestThreadSafeStoreAddKeepsNonEmptySetPostDeleteFromIndex":
        f"{INDEXER}.test_the_last_key_of_a_value_takes_the_value_with_it",
    "TestThreadSafeStoreIndexingFunctionsWithMultipleValues":
        f"{INDEXER}.test_indices_agree_with_a_scan_after_any_changes",
    "TestThreadSafeStoreRV": f"{INDEXER}.test_the_version_is_that_of_the_last_change",
    "TestGetIndexFuncValues": f"{INDEXER}.test_index_keys_are_sorted_and_values_listed_twice_count_once",
    "TestMultiIndexKeys": f"{INDEXER}.test_an_object_moves_between_index_values",
    "TestObjectNames": "test_key.test_text_and_key_are_each_others_reverse",
    "TestObjectNames/too many slashes": "test_key.test_what_is_no_key_is_refused_with_the_text_shown",
    "TestListAll": f"{INFORMER}.test_the_lister_finds_by_key_selector_namespace_and_index",
    "TestMutationDetector": "test_object.test_nothing_in_it_can_be_changed",
    "TestNewInformerName": "test_informer_metrics.test_informers_of_one_name_are_added_up_and_dead_ones_go",
    "TestSingleFileTracker, TestAsyncTracker": f"{INFORMER}.test_has_synced_has_two_levels",
    "TestResourceEventHandlerFuncs": f"{HANDLERS}.test_functions_that_are_not_given_are_skipped",
    "TestResourceEventHandlerDetailedFuncs": f"{HANDLERS}.test_each_event_calls_its_function_and_on_event",
    "TestFilteringResourceEventHandler": f"{HANDLERS}.test_the_filter_follows_what_the_handler_was_shown",
    "TestNameForHandler": f"{HANDLERS}.test_a_handler_is_named_after_its_functions",
    # delta_fifo_test.go, the_real_fifo_test.go, fifo_test.go
    "TestDeltaFIFO_basic": f"{FIFO}.test_basic_every_key_pops_once_and_in_order_whoever_adds",
    "TestDeltaFIFO_replaceWithDeleteDeltaIn": f"{FIFO}.test_replace_with_a_delete_delta_in_the_queue_loses_neither",
    "TestDeltaFIFOW_ReplaceMakesDeletionsForObjectsOnlyInQueue":
        f"{FIFO}.test_replace_makes_deletions_for_objects_only_in_the_queue",
    "TestDeltaFIFO_addUpdate": f"{FIFO}.test_add_update_delete_of_one_key_are_one_entry",
    "TestDeltaFIFO_transformer": f"{FIFO}.test_the_transform_runs_once_on_entry_and_not_on_tombstones_or_sync",
    "TestDeltaFIFO_enqueueingNoLister":
        f"{FIFO}.test_enqueueing_without_a_store_drops_deletes_of_what_is_not_queued",
    "TestDeltaFIFO_enqueueingWithLister": f"{FIFO}.test_enqueueing_with_a_store_queues_deletes_of_what_is_known",
    "TestDeltaFIFO_addReplace": f"{FIFO}.test_add_replace_gives_both_in_order",
    "TestDeltaFIFO_ResyncNonExisting": f"{FIFO}.test_resync_of_nothing_known_emits_nothing",
    "TestDeltaFIFO_Resync": f"{FIFO}.test_resync_emits_one_sync_for_each_known_object",
    "TestDeltaFIFO_DeleteExistingNonPropagated": f"{FIFO}.test_add_update_delete_of_one_key_are_one_entry",
    "TestDeltaFIFO_ReplaceMakesDeletions":
        f"{FIFO}.test_replace_makes_deletions_for_known_objects_first_then_the_list",
    "TestDeltaFIFO_ReplaceMakesDeletionsReplaced": f"{FIFO}.test_a_tombstone_carries_the_newest_state_queued_or_known",
    "TestDeltaFIFO_ReplaceDeltaType": f"{FIFO}.test_add_replace_gives_both_in_order",
    "TestDeltaFIFO_UpdateResyncRace":
        f"{FIFO}.test_update_resync_race_a_pending_change_is_not_followed_by_a_stale_sync",
    "TestDeltaFIFO_HasSyncedCorrectOnDeletion": f"{FIFO}.test_derived_deletions_belong_to_the_first_list",
    "TestDeltaFIFO_detectLineJumpers": f"{FIFO}.test_detect_line_jumpers_a_queued_key_keeps_its_place",
    "TestDeltaFIFO_KeyOf": f"{FIFO}.test_a_tombstone_of_a_tombstone_carries_the_object",
    "TestDeltaFIFO_HasSynced": f"{FIFO}.test_has_synced",
    "TestDeltaFIFO_PopShouldUnblockWhenClosed": f"{FIFO}.test_pop_unblocks_when_closed",
    "TestRealFIFO_PopMultipleDeltaInBatch": f"{FIFO}.test_a_batch_ends_where_the_first_list_ends",
    "TestRealFIFO_PopMultipleDeltaInBatch/split by size":
        f"{FIFO}.test_a_batch_takes_all_that_is_there_up_to_its_limit",
    "TestRealFIFO_ReplaceAtomic, TestRealFIFO_ReplaceAtomicPop, TestRealFIFO_ResyncAtomic":
        f"{FIFO}.test_replace_makes_deletions_for_known_objects_first_then_the_list",
    # controller_test.go
    "TestUpdate": "test_informer_machine.test_without_damage_it_finds_nothing",
    "TestPanicPropagated": f"{INFORMER}.test_an_exception_in_a_handler_is_counted_and_ends_nothing",
    "TestTransformingInformer": f"{INFORMER}.test_the_transform_is_what_cache_and_handlers_see",
    "TestTransformingInformerRace": f"{FIFO}.test_the_transform_runs_once_on_entry_and_not_on_tombstones_or_sync",
    "TestDeletionHandlingObjectToName, TestDeletedObjectGetKey":
        f"{FIFO}.test_a_tombstone_carries_the_newest_state_queued_or_known",
    "TestProcessDeltasInBatch": f"{INDEXER}.test_with_a_hook_the_object_is_stored_and_absent_from_that_index",
    "TestReplaceEvents": f"{EVENTS}.test_rule",
    "TestResetWatch": f"{REFLECTOR}.test_changes_in_a_gap_that_was_compacted_come_with_the_next_list",
    # reflector_test.go
    "TestRunUntil": f"{REFLECTOR}.test_run_blocks_until_the_event_is_set",
    "TestReflectorResyncChan": f"{REFLECTOR}.test_resync_calls_the_sink_about_that_often",
    "TestReflectorWatchStoppedAfter": f"{REFLECTOR}.test_a_stop_while_the_watch_is_opened_closes_it",
    "TestReflectorHandleWatchStoppedAfter, TestReflectorStopWatch":
        f"{REFLECTOR}.test_stop_ends_a_blocked_read_at_once",
    "TestReflectorHandleWatchResultChanClosedBefore":
        f"{PROTOCOL}.test_a_very_short_watch_without_events_relists_after_a_wait",
    "TestReflectorHandleWatchResultChanClosedAfter":
        f"{PROTOCOL}.test_a_watch_that_ended_normally_is_resumed_at_once_without_a_list",
    "TestReflectorWatchHandler": f"{PROTOCOL}.test_the_version_is_that_of_the_last_event_not_the_highest",
    "TestReflectorListAndWatch": f"{REFLECTOR}.test_list_and_watch_keeps_the_sink_equal_to_the_source",
    "TestReflectorListAndWatchWithErrors": f"{REFLECTOR}.test_after_any_failure_the_sink_equals_the_source",
    "TestReflectorListAndWatchInitConnBackoff": f"{RECOVERY}.test_a_watch_is_asked_for_soon_after_the_outage",
    "TestNewReflectorWithCustomBackoff": "test_backoff.test_the_wait_doubles_from_base_to_cap_and_stays_there",
    "TestBackoffOnTooManyRequests": f"{PROTOCOL}.test_429_in_the_stream_waits_and_goes_on",
    "TestNoRelistOnTooManyRequests":
        f"{PROTOCOL}.test_a_watch_that_cannot_be_opened_is_tried_again_without_a_list",
    "TestRetryInternalError": f"{PROTOCOL}.test_another_error_in_the_stream_relists_after_a_wait",
    "TestReflectorWatchListPageSize": f"{REFLECTOR}.test_pages_are_of_the_size_asked_for",
    "TestReflectorNotPaginatingNotConsistentReads, TestReflectorResyncWithResourceVersion, "
    "TestReflectorPaginatingNonConsistentReadsIfWatchCacheDisabled":
        f"{PROTOCOL}.test_a_list_that_accepts_stale_answers_is_unpaged_and_goes_on_from_the_last_version",
    "TestReflectorExpiredExactResourceVersion, TestReflectorFullListIfExpired, TestReflectorFullListIfTooLarge":
        f"{PROTOCOL}.test_a_version_of_no_use_to_the_server_makes_the_next_list_consistent_at_once",
    "TestGetTypeDescriptionFromObject, TestGetExpectedGVKFromObject":
        "test_resource.test_what_a_resource_is_called_in_messages",
    "TestWatchTimeout": f"{PROTOCOL}.test_a_watch_asks_for_a_random_time_between_five_and_ten_minutes",
    "TestReflectorResourceVersionUpdate": f"{LIFE}.test_wait_for_ends_with_a_bookmark",
    "TestReflectorReplacesStoreOnUnsafeDelete":
        f"{PROTOCOL}.test_another_error_in_the_stream_relists_after_a_wait",
    "TestReflectorRespectStoreTransformer": f"{INFORMER}.test_the_transform_is_what_cache_and_handlers_see",
    "TestIsUnsupportedTableObject": "test_decoder.test_what_is_no_list_is_refused_and_shown",
    # reflector_watchlist_test.go, reflector_data_consistency_detector_test.go, consistency_detector_test.go
    "TestNewReflectorWithDisablementWatchList": f"{REFLECTOR}.test_a_server_without_watch_list_is_listed",
    "TestInitialEventsEndBookmarkTicker":
        f"{PROTOCOL}.test_a_streamed_list_without_its_end_is_given_up_and_remembered",
    "TestWatchListResourceVersion": f"{PROTOCOL}.test_a_streamed_list_that_expired_is_asked_again_consistently",
    "TestWatchList/not synced without the bookmark":
        f"{REFLECTOR}.test_a_streamed_list_that_never_ends_falls_back_to_pages",
    "TestWatchList/not supported": f"{PROTOCOL}.test_a_server_without_watch_list_is_listed_at_once_and_for_ever",
    "TestWatchList/any other error falls back": f"{REFLECTOR}.test_after_any_failure_the_sink_equals_the_source",
    "TestWatchList/synced after the bookmark, changes during the stream":
        f"{PROTOCOL}.test_the_streamed_list_is_complete_at_the_annotated_bookmark_and_the_stream_goes_on",
    "TestWatchList/429 is retried": f"{PROTOCOL}.test_a_streamed_list_is_tried_again_after_a_passing_failure",
    "TestWatchList/stream stopped before sync": f"{PROTOCOL}.test_a_streamed_list_cut_three_times_is_not_tried_again",
    "TestWatchList/stream stopped after sync": f"{REFLECTOR}.test_a_dropped_watch_goes_on_from_the_last_version",
    "TestWatchList/the annotation must be true": f"{STREAMED}.test_what_one_reader_found_out_the_next_one_knows",
    "TestReflectorDataConsistencyDetector": "test_history_checker.test_a_cache_is_compared_with_a_fresh_list",
    # shared_informer_test.go, processor_listener_test.go
    "TestIndexer": f"{INFORMER}.test_an_index_may_be_added_while_running",
    "TestListenerResyncPeriods": f"{LIFE}.test_each_handler_is_resynced_at_its_own_period",
    "TestListenerResyncPeriodsDelayed, TestResyncCheckPeriod":
        f"{LIFE}.test_a_handler_may_ask_for_resync_where_the_informer_does_not_and_late",
    "TestSharedInformerInitializationRace, TestSharedInformerStartRace":
        f"{LIFE}.test_the_start_race_no_handler_is_lost",
    "TestSharedInformerWatchDisruption": f"{INFORMER}.test_a_relist_delivers_only_what_changed",
    "TestSharedInformerErrorHandling": f"{LIFE}.test_a_sync_that_takes_too_long_says_why",
    "TestSharedInformerTransformer": f"{INFORMER}.test_the_transform_is_what_cache_and_handlers_see",
    "TestSharedInformerRemoveHandler, TestSharedInformerRemovingRemovedHandler":
        f"{INFORMER}.test_remove_ends_one_handler_and_leaves_the_others",
    "TestSharedInformerMultipleRegistration": f"{INFORMER}.test_one_function_registered_twice_is_called_twice",
    "TestSharedInformerHandlerAbuse": f"{LIFE}.test_handlers_may_come_and_go_while_events_flow",
    "TestStateSharedInformer, TestAddOnStoppedSharedInformer":
        f"{LIFE}.test_stop_is_quick_idempotent_and_final",
    "TestRemoveWhileActive": f"{INFORMER}.test_a_handler_may_remove_itself_and_add_others",
    "TestAddWhileActive": f"{INFORMER}.test_a_late_handler_sees_everything_and_misses_nothing",
    "TestShutdown": "test_informer_http.test_stop_ends_every_thread_at_once",
    "TestEventPanics": "test_foreign_code.test_a_handler_that_exits_or_fails_without_a_text_costs_only_that_event",
    # wait_test.go, informers/factory, dynamicinformer, metadatainformer, fake_controller_source_test.go
    "TestWaitFor, TestSyncResult": f"{LIFE}.test_wait_for_sync_of_several_names_all_that_are_missing",
    "TestWaitFor/logging": "test_informer_status.test_several_that_are_missing_are_logged_together",
    "TestFilteredDynamicSharedInformerFactory": "test_factory.test_the_factorys_scope_is_the_default",
    "TestDynamicSharedInformerFactory":
        "test_informer_http.test_the_cache_follows_the_server_through_dropped_watches_and_compactions",
    "TestMetadataSharedInformerFactory": "test_informer_http.test_several_namespaces_and_metadata_only",
    "TestRCNumber": "test_fake_list_watch.test_a_watch_gives_what_came_after_its_version",
    "TestFakeControllerSource/ResetWatch": "test_fake_list_watch.test_dropped_watches_end_normally_or_with_the_error",
}  # fmt: skip

NOT_HERE = {
    "TestUndeltaStore, TestUpdateCallsPush": "a handler, or a sink of one's own, is told of each change",
    "TestTTLExpirationBasic, TestTTLList, TestTTLPolicy": "no expiring store; `cachetools` has them",
    "TestHeapBasic": "no heap is public; `heapq` is in the standard library",
    "TestMutationCache": "`wait_for` and `wait_for_deletion` wait for one's own writes instead of overlaying the cache",
    "TestLazy": "no lazily computed values",
    "TestWithStoreMetricsDefaulting": "metrics read `status()`; a store knows nothing of them",
    "TestPopBrokenItemsInBatch": "an object always has its key; what has none never becomes one",
    "TestRetryWithDeadline": "an error in the stream is always retried, with waits; there is no window in which",
    "TestToListWatcherWithWatchListSemantics": "`ProtocolConfig.watch_list`, or a refusal, says it of a source",
    "TestSharedInformerRemoveForeignHandler": "a registration removes itself; there are no foreign ones",
    "TestReflectorWatchHandler/rejected type": "a source gives objects of one resource; there are no types to mistake",
}

TESTS = Path(__file__).parent
FAST = ProtocolConfig(backoff=BackoffConfig(base=0.001, cap=0.01), short_watch=0.0)


@pytest.mark.parametrize("case", ELSEWHERE)
def test_the_other_cases_are_where_they_are_said_to_be(case: str) -> None:
    file, name = ELSEWHERE[case].rsplit(".", 1)
    text = (TESTS / f"{file}.py").read_text()
    assert re.search(rf"^def {name}\(", text, re.MULTILINE), ELSEWHERE[case]


def test_what_is_not_here_has_a_reason():
    assert not NOT_HERE.keys() & ELSEWHERE.keys()
    assert all(NOT_HERE.values())


# ---- cases of their own


def test_many_writers_lose_nothing_and_nothing_is_added_twice(informers, pod):
    """TestHammerController."""
    source = FakeListWatch()
    informer, checker = informers(source), HistoryChecker()
    informer.add_event_handler(on_event=checker)
    informer.start()

    def write(number: int) -> None:
        dice = random.Random(number)
        names = [f"{number}-{name}" for name in range(5)]
        for step in range(100):
            name = dice.choice(names)
            if f"ns/{name}" not in source:
                source.add(pod(name))
            elif dice.random() < 0.5:
                source.modify(pod(name, step=str(step)))
            else:
                source.delete(f"ns/{name}")

    writers = [threading.Thread(target=write, args=(number,)) for number in range(10)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    checker.wait_for(lambda: source.objects().values())
    assert_cache_matches(informer, source)


def test_the_version_is_known_even_if_the_transform_takes_it_away(informers, pod):
    """TestStoreResourceVersion, TestStoreResourceVersionWithNonMetaTransform."""
    source = FakeListWatch([pod("a")])

    def strip(obj: Object) -> Object:
        return Object.from_dict({"metadata": {"name": obj.name, "namespace": obj.namespace}})

    informer = informers(source, transform=strip)
    informer.start()
    informer.wait_for(source.add(pod("b")), 10)
    assert informer.lister.get("ns/b").resource_version == ""
    assert informer.status().sources[0].resource_version == "2"


def test_nothing_is_asked_when_the_stop_came_first(informers):
    """TestReflectorWatchStoppedBefore, TestReflectorHandleWatchStoppedBefore."""
    source, stop = FakeListWatch(), threading.Event()
    stop.set()
    Reflector(source, FakeSink()).run(stop)
    informer = informers(source)
    informer.run(stop)
    assert source.requests() == []
    with pytest.raises(InformerStopped):
        informer.start()


class FakeSink:
    """Takes everything in and can fail at a resync."""

    def __init__(self) -> None:
        self.objects: list[Object] = []
        self.resyncs = 0
        self.condition = threading.Condition()

    def add(self, obj: Object) -> None:
        with self.condition:
            self.objects.append(obj)
            self.condition.notify_all()

    update = delete = add

    def replace(self, objs, resource_version="", *, keep=()) -> None:
        for obj in objs:
            self.add(obj)

    def resync(self) -> None:
        with self.condition:
            self.resyncs += 1
            self.condition.notify_all()
        raise RuntimeError("no resync today")

    def wait(self, predicate) -> None:
        with self.condition:
            assert self.condition.wait_for(predicate, 10)


def test_an_error_event_closes_the_stream_that_brought_it(pod):
    """TestCloseWatchChannelOnError."""
    source, sink = FakeListWatch([pod("a")]), FakeSink()
    reflector = Reflector(source, sink, protocol=FAST)
    reflector.start()
    sink.wait(lambda: len(sink.objects) == 1)
    source.drop_watches(InternalError("etcd"))
    source.add(pod("b"))
    sink.wait(lambda: "b" in [obj.name for obj in sink.objects])
    assert source.open_watches == 1
    assert reflector.stop(10)


def test_a_resync_that_fails_is_counted_and_ends_nothing(pod):
    """TestReflectorResync. Upstream the error ends the watch, which did nothing wrong."""
    clock = FakeClock()
    source, sink = FakeListWatch([pod("a")], clock=clock), FakeSink()
    reflector = Reflector(source, sink, resync=10.0, clock=clock, random=lambda: 0.5)
    reflector.start()
    sink.wait(lambda: len(sink.objects) == 1)
    for count in (1, 2):
        clock.wait_for_sleepers(2)
        clock.advance(10.0)
        sink.wait(lambda count=count: sink.resyncs == count)
    source.add(pod("b"))
    sink.wait(lambda: len(sink.objects) == 2)
    assert len(source.requests("watch")) == 1
    assert reflector.stop(10)
    assert reflector.status().sink_errors == 2


def test_an_object_of_a_list_does_not_keep_the_list():
    """TestReflectorListExtract."""
    item = b'{"metadata":{"name":"p%d","namespace":"ns","uid":"%d","resourceVersion":"1"},"x":"' + b"x" * 1000 + b'"}'
    tracemalloc.start()
    try:
        body = b'{"items":[' + b",".join(item % (number, number) for number in range(2000)) + b"]}"
        page = ObjectDecoder("v1", "Pod").page(body)
        kept = page.items[1000]
        del body, page
        # of the decoder and of this file, not of what else the process does meanwhile
        taken = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/informers/*")])
    finally:
        tracemalloc.stop()
    assert kept.name == "p1000"
    held = sum(trace.size for trace in taken.traces)
    # of a list of two megabytes
    assert held < 200_000, [str(one) for one in taken.statistics("lineno")[:8]]


def test_a_handler_is_removed_from_a_stopped_informer(informers, source, recorder):
    """TestRemoveOnStoppedSharedInformer."""
    informer = informers(source)
    registration = informer.add_event_handler(on_event=recorder)
    informer.start()
    recorder.wait(2)
    informer.stop(10)
    registration.remove(wait=True)
    registration.remove()


@pytest.mark.parametrize("when", ["never", "before", "after"])
def test_removing_and_waiting_ends_the_handlers_thread_in_every_phase(informers, source, recorder, when):
    """TestShutDownEventHandler_Lifecycles, TestRemoveEventHandler_SynchronousShutdown."""
    informer = informers(source)
    if when == "before":
        informer.start()
    registration = informer.add_event_handler(on_event=recorder)
    if when == "after":
        informer.start()
    if when != "never":
        recorder.wait(2)
    registration.remove(wait=True)
    assert not registration.is_alive()
    assert informer.status().handlers == ()


def test_a_handler_that_always_fails_is_told_of_everything(informers, source, pod):
    """TestEventPanics/many. Upstream each costs a second."""
    told: list[str] = []
    done = threading.Event()

    def fail(event):
        told.append(event.object.name)
        if event.object.name == "last":
            done.set()
        raise RuntimeError("always")

    informer = informers(source)
    registration = informer.add_event_handler(on_event=fail)
    informer.start()
    for number in range(50):
        source.add(pod(f"p{number}"))
    source.add(pod("last"))
    assert done.wait(10)
    assert len(told) == 53
    registration.remove(wait=True)
    assert registration.statistics().failed == 53
    assert registration.has_synced()
