"""Read a set of cases: a folder of case folders and its key, a file of task cases, or the built-in incidents.

The key lies outside every case folder: nothing that a tool can read holds it.
"""

from collections.abc import Sequence
from pathlib import Path

from opsleuth.evals.builtin_cases import list_builtin_cases
from opsleuth.evals.cases import BUILTIN, KEY, TRAPS, EvalCase, bounds_from_answer, expected_from_answer
from opsleuth.evals.task_files import load_tasks, parse_key_entries
from opsleuth.evals.traps import list_trap_cases
from opsleuth.state.canonical_json import parse_json_text
from opsleuth.state.errors import UsageError


def load_case_set(source: Path, key: Path | None = None) -> Sequence[EvalCase]:
    """The cases of a folder and its key, of a file of tasks, or of the sets called `builtin` and `traps`. Raises UsageError for one that is not usable."""
    if str(source) == BUILTIN and not source.exists():
        return list_builtin_cases()
    if str(source) == TRAPS and not source.exists():
        return list_trap_cases()
    if source.is_file():
        return load_tasks(source)
    path = key or source / KEY
    try:
        raw = parse_json_text(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read ({error.strerror}): give the key with --key FILE") from None
    except ValueError as error:
        raise UsageError(f"{path} is not JSON ({error}): the key maps case ids to answers") from None
    answers = parse_key_entries(raw, path)
    missing = [case for case in answers if not (source / case).is_dir()]
    if missing or not answers:
        raise UsageError(
            f"{source} has no folder for {', '.join(missing[:3]) or 'any case'}: is it the set of this key?"
        )
    return [
        EvalCase(
            id=case,
            set=source.resolve().name,
            folder=source / case,
            expected=expected_from_answer(answer),
            tags=tuple(answer.get("tags", ())),
            bounds=bounds_from_answer(answer),
        )
        for case, answer in sorted(answers.items())
    ]
