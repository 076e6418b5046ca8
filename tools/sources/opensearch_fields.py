"""What an index of Elasticsearch or OpenSearch can look for without passing over a document that holds it.

Documents are indexed as their mapping says, so a clause is given only where that is certain: for fields whose words
are parted and lowered as usual, or kept whole, and where no document holds a field that the index does not know.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from opsleuth.state.errors import OpsleuthError
from opsleuth.state.json_types import JSON
from opsleuth.state.run_status import ExitCode
from opsleuth.tools.sources.line_prefilter import FOLDED, can_prefilter

Clause = Mapping[str, Any]
Document = Mapping[str, Any]

_WORD = re.compile(r"_*[a-z0-9][a-z0-9_]*")
_TEXTS = ("text", "match_only_text")
# Longer words are parted anywhere (`max_token_length` of the standard tokenizer); names of pods are never as long.
_LONGEST_WORD, _LONGEST_NAME = 255, 253
_ODD = f".*[{FOLDED}].*"


class UncertainMappingError(OpsleuthError):
    """The index may hold what it cannot find."""

    exit_code = ExitCode.UNREACHABLE


class IndexMappings:
    """The indices behind a pattern, as `GET /{index}` describes them."""

    def __init__(self, described: Document) -> None:
        self._described = [one for one in described.values() if isinstance(one, Mapping)]

    def of_service(self, names: Sequence[str], fields: Iterable[str]) -> Clause:
        """Every document in which one of the fields is one of the names. Raises UncertainMappingError."""
        clauses = []
        for field in self._mapped(
            fields, lambda kind: _finds_whole_value(kind, max(map(len, names), default=0))
        ):
            clauses += [{"match": {field: {"query": n, "operator": "and", "zero_terms_query": "all"}}} for n in names]  # fmt: skip
        return _match_any_clause(clauses)

    def with_text(self, text: str, messages: Sequence[str], pods: Sequence[str]) -> Clause:
        """Every document with the text, in any case, in one of the fields, or without a message of its own. Raises UncertainMappingError."""
        words = _WORD.findall(text.lower())
        if not can_prefilter(text) or not words or any(_tokens_are_changed(one) for one in self._described):
            raise UncertainMappingError
        fields = [*self._mapped(messages, _finds_any_part), *self._mapped(pods, _finds_any_name_part)]
        known = [{"exists": {"field": field}} for field in messages]
        return _match_any_clause(
            [*(self._holding(field, text, words) for field in fields), {"bool": {"must_not": known}}]
        )

    def _holding(self, field: str, text: str, words: Sequence[str]) -> Clause:
        whole = {"wildcard": {field: {"value": f"*{_escape_wildcards(text)}*", "case_insensitive": True}}}
        parted = {"bool": {"filter": [{"wildcard": {field: {"value": f"*{word}*"}}} for word in words]}}
        kinds = {kind["type"] in _TEXTS for kind in self._kinds(field)}
        odd = {"regexp": {field: {"value": f"{_ODD}|.{{{_LONGEST_WORD}}}"}}}
        return _match_any_clause(
            [*([parted] if True in kinds else []), *([whole] if False in kinds else []), odd]
        )

    def _mapped(self, fields: Iterable[str], fits: Callable[[Document], bool]) -> Sequence[str]:
        """Those of the fields that any document has. Raises UncertainMappingError where one does not fit."""
        found = {field: self._kinds(field) for field in fields}
        if not all(fits(kind) for kinds in found.values() for kind in kinds):
            raise UncertainMappingError
        return [field for field, kinds in found.items() if kinds]

    def _kinds(self, field: str) -> Sequence[Document]:
        kinds = (_field_mapping(one.get("mappings"), field) for one in self._described)
        return [kind for kind in kinds if kind is not None]


def _field_mapping(mapping: JSON, field: str) -> Document | None:
    """How the field is indexed; None where no document has it. Raises UncertainMappingError where documents may have it unseen."""
    if not isinstance(mapping, Mapping) or field in mapping.get("runtime", {}) or "subobjects" in mapping:
        raise UncertainMappingError
    here: Document = mapping
    for part in field.split("."):
        if (
            here.get("enabled") is False or "type" in here
        ):  # objects kept unseen, nested, flattened, or with parts
            raise UncertainMappingError
        known = here.get("properties", {})
        if part not in known:
            if str(here.get("dynamic", mapping.get("dynamic", True))).lower() not in ("true", "strict"):
                raise UncertainMappingError
            return None
        here = known[part]
    if "properties" in here or here.get("index") is False or "type" not in here:
        raise UncertainMappingError
    return here


def _finds_whole_value(kind: Document, size: int) -> bool:
    """Whether a value of `size` characters is found by itself, however it is analysed."""
    whole = kind["type"] == "keyword" and int(kind.get("ignore_above", size)) >= size
    return whole or (kind["type"] in _TEXTS and "search_analyzer" not in kind)


def _finds_any_part(kind: Document) -> bool:
    """Whether any part of any value is found."""
    if kind["type"] in _TEXTS:
        return bool(kind.get("analyzer", "standard") == "standard")
    return kind["type"] == "keyword" and not kind.keys() & {"ignore_above", "normalizer"}


def _finds_any_name_part(kind: Document) -> bool:
    short = kind["type"] == "keyword" and int(kind.get("ignore_above", _LONGEST_NAME)) >= _LONGEST_NAME
    return _finds_any_part(kind) or (short and "normalizer" not in kind)


def _tokens_are_changed(described: Document) -> bool:
    index = (described.get("settings") or {}).get("index") or {}
    return "default" in ((index.get("analysis") or {}).get("analyzer") or {}) or "mapping" in index


def _escape_wildcards(text: str) -> str:
    return re.sub(r"[*?\\]", lambda found: f"\\{found[0]}", text)


def _match_any_clause(clauses: Sequence[Clause]) -> Clause:
    return {"bool": {"should": list(clauses), "minimum_should_match": 1}} if clauses else {"match_none": {}}
