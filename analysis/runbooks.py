"""Runbooks: what people wrote down for a case like this one, and which of them fit an alert.

A runbook is a Markdown file. Front matter between two lines `---` may name `services`, `labels` and `alerts`; without it
the title alone says what it is for. What front matter names must hold, or the runbook is for something else.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from opsleuth.analysis.records import Runbook

_FRONT = re.compile(r"\A---[ \t]*\n(.*?)\n---[ \t]*(?:\n|\Z)", re.DOTALL)
_ENTRY = re.compile(r"^(\s*)(?:- )?\s*([\w./-]+)\s*:\s*(.*)$")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[\u3040-\u30ff\u4e00-\u9fff]+")
_EMPTY = frozenset(
    {"the", "is", "a", "an", "of", "to", "for", "in", "on", "and", "or", "runbook", "how", "what", "when"}
)
_LEAST_SHARE, _LEAST_WORDS = 0.6, 2


@dataclass(frozen=True, slots=True)
class RunbookQuery:
    """What a runbook is looked for: the alert's words, its service, and its labels by name."""

    text: str
    service: str | None = None
    labels: Mapping[str, str] | None = None


class RunbookMatch(NamedTuple):
    """A runbook that fits, how well (more is better), and by what."""

    runbook: Runbook
    weight: float
    why: str


def parse_runbook(name: str, text: str) -> Runbook:
    """The runbook in a file's text; front matter that cannot be read counts as none."""
    front = _FRONT.match(text)
    head, body = (front[1], text[front.end() :]) if front else ("", text)
    entries = _parse_front_matter(head)
    first = next((line for line in body.splitlines() if line.startswith("# ")), "")
    title = _entry_as_text(entries.get("title")) or first.lstrip("# ").strip() or name.removesuffix(".md")
    labels = entries.get("labels")
    return Runbook(
        name=name,
        title=title[:300],
        text=body.strip(),
        services=_entry_as_tuple(entries.get("services", entries.get("service"))),
        alerts=_entry_as_tuple(entries.get("alerts", entries.get("alert"))),
        labels=labels if isinstance(labels, dict) else {},
    )


def find_matching_runbooks(runbooks: Sequence[Runbook], subject: RunbookQuery) -> list[RunbookMatch]:
    """Those that fit, best first."""
    found = [match for runbook in runbooks if (match := _match_runbook(runbook, subject)) is not None]
    return sorted(found, key=lambda m: (-m.weight, m.runbook.name))


def _match_runbook(runbook: Runbook, subject: RunbookQuery) -> RunbookMatch | None:
    labels = subject.labels or {}
    reasons: list[tuple[float, str]] = []
    if runbook.labels:
        if any(labels.get(key) != value for key, value in runbook.labels.items()):
            return None
        named = ", ".join(f"{key}={value}" for key, value in runbook.labels.items())
        reasons.append((2.0 * len(runbook.labels), f"labels {named}"))
    if runbook.services:
        service = subject.service or ""
        if not any(service == s or service.endswith(f":{s}") for s in runbook.services):
            return None
        reasons.append((3.0, f"service {subject.service}"))
    if runbook.alerts:
        if not (
            hit := next(
                (a for a in runbook.alerts if a in (labels.get("alertname"), *subject.text.split())), ""
            )
        ):
            return None
        reasons.append((4.0, f"alert {hit}"))
    wanted, there = (
        _split_into_words(runbook.title),
        _split_into_words(f"{subject.text} {subject.service or ''}"),
    )
    shared = wanted & there
    if len(shared) >= max(_LEAST_WORDS, _LEAST_SHARE * len(wanted)):
        reasons.append((len(shared) / len(wanted), f"title: {' '.join(sorted(shared))}"))
    if not reasons:
        return None
    return RunbookMatch(runbook, sum(weight for weight, _ in reasons), "; ".join(why for _, why in reasons))


def _split_into_words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)} - _EMPTY


Entry = str | list[str] | dict[str, str]


def _parse_front_matter(head: str) -> dict[str, Entry]:
    """The part of YAML that front matter uses: names with a text, a list or a flat table, indented or inline."""
    found: dict[str, Entry] = {}
    last = ""
    for line in head.splitlines():
        entry = _ENTRY.match(line)
        if entry and not entry[1]:
            last = entry[2]
            found[last] = _parse_front_matter_value(entry[3])
        elif last and line.strip().startswith("- "):
            held = found[last]
            found[last] = [*(held if isinstance(held, list) else []), _unquote_scalar(line.strip()[2:])]
        elif last and entry:
            held = found[last]
            found[last] = {**(held if isinstance(held, dict) else {}), entry[2]: _unquote_scalar(entry[3])}
    return found


def _parse_front_matter_value(text: str) -> Entry:
    text = text.strip()
    if text.startswith("[") and text.endswith("]"):
        return [_unquote_scalar(part) for part in text[1:-1].split(",") if part.strip()]
    if text.startswith("{") and text.endswith("}"):
        pairs = (part.partition(":") for part in text[1:-1].split(",") if ":" in part)
        return {_unquote_scalar(key): _unquote_scalar(value) for key, _, value in pairs}
    return _unquote_scalar(text)


def _unquote_scalar(text: str) -> str:
    text = text.strip()
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text.partition(" #")[0].strip()


def _entry_as_text(entry: Entry | None) -> str:
    return entry if isinstance(entry, str) else ""


def _entry_as_tuple(entry: Entry | None) -> tuple[str, ...]:
    if isinstance(entry, str):
        return (entry,) if entry else ()
    return tuple(entry or ())
