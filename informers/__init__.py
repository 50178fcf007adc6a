"""Caches of Kubernetes objects, kept equal to an API server, and the REST access they are built on.

`SharedInformer` (usually from a `SharedInformerFactory`) lists and watches one kind, keeps an indexed cache of it and
tells handlers what changed. Errors are in `informers.errors`, what helps to test in `informers.testing`.
"""

from informers.client import Client, Impersonation
from informers.delta_fifo import Delta, DeltaFIFO, Deltas, DeltaType, Tombstone
from informers.errors import (
    AlreadyExistsError,
    ApiError,
    BadRequestError,
    ClientClosed,
    ConfigError,
    ConflictError,
    ConnectionRefused,
    ConnectionReset,
    DnsError,
    ExpiredError,
    FIFOClosed,
    ForbiddenError,
    GoneError,
    InformersError,
    InformerStopped,
    InternalError,
    InvalidError,
    KindNotFoundError,
    MalformedObjectError,
    MalformedResponseError,
    MethodNotAllowedError,
    NotAcceptableError,
    NotFoundError,
    RequestTimeout,
    ScopeError,
    SelectorError,
    ServerTimeoutError,
    ServiceUnavailableError,
    SyncError,
    SyncTimeout,
    Timeout,
    TlsError,
    TooManyRequestsError,
    TransportError,
    UnauthorizedError,
    UnknownIndex,
    UnsupportedMediaTypeError,
)
from informers.event import Event, EventType, Reason
from informers.factory import SharedInformerFactory
from informers.field_index import FieldIndex, field_index
from informers.handlers import HandlerStatistics, Registration
from informers.indexer import NAMESPACE_INDEX, Indexer, IndexerView, IndexFunction
from informers.key import ObjectKey
from informers.lister import Lister
from informers.object import Object, OwnerReference
from informers.protocol import ProtocolConfig
from informers.reflector import Reflector, Sink
from informers.request import ResourceInfo
from informers.resource import Resource
from informers.selectors import FieldSelector, LabelSelector
from informers.shared_informer import SharedInformer
from informers.source import ListWatch, ObjectList, WatchEvent, WatchStream
from informers.status import InformerStatus, ReflectorStatus
from informers.sync import wait_for_sync
from informers.transport import RequestTrace
from informers.views import ListView, MappingView, thaw
from informers.waiting import retry_on_conflict

__all__ = [
    "AlreadyExistsError",
    "ApiError",
    "BadRequestError",
    "Client",
    "ClientClosed",
    "ConfigError",
    "ConflictError",
    "ConnectionRefused",
    "ConnectionReset",
    "Delta",
    "DeltaFIFO",
    "DeltaType",
    "Deltas",
    "DnsError",
    "Event",
    "EventType",
    "ExpiredError",
    "FIFOClosed",
    "FieldIndex",
    "FieldSelector",
    "ForbiddenError",
    "GoneError",
    "HandlerStatistics",
    "Impersonation",
    "IndexFunction",
    "Indexer",
    "IndexerView",
    "InformerStatus",
    "InformerStopped",
    "InformersError",
    "InternalError",
    "InvalidError",
    "KindNotFoundError",
    "LabelSelector",
    "ListView",
    "ListWatch",
    "Lister",
    "MalformedObjectError",
    "MalformedResponseError",
    "MappingView",
    "MethodNotAllowedError",
    "NAMESPACE_INDEX",
    "NotAcceptableError",
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
    "RequestTimeout",
    "RequestTrace",
    "Resource",
    "ResourceInfo",
    "ScopeError",
    "SelectorError",
    "ServerTimeoutError",
    "ServiceUnavailableError",
    "SharedInformer",
    "SharedInformerFactory",
    "Sink",
    "SyncError",
    "SyncTimeout",
    "Timeout",
    "TlsError",
    "Tombstone",
    "TooManyRequestsError",
    "TransportError",
    "UnauthorizedError",
    "UnknownIndex",
    "UnsupportedMediaTypeError",
    "WatchEvent",
    "WatchStream",
    "field_index",
    "retry_on_conflict",
    "thaw",
    "wait_for_sync",
]
