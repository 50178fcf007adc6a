"""Callbacks that do to their informer what they had better not: it must not stand still for it."""

from __future__ import annotations

import threading

from informers import InformerStatus, Registration


def test_handlers_that_remove_each_other_and_wait_come_to_an_end(informers, source):
    informer = informers(source)
    inside, done = threading.Barrier(2), threading.Semaphore(0)
    registrations: list[Registration] = []

    def removing(other: int):
        def on_add(obj, is_initial):
            inside.wait(10)
            registrations[other].remove(wait=True)
            done.release()

        return on_add

    registrations += [informer.add_event_handler(on_add=removing(1)), informer.add_event_handler(on_add=removing(0))]
    informer.start()
    assert done.acquire(timeout=10)
    assert done.acquire(timeout=10)
    assert informer.stop(10)


def test_an_index_function_may_ask_for_the_status(informers, source):
    said: list[InformerStatus] = []

    def index(obj):
        said.append(informer.status())
        return ["x"]

    informer = informers(source, indexers={"x": index})
    informer.start()
    informer.wait_for_sync(10)
    assert [obj.name for obj in informer.lister.by_index("x", "x")] == ["a", "b"]
    assert len(said) == 2
