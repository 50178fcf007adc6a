"""Label and field selectors: parsed once, matched often, printed in canonical form.

`LabelSelector` has the whole syntax of Kubernetes (``a=b``, ``a!=b``, ``a in (b,c)``, ``a notin (b)``, ``a``, ``!a``,
``a>1``, ``a<1``, joined by commas) and the structured form of specs (matchLabels, matchExpressions). `FieldSelector`
has the small syntax that API servers know (``metadata.name=x,spec.nodeName!=y``). Both are immutable values.
Reference for the grammar and its corner cases: Kubernetes API concepts, "Labels and Selectors" and "Field Selectors".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from informers.errors import SelectorError

__all__ = ["FieldRequirement", "FieldSelector", "LabelRequirement", "LabelSelector"]

LabelOperator = Literal["in", "notin", "exists", "!", ">", "<"]

_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?\Z")
_LABEL_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_LABEL_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_TOKEN = re.compile(r"\s*(==|!=|[=!<>(),]|[^\s=!<>(),]+)")
_SYMBOLS = frozenset({"==", "!=", "=", "!", "<", ">", "(", ")", ","})
_EXPRESSION_OPERATORS: Mapping[str, LabelOperator] = {
    "In": "in",
    "NotIn": "notin",
    "Exists": "exists",
    "DoesNotExist": "!",
}


def _check_key(key: str) -> None:
    prefix, slash, name = key.rpartition("/")
    if slash and (not _LABEL_PREFIX.match(prefix) or len(prefix) > 253):
        raise SelectorError(f"label key {key!r}: the part before the slash is not a DNS name")
    if not _LABEL_NAME.match(name):
        raise SelectorError(
            f"label key {key!r}: the name must have 1 to 63 letters, digits, '-', '_' or '.', alphanumeric at both ends"
        )


def _check_value(key: str, value: object) -> None:
    if not isinstance(value, str) or not _LABEL_VALUE.match(value):
        raise SelectorError(
            f"value {value!r} of label {key!r}: at most 63 letters, digits, '-', '_' or '.', alphanumeric at both ends"
        )


def _integer(text: str) -> int | None:
    """Read a 64 bit integer as the API server does: ASCII digits with an optional sign, nothing else."""
    if not re.fullmatch(r"[+-]?[0-9]+", text):
        return None
    number = int(text) if len(text) <= 20 else 1 << 64
    return number if -(1 << 63) <= number < 1 << 63 else None


@dataclass(frozen=True, slots=True)
class LabelRequirement:
    """One condition on one label. Construct it through `LabelSelector`, which checks it."""

    key: str
    operator: LabelOperator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels fulfil the condition. ``notin`` also holds where the label is absent."""
        value = labels.get(self.key)
        match self.operator:
            case "in":
                return value is not None and value in self.values
            case "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        number, limit = _integer(value or ""), _integer(next(iter(self.values)))
        if number is None or limit is None:
            return False
        return number > limit if self.operator == ">" else number < limit

    def __str__(self) -> str:
        match self.operator:
            case "exists":
                return self.key
            case "!":
                return f"!{self.key}"
            case "in" | "notin" if len(self.values) == 1:
                return f"{self.key}{'=' if self.operator == 'in' else '!='}{next(iter(self.values))}"
            case "in" | "notin":
                return f"{self.key} {self.operator} ({','.join(sorted(self.values))})"
        return f"{self.key}{self.operator}{next(iter(self.values))}"


def _requirement(key: str, operator: LabelOperator, values: Iterable[str] = ()) -> LabelRequirement:
    _check_key(key)
    kept = frozenset(values)
    for value in kept:
        _check_value(key, value)
    if operator in (">", "<") and _integer(next(iter(kept))) is None:
        raise SelectorError(f"label {key!r}: {operator} needs an integer, not {next(iter(kept))!r}")
    return LabelRequirement(key, operator, kept)


