"""The part of Kubernetes' JSONPath that printer columns and selectable fields use.

`.a.b`, `['a.b']`, `.a\\.b`, `[0]`, `[-1]`, `[*]`, and filters `[?(@.type=="Ready")]` with == and !=.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

_STEP = re.compile(
    r"""\.?\[\?\(\s*@\.(?P<filter>[\w.\\/-]+)\s*(?P<op>==|!=)\s*(?P<quote>["']?)(?P<value>.*?)(?P=quote)\s*\)\]
      |\.?\[(?P<q>["'])(?P<quoted>.*?)(?P=q)\]
      |\.?\[(?P<index>-?\d+|\*)\]
      |\.(?P<name>(?:\\.|[^.\[\]\\])+)""",
    re.VERBOSE,
)

Step = Callable[[Any], Iterator[Any]]


class JSONPath:
    """A compiled path. `find` gives every value it leads to, in order; what is absent leads nowhere."""

    def __init__(self, text: str) -> None:
        """Raises ValueError, with the part that does not parse."""
        self.text = text
        self._steps: list[Step] = []
        path, position = text.strip().removeprefix("{").removesuffix("}").removeprefix("$"), 0
        if path and path[0] not in ".[":
            path = "." + path
        while position < len(path):
            match = _STEP.match(path, position)
            if match is None:
                raise ValueError(f"unsupported JSONPath {text!r} at {path[position:]!r}")
            self._steps.append(_step(match))
            position = match.end()

    def find(self, value: Any) -> list[Any]:
        found = [value]
        for step in self._steps:
            found = [child for each in found for child in step(each)]
        return found


def _step(match: re.Match[str]) -> Step:
    if match["filter"]:
        inner, negated = JSONPath("." + match["filter"]), match["op"] == "!="
        wanted = match["value"]
        return lambda value: (
            item for item in _elements(value) if any(_text(each) == wanted for each in inner.find(item)) is not negated
        )
    if match["index"] == "*":
        return _elements
    if match["index"]:
        index = int(match["index"])
        return lambda value: iter(value[index:][:1]) if isinstance(value, list) else iter(())
    name = match["quoted"] if match["quoted"] is not None else re.sub(r"\\(.)", r"\1", match["name"])
    return lambda value: iter([value[name]] if isinstance(value, dict) and name in value else [])


def _elements(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        return iter(value)
    return iter(value.values()) if isinstance(value, dict) else iter(())


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
