"""Make a case from a stored run: its data, redacted, its question, and the right answer."""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from opsleuth.checkpoints.runs import RunRow
from opsleuth.checkpoints.store import Store
from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.evals.cases import KEY
from opsleuth.evals.task_files import TaskEntry
from opsleuth.state.canonical_json import parse_json_text
from opsleuth.state.errors import UsageError

TEXTS = frozenset({".json", ".jsonl", ".csv", ".md", ".txt"})
Redact = Callable[[Any], tuple[Any, int]]


def make_case_from_run(
    store: Store, run: str, expect: Mapping[str, Any], folder: Path, name: str | None = None
) -> Path:
    """Write the case below `folder` and its answer into the key there; returns the case's folder.

    `expect` is an entry of a key. Raises UsageError for one that is not valid, for a run whose incident is not
    recorded, and for a name that is taken; NotFoundError for an unknown run. Nothing is written then.
    """
    row = store.runs.find(run)
    task = _parse_expectation(expect, name or row.id)
    source = row.settings.get("case")
    if not source or not Path(source).is_dir():
        raise UsageError(
            f"{row.id} did not look at a recorded incident that is still there ({source or 'it had live sources'}): "
            "its evidence alone cannot answer other questions, so no case can be made of it"
        )
    target = folder / task.id
    if target.exists():
        raise UsageError(f"{target} exists already: give the case another name with --name")
    answers = _read_key(folder / KEY)
    for path in _list_text_files(Path(source)):
        _copy_redacted(path, target / path.relative_to(source), store.redactor)
    _write_incident(row, target, store.redactor)
    _write_key(
        folder / KEY, answers | {task.id: task.model_dump(mode="json", exclude_defaults=True, exclude={"id"})}
    )
    return target


def _parse_expectation(expect: Mapping[str, Any], name: str) -> TaskEntry:
    try:
        return TaskEntry.model_validate({**expect, "id": name})
    except ValidationError as error:
        wrong = format_validation_errors(error)
        raise UsageError(
            f'what is expected cannot be read ({wrong}); write for example {{"root_cause_service": "orders", '
            '"kind": "slow_query"}, {"verdict": "healthy"} or {"expected": "42"}'
        ) from None


def _list_text_files(source: Path) -> Iterator[Path]:
    """The texts of a case; anything that is not text cannot be redacted and stays behind."""
    for path in sorted(source.rglob("*")):
        inner = path.with_suffix("") if path.suffix == ".gz" else path
        if path.is_file() and not path.is_symlink() and inner.suffix in TEXTS:
            yield path


def _copy_redacted(path: Path, target: Path, redact: Redact) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    packed = path.suffix == ".gz"
    raw = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    text = raw.decode("utf-8", "replace")
    kind = path.with_suffix("").suffix if packed else path.suffix
    clean = _CLEAN.get(kind, _redact_text)(text, redact).encode()
    target.write_bytes(gzip.compress(clean, mtime=0) if packed else clean)


def _redact_text(text: str, redact: Redact) -> str:
    return str(redact(text)[0])


def _redact_json(text: str, redact: Redact) -> str:
    """A document is redacted by its fields, anything else as text."""
    try:
        return json.dumps(redact(parse_json_text(text))[0], ensure_ascii=False)
    except ValueError:
        return _redact_text(text, redact)


_CLEAN: Mapping[str, Callable[[str, Redact], str]] = {
    ".json": _redact_json,
    ".jsonl": lambda text, redact: "".join(f"{_redact_json(line, redact)}\n" for line in text.splitlines()),
    ".csv": lambda text, redact: "".join(f"{_redact_text(line, redact)}\n" for line in text.splitlines()),
}


def _write_incident(row: RunRow, target: Path, redact: Redact) -> None:
    """The run's question replaces the one of the recorded incident."""
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


def _read_key(path: Path) -> dict[str, Any]:
    """The answers that the key already holds; read before anything is written, so that a broken key leaves no half a case."""
    try:
        answers = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the key {path}: {error}. Repair it, or name another folder") from None
    if not isinstance(answers, dict):
        raise UsageError(
            f"the key {path} is not a JSON object of answers by case: repair it, or name another folder"
        )
    return answers


def _write_key(path: Path, answers: Mapping[str, Any]) -> None:
    part = path.with_suffix(".part")
    part.write_text(json.dumps(answers, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    part.replace(path)
