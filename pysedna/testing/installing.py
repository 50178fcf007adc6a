"""Puts definitions of kinds and of webhooks into a cluster; waits for them where it can be seen that they hold."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

from informers.client import Client
from informers.errors import AlreadyExistsError, ApiError, ConflictError, NotFoundError
from informers.key import ObjectKey
from informers.object import Object
from pysedna.testing.errors import StartError

_POLL = 0.05

Definition = Mapping[str, Any]


def create_or_replace(client: Client, definition: Definition) -> Object:
    """Create an object, or put it in the place of the one of that name. Raises ApiError."""
    resource = client.resource(definition["apiVersion"], definition["kind"])
    metadata = definition["metadata"]
    while True:
        try:
            return resource.create(definition)
        except AlreadyExistsError:
            current = resource.get(ObjectKey(metadata.get("namespace", ""), metadata["name"]))
        try:
            version = {"resourceVersion": current.resource_version}
            return resource.replace({**definition, "metadata": {**metadata, **version}})
        except (ConflictError, NotFoundError):
            continue  # a controller wrote its status, or somebody removed it, in between


def install_crds(client: Client, definitions: Iterable[Definition], *, timeout: float) -> None:
    """Create or replace CustomResourceDefinitions and wait until each version can be listed and is found by discovery.

    Raises ApiError, and StartError after `timeout` seconds.
    """
    definitions = list(definitions)
    for definition in definitions:
        create_or_replace(client, definition)
    deadline = time.monotonic() + timeout
    for definition in definitions:
        wait_until(partial(_is_served, client, definition), definition["metadata"]["name"], deadline)


def install_webhooks(client: Client, configurations: Iterable[Definition], *, url: str, authority: bytes) -> None:
    """Create or replace webhook configurations, with `url` in the place of services. Raises ApiError."""
    bundle = base64.b64encode(authority).decode()
    for configuration in configurations:
        hooks = [
            {**hook, "clientConfig": _at_url(hook["clientConfig"], url, bundle)} for hook in configuration["webhooks"]
        ]
        create_or_replace(client, {**configuration, "webhooks": hooks})


def _is_served(client: Client, definition: Definition) -> bool:
    spec = definition["spec"]
    plural = spec["names"]["plural"]
    for version in (version["name"] for version in spec["versions"] if version["served"]):
        group = f"/apis/{spec['group']}/{version}"
        try:
            found = json.loads(client.raw("GET", group))["resources"]
            client.raw("GET", f"{group}/{plural}", query={"limit": "1"})
        except NotFoundError:
            return False
        if plural not in (resource["name"] for resource in found):
            return False
    return True


def _at_url(config: Mapping[str, Any], url: str, bundle: str) -> dict[str, Any]:
    """The clientConfig of a webhook that is served at `url` instead of by a service of the cluster."""
    service = config.get("service")
    if service is not None:
        rest = {name: value for name, value in config.items() if name != "service"}
        return {**rest, "url": url.rstrip("/") + service.get("path", "/"), "caBundle": bundle}
    return {"caBundle": bundle, **config}


def wait_until(condition: Callable[[], bool], what: str, deadline: float) -> None:
    """Block until `condition()`, with failures of the API taken for no. `deadline` is on time.monotonic.

    Raises StartError, which tells the last failure.
    """
    reason = ""
    while True:
        try:
            if condition():
                return
        except ApiError as error:
            reason = f": {error}"
        if time.monotonic() >= deadline:
            raise StartError(f"{what} did not come into force in time{reason}")
        time.sleep(_POLL)
