"""The store against a naive model: a copy of the whole state for every version, and no cleverness at all."""

import itertools
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from informers.errors import ConflictError, ExpiredError
from informers.key import ObjectKey
from informers.store import DeleteOptions, Json, ResourceType, Store, Watch

THINGS = ResourceType("", "v1", "Thing", "things")
OTHERS = ResourceType("", "v1", "Other", "others")
NAMESPACES = ("a", "a-b")
State = dict[str, Json]

keys = st.builds(ObjectKey, st.sampled_from(NAMESPACES), st.sampled_from("xy"))
values = st.sampled_from(["", "red", "blue"])


class StoreMachine(RuleBasedStateMachine):
    """`states[version]` is what THINGS looked like then; watches are replayed and must end in the same state."""

    def __init__(self) -> None:
        super().__init__()
        uids = itertools.count()
        self.store = Store(now=lambda: 0.0, new_uid=lambda: f"u{next(uids)}", new_suffix=lambda: "s", history_limit=40)
        self.store.register(THINGS)
        self.store.register(OTHERS)
        self.states: dict[int, State] = {}

    watches = Bundle("watches")
    pages = Bundle("pages")

    @initialize()
    def begin(self) -> None:
        self.remember()

    def remember(self) -> None:
        self.states[self.store.version] = {str(each.key): each.object for each in self.store.list(THINGS).items}

    def wrote(self, before: int, versions: int) -> None:
        assert self.store.version == before + versions
        self.remember()

    @rule(key=keys, color=values)
    def put(self, key: ObjectKey, color: str) -> None:
        before, body = self.store.version, {"metadata": {"name": key.name, "labels": {"color": color}}}
        current = self.store.find(THINGS, key)
        if current is None:
            self.store.create(THINGS, body, namespace=key.namespace)
            self.wrote(before, 1)
        else:
            same = current.object["metadata"].get("labels") == {"color": color}
            finalizers = current.object["metadata"].get("finalizers")
            body["metadata"] |= {"finalizers": finalizers} if finalizers else {}
            self.store.update(THINGS, key, body)
            self.wrote(before, 0 if same else 1)

    @rule(key=keys, propagation=st.sampled_from([None, "Orphan", "Background"]))
    def delete(self, key: ObjectKey, propagation: str | None) -> None:
        before, current = self.store.version, self.store.find(THINGS, key)
        if current is None:
            return
        deletion = self.store.delete(THINGS, key, DeleteOptions(propagation=propagation))
        assert deletion.gone is (self.store.find(THINGS, key) is None)
        self.wrote(before, self.store.version - before)
        assert deletion.gone or "deletionTimestamp" in self.states[self.store.version][str(key)]["metadata"]

    @rule(key=keys)
    def release(self, key: ObjectKey) -> None:
        """Whatever held a deleted object back lets go."""
        before, current = self.store.version, self.store.find(THINGS, key)
        if current is None or "deletionTimestamp" not in current.object["metadata"]:
            return
        metadata = {**current.object["metadata"], "finalizers": []}
        self.store.update(THINGS, key, {**current.object, "metadata": metadata})
        self.wrote(before, 1)
        assert self.store.find(THINGS, key) is None

    @rule(key=keys)
    def stale_update_is_refused(self, key: ObjectKey) -> None:
        before, current = self.store.version, self.store.find(THINGS, key)
        if current is None:
            return
        metadata = {**current.object["metadata"], "resourceVersion": str(current.version - 1)}
        try:
            self.store.update(THINGS, key, {**current.object, "metadata": metadata})
        except ConflictError:
            pass
        else:
            raise AssertionError("an old version was overwritten")
        self.wrote(before, 0)

    @rule()
    def write_elsewhere(self) -> None:
        before = self.store.version
        self.store.create(OTHERS, {"metadata": {"name": f"o{before}"}}, namespace="a")
        self.wrote(before, 1)

    @rule(back=st.integers(0, 10))
    def compact(self, back: int) -> None:
        self.store.compact(self.store.version - back)

    @rule(target=watches, back=st.integers(0, 12), namespace=st.sampled_from(["", *NAMESPACES]), color=values)
    def watch(self, back: int, namespace: str, color: str) -> Any:
        version = max(self.store.version - back, 1)
        selector = f"color={color}" if color else ""
        watch = self.store.watch(THINGS, namespace=namespace, label_selector=selector, resource_version=str(version))
        return (watch, namespace, color, self.chosen(version, namespace, color))

    def chosen(self, version: int, namespace: str, color: str) -> State:
        return {
            path: obj
            for path, obj in self.states.get(version, {}).items()
            if (not namespace or obj["metadata"]["namespace"] == namespace)
            and (not color or obj["metadata"].get("labels", {}).get("color") == color)
        }

    @rule(watched=watches, limit=st.sampled_from([None, 1, 3]))
    def poll(self, watched: tuple[Watch, str, str, State], limit: int | None) -> None:
        """Each event fits the state before it; at the end the watcher knows what the selectors choose."""
        watch, namespace, color, view = watched
        compacted, was = self.store.compacted, watch.version
        try:
            items = watch.poll(limit)
        except ExpiredError:
            assert was < compacted
            return
        last = was
        for item in items:
            path = str(item.stored.key)
            assert item.stored.version > last
            last = item.stored.version
            assert (path in view) is (item.type in ("MODIFIED", "DELETED"))
            if item.type == "DELETED":
                del view[path]
            else:
                view[path] = item.stored.object
        assert view == self.chosen(watch.version, namespace, color)

    @rule(target=pages, limit=st.integers(1, 3))
    def list_page(self, limit: int) -> Any:
        page = self.store.list(THINGS, limit=limit)
        shown = {str(each.key): each.object for each in page.items}
        return (page.version, page.continue_, shown) if page.continue_ else multiple()

    @rule(page=pages, limit=st.integers(1, 3))
    def follow_page(self, page: tuple[int, str, State], limit: int) -> None:
        version, token, found = page[0], page[1], dict(page[2])
        try:
            while token:
                listing = self.store.list(THINGS, limit=limit, continue_=token)
                assert listing.version == version
                found |= {str(each.key): each.object for each in listing.items}
                token = listing.continue_
        except ExpiredError as error:
            assert version < self.store.compacted
            token = error.continue_token or ""
            assert self.store.list(THINGS, continue_=token).version == self.store.version
        else:
            assert found == self.states[version]
            assert list(found) == sorted(found)

    @rule(back=st.integers(0, 12))
    def exact(self, back: int) -> None:
        version = max(self.store.version - back, 1)
        try:
            listing = self.store.list(THINGS, resource_version=str(version), resource_version_match="Exact")
        except ExpiredError:
            assert version < self.store.compacted
        else:
            assert {str(each.key): each.object for each in listing.items} == self.states[version]

    @invariant()
    def no_object_is_newer_than_the_store(self) -> None:
        assert all(each.version <= self.store.version for each in self.store.list(THINGS).items)


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)
