"""Namespaces: one that is deleted is emptied and then let go; every one that is there has a ServiceAccount
`default`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from informers import Event, Lister, Object, ObjectKey
from informers.errors import AlreadyExistsError, ConflictError, ForbiddenError, NotFoundError
from pysedna.controller import Context, Manager, Result, Watch

if TYPE_CHECKING:
    from informers import Client

NAMESPACE, SERVICE_ACCOUNT = ("v1", "Namespace"), ("v1", "ServiceAccount")
_FINALIZER = "kubernetes"
_NEEDED = frozenset({"list", "delete"})
_PAUSE = 0.1


def setup_namespaces(manager: Manager) -> None:
    """Add the namespace controller and the one of default service accounts to a manager."""
    namespaces = manager.informers.informer(*NAMESPACE).lister
    manager.controller("namespaces", NAMESPACE, Namespaces(namespaces, manager.client), workers=2)
    accounts = manager.informers.informer(*SERVICE_ACCOUNT).lister
    again = Watch(SERVICE_ACCOUNT, lambda account: [ObjectKey("", account.namespace)], predicates=[_default_deleted])
    manager.controller("service-accounts", NAMESPACE, ServiceAccounts(namespaces, accounts), watches=[again])


def _default_deleted(event: Event) -> bool:
    return event.new is None and event.object.name == "default"


class Namespaces:
    """Deletes what is in a namespace that is being deleted; when it is empty, takes the finalizer off its spec."""

    def __init__(self, namespaces: Lister, client: Client) -> None:
        self._namespaces = namespaces
        self._client = client

    def reconcile(self, key: ObjectKey, context: Context) -> Result | None:
        """Empty one namespace as far as it goes now."""
        try:
            namespace = self._namespaces.get(key)
        except NotFoundError:
            return None
        finalizers = (namespace.get("spec") or {}).get("finalizers") or ()
        if namespace.deletion_timestamp is None or _FINALIZER not in finalizers:
            return None
        if self._empty(key.name, context):
            return self._finalize(namespace, context)
        return Result(requeue_after=_PAUSE)

    def _empty(self, namespace: str, context: Context) -> bool:
        """Delete all that is there, first the pods, and the rest when they are gone; True when nothing was there."""
        empty = True
        for info in sorted(self._client.resources(), key=lambda info: info.kind != "Pod"):
            if not info.namespaced or not set(info.verbs) >= _NEEDED:
                continue
            context.check()
            resource = context.client.resource(info.api_version, info.kind)
            try:
                found = resource.list(namespace=namespace, limit=500)
                for obj in found.items:
                    empty = False
                    if obj.deletion_timestamp is None:
                        self._delete(resource, obj)
            except NotFoundError as error:
                context.log.debug("kind %s went meanwhile: %s", info.kind, error)
            if info.kind == "Pod" and not empty:
                return False
        return empty

    def _delete(self, resource: Any, obj: Object) -> None:
        try:
            resource.delete(obj.key, uid=obj.uid, propagation="Background")
        except (NotFoundError, ConflictError):
            return  # gone, or another under its name: the next round sees it

    def _finalize(self, namespace: Object, context: Context) -> Result | None:
        body = namespace.to_dict()
        body["spec"] = {"finalizers": [name for name in body["spec"]["finalizers"] if name != _FINALIZER]}
        try:
            context.client.resource(*NAMESPACE).replace(body, subresource="finalize")
        except NotFoundError:
            return None
        except ConflictError:
            return Result(requeue_after=_PAUSE)
        return None


class ServiceAccounts:
    """Makes the ServiceAccount that pods run under when they name none."""

    def __init__(self, namespaces: Lister, accounts: Lister) -> None:
        self._namespaces = namespaces
        self._accounts = accounts

    def reconcile(self, key: ObjectKey, context: Context) -> None:
        """See to it that one namespace has its account."""
        try:
            namespace = self._namespaces.get(key)
        except NotFoundError:
            return
        if namespace.deletion_timestamp is not None or self._has_account(key.name):
            return
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": "default", "namespace": key.name},
        }
        try:
            context.client.resource(*SERVICE_ACCOUNT).create(account)
        except AlreadyExistsError:
            return
        except (ForbiddenError, NotFoundError) as error:
            context.log.debug("namespace %s takes no account now: %s", key.name, error)

    def _has_account(self, namespace: str) -> bool:
        try:
            self._accounts.get(ObjectKey(namespace, "default"))
        except NotFoundError:
            return False
        return True
