"""A case out of a stored run: what it looked at, redacted, what it was asked, and what it should have said."""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.evals.cases import KEY
from opsleuth.evals.tasks import Task
from opsleuth.state.canonical import from_json
from opsleuth.state.configfile import problems
from opsleuth.state.errors import UsageError

TEXTS = frozenset({".json", ".jsonl", ".csv", ".md", ".txt"})
Redact = Callable[[Any], tuple[Any, int]]


def adopt(store: Store, run: str, expect: Mapping[str, Any], folder: Path, name: str | None = None) -> Path:
    """Write the case below `folder` and its answer into the key there; returns the case's folder.

    `expect` is an entry of a key. Raises UsageError for one that is none, for a run whose incident is not
    recorded, and for a name that is taken; NotFound for an unknown run. Nothing is written then.
    """
    row = store.runs.find(run)
    task = _task(expect, name or row.id)
    source = row.settings.get("case")
    if not source or not Path(source).is_dir():
        raise UsageError(
            f"{row.id} did not look at a recorded incident that is still there ({source or 'it had live sources'}): "
            "its evidence alone cannot answer other questions, so no case can be made of it"
        )
    target = folder / task.id
    if target.exists():
        raise UsageError(f"{target} exists already: give the case another name with --name")
    for path in _files(Path(source)):
        _copy(path, target / path.relative_to(source), store.redactor)
    _incident(row, target, store.redactor)
    _into_key(folder / KEY, task)
    return target


def _task(expect: Mapping[str, Any], name: str) -> Task:
    try:
        return Task.model_validate({**expect, "id": name})
    except ValidationError as error:
        wrong = problems(error)
        raise UsageError(
            f'what is expected cannot be read ({wrong}); write for example {{"root_cause_service": "orders", '
            '"kind": "slow_query"}, {"verdict": "healthy"} or {"expected": "42"}'
        ) from None


def _files(source: Path) -> Iterator[Path]:
    """The texts of a case; what is no text cannot be redacted and stays behind."""
    for path in sorted(source.rglob("*")):
        inner = path.with_suffix("") if path.suffix == ".gz" else path
        if path.is_file() and not path.is_symlink() and inner.suffix in TEXTS:
            yield path


def _copy(path: Path, target: Path, redact: Redact) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    packed = path.suffix == ".gz"
    raw = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    text = raw.decode("utf-8", "replace")
    kind = path.with_suffix("").suffix if packed else path.suffix
    clean = _CLEAN.get(kind, _text)(text, redact).encode()
    target.write_bytes(gzip.compress(clean, mtime=0) if packed else clean)


def _text(text: str, redact: Redact) -> str:
    return str(redact(text)[0])


def _json(text: str, redact: Redact) -> str:
    """A document is redacted by its fields; what is none, as text."""
    try:
        return json.dumps(redact(from_json(text))[0], ensure_ascii=False)
    except ValueError:
        return _text(text, redact)


_CLEAN: Mapping[str, Callable[[str, Redact], str]] = {
    ".json": _json,
    ".jsonl": lambda text, redact: "".join(f"{_json(line, redact)}\n" for line in text.splitlines()),
    ".csv": lambda text, redact: "".join(f"{_text(line, redact)}\n" for line in text.splitlines()),
}


def _incident(row: RunRow, target: Path, redact: Redact) -> None:
    """What the run was asked stands before what the recorded incident said of itself."""
    path, state = target / "incident.json", row.settings["state"]
    document = json.loads(path.read_text(encoding="utf-8"))
    asked = {
        "id": target.name,
        "question": state["question"],
        "window": document.get("window", {}) | {k: state["window"][k] for k in ("start", "end")},
    }
    if state["alert"]:
        told = {k: v for k, v in state["alert"].items() if v not in (None, {}, [])}
        asked["alert"] = document.get("alert", {}) | told
    path.write_text(json.dumps(redact(document | asked)[0], indent=1, ensure_ascii=False), encoding="utf-8")


def _into_key(path: Path, task: Task) -> None:
    answers = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    answers[task.id] = task.model_dump(mode="json", exclude_defaults=True, exclude={"id"})
    part = path.with_suffix(".part")
    part.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)
