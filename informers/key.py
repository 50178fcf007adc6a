"""The name of an object inside one resource: its namespace and its own name.

Everything that refers to an object without holding it (queues, indices, tombstones, errors, log lines) does so by an
`ObjectKey`. The text form is client-go's: ``namespace/name``, or ``name`` alone for what lives outside namespaces.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["ObjectKey", "as_key"]


class ObjectKey(NamedTuple):
    """Namespace and name; the namespace of cluster scoped objects is empty. Hashable, ordered, equal to a tuple."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> ObjectKey:
        """Read ``namespace/name`` or ``name``; the reverse of ``str(key)``.

        Raises ValueError on more than one slash, an empty name, or an empty namespace before a slash.
        """
        namespace, slash, name = text.partition("/")
        if not slash:
            namespace, name = "", namespace
        elif not namespace:
            raise ValueError(f"object key {text!r} has an empty namespace before the slash")
        if "/" in name:
            raise ValueError(f"object key {text!r} has more than one slash")
        if not name:
            raise ValueError(f"object key {text!r} has an empty name")
        return cls(namespace, name)


def as_key(key: ObjectKey | str) -> ObjectKey:
    """Give an `ObjectKey` for a key in either of its forms. Raises ValueError as `ObjectKey.parse` does."""
    return ObjectKey.parse(key) if isinstance(key, str) else key
