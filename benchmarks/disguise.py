"""Copies of a set of cases that tell the same incidents under other service names, or at another time.

`renamed` replaces every service name by a made-up word, in the tables, the texts and the key. `shifted` moves every
time by the same span. Nothing else changes, so whatever a rule finds in the one it must find in the other.
"""

import csv
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any

Change = Callable[[str], str]

LATER = timedelta(days=123, hours=5)
_STAMP = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2})?")
_SERVICE_COLUMNS = frozenset({"service", "caller", "callee"})
_SERVICES_OF_A_KEY = ("root_cause_service", "acceptable_services", "must_not_blame")
_SYLLABLES = tuple("".join(pair) for pair in product("bdgklmnprtvz", "aeiou"))


def shift_set(source: Path, target: Path) -> None:
    """Write a copy of the set whose times are all later by the same span."""
    shutil.copytree(source, target)
    for file in _files_of_cases(target):
        _rewrite(file, shift_times)


def shift_times(text: str) -> str:
    """The text with each of its times later, in the form in which it stands there."""
    return _STAMP.sub(lambda found: _shifted(found[0]), text)


@lru_cache(maxsize=100_000)
def _shifted(stamp: str) -> str:
    try:
        moment = datetime.fromisoformat(stamp) + LATER
    except ValueError:  # digits that only look like a time
        return stamp
    form = f"%Y-%m-%d{stamp[10]}%H:%M" + (":%S" if len(stamp) > 16 else "")
    return moment.strftime(form)


def rename_set(source: Path, target: Path) -> None:
    """Write a copy of the set, key included, in which every service has a made-up name."""
    shutil.copytree(source, target)
    names = {}
    for case in sorted(path for path in target.iterdir() if path.is_dir()):
        names[case.name] = made_up_names(services_of(case))
        change = renaming(names[case.name])
        for file in _files_of_case(case):
            _rewrite(file, _changing_values(change, file))
    key = target / "answers.json"
    answers = json.loads(key.read_text("utf-8"))
    renamed = {case: rename_answer(answer, names[case]) for case, answer in answers.items()}
    key.write_text(json.dumps(renamed), "utf-8")


def made_up_names(services: Iterator[str]) -> Mapping[str, str]:
    """A word for each service that says nothing of what it does; their order by name is turned round."""
    words = ("".join(parts) for parts in product(_SYLLABLES[3::7], _SYLLABLES[1::5], _SYLLABLES[2::9]))
    return dict(zip(sorted(set(services), reverse=True), words, strict=False))


def services_of(case: Path) -> Iterator[str]:
    """The services that a case names in its alert, its list and its tables."""
    incident = json.loads((case / "incident.json").read_text("utf-8"))
    yield from incident.get("services", ())
    if alerted := incident["alert"].get("service"):
        yield alerted
    for file in case.glob("*.csv"):
        with file.open(encoding="utf-8", newline="") as rows:
            yield from _services_of_rows(csv.DictReader(rows))
    for file in case.glob("*.jsonl"):
        with file.open(encoding="utf-8") as lines:
            yield from _services_of_rows(json.loads(line) for line in lines)


def _services_of_rows(rows: Any) -> Iterator[str]:
    for row in rows:
        for column in _SERVICE_COLUMNS & row.keys():
            if row[column] and isinstance(row[column], str):
                yield row[column]


def renaming(names: Mapping[str, str]) -> Change:
    """Replaces the names wherever they stand as words; the longest first, for one may begin another."""
    if not names:
        return lambda text: text
    either = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    words = re.compile(rf"(?<![A-Za-z0-9_])(?:{either})(?![A-Za-z0-9_])")
    return lambda text: words.sub(lambda found: names[found[0]], text)


def rename_answer(answer: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """The answer of a key with its services renamed."""

    def other(name: Any) -> Any:
        return [other(each) for each in name] if isinstance(name, list) else names.get(name, name)

    services = {field: other(answer[field]) for field in _SERVICES_OF_A_KEY if field in answer}
    causes = [{**cause, "service": other(cause["service"])} for cause in answer.get("causes") or ()]
    return {**answer, **services, **({"causes": causes} if causes else {})}


def _changing_values(change: Change, file: Path) -> Change:
    """The change, kept away from the names of columns and fields."""
    if file.suffix == ".csv":
        return lambda text: "\n".join([(lines := text.split("\n"))[0], change("\n".join(lines[1:]))])
    if file.suffix == ".json":
        return lambda text: json.dumps(_changed_values(json.loads(text), change))
    if file.suffix == ".jsonl":
        return lambda text: "".join(
            f"{json.dumps(_changed_values(json.loads(line), change))}\n" for line in text.splitlines() if line
        )
    return change


def _changed_values(document: Any, change: Change) -> Any:
    if isinstance(document, str):
        return change(document)
    if isinstance(document, list):
        return [_changed_values(each, change) for each in document]
    if isinstance(document, dict):
        return {name: _changed_values(value, change) for name, value in document.items()}
    return document


def _files_of_cases(folder: Path) -> Iterator[Path]:
    for case in sorted(path for path in folder.iterdir() if path.is_dir()):
        yield from _files_of_case(case)


def _files_of_case(case: Path) -> Iterator[Path]:
    return (path for path in sorted(case.rglob("*")) if path.is_file())


def _rewrite(file: Path, change: Change) -> None:
    file.write_text(change(file.read_text("utf-8")), "utf-8")
