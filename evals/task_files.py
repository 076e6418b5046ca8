"""Task cases: a question, what it must be answered with, and what that may cost. One TOML or JSONL file holds many.

case = "../incidents/slow-orders"        # the recorded incident of all tasks that name none

[[task]]
id = "slowest-statement"
question = "Which statement carries most of the load? Give the field statement."
expected = "SELECT"                      # found in the answer's text; a list: all of it
expected_fields = { calls = 1840 }
tags = ["database"]
at_most = { repeated = 1, turns = 6 }    # beyond it a right answer is wasteful
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, TypeAdapter, ValidationError

from opsleuth.configuration.config_file import format_validation_errors
from opsleuth.evals.cases import EvalCase, bounds_from_answer, expected_from_answer
from opsleuth.state.calls import Risk
from opsleuth.state.canonical_json import parse_json_text
from opsleuth.state.conclusion import Kind
from opsleuth.state.errors import UsageError
from opsleuth.state.investigation import Demand
from opsleuth.state.json_types import JSON
from opsleuth.state.run_status import StopReason

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][\w.-]{0,99}$")]
Value = str | int | float | bool


class TaskFileModel(BaseModel):
    model_config = ConfigDict(extra="forbid")


class BoundsEntry(TaskFileModel):
    """Bounds of what a right answer may cost."""

    repeated: int | None = Field(None, ge=0)
    turns: int | None = Field(None, ge=1)
    tokens: int | None = Field(None, ge=0)


class AdviceEntry(TaskFileModel):
    """What the advice should be like."""

    at_least: int = Field(1, ge=0)
    target: str | None = None
    tool: str | None = None
    risk: Risk | None = None


class CauseEntry(TaskFileModel):
    service: str
    kind: Kind


class AnswerEntry(TaskFileModel):
    """What a task or an entry of a key says of the answer; every field may be left out where it says nothing."""

    expected: Value | list[Value] | None = None
    expected_fields: dict[str, Any] = Field(default_factory=dict)
    recommendations: AdviceEntry | None = None
    tags: list[str] = Field(default_factory=list)
    at_most: BoundsEntry | None = None
    must_not_touch: list[str] = Field(default_factory=list)
    verdict: Literal["cause_found", "healthy", "answered", "inconclusive"] | None = None
    root_cause_service: str | None = None
    acceptable_services: list[str] = Field(default_factory=list)
    kind: Kind | None = None
    acceptable_kinds: list[Kind] = Field(default_factory=list)
    causes: list[CauseEntry] = Field(default_factory=list)
    must_not_blame: list[str] = Field(default_factory=list)
    fault_type: str | None = None
    culprit: str | None = None
    decoys: list[str] = Field(default_factory=list)


class TaskEntry(AnswerEntry):
    """One task as it is written."""

    id: Id
    case: str | None = None
    question: str | None = Field(None, max_length=20_000)


class KeyEntry(AnswerEntry):
    """An entry of a folder's key. It may hold notes besides, which say nothing here."""

    model_config = ConfigDict(extra="ignore")

    kind_of_question: str | None = None
    acceptable_entities: list[str | dict[str, str | None]] = Field(default_factory=list)
    source_label: Any = None
    must_not_say: list[str] = Field(default_factory=list)
    removed: int = Field(0, ge=0)
    stop_reason: StopReason | None = None
    wasteful: bool | None = None


_ENTRIES: TypeAdapter[dict[Id, KeyEntry]] = TypeAdapter(dict[Id, KeyEntry])


def parse_key_entries(raw: JSON, path: Path) -> Mapping[str, Mapping[str, Any]]:
    """The answers of a key by case. Raises UsageError that names the case and what is wrong with it."""
    try:
        found = _ENTRIES.validate_python(raw)
    except ValidationError as error:
        raise UsageError(f"{path} maps case ids to answers: {format_validation_errors(error)}") from None
    return {case: entry.model_dump(mode="json", exclude_none=True) for case, entry in found.items()}


def load_tasks(path: Path) -> Sequence[EvalCase]:
    """The task cases of a file, in its order. Raises UsageError that names the task and what is wrong with it."""
    cases = [_build_case(raw, where, path) for where, raw in _read_raw_tasks(path)]
    ids = [case.id for case in cases]
    if twice := sorted({name for name in ids if ids.count(name) > 1}):
        raise UsageError(f"{path}: two tasks are called {', '.join(twice)}: every id must be its own")
    if not cases:
        raise UsageError(
            f"{path} holds no task: a TOML file has [[task]] tables, a JSONL file one task a line"
        )
    return cases


def demands_for_fields(case: EvalCase) -> tuple[Demand, ...]:
    """The fields that the case expects, as demands on the answer; its question may ask for them as well."""
    return tuple(Demand(kind="field", text=f"the field {name}", name=name) for name in case.expected.fields)


def _read_raw_tasks(path: Path) -> Iterator[tuple[str, Any]]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".toml":
            yield from _list_task_tables(tomllib.loads(text), path)
        elif path.suffix == ".jsonl":
            lines = enumerate(text.splitlines(), 1)
            yield from ((f"line {n}", parse_json_text(line)) for n, line in lines if line.strip())
        else:
            raise UsageError(
                f"{path} is not a set: give a folder of cases, or tasks in a .toml or .jsonl file"
            )
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not readable as {path.suffix[1:]}: {error}") from None


def _list_task_tables(document: Mapping[str, Any], path: Path) -> Iterator[tuple[str, Any]]:
    """The tasks of a TOML file; the case at its top is that of every task that names none."""
    shared = {name: document[name] for name in ("case",) if name in document}
    tasks = document.get("task", [])
    if not isinstance(tasks, list):
        raise UsageError(f"{path}: task is not a list of tables: write each under [[task]]")
    yield from ((f"task {n}", shared | t if isinstance(t, dict) else t) for n, t in enumerate(tasks, 1))


def _build_case(raw: JSON, where: str, path: Path) -> EvalCase:
    try:
        task = TaskEntry.model_validate(raw)
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(map(str, e['loc'])) or 'it'}: {e['msg']}"
            for e in error.errors(include_input=False)[:3]
        )
        name = raw.get("id", "") if isinstance(raw, dict) else ""
        raise UsageError(f"{path}, {where} {name}: {wrong}") from None
    if task.case is None:
        raise UsageError(
            f'{path}, {where} {task.id}: name the recorded incident it asks about: case = "FOLDER"'
        )
    folder = (path.parent / task.case).resolve()
    if not folder.is_dir():
        raise UsageError(f"{path}, {where} {task.id}: the folder {folder} does not exist")
    answer = task.model_dump(mode="json", exclude_none=True)
    return EvalCase(
        id=task.id,
        set=path.stem,
        folder=folder,
        expected=expected_from_answer(answer),
        question=task.question,
        tags=tuple(task.tags),
        bounds=bounds_from_answer(answer),
    )
