"""Lines before they are read: parts that a container runtime cut are joined, objects over several lines and lists of them are taken apart."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from opsleuth.state.json_types import JSON

_CRI = re.compile(r"(\S+ (stdout|stderr) )P(?::\S*)? (.*)", re.DOTALL)
_CRI_END = re.compile(r"\S+ (stdout|stderr) F(?::\S*)? ?(.*)", re.DOTALL)
LONGEST_JOINED = 1_000_000
"""Characters that the parts of one line may have together."""
_SPACE = re.compile(r"[\s,\[\]]*")
_NAMES_OF_VALUES = ("stringValue", "intValue", "doubleValue", "boolValue")


def join_cri_parts(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a container runtime (CRI), those marked P with what follows on the same stream; the time is the first part's."""
    waiting: dict[str, list[str]] = {}
    for text in lines:
        if part := _CRI.fullmatch(text):
            held = waiting.setdefault(part[2], [f"{part[1]}F "])
            if sum(map(len, held)) < LONGEST_JOINED:
                held.append(part[3])
            continue
        end = _CRI_END.fullmatch(text)
        if end and end[1] in waiting:
            yield "".join((*waiting.pop(end[1]), end[2]))
        else:
            yield text
    for held in waiting.values():
        yield "".join(held)


def join_docker_parts(lines: Iterable[str]) -> Iterator[str]:
    """Lines of Docker's json-file; a part that does not end its line is joined with the next of its stream."""
    waiting: dict[str, dict[str, Any]] = {}
    for text in lines:
        if text.startswith('{"log":') and ('\\n","' not in text or waiting) and (row := read_object(text)):
            stream, log = str(row.get("stream")), str(row.get("log"))
            if stream in waiting:
                row = waiting.pop(stream)
                row["log"] += log
            if not log.endswith("\n") and len(row["log"]) < LONGEST_JOINED:
                waiting[stream] = row
                continue
            yield json.dumps(row, ensure_ascii=False)
        else:
            yield text
    for row in waiting.values():
        yield json.dumps(row, ensure_ascii=False)


def join_slow_heads(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a log of slow statements; the time and the user of one record, each of which may begin it, are joined."""
    held = ""
    for text in lines:
        if text.startswith("# Time:"):
            if held:
                yield held
            held = text
        elif held and text.startswith("# ") and "Query_time" not in text:
            held += f"\n{text}"  # the user, or what a fork writes before it
        else:
            if held:
                yield held
                held = ""
            yield text
    if held:
        yield held


def split_documents(text: str) -> Iterator[str]:
    """Each object of a file that holds a list of them, or objects over several lines, as one line."""
    decoder, at = json.JSONDecoder(), _end_of_space(text, 0)
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield from text[at:].splitlines()
            return
        yield from (json.dumps(row, ensure_ascii=False) for row in _objects_in(value))
        at = _end_of_space(text, at)


def _end_of_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _objects_in(value: JSON) -> Iterator[Mapping[str, Any]]:
    """An object, or those that it is only a list of (`events` of CloudWatch, `entries` of Google)."""
    if not isinstance(value, Mapping):
        return
    lists = [
        inner
        for inner in value.values()
        if isinstance(inner, list) and inner and isinstance(inner[0], Mapping)
    ]
    if len(lists) == 1 and len(value) <= 3 and ("events" in value or "entries" in value or "logs" in value):
        yield from (row for row in lists[0] if isinstance(row, Mapping))
    else:
        yield value


def expand_otlp(lines: Iterable[str]) -> Iterator[str]:
    """Lines of a collector's file exporter, each record of each on a line of its own; other lines as they are."""
    for text in lines:
        row = read_object(text) if "resourceLogs" in text[:200] else None
        if row is None or not isinstance(row.get("resourceLogs"), list):
            yield text
            continue
        yield from (json.dumps(record, ensure_ascii=False) for record in _otlp_records(row["resourceLogs"]))


def _otlp_records(resources: list[Any]) -> Iterator[dict[str, Any]]:
    for resource in resources:
        about = read_attributes(_as_mapping(_as_mapping(resource).get("resource")).get("attributes"))
        for scope in (
            _as_mapping(resource).get("scopeLogs")
            or _as_mapping(resource).get("instrumentationLibraryLogs")
            or ()
        ):
            for record in _as_mapping(scope).get("logRecords") or ():
                known = {k: v for k, v in _as_mapping(record).items() if k != "attributes"}
                known.setdefault("timeUnixNano", known.get("observedTimeUnixNano", "0"))
                yield {
                    **known,
                    "resource": about,
                    "attributes": read_attributes(_as_mapping(record).get("attributes")),
                }


def read_attributes(attributes: JSON) -> dict[str, JSON]:
    """OTLP's list of keys and typed values as an object."""
    if isinstance(attributes, Mapping):
        return dict(attributes)
    found = {}
    for pair in attributes if isinstance(attributes, list) else ():
        value = _as_mapping(_as_mapping(pair).get("value"))
        found[str(_as_mapping(pair).get("key"))] = next(
            (value[n] for n in _NAMES_OF_VALUES if n in value), value or None
        )
    return found


def read_object(text: str) -> dict[str, Any] | None:
    try:
        row = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None


def _as_mapping(value: JSON) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
