"""What a delete does: the object goes at once, or it is marked and waits for its finalizers or its grace period.

The rules are those of the API server's generic registry; collecting dependents is left to a garbage collector, which
the finalizers `orphan` and `foregroundDeletion` tell what to do.
"""

from informers.store.failures import FieldProblem, conflict, invalid
from informers.store.history import Table
from informers.store.types import DeleteOptions, Json, Stored, epoch, timestamp

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
_DEFAULT_GRACE = 30


def check(table: Table, old: Stored, options: DeleteOptions) -> None:
    """Raises if the options are unknown or a precondition does not hold."""
    if options.propagation not in (None, "", "Background", "Foreground", "Orphan"):
        supported = ["Foreground", "Background", "Orphan", "nil"]
        problem = FieldProblem.unsupported("propagationPolicy", options.propagation, supported)
        raise invalid("meta.k8s.io", "DeleteOptions", "", [problem])
    uid = old.object["metadata"]["uid"]
    if options.uid and options.uid != uid:
        text = (
            f"the UID in the precondition ({options.uid}) does not match the UID in record ({uid}). "
            "The object might have been deleted and then recreated"
        )
        raise conflict(table.resource, old.key.name, text, word=table.resource.kind)
    if options.resource_version and options.resource_version != str(old.version):
        text = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the ResourceVersion "
            f"in record ({old.version}). The object might have been modified"
        )
        raise conflict(table.resource, old.key.name, text, word=table.resource.kind)


def marked(table: Table, old: Json, options: DeleteOptions, now: float) -> Json | None:
    """The object as it waits for its end, or None when nothing holds it back.

    A pod is always marked, though its wait may be over at once (`finished`).
    """
    metadata = dict(old["metadata"])
    finalizers = _finalizers(metadata.get("finalizers") or [], options.propagation)
    grace = _grace(table, old, options)
    held = bool(finalizers) or _held_otherwise(table, old)
    if not held and not table.resource.graceful:
        return None
    if finalizers:
        metadata["finalizers"] = finalizers
    else:
        metadata.pop("finalizers", None)
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = timestamp(now + grace)
        metadata["deletionGracePeriodSeconds"] = grace
        if metadata.get("generation"):
            metadata["generation"] += 1
        deleting = table.hooks.deleting
        old = deleting(old) if deleting is not None else old
    elif grace < metadata.get("deletionGracePeriodSeconds", 0):
        # A second delete may only shorten the wait; it counts from the moment of the first one.
        asked = epoch(metadata["deletionTimestamp"]) - metadata["deletionGracePeriodSeconds"]
        metadata["deletionTimestamp"] = timestamp(asked + grace)
        metadata["deletionGracePeriodSeconds"] = grace
    return {**old, "metadata": metadata}


def finished(table: Table, new: Json) -> bool:
    """Whether nothing holds a deleted object back, or no longer."""
    metadata = new["metadata"]
    waiting = "deletionTimestamp" not in metadata or metadata.get("deletionGracePeriodSeconds", 0) != 0
    return not waiting and not metadata.get("finalizers") and not _held_otherwise(table, new)


def _finalizers(finalizers: list[str], propagation: str | None) -> list[str]:
    if not propagation:
        return finalizers
    wanted = {"Orphan": [ORPHAN], "Foreground": [FOREGROUND]}.get(propagation, [])
    kept = [each for each in finalizers if each not in (ORPHAN, FOREGROUND) or each in wanted]
    return kept + [each for each in wanted if each not in kept]


def _grace(table: Table, old: Json, options: DeleteOptions) -> int:
    """Seconds that the object is given: none unless it is a pod that has a node and has not finished."""
    if not table.resource.graceful:
        return 0
    spec, metadata = old.get("spec") or {}, old["metadata"]
    if not spec.get("nodeName") or (old.get("status") or {}).get("phase") in ("Failed", "Succeeded"):
        return 0
    grace = options.grace_period
    if grace is None:
        current = metadata.get("deletionGracePeriodSeconds")
        grace = current if current is not None else spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE)
    return 1 if grace < 0 else int(grace)


def _held_otherwise(table: Table, obj: Json) -> bool:
    pending = table.hooks.pending
    return pending is not None and pending(obj)
