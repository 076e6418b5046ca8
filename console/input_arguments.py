"""Which arguments of `run` are paths, and which one is the question."""

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

STDIN = "-"
_SUFFIX = re.compile(
    r"\S\.(?:log|logs|txt|out|err|json|jsonl|ndjson|csv|tsv|ya?ml|parquet|prom|har)(?:\.\d+)?(?:\.(?:gz|bz2|xz|zst))?$"
    r"|\S\.(?:gz|bz2|xz|zst|zip|tar|tgz|tbz2|txz)$",
    re.IGNORECASE,
)
_GLOB = re.compile(r"[*\[]|\?(?!$)")
_BEGINS_LIKE_PATH = re.compile(r"(?:/|\./|\.\./|~/|[A-Za-z]:\\)\S")


@dataclass(frozen=True, slots=True)
class RunArguments:
    """`paths` holds `-` to read standard input."""

    paths: tuple[str, ...] = ()
    question: str | None = None


def split_run_arguments(words: Sequence[str], after: Sequence[str] = ()) -> RunArguments:
    """The paths and the question; `after` are the words behind `--`, which are never paths. Raises BadParameter."""
    paths: list[str] = []
    asked: list[str] = []
    for word in words:
        if word == STDIN or os.path.lexists(word):
            paths.append(word)
        elif matches := _expand_pattern(word):
            paths += matches
        elif looks_like_path(word):
            raise click.BadParameter(
                f"no file or folder {word}: check the path; for a question with these characters put -- before it",
                param_hint="PATH",
            )
        else:
            asked.append(word)
    asked += after
    if len(asked) > 1:
        raise click.BadParameter(
            f"{asked[0]!r} and {asked[1]!r} are not files: put one question in quotes, or correct the path",
            param_hint="QUESTION",
        )
    if paths.count(STDIN) > 1:
        raise click.BadParameter("- reads standard input and can be given once", param_hint="PATH")
    return RunArguments(tuple(paths), asked[0] if asked else None)


def looks_like_path(word: str) -> bool:
    """Whether a word that names no file is a mistyped path and no question."""
    if _SUFFIX.search(word) or _BEGINS_LIKE_PATH.match(word):
        return True
    if any(character.isspace() for character in word):
        first, slash, _ = word.partition("/")
        return bool(slash) and Path(first).is_dir()
    return "/" in word or bool(_GLOB.search(word))


def _expand_pattern(word: str) -> list[str]:
    """The files that fit a pattern which the shell left as it is."""
    if not _GLOB.search(word) or "\0" in word:
        return []
    return sorted(glob.glob(word))  # noqa: PTH207 - absolute patterns too
