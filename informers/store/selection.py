"""Which objects of a resource a list or a watch is about: namespace, labels, fields; and the pages of a list."""

import base64
import binascii
from dataclasses import dataclass

import orjson

from informers.errors import BadRequestError, SelectorError
from informers.selectors import FieldSelector, LabelSelector
from informers.store.types import Json, ResourceType, Stored


@dataclass(frozen=True, slots=True)
class Selection:
    """A predicate over the objects of one resource."""

    namespace: str
    labels: LabelSelector
    fields: FieldSelector

    @classmethod
    def parse(
        cls, resource: ResourceType, namespace: str | None, label_selector: str | None, field_selector: str | None
    ) -> "Selection":
        """Raises `BadRequestError` on bad syntax and on a field that `resource` does not select by."""
        try:
            labels = LabelSelector.parse(label_selector or "")
        except SelectorError as error:
            raise BadRequestError(f"unable to parse requirement: {error}") from error
        try:
            fields = FieldSelector.parse(field_selector or "")
        except SelectorError as error:
            raise BadRequestError(f"invalid selector: {error}") from error
        unknown = fields.fields - {"metadata.name", "metadata.namespace", *resource.fields}
        if unknown:
            raise BadRequestError(f"field label not supported: {min(unknown)}")
        return cls(namespace or "", labels, fields)

    @property
    def selective(self) -> bool:
        return not (self.labels.empty and self.fields.empty)

    def matches(self, stored: Stored) -> bool:
        if self.namespace and stored.key.namespace != self.namespace:
            return False
        if not self.labels.matches(stored.object["metadata"].get("labels")):
            return False
        return self.fields.matches(stored.object)


@dataclass(frozen=True, slots=True)
class Listing:
    """The answer to a list: items in key order, the version they show, and how to go on."""

    items: list[Stored]
    version: int
    continue_: str = ""
    remaining: int | None = None
    """How many objects follow; None when there are none or a selector makes it unknown."""


def encode_continue(version: int, start: str) -> str:
    token: Json = {"v": "meta.k8s.io/v1", "rv": version, "start": start}
    return base64.urlsafe_b64encode(orjson.dumps(token)).decode().rstrip("=")


def decode_continue(token: str) -> tuple[int, str]:
    """(version, first path) of a continue token; a version of -1 means the newest. Raises `BadRequestError`."""
    try:
        decoded = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        version, start = decoded["rv"], decoded["start"]
    except (binascii.Error, ValueError, KeyError, TypeError) as error:
        raise BadRequestError(f"invalid continue token: continue key is not valid: {error}") from error
    if not isinstance(version, int) or not isinstance(start, str) or decoded.get("v") != "meta.k8s.io/v1":
        raise BadRequestError("invalid continue token: continue key is not valid: encoded version not recognized")
    return version, start
