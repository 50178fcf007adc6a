"""Which resource stands for a kind, as the server says it.

What was found is kept until a request shows that it no longer holds; what was not found is asked for again each time,
since a CRD may be installed at any moment. Thread-safe; two threads may ask the same at the same time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

import msgspec

from informers.errors import ApiError, KindNotFoundError, MalformedResponseError, NotFoundError
from informers.request import ResourceInfo, group_path

__all__ = ["Discovery"]

_log = logging.getLogger(__name__)

T = TypeVar("T")
Fetch = Callable[[str, float | None], bytes]


class _ApiResource(msgspec.Struct):
    name: str
    kind: str
    namespaced: bool = False
    singularName: str = ""  # noqa: N815 - the fields' names in the API
    verbs: list[str] | None = None
    shortNames: list[str] | None = None  # noqa: N815
    group: str = ""
    version: str = ""


class _ApiResourceList(msgspec.Struct):
    resources: list[_ApiResource] | None = None


class _GroupVersion(msgspec.Struct):
    groupVersion: str  # noqa: N815
    version: str = ""


class _Group(msgspec.Struct):
    name: str
    versions: list[_GroupVersion] | None = None
    preferredVersion: _GroupVersion | None = None  # noqa: N815


class _GroupList(msgspec.Struct):
    groups: list[_Group] | None = None


class _Versions(msgspec.Struct):
    versions: list[str] | None = None


class Discovery:
    """Asks through `fetch(path, timeout)`, which gives the body of a GET or raises."""

    def __init__(self, fetch: Fetch) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str, str], ResourceInfo] = {}

    def resolve(self, api_version: str, *, kind: str = "", plural: str = "", timeout: float | None) -> ResourceInfo:
        """Find a resource by its kind or by its plural. Raises KindNotFoundError, and what fetching raises."""
        wanted = (api_version, kind, plural)
        with self._lock:
            known = self._known.get(wanted)
        if known is not None:
            return known
        infos = self._group_version(api_version, timeout)
        with self._lock:
            for info in reversed(infos):  # of two resources of one kind the first one counts
                self._known[(api_version, info.kind, "")] = self._known[(api_version, "", info.plural)] = info
            known = self._known.get(wanted)
        if known is not None:
            return known
        raise KindNotFoundError(
            f"the server does not serve {kind or plural} in {api_version}",
            verb="discover",
            resource=f"{kind or plural} in {api_version}",
        )

    def forget(self, info: ResourceInfo) -> None:
        """A request showed that the server no longer serves this resource as it was found."""
        with self._lock:
            for wanted in [wanted for wanted, known in self._known.items() if known == info]:
                del self._known[wanted]

    def resources(self, timeout: float | None) -> list[ResourceInfo]:
        """Everything that is served, each resource in the preferred version of its group, or else in its next one.

        Groups whose server does not answer, or not as it should (aggregated ones), are logged and left out.
        """
        found: dict[tuple[str, str], ResourceInfo] = {}
        for api_version in self._api_versions(timeout):
            try:
                infos = self._group_version(api_version, timeout)
            except (ApiError, MalformedResponseError) as error:
                _log.warning("discovery of %s failed: %s", api_version, error)
                continue
            for info in infos:
                found.setdefault((info.group, info.plural), info)
        return list(found.values())

    def _api_versions(self, timeout: float | None) -> Iterable[str]:
        yield from self._decode("/api", _Versions, timeout).versions or ()
        for group in self._decode("/apis", _GroupList, timeout).groups or ():
            preferred = [] if group.preferredVersion is None else [group.preferredVersion]
            yield from dict.fromkeys(one.groupVersion for one in [*preferred, *(group.versions or ())])

    def _group_version(self, api_version: str, timeout: float | None) -> list[ResourceInfo]:
        try:
            listed = self._decode(group_path(api_version), _ApiResourceList, timeout).resources or []
        except NotFoundError:
            return []
        subresources: dict[str, set[str]] = {}
        for one in listed:
            plural, slash, subresource = one.name.partition("/")
            if slash:
                subresources.setdefault(plural, set()).add(subresource)
        return [
            ResourceInfo(
                api_version,
                one.kind,
                one.name,
                one.namespaced,
                one.singularName,
                tuple(one.verbs or ()),
                tuple(one.shortNames or ()),
                frozenset(subresources.get(one.name, ())),
            )
            for one in listed
            if "/" not in one.name
        ]

    def _decode(self, path: str, type: type[T], timeout: float | None) -> T:
        body = self._fetch(path, timeout)
        try:
            return msgspec.json.decode(body, type=type)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise MalformedResponseError(f"{path}: the answer is no discovery document: {error}") from error
