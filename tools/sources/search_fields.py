"""What an index of Elasticsearch or OpenSearch can look for without passing over a document that holds it.

Documents are indexed as their mapping says, so a clause is given only where that is certain: for fields whose words
are parted and lowered as usual, or kept whole, and where no document holds a field that the index does not know.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from opsleuth.tools.sources.prefilter import FOLDED, can_look_for

Clause = Mapping[str, Any]
Document = Mapping[str, Any]

_WORD = re.compile(r"_*[a-z0-9][a-z0-9_]*")
_TEXTS = ("text", "match_only_text")
# Longer words are parted anywhere (`max_token_length` of the standard tokenizer); names of pods are never as long.
_LONGEST_WORD, _LONGEST_NAME = 255, 253
_ODD = f".*[{FOLDED}].*"


class Unsure(Exception):
    """The index may hold what it cannot find."""


class Indices:
    """The indices behind a pattern, as `GET /{index}` describes them."""

    def __init__(self, described: Document) -> None:
        self._described = [one for one in described.values() if isinstance(one, Mapping)]

    def of_service(self, names: Sequence[str], fields: Iterable[str]) -> Clause:
        """Every document in which one of the fields is one of the names. Raises Unsure."""
        clauses = []
        for field in self._mapped(fields, lambda kind: _holds(kind, max(map(len, names), default=0))):
            clauses += [{"match": {field: {"query": n, "operator": "and", "zero_terms_query": "all"}}} for n in names]  # fmt: skip
        return _any(clauses)

    def with_text(self, text: str, messages: Sequence[str], pods: Sequence[str]) -> Clause:
        """Every document with the text, in any case, in one of the fields, or without a message of its own. Raises Unsure."""
        words = _WORD.findall(text.lower())
        if not can_look_for(text) or not words or any(_tokens_are_changed(one) for one in self._described):
            raise Unsure
        fields = [*self._mapped(messages, _is_found), *self._mapped(pods, _is_found_name)]
        known = [{"exists": {"field": field}} for field in messages]
        return _any([*(self._holding(field, text, words) for field in fields), {"bool": {"must_not": known}}])

    def _holding(self, field: str, text: str, words: Sequence[str]) -> Clause:
        whole = {"wildcard": {field: {"value": f"*{_as_it_is(text)}*", "case_insensitive": True}}}
        parted = {"bool": {"filter": [{"wildcard": {field: {"value": f"*{word}*"}}} for word in words]}}
        kinds = {kind["type"] in _TEXTS for kind in self._kinds(field)}
        odd = {"regexp": {field: {"value": f"{_ODD}|.{{{_LONGEST_WORD}}}"}}}
        return _any([*([parted] if True in kinds else []), *([whole] if False in kinds else []), odd])

    def _mapped(self, fields: Iterable[str], fits: Any) -> Sequence[str]:  # noqa: ANN401 - of a mapping to bool
        """Those of the fields that any document has. Raises Unsure where one does not fit."""
        found = {field: self._kinds(field) for field in fields}
        if not all(fits(kind) for kinds in found.values() for kind in kinds):
            raise Unsure
        return [field for field, kinds in found.items() if kinds]

    def _kinds(self, field: str) -> Sequence[Document]:
        kinds = (_kind_of(one.get("mappings"), field) for one in self._described)
        return [kind for kind in kinds if kind is not None]


def _kind_of(mapping: Any, field: str) -> Document | None:  # noqa: ANN401 - any JSON value
    """How the field is indexed; None where no document has it. Raises Unsure where documents may have it unseen."""
    if not isinstance(mapping, Mapping) or field in mapping.get("runtime", {}) or "subobjects" in mapping:
        raise Unsure
    here: Document = mapping
    for part in field.split("."):
        if (
            here.get("enabled") is False or "type" in here
        ):  # objects kept unseen, nested, flattened, or with parts
            raise Unsure
        known = here.get("properties", {})
        if part not in known:
            if str(here.get("dynamic", mapping.get("dynamic", True))).lower() not in ("true", "strict"):
                raise Unsure
            return None
        here = known[part]
    if "properties" in here or here.get("index") is False or "type" not in here:
        raise Unsure
    return here


def _holds(kind: Document, size: int) -> bool:
    """Whether a value of `size` characters is found by itself, however it is analysed."""
    whole = kind["type"] == "keyword" and int(kind.get("ignore_above", size)) >= size
    return whole or (kind["type"] in _TEXTS and "search_analyzer" not in kind)


def _is_found(kind: Document) -> bool:
    """Whether any part of any value is found."""
    if kind["type"] in _TEXTS:
        return bool(kind.get("analyzer", "standard") == "standard")
    return kind["type"] == "keyword" and not kind.keys() & {"ignore_above", "normalizer"}


def _is_found_name(kind: Document) -> bool:
    short = kind["type"] == "keyword" and int(kind.get("ignore_above", _LONGEST_NAME)) >= _LONGEST_NAME
    return _is_found(kind) or (short and "normalizer" not in kind)


def _tokens_are_changed(described: Document) -> bool:
    index = (described.get("settings") or {}).get("index") or {}
    return "default" in ((index.get("analysis") or {}).get("analyzer") or {}) or "mapping" in index


def _as_it_is(text: str) -> str:
    return re.sub(r"[*?\\]", lambda found: f"\\{found[0]}", text)


def _any(clauses: Sequence[Clause]) -> Clause:
    return {"bool": {"should": list(clauses), "minimum_should_match": 1}} if clauses else {"match_none": {}}
