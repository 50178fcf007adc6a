"""Writes a job's status: only owned fields, only what differs, and never over what someone else wrote meanwhile.

The patch carries the version that the conditions were read at. When another writer was faster, the live object is
read and the change is computed anew on top of it; when that object is not the one that the change was about (another
generation, or a new object under the old name), the change is dropped, since a reconcile of the newer state is on its
way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from informers import NotFoundError, Object
from informers.errors import ConflictError
from pysedna.jobs.seams import Recorder, Writes
from pysedna.jobs.status import StatusChange, patch_of

TRIES = 5


def write_status(
    resource: Writes, seen: Object, compute: Callable[[Mapping[str, Any]], StatusChange], recorder: Recorder
) -> None:
    """Bring the status of `seen` to what `compute` makes of the status that it is given.

    Records the change's events once it is written. Raises ConflictError when others were faster each time.
    """
    live = seen
    for attempt in range(TRIES):
        status: Mapping[str, Any] = live.to_dict().get("status") or {}
        change = compute(status)
        patch = patch_of(change, status, live.resource_version)
        if patch is None:
            return
        try:
            resource.patch(live.key, patch, subresource="status")
        except NotFoundError:
            return
        except ConflictError:
            if attempt == TRIES - 1:
                raise
            found = _reread(resource, seen)
            if found is None:
                return
            live = found
        else:
            for note in change.notes:
                recorder.event(seen, note.type, note.reason, note.message)
            return


def _reread(resource: Writes, seen: Object) -> Object | None:
    try:
        live = resource.get(seen.key)
    except NotFoundError:
        return None
    same = live.uid == seen.uid and live.generation == seen.generation and live.deletion_timestamp is None
    return live if same else None
