"""Read-only views of decoded JSON: what an `Object` hands out in place of dicts and lists.

A cached object is shared by every reader, so nothing in it may change. A view wraps the decoded dict or list without
copying it, and wraps what it hands out in turn. Views are equal to plain dicts and lists of the same content; `thaw`
gives a plain copy to change.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, Mapping, Sequence
from typing import Any, overload

__all__ = ["ListView", "MappingView", "plain", "thaw", "view"]


def view(value: Any) -> Any:
    """Wrap a decoded value: dicts and lists in views, everything else as it is. The caller gives the value up."""
    kind = type(value)
    if kind is dict:
        return MappingView(value)
    if kind is list:
        return ListView(value)
    return value


def thaw(value: Any) -> Any:
    """Give a fresh plain copy (dicts, lists, scalars) of a view or of any mapping or sequence that may hold views."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list | tuple | ListView):
        return [thaw(item) for item in value]
    return value


def plain(value: Any) -> Any:
    """Encoder hook: what a JSON encoder of plain data needs to know of views."""
    if isinstance(value, MappingView | ListView):
        return value._data  # the module's own classes; the encoder only reads it
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


class MappingView(Mapping[str, Any]):
    """A read-only mapping over a decoded JSON object. Equal to any mapping of the same content; not hashable."""

    __slots__ = ("_data",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getitem__(self, key: str) -> Any:
        value = self._data[key]
        kind = type(value)
        return value if kind is str else view(value)

    def get(self, key: str, default: Any = None) -> Any:
        """As `dict.get`."""
        return view(self._data[key]) if key in self._data else default

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def keys(self) -> KeysView[str]:
        """As `dict.keys`."""
        return self._data.keys()

    def items(self) -> ItemsView[str, Any]:
        """As `dict.items`; the values are views."""
        return ItemsView(self)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, MappingView):
            return self._data == other._data
        if isinstance(other, dict):
            return self._data == other or _equal(self._data, other)
        return _equal(self._data, other) if isinstance(other, Mapping) else NotImplemented

    def __repr__(self) -> str:
        return repr(self._data)

    def __copy__(self) -> MappingView:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        copied: dict[str, Any] = thaw(self)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return (MappingView, (self._data,))

    def to_dict(self) -> dict[str, Any]:
        """Give a fresh plain dict, to be changed at will."""
        copied: dict[str, Any] = thaw(self)
        return copied


class ListView(Sequence[Any]):
    """A read-only sequence over a decoded JSON array. Equal to a list of the same content; not hashable."""

    __slots__ = ("_data",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, data: list[Any]) -> None:
        self._data = data

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> ListView: ...
    def __getitem__(self, index: int | slice) -> Any:
        return view(self._data[index])

    def __iter__(self) -> Iterator[Any]:
        return map(view, self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, item: object) -> bool:
        return any(view(own) == item for own in self._data)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ListView):
            return self._data == other._data
        if isinstance(other, list):
            return self._data == other or _equal(self._data, other)
        return NotImplemented

    def __add__(self, other: Sequence[Any]) -> list[Any]:
        """Concatenation gives a fresh plain list."""
        return [*self.to_list(), *other]

    def __radd__(self, other: Sequence[Any]) -> list[Any]:
        return [*other, *self.to_list()]

    def __repr__(self) -> str:
        return repr(self._data)

    def __copy__(self) -> ListView:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        copied: list[Any] = thaw(self)
        return copied

    def __reduce__(self) -> tuple[Any, ...]:
        return (ListView, (self._data,))

    def to_list(self) -> list[Any]:
        """Give a fresh plain list, to be changed at will."""
        copied: list[Any] = thaw(self)
        return copied


def _equal(own: Any, other: Any) -> bool:
    """Compare decoded data with data in which views and other mappings may stand for dicts."""
    if isinstance(own, dict) and isinstance(other, Mapping):
        return own.keys() == other.keys() and all(_equal(value, other[key]) for key, value in own.items())
    if isinstance(own, list) and isinstance(other, list | ListView):
        return len(own) == len(other) and all(map(_equal, own, other))
    return bool(own == other)