@dataclass(frozen=True, slots=True)
class LabelSelector:
    """A conjunction of conditions on labels. Without any it matches everything; `nothing()` matches nothing.

    ``str(selector)`` is what the API server takes; equal selectors print alike (conditions sorted by key).
    """

    requirements: tuple[LabelRequirement, ...] = ()
    impossible: bool = False

    @classmethod
    def parse(cls, text: str) -> LabelSelector:
        """Read the text form. Raises SelectorError, which shows the text and what was expected in it."""
        try:
            return cls(_sorted(_Parser(text).requirements()))
        except SelectorError as error:
            raise SelectorError(f"label selector {text!r}: {error}") from None

    @classmethod
    def from_dict(cls, selector: Mapping[str, Any] | None) -> LabelSelector:
        """Read the structured form: a mapping with matchLabels and matchExpressions, both optional.

        An empty mapping matches everything, None nothing (as in every Kubernetes API that has such a member).
        """
        if selector is None:
            return cls.nothing()
        found = [_requirement(key, "in", [value]) for key, value in (selector.get("matchLabels") or {}).items()]
        found += [_expression(expression) for expression in selector.get("matchExpressions") or ()]
        return cls(_sorted(found))

    @classmethod
    def nothing(cls) -> LabelSelector:
        """The selector that matches no object at all. It has no text form that an API server would take."""
        return cls((), impossible=True)

    @property
    def empty(self) -> bool:
        """Whether every set of labels matches."""
        return not self.requirements and not self.impossible

    def matches(self, labels: Mapping[str, str] | None) -> bool:
        """Whether an object with these labels is selected. None stands for no labels."""
        if self.impossible:
            return False
        labels = labels or {}
        return all(requirement.matches(labels) for requirement in self.requirements)

    def __str__(self) -> str:
        return "<nothing>" if self.impossible else ",".join(map(str, self.requirements))


def _sorted(requirements: Iterable[LabelRequirement]) -> tuple[LabelRequirement, ...]:
    return tuple(sorted(set(requirements), key=lambda one: (one.key, one.operator, sorted(one.values))))


def _expression(expression: Mapping[str, Any]) -> LabelRequirement:
    key, name, values = expression.get("key"), expression.get("operator"), expression.get("values") or ()
    operator = _EXPRESSION_OPERATORS.get(name) if isinstance(name, str) else None
    if not isinstance(key, str) or operator is None:
        raise SelectorError(f"{dict(expression)!r}: key and operator (In, NotIn, Exists, DoesNotExist) are needed")
    if operator in ("in", "notin") and not values:
        raise SelectorError(f"label {key!r}: {name} needs values")
    if operator in ("exists", "!") and values:
        raise SelectorError(f"label {key!r}: {name} takes no values")
    return _requirement(key, operator, values)


class _Parser:
    """Recursive descent over the tokens of a label selector; a symbol is never part of a word."""

    def __init__(self, text: str) -> None:
        self._tokens = list(self._split(text))
        self._at = 0

    @staticmethod
    def _split(text: str) -> Iterator[str]:
        at, text = 0, text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:  # cannot happen: every character is a symbol, a blank or part of a word
                raise SelectorError(f"cannot read {text[at:]!r}")
            yield match.group(1)
            at = match.end()

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _next(self) -> str:
        token = self._peek()
        self._at += 1
        return token

    def _word(self, what: str) -> str:
        token = self._next()
        if not token or token in _SYMBOLS:
            raise SelectorError(f"expected {what}, found {token or 'the end'!r}")
        return token

    def requirements(self) -> list[LabelRequirement]:
        found: list[LabelRequirement] = []
        while self._peek():
            found.append(self._one())
            separator = self._next()
            if separator not in (",", ""):
                raise SelectorError(f"expected ',' or the end, found {separator!r}")
            if separator == "," and not self._peek():
                raise SelectorError("expected a label key after ',', found the end")
        return found

    def _one(self) -> LabelRequirement:
        if self._peek() == "!":
            self._next()
            return _requirement(self._word("a label key after '!'"), "!")
        key = self._word("a label key")
        operator = self._peek()
        if operator in ("", ","):
            return _requirement(key, "exists")
        self._next()
        if operator in ("=", "=="):
            return _requirement(key, "in", [self._value()])
        if operator == "!=":
            return _requirement(key, "notin", [self._value()])
        if operator in ("<", ">"):
            return _requirement(key, "<" if operator == "<" else ">", [self._word("an integer")])
        if operator in ("in", "notin"):
            return _requirement(key, "in" if operator == "in" else "notin", self._values())
        raise SelectorError(f"expected an operator after {key!r}, found {operator!r}")

    def _value(self) -> str:
        """A value may be missing: ``a=`` selects the empty one."""
        return "" if self._peek() in ("", ",") else self._word("a value")

    def _values(self) -> list[str]:
        if self._next() != "(":
            raise SelectorError("expected '(' after in or notin")
        values: list[str] = []
        while True:
            values.append("" if self._peek() in (",", ")") else self._word("a value"))
            token = self._next()
            if token == ")":
                return values
            if token != ",":
                raise SelectorError(f"expected ',' or ')', found {token or 'the end'!r}")


