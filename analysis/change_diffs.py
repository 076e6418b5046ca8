"""What a change's diff does, read line by line: files, removed and added lines, and whether any of them matters at run time."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from opsleuth.analysis.records import ServiceChange

_FILE = re.compile(
    r"^(?:\+\+\+ b/|--- a/|diff --git a/\S+ b/|@@ )(?!-)([\w.@+-]+(?:/[\w.@+-]+)*\.\w+|Dockerfile\b\S*|Makefile)"
)
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_HEADER = re.compile(r"^(\+\+\+|---|@@|diff --git|index [0-9a-f]+|new file|deleted file|similarity|rename )")
# What is read by people and pipelines only, never by the program that runs.
_IDLE_FILE = re.compile(
    r"(^|/)(docs?|documentation|test|tests|testdata|__tests__|spec|specs|fixtures|examples|\.github|\.circleci|\.gitlab)/"
    r"|\.(md|rst|adoc|css|scss|less|svg|png|jpe?g|snap)$|_test\.\w+$|\.(test|spec)\.\w+$|(^|/)test_\w+\.py$"
    r"|(^|/)(CODEOWNERS|LICENSE|CHANGELOG\S*|README\S*|\.gitignore|\.golangci\.\w+|\.editorconfig|\.pre-commit\S*"
    r"|\.gitlab-ci\S*|Jenkinsfile|\.travis\S*|\.eslintrc\S*|\.prettierrc\S*)$",
    re.IGNORECASE,
)
_IDLE_SUBJECT = re.compile(
    r"(?:^|: |\) |#)(docs?|documentation|ci|tests?|style)(\([^)]*\))?(:|\b(?=[ :]))", re.IGNORECASE
)
# Lines that say something, count something or explain something, and change nothing.
_IDLE_LINE = re.compile(
    r"^\s*(//|#(?!include|define|if|el|end)|--\s|/?\*|<!--|\"\"\"|''')|^[\s\])}(,;]*$"
    r"|\b(log|logger|logging|slog|zap|console|LOG_\w+|_?metrics?|prometheus|statsd)\b\s*[.:(]|\b(New|Must)?(Counter|Histogram|Gauge)\w*\b"
    r"|SetAttributes|attribute\.|^\s*(Name|Help|Buckets)\s*:|\bimport\b",
)
_COMMIT = re.compile(
    r"^commit (?P<sha>[0-9a-f]{7,40})\b(?: \((?P<author>[^)]*)\))?(?P<subject>[^\n]*)$", re.MULTILINE
)
_WORD = re.compile(r"[A-Za-z_][\w.-]*[\w]|[A-Za-z]\w*")


@dataclass(frozen=True, slots=True)
class ChangeDiff:
    """The changed lines that can matter: `removed` and `added`, the words that went and came on balance, the files.

    `spans` are (file, first, last) line numbers on the new side; `context` the unchanged lines that are shown.
    """

    files: tuple[str, ...]
    removed: tuple[str, ...]
    added: tuple[str, ...]
    context: tuple[str, ...]
    gone: frozenset[str]
    came: frozenset[str]
    spans: tuple[tuple[str, int, int], ...]


def split_release(change: ServiceChange) -> list[ServiceChange]:
    """The commits of a release whose diff tells them apart, each as a change of the same service; else the change itself."""
    starts = list(_COMMIT.finditer(change.diff or ""))
    if not starts or not change.diff:
        return [change]
    ends = [found.start() for found in starts[1:]] + [len(change.diff)]
    return [
        replace(
            change,
            author=found["author"] or _find_author(change.diff[found.end() : end]) or change.author,
            summary=f"{change.summary}: {found['subject'].strip()}"
            if found["subject"].strip()
            else change.summary,
            diff=change.diff[found.end() : end],
            extra={**(change.extra or {}), "commit": found["sha"]},
        )
        for found, end in zip(starts, ends, strict=True)
    ]


def _find_author(text: str) -> str | None:
    found = re.search(r"^Author:\s*([^<\n]+)", text, re.MULTILINE)
    return found[1].strip() if found else None


def identify_change(change: ServiceChange) -> str:
    """By what a change is known: its commit, its own id, its version, else what it is and when."""
    extra = change.extra or {}
    known = (extra.get(key) for key in ("commit", "sha", "id", "change_id", "revision"))
    return str(
        next((value for value in known if value), None)
        or change.version
        or f"{change.kind} of {change.service}"
    )


def read_change_diff(change: ServiceChange) -> ChangeDiff | None:
    """The diff of a change, or None if it was not recorded."""
    if not change.diff or not change.diff.strip():
        return None
    removed, added, context = [], [], []
    for line in change.diff.splitlines():
        if _HEADER.match(line):
            _, _, tail = line[2:].partition("@@") if line.startswith("@@ -") else ("", "", "")
            context.append(tail)
        elif line.startswith("-"):
            removed.append(line[1:])
        elif line.startswith("+"):
            added.append(line[1:])
        else:
            context.append(line)
    if not removed and not added:  # a bare statement or a command
        added = context
    went, came = [_drop_idle(lines) for lines in (removed, added)]
    gone, new = _balance_words(went, came)
    return ChangeDiff(
        files=list_changed_files(change),
        removed=tuple(went),
        added=tuple(came),
        context=tuple(context),
        gone=gone,
        came=new,
        spans=tuple(_read_spans(change.diff)),
    )


def _drop_idle(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if not _IDLE_LINE.search(line)]


def _balance_words(removed: Sequence[str], added: Sequence[str]) -> tuple[frozenset[str], frozenset[str]]:
    """Words of which there are fewer now, and more: what was only moved is in neither."""
    before, after = (Counter(w for line in lines for w in split_words(line)) for lines in (removed, added))
    return frozenset(before - after), frozenset(after - before)


def split_words(text: str) -> list[str]:
    """Identifiers and names in a text, dotted ones whole and in parts."""
    words = [word for word in _WORD.findall(text) if len(word) > 1]
    return [*words, *(part for word in words if "." in word for part in word.split(".") if len(part) > 1)]


def _read_spans(diff: str) -> Iterable[tuple[str, int, int]]:
    file = ""
    for line in diff.splitlines():
        if line.startswith("+++ b/"):
            file = line[6:].strip()
        elif found := _HUNK.match(line):
            first = int(found[3])
            yield file, first, first + int(found[4] or 1)


def list_changed_files(change: ServiceChange) -> tuple[str, ...]:
    """The files that a change touches, as far as the change or its diff names them."""
    listed = (change.extra or {}).get("files") or ()
    named = [str(name) for name in listed] if isinstance(listed, list | tuple) else []
    found = [m[1] for line in (change.diff or "").splitlines() if (m := _FILE.match(line))]
    return tuple(dict.fromkeys([*named, *found]))


def is_idle_change(change: ServiceChange) -> bool:
    """Whether nothing that runs changed: documents, tests, pipelines, styles, comments, or the edge of a history."""
    if (change.extra or {}).get("boundary"):  # its diff is the whole tree, whoever wrote it and when
        return True
    files = list_changed_files(change)
    if files:
        if all(_IDLE_FILE.search(name) for name in files):
            return True
    elif change.kind == "commit" and _IDLE_SUBJECT.search(change.summary):
        return True
    diff = read_change_diff(change)
    return diff is not None and not diff.removed and not diff.added


def pair_changed_lines(diff: ChangeDiff) -> list[tuple[str, str]]:
    """Pairs of removed lines and the added lines that replaced them, in order; may be empty."""
    left = list(diff.added)
    pairs = []
    for old in diff.removed:
        alike = next((new for new in left if _shares_key(old, new)), None)
        if alike is not None:
            left.remove(alike)
        pairs.append((old, alike or ""))
    rest = [("", new) for new in left]
    loose = [pair for pair in pairs if not pair[1]]
    if len(loose) == len(rest):  # renamed in place
        joined = [(old, new) for (old, _), (_, new) in zip_longest(loose, rest, fillvalue=("", ""))]
        return [pair for pair in pairs if pair[1]] + joined
    return [*pairs, *rest]


def _shares_key(old: str, new: str) -> bool:
    """Whether two lines set the same thing: their first words before a figure or a sign are equal."""
    first, second = (re.split(r"[=:(\d,]", line.strip(), maxsplit=1)[0].strip() for line in (old, new))
    return bool(first) and first == second
