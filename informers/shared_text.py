"""One string for many equal ones: of a kind's namespaces, or of a field's values, there are few in many objects.

Not `sys.intern`: what it is given is kept for ever on Python 3.12 and on free-threaded builds, and these are texts of
users, which never stop coming.
"""

from __future__ import annotations

__all__ = ["SharedText"]

_MOST = 10_000


class SharedText(dict[str, str]):
    """``shared[text]`` is the first string equal to it. Forgets all of them when they become too many. Thread-safe."""

    __slots__ = ()

    def __missing__(self, text: str) -> str:
        if len(self) >= _MOST:
            self.clear()
        self[text] = text
        return text