@dataclass(frozen=True, slots=True)
class FieldRequirement:
    """One condition on one field, a dotted path into the object: equal (or not) to a text."""

    field: str
    value: str
    equal: bool = True

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Whether the object fulfils the condition. A missing field counts as the empty text."""
        return (field_text(obj, self.field) == self.value) is self.equal

    def __str__(self) -> str:
        escaped = re.sub(r"([\\,=])", r"\\\1", self.value)
        return f"{self.field}{'=' if self.equal else '!='}{escaped}"


@dataclass(frozen=True, slots=True)
class FieldSelector:
    """A conjunction of conditions on fields. Which fields a resource supports is the server's business (`fields`)."""

    requirements: tuple[FieldRequirement, ...] = ()

    @classmethod
    def parse(cls, text: str) -> FieldSelector:
        r"""Read ``field=value``, ``==`` or ``!=``, joined by commas; ``\,``, ``\=`` and ``\\`` are escapes in a value.

        Raises SelectorError, which shows the text and the part that does not parse.
        """
        try:
            found = [_field_term(term) for term in _unescaped_split(text) if term.strip()]
        except SelectorError as error:
            raise SelectorError(f"field selector {text!r}: {error}") from None
        return cls(tuple(sorted(set(found), key=lambda one: (one.field, one.equal, one.value))))

    @property
    def empty(self) -> bool:
        """Whether every object matches."""
        return not self.requirements

    @property
    def fields(self) -> frozenset[str]:
        """The fields that the conditions name, so that a server can refuse those it does not support."""
        return frozenset(requirement.field for requirement in self.requirements)

    def exact(self, field: str) -> str | None:
        """The value that this field must have, if the selector demands one (``metadata.name=x`` gives ``x``)."""
        for requirement in self.requirements:
            if requirement.field == field and requirement.equal:
                return requirement.value
        return None

    def matches(self, obj: Mapping[str, Any]) -> bool:
        """Whether the object (a plain mapping or an `Object`) is selected."""
        return all(requirement.matches(obj) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def field_text(obj: Mapping[str, Any], path: str) -> str:
    """The text of the field at a dotted path, as API servers compare it: absent is empty, booleans in lower case."""
    value: Any = obj
    for name in path.split("."):
        if not isinstance(value, Mapping):
            return ""
        value = value.get(name)
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _unescaped_split(text: str) -> list[str]:
    """Split at commas that are not escaped; escapes are kept for the value's own reading."""
    return re.findall(r"((?:\\.|[^,\\]|\\\Z)*)(?:,|\Z)", text, re.DOTALL)


def _field_term(term: str) -> FieldRequirement:
    match = re.match(r"\s*([^=!\\]+?)(==|!=|=)(.*)\Z", term, re.DOTALL)
    if match is None:
        raise SelectorError(f"expected field=value or field!=value, found {term.strip()!r}")
    field, operator, value = match.groups()
    if re.search(r"(?<!\\)(?:\\\\)*=", value):
        raise SelectorError(f"{term.strip()!r} has an '=' in its value that is not escaped")
    if re.sub(r"\\[\\,=]", "", value).count("\\"):
        raise SelectorError(f"{term.strip()!r} has a backslash that escapes neither ',' nor '=' nor itself")
    return FieldRequirement(field.strip(), re.sub(r"\\([\\,=])", r"\1", value), operator != "!=")
