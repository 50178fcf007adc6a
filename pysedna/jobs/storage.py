"""How a worker gets at its models and data: host paths, downloads before it starts, and credentials.

What a URL means is upstream's: no scheme is a path of the node, mounted under `/home/data`; `s3`, `http` and `https`
are fetched by an init container into `/downloads` if a download is asked for; any other URL, and those that the
worker opens itself, are passed on as they are. Three things are safer here. A path that ends with a slash is a
directory and is mounted itself, any other is a file whose directory is mounted, and the node's root is never mounted.
Volume names carry a hash of the path, so two paths cannot become one volume, and one directory is mounted once. Keys
of a store stay in their Secret: the kubelet hands them to the containers, no pod spec shows them.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from pysedna.jobs.environment import Variable, secret_variable, variables
from pysedna.jobs.problems import CREDENTIAL_CLASH, INVALID_URL, SECRET_INVALID, Problem

HOST_PREFIX = "/home/data"
DOWNLOADS = "/downloads"
DOWNLOAD_VOLUME = "sedna-storage-initializer"
INITIALIZER = "storage-initializer"
INITIALIZER_IMAGE = "kubeedge/sedna-storage-initializer:v0.3.0"
INDIRECT_MARK = "@"
ENDPOINT_ANNOTATION = "s3-endpoint"
HTTPS_ANNOTATION = "s3-usehttps"
_DOWNLOADABLE = ("s3", "http", "https")


@dataclass(frozen=True, slots=True)
class Credential:
    """A Secret with the keys of an S3 store, and the address of that store."""

    secret: str
    endpoint: str

    def environment(self) -> list[Variable]:
        """The S3 variables of the worker library."""
        return [
            *variables({"S3_ENDPOINT_URL": self.endpoint}),
            secret_variable("ACCESS_KEY_ID", secret=self.secret, key="ACCESS_KEY_ID"),
            secret_variable("SECRET_ACCESS_KEY", secret=self.secret, key="SECRET_ACCESS_KEY"),
        ]


@dataclass(frozen=True, slots=True)
class Source:
    """One thing that a worker reads or writes: the variable that tells it where, and the URL.

    `download`: fetch it before the worker starts. `indirect`: the URL is an index file whose entries are fetched too.
    """

    variable: str
    url: str
    download: bool = False
    indirect: bool = False
    credential: Credential | None = None


@dataclass(frozen=True, slots=True)
class Storage:
    """What to add to a pod: to each container `mounts` and `environment`, to the pod `volumes` and init containers."""

    volumes: Sequence[dict[str, Any]] = ()
    mounts: Sequence[dict[str, Any]] = ()
    environment: Sequence[Variable] = ()
    init_containers: Sequence[dict[str, Any]] = ()


@dataclass(frozen=True, slots=True)
class _Place:
    """Where one source ends up. `directory`: of the node; `fetch`: what the init container is told, and where to."""

    path: str
    directory: str = ""
    mount_path: str = ""
    fetch: tuple[str, str] | None = None


def credential(secret: str, annotations: Mapping[str, str]) -> Credential | Problem:
    """The credential that a Secret stands for. Its annotations must name the store."""
    endpoint = annotations.get(ENDPOINT_ANNOTATION, "")
    if not endpoint:
        return Problem(
            SECRET_INVALID,
            f"Secret {secret} does not say which store its keys are for: "
            f"annotate it with {ENDPOINT_ANNOTATION}=HOST[:PORT]",
        )
    if "://" in endpoint:
        return Problem(
            SECRET_INVALID,
            f"annotation {ENDPOINT_ANNOTATION} of Secret {secret} is {endpoint!r}: leave out the scheme "
            f"({HTTPS_ANNOTATION}=0 means http)",
        )
    scheme = "http" if annotations.get(HTTPS_ANNOTATION) == "0" else "https"
    return Credential(secret, f"{scheme}://{endpoint}")


def needs_credential(url: str, *, indirect: bool = False) -> bool:
    """Whether keys are of any use for this URL."""
    return indirect or url.lower().startswith("s3://")


def storage(sources: Sequence[Source]) -> Storage | Problem:
    """What a pod needs for these sources, or what is wrong with one of them."""
    places: list[tuple[Source, _Place]] = []
    for source in sources:
        place = _place(source)
        if isinstance(place, Problem):
            return place
        places.append((source, place))
    inside = _credentials(source for source, place in places if place.fetch is None)
    if isinstance(inside, Problem):
        return inside
    before = _credentials(source for source, place in places if place.fetch is not None)
    if isinstance(before, Problem):
        return before
    return _assemble(places, inside, before)


def _assemble(
    places: Sequence[tuple[Source, _Place]], inside: Sequence[Variable], before: Sequence[Variable]
) -> Storage:
    own = {place.mount_path: place for source, place in places if place.directory and not source.indirect}
    initial = {place.mount_path: place for source, place in places if place.directory and source.indirect}
    directories = list(dict.fromkeys(place.directory for _, place in places if place.directory))
    volumes = [_host_volume(directory) for directory in directories]
    mounts = [_host_mount(place) for place in own.values()]
    environment = variables({source.variable: place.path for source, place in places})
    if own:
        environment += variables({"DATA_PATH_PREFIX": HOST_PREFIX})
    init_containers = []
    fetches = [place.fetch for _, place in places if place.fetch is not None]
    if fetches:
        volumes.insert(0, {"name": DOWNLOAD_VOLUME, "emptyDir": {}})
        mounts.insert(0, {"name": DOWNLOAD_VOLUME, "mountPath": DOWNLOADS, "readOnly": True})
        init_containers.append(_initializer(fetches, before, [_host_mount(place) for place in initial.values()]))
    return Storage(volumes, mounts, [*environment, *inside], init_containers)


def _initializer(
    fetches: Sequence[tuple[str, str]], keys: Sequence[Variable], mounts: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "name": INITIALIZER,
        "image": INITIALIZER_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "args": [part for fetch in fetches for part in fetch],
        "env": [*keys, *variables({"INDIRECT_URL_MARK": INDIRECT_MARK})],
        "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{"name": DOWNLOAD_VOLUME, "mountPath": DOWNLOADS}, *mounts],
    }


def _place(source: Source) -> _Place | Problem:
    try:
        url = urlsplit(source.url)
    except ValueError as error:
        return _invalid(source, f"it cannot be read ({error})")
    if ".." in url.path.split("/"):
        return _invalid(source, "it may not contain '..'")
    if not url.scheme:
        return _host_place(source)
    if url.scheme.lower() not in _DOWNLOADABLE:
        return _Place(source.url)
    if not url.netloc:
        return _invalid(source, f"it names no {'bucket' if url.scheme.lower() == 's3' else 'host'}")
    if not source.download:
        return _Place(source.url)
    path = _download_path(url)
    return _Place(path, fetch=(source.url, _mark(source) + _folder(path)))


def _host_place(source: Source) -> _Place | Problem:
    if not source.url.startswith("/"):
        return _invalid(source, "give an absolute path of the node, or a URL with a scheme")
    path = posixpath.normpath("/" + source.url.lstrip("/"))
    directory = path if source.url.endswith("/") else posixpath.dirname(path)
    if directory == "/":
        return _invalid(
            source,
            f"it would mount the root of the node into the worker; "
            f"if {path} is a directory, write it with a slash at the end",
        )
    inside = HOST_PREFIX + path
    if not source.indirect:
        return _Place(inside, directory, HOST_PREFIX + directory)
    fetched = DOWNLOADS + path
    return _Place(fetched, directory, HOST_PREFIX + directory, (inside, _mark(source) + _folder(fetched)))


def _download_path(url: SplitResult) -> str:
    return posixpath.normpath(f"{DOWNLOADS}/{url.netloc}{url.path}")


def _folder(path: str) -> str:
    return posixpath.dirname(path) + "/"


def _mark(source: Source) -> str:
    return INDIRECT_MARK if source.indirect else ""


def _invalid(source: Source, why: str) -> Problem:
    return Problem(INVALID_URL, f"the URL {source.url!r} for {source.variable} cannot be used: {why}")


def _credentials(sources: Iterable[Source]) -> list[Variable] | Problem:
    """One container can hold the keys of one store. Two Secrets for one store are taken for the same keys."""
    chosen: Credential | None = None
    for source in sources:
        found = source.credential
        if found is None or not needs_credential(source.url, indirect=source.indirect):
            continue
        if chosen is not None and chosen.endpoint != found.endpoint:
            return Problem(
                CREDENTIAL_CLASH,
                f"a worker needs Secret {chosen.secret} for {chosen.endpoint} and Secret {found.secret} for "
                f"{found.endpoint}, but has one set of S3 variables: keep its models and data in one store",
            )
        chosen = chosen or found
    return chosen.environment() if chosen is not None else []


def _host_volume(directory: str) -> dict[str, Any]:
    return {"name": _volume_name(directory), "hostPath": {"path": directory, "type": "Directory"}}


def _host_mount(place: _Place) -> dict[str, Any]:
    return {"name": _volume_name(place.directory), "mountPath": place.mount_path}


def _volume_name(directory: str) -> str:
    readable = re.sub(r"[^a-z0-9]+", "-", directory.lower()).strip("-")[:50].rstrip("-")
    digest = hashlib.sha256(directory.encode()).hexdigest()[:8]
    return f"{readable}-{digest}" if readable else f"host-{digest}"
