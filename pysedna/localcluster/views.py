"""How answers look: whole objects, their metadata alone, or tables, as the request's Accept header asks.

Whole objects are serialised once for all readers (`Stored.raw`); so are metadata; tables hold ages and are made afresh.
"""

from dataclasses import dataclass
from typing import Literal

import orjson

from informers.errors import BadRequestError, NotAcceptableError
from informers.store import Json, Listing, Stored
from pysedna.localcluster import tables
from pysedna.localcluster.kinds import Kind

Form = Literal["object", "metadata", "table"]
_AS: dict[str, Form] = {"Table": "table", "PartialObjectMetadata": "metadata", "PartialObjectMetadataList": "metadata"}


def negotiate(accept: str) -> Form:
    """The first form in an Accept header that is served; raises 406."""
    for choice in (accept or "*/*").split(","):
        media, *parameters = (part.strip() for part in choice.split(";"))
        options = dict(part.split("=", 1) for part in parameters if "=" in part)
        if media not in ("*/*", "application/*", "application/json"):
            continue
        wanted = options.get("as")
        if wanted is None:
            return "object"
        if wanted in _AS and options.get("v") == "v1" and options.get("g") == "meta.k8s.io":
            return _AS[wanted]
    raise NotAcceptableError("406: Not Acceptable\n\nAvailable representations: application/json", details={})


@dataclass(frozen=True, slots=True)
class View:
    """A kind in a form."""

    kind: Kind
    form: Form = "object"
    rows_hold: str = "Metadata"

    def __post_init__(self) -> None:
        if self.rows_hold not in ("Metadata", "Object", "None"):
            text = f"includeObject: Invalid value: \"{self.rows_hold}\": must be 'Metadata', 'Object', 'None', or empty"
            raise BadRequestError(f"Unable to convert to Table as requested: {text}")

    def one(self, stored: Stored) -> bytes:
        """The body that shows one object."""
        if self.form == "table":
            return self._table([stored], {"resourceVersion": str(stored.version)})
        return self._rendered(stored)

    def many(self, listing: Listing) -> bytes:
        """The body that shows a list."""
        metadata: Json = {"resourceVersion": str(listing.version)}
        if listing.continue_:
            metadata["continue"] = listing.continue_
        if listing.remaining is not None:
            metadata["remainingItemCount"] = listing.remaining
        if self.form == "table":
            return self._table(listing.items, metadata)
        kind, version = self.kind.list_kind, self.kind.api_version
        if self.form == "metadata":
            kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
        head = orjson.dumps({"kind": kind, "apiVersion": version, "metadata": metadata})
        return head[:-1] + b',"items":[' + b",".join(map(self._item, listing.items)) + b"]}"

    def line(self, type: str, stored: Stored, *, first: bool) -> bytes:
        """A line of a watch. Tables repeat their columns in the first one only."""
        if self.form == "table":
            shown = [] if type == "BOOKMARK" else [stored]
            body = self._table(shown, {"resourceVersion": str(stored.version)}, with_headings=first)
        else:
            body = self._rendered(stored)
        return b'{"type":"' + type.encode() + b'","object":' + body + b"}\n"

    def _item(self, stored: Stored) -> bytes:
        """An object inside a list; built-in kinds leave out there what the list's own kind says."""
        if self.form == "metadata" or self.kind.custom is not None:
            return self._rendered(stored)
        resource = self.kind.resource
        known = f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}",'.encode()  # the store puts it first
        return b"{" + stored.raw.removeprefix(known) if stored.raw.startswith(known) else stored.raw

    def _rendered(self, stored: Stored) -> bytes:
        if self.form == "metadata":
            return stored.rendered("metadata", lambda each: orjson.dumps(tables.partial(each.object)))
        version = self.kind.api_version
        if stored.object["apiVersion"] == version:
            return stored.raw
        return stored.rendered(version, lambda each: orjson.dumps({**each.object, "apiVersion": version}))

    def _table(self, items: list[Stored], metadata: Json, *, with_headings: bool = True) -> bytes:
        version = self.kind.api_version
        objects = [{**stored.object, "apiVersion": version} for stored in items]
        table = tables.table(self.kind, objects, metadata, rows_hold=self.rows_hold, with_headings=with_headings)
        return orjson.dumps(table)


def error_line(status: Json) -> bytes:
    """The ERROR event that ends a watch."""
    return orjson.dumps({"type": "ERROR", "object": status}) + b"\n"
