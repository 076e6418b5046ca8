"""Dumps of a cluster as files: what `kubectl get -o json|yaml` printed, support bundles, must-gather folders.

A support bundle keeps lists by kind and namespace (`cluster-resources/pods/shop.json`), a must-gather one file per
kind or object (`namespaces/shop/core/pods.yaml`): both hold API documents, and those are all that is read here.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from opsleuth.analysis import kubectl_output
from opsleuth.analysis.cluster.documents import LONGEST_TEXT, parse_documents
from opsleuth.analysis.cluster.objects import Document
from opsleuth.analysis.records import ObjectState, PlatformEvent
from opsleuth.tools.sources.described_dumps import is_description, read_descriptions
from opsleuth.tools.sources.dump_times import find_newest_time
from opsleuth.tools.sources.kube_rows import event_from_document, object_state_from_document

DUMP_FILES = (
    "objects.json",
    "objects.yaml",
    "objects.yml",
    "cluster.json",
    "cluster.yaml",
    "cluster.yml",
    "events.txt",
)
DUMP_FOLDERS = ("cluster", "cluster-resources", "must-gather")
_SUFFIXES = frozenset({".json", ".yaml", ".yml"})
MOST_FILES = 5_000
_COLUMNS = re.compile(r"\s{2,}")
_EVENTS_HEADER = re.compile(r"\s*(?:NAMESPACE\s+)?LAST SEEN\s+TYPE\s+REASON\s+OBJECT\s+MESSAGE\b")


@dataclass(slots=True)
class ClusterDump:
    """What a dump held, and what of it could not be read, in words; `newest` is the newest time that it carries."""

    objects: list[ObjectState] = field(default_factory=list)
    events: list[PlatformEvent] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    newest: float | None = None

    def add(self, document: Document, captured: float) -> None:
        items = document.get("items")
        if isinstance(items, list):
            kind = str(document.get("kind") or "").removesuffix("List")
            for item in items:
                if isinstance(item, dict):
                    self.add({"kind": kind, **item}, captured)
        elif document.get("kind") == "Event":
            event = event_from_document(document)
            self.events += [event] if event else []
        elif document.get("kind") and isinstance(document.get("metadata"), dict):
            self.objects.append(object_state_from_document(str(document["kind"]), document, captured))


def dump_paths(folder: Path) -> list[Path]:
    """The dumps in a folder, by their usual names."""
    named = [folder / name for name in (*DUMP_FILES, *DUMP_FOLDERS)]
    return [path for path in named if path.exists()]


def read_dump(paths: list[Path], captured: float) -> ClusterDump:
    """All objects and events of the dumps, as they were at `captured` (seconds since the epoch)."""
    found = ClusterDump()
    files = [file for path in paths for file in _list_files(path)]
    if len(files) > MOST_FILES:
        found.notes.append(f"{len(files) - MOST_FILES:,} files of the cluster's dump were not read")
    for file in files[:MOST_FILES]:
        _read_file(file, captured, found)
    return found


def date_dump(dump: ClusterDump, captured: float) -> ClusterDump:
    """The dump of which only the files' time is known: as of the newest time inside, else as captured then.

    A copied file is younger than what it holds, so ages in a printed table place an event and date no beginning.
    """
    as_of = captured if dump.newest is None else dump.newest
    return replace(
        dump,
        objects=[replace(state, time=as_of) for state in dump.objects],
        events=[_date_event(event, as_of - captured) for event in dump.events],
    )


def _date_event(event: PlatformEvent, shift: float) -> PlatformEvent:
    if not (event.extra or {}).get("from_age"):
        return event
    return replace(event, time=event.time + shift, extra={**(event.extra or {}), "undated": True})


def _list_files(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    yield from sorted(file for file in path.rglob("*") if file.suffix in _SUFFIXES and file.is_file())


def _read_file(file: Path, captured: float, found: ClusterDump) -> None:
    try:
        if file.stat().st_size > LONGEST_TEXT:
            found.notes.append(
                f"{file.name} is larger than {LONGEST_TEXT:,} bytes and was not read: split it by kind"
            )
            return
        text = file.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        found.notes.append(f"{file.name} cannot be read ({error.strerror}): check its permissions")
        return
    if is_description(text):
        rows = list(read_descriptions(text, captured))
        found.objects += [row for row in rows if isinstance(row, ObjectState)]
        found.events += [row for row in rows if isinstance(row, PlatformEvent)]
        return
    if is_events_table(text) or file.suffix == ".txt":
        found.events += printed_events(text, captured)
        return
    before = len(found.objects) + len(found.events)
    for document in parse_documents(text.removeprefix("\ufeff")):
        found.add(document, captured)
        times = (found.newest, find_newest_time(dict(document)))
        found.newest = max((time for time in times if time is not None), default=None)
    if len(found.objects) + len(found.events) == before and text.strip():
        found.notes.append(f"{file.name} holds no Kubernetes objects")


def is_events_table(text: str) -> bool:
    """Whether the text is what `kubectl get events` prints, with or without `-A`."""
    return _EVENTS_HEADER.match(text.removeprefix("\ufeff")) is not None


def printed_events(text: str, captured: float) -> Iterator[PlatformEvent]:
    """The rows of `kubectl get events`: their ages count back from `captured`."""
    spread = text.removeprefix("\ufeff").lstrip().startswith("NAMESPACE")
    for line in text.splitlines():
        head, _, rest = line.strip().partition(" ") if spread else ("", "", line)
        cells = _COLUMNS.split(rest.strip(), 4)
        last = kubectl_output.parse_age_seconds(cells[0].partition(" (")[0]) if len(cells) == 5 else None
        if last is not None and "/" in cells[3]:
            kind, _, name = cells[3].partition("/")
            yield PlatformEvent(
                time=captured - last,
                source="kubernetes",
                object=f"{_KINDS.get(kind, kind.title())}/{name}",
                type=cells[1],
                reason=cells[2],
                message=cells[4],
                extra={"from_age": True} | ({"namespace": head} if head else {}),
            )


# kubectl writes kinds of events in small letters.
_KINDS = {
    "replicaset": "ReplicaSet",
    "statefulset": "StatefulSet",
    "daemonset": "DaemonSet",
    "cronjob": "CronJob",
    "horizontalpodautoscaler": "HorizontalPodAutoscaler",
    "persistentvolumeclaim": "PersistentVolumeClaim",
    "networkpolicy": "NetworkPolicy",
}
