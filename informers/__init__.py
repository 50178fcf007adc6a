"""Caches of Kubernetes objects, kept equal to an API server, and the REST access they are built on.

`SharedInformer` (usually from a `SharedInformerFactory`) lists and watches one kind, keeps an indexed cache of it and
tells handlers what changed. Errors are in `informers.errors`, what helps to test in `informers.testing`.
"""

from informers.delta_fifo import Delta, DeltaFIFO, Deltas, DeltaType, Tombstone
from informers.errors import (
    FIFOClosed,
    InformersError,
    InformerStopped,
    NotFoundError,
    SyncError,
    SyncTimeout,
    Timeout,
    UnknownIndex,
)
from informers.event import Event, EventType, Reason
from informers.factory import SharedInformerFactory
from informers.handlers import HandlerStatistics, Registration
from informers.indexer import NAMESPACE_INDEX, Indexer, IndexerView, IndexFunction
from informers.key import ObjectKey
from informers.lister import Lister
from informers.object import Object, OwnerReference
from informers.protocol import ProtocolConfig
from informers.reflector import Reflector, ReflectorStatus, Sink
from informers.selectors import FieldSelector, LabelSelector
from informers.shared_informer import SharedInformer
from informers.source import ListWatch, ObjectList, WatchEvent, WatchStream
from informers.status import InformerStatus
from informers.sync import wait_for_sync

__all__ = [
    "NAMESPACE_INDEX",
    "Delta",
    "DeltaFIFO",
    "DeltaType",
    "Deltas",
    "Event",
    "EventType",
    "FIFOClosed",
    "FieldSelector",
    "HandlerStatistics",
    "IndexFunction",
    "Indexer",
    "IndexerView",
    "InformerStatus",
    "InformerStopped",
    "InformersError",
    "LabelSelector",
    "ListWatch",
    "Lister",
    "NotFoundError",
    "Object",
    "ObjectKey",
    "ObjectList",
    "OwnerReference",
    "ProtocolConfig",
    "Reason",
    "Reflector",
    "ReflectorStatus",
    "Registration",
    "SharedInformer",
    "SharedInformerFactory",
    "Sink",
    "SyncError",
    "SyncTimeout",
    "Timeout",
    "Tombstone",
    "UnknownIndex",
    "WatchEvent",
    "WatchStream",
    "wait_for_sync",
]
