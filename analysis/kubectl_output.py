"""Reads what command-line tools print about an object: `kubectl describe`, `kubectl get -o wide`, `argocd app get`.

The texts are for people; only the parts that tell a state are read, by their standing labels. Everything else
in them (commands, manifests, annotations) is somebody's own text and says nothing about the state.
"""

import re
from collections.abc import Iterator

from opsleuth.analysis.records import PlatformEvent

_UNIT_SECONDS = {"y": 31_536_000, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_AGE = re.compile(r"(\d+)(y|d|h|m|s)")
_FIELD = re.compile(r"^(?P<indent>\s*)(?P<label>[A-Z][\w() -]*?):\s*(?P<value>.*)$")
_REPEATED = re.compile(r"^(?P<last>[\dydhms]+)(?: \(x(?P<count>\d+)(?: over (?P<first>[\dydhms]+))?\))?$")
_COLUMNS = re.compile(r"\s{2,}")


def parse_age_seconds(age: str) -> float | None:
    """An age as these tools print it (`3h29m`, `22h`, `6d23h`) in seconds; None if it is not an age."""
    age = age.strip()
    parts = _AGE.findall(age)
    if not parts or "".join(number + unit for number, unit in parts) != age:
        return None
    return float(sum(int(number) * _UNIT_SECONDS[unit] for number, unit in parts))


def read_label_fields(text: str) -> Iterator[tuple[int, str, str]]:
    """Every `Label: value` line as (indent in characters, label, value), in order."""
    for line in text.splitlines():
        if found := _FIELD.match(line):
            yield len(found["indent"]), found["label"], found["value"].strip()


def extract_section(text: str, title: str) -> list[str]:
    """The indented lines under a top-level `Title:`; empty if there is no such section."""
    lines = text.splitlines()
    starts = [number for number, line in enumerate(lines) if line.rstrip() == f"{title}:"]
    if not starts:
        return []
    body = []
    for line in lines[starts[0] + 1 :]:
        if line and not line[0].isspace():
            break
        body.append(line)
    return body


def read_conditions_table(text: str) -> list[tuple[str, str, str]]:
    """The rows of the Conditions table as (type, status, reason or empty)."""
    rows = [line.split(None, 2) for line in extract_section(text, "Conditions")]
    return [
        (row[0], row[1], row[2] if len(row) > 2 else "")
        for row in rows
        if len(row) >= 2 and row[1] in {"True", "False", "Unknown"}
    ]


def read_events_table(text: str, name: str, read_at: float) -> list[PlatformEvent]:
    """The rows of the Events table (type, reason, age, from, message) as events of `name`, timed by their age."""
    found = []
    for line in extract_section(text, "Events"):
        cells = _COLUMNS.split(line.strip(), 4)
        repeated = _REPEATED.match(cells[2]) if len(cells) == 5 else None
        last = parse_age_seconds(repeated["last"]) if repeated else None
        if repeated is None or last is None:
            continue
        first = parse_age_seconds(repeated["first"]) if repeated["first"] else None
        found.append(
            PlatformEvent(
                time=read_at - last,
                source="kubernetes",
                object=name,
                type=cells[0],
                reason=cells[1],
                message=cells[4],
                count=int(repeated["count"]) if repeated["count"] else None,
                first_time=None if first is None else read_at - first,
            )
        )
    return found
