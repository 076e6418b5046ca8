"""A question to a person, as text: everything that the answer is about, and nothing that data could forge.

Every value goes through the screen's own cleaning, each on lines of its own behind a bar, so that no text from
a log or a model can look like part of the frame.
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.checkpoints.approvals import SHORTEST_DIGEST, Approval
from opsleuth.console import text as texts
from opsleuth.state.canonical import canonical

_LABEL = 22
"""Cells of a field's name."""


class Field(NamedTuple):
    """One thing that a person must see before the answer.

    `level` is 1 for an argument and 2 for what it was before it was edited. `untrusted` text comes from a model or from
    the outside: labelled, so that nobody takes it for ours.
    """

    name: str
    value: str
    level: int = 0
    untrusted: bool = False


def hashed(digest: str) -> str:
    """The digest as screens show it: 16 hex digits in groups of four."""
    short = digest[:SHORTEST_DIGEST]
    return "-".join(short[i : i + 4] for i in range(0, len(short), 4))


def panel(question: Approval, width: int = 100, encoding: str = "utf-8") -> list[str]:
    """The whole question as lines of at most `width` cells; nothing is cut, however long an argument is."""
    title, _ = _ABOUT[question.about]
    lines = [f"{title} {question.id}  run {question.run}  asked {question.requested}"]
    for field in fields(question):
        label = f"{'  ' * field.level}{field.name}{' (untrusted)' if field.untrusted else ''}"
        lines += _field(label, field.value, width, encoding)
    return lines


def fields(question: Approval) -> tuple[Field, ...]:
    """All that a person is shown of a question, wherever it is asked: terminal, API, page, message. As it is stored, not cleaned."""
    return tuple(_ABOUT[question.about][1](question))


def cleaned(field: Field) -> Field:
    """For a screen that is not a terminal: nothing in it hides or turns what stands beside it."""
    return field._replace(value="\n".join(texts.clean_lines(field.value, "utf-8")))


def _field(name: str, value: str, width: int, encoding: str) -> list[str]:
    rows = [
        part
        for line in texts.clean_lines(value, encoding) or [""]
        for part in textwrap.wrap(
            line, max(20, width - _LABEL - 4), drop_whitespace=False, break_on_hyphens=False
        )
        or [""]
    ]
    head = f"  {name:<{_LABEL}}| "
    return [f"{head if i == 0 else ' ' * (_LABEL + 2) + '| '}{row}" for i, row in enumerate(rows)]


def _call(question: Approval) -> Iterable[Field]:
    document = question.document
    yield Field("tool", f"{document.get('tool')}   risk {str(document.get('risk')).upper()}")
    yield Field("target", str(document.get("target") or "none"))
    if environment := document.get("environment"):
        yield Field("environment", str(environment))
    yield from _arguments(document.get("arguments") or {}, document.get("before"))
    yield Field("why", str(document.get("purpose") or "no reason given"), untrusted=True)
    yield Field(
        "check now", str(document.get("precheck") or "this tool has no check beforehand"), untrusted=True
    )
    after = (
        "the world is read again"
        if document.get("checked_after")
        else "NONE: nobody will see whether it worked"
    )
    yield Field("check after", after)
    if not document.get("can_be_probed"):
        yield Field("if the reply is lost", "its target cannot be asked: a person will have to find out")
    yield Field("undo", str(document.get("undo") or "not known"))
    if earlier := document.get("earlier"):
        yield Field(
            "done before",
            f"{earlier['status']} since {earlier['started']} as {earlier['id']}: THIS REPEATS IT",
        )
    yield Field("rule", str(document.get("gate_reason") or ""))
    yield Field("hash", hashed(question.digest))


def _effect(question: Approval) -> Iterable[Field]:
    document = question.document
    yield Field("tool", f"{document.get('tool')}   started {document.get('started')}")
    yield Field("target", str(document.get("target") or "none"))
    yield from _arguments(document.get("arguments") or {})
    yield Field("result", canonical(document.get("result") or {}), untrusted=True)
    yield Field(
        "question",
        "it was sent and its outcome was not seen: look at the target and say whether it happened",
    )
    yield Field("hash", hashed(question.digest))


def _question(question: Approval) -> Iterable[Field]:
    yield Field("question", question.subject, untrusted=True)
    yield Field("hash", hashed(question.digest))


_ABOUT: Mapping[str, tuple[str, Callable[[Approval], Iterable[Field]]]] = {
    "call": ("APPROVAL", _call),
    "effect": ("UNKNOWN EFFECT", _effect),
    "question": ("QUESTION", _question),
}


def _arguments(arguments: Mapping[str, Any], before: Mapping[str, Any] | None = None) -> Iterable[Field]:
    """Each on its own; under one that was edited what it was."""
    for name, value in arguments.items():
        yield Field(name, _plain(value), level=1)
        if before is not None and before.get(name) != value:
            yield Field("was", _plain(before[name]) if name in before else "not given", level=2)


def _plain(value: Any) -> str:  # noqa: ANN401 - any JSON value
    return value if isinstance(value, str) else canonical(value)


def one_line(question: Approval) -> Sequence[str]:
    """A row of the table of questions; what an answer needs comes first, for a narrow screen cuts at the end."""
    document = question.document
    return (
        question.run,
        question.id,
        hashed(question.digest),
        str(document.get("tool") or ""),
        str(document.get("target") or ""),
        str(document.get("risk") or ""),
        question.status,
        question.answered_by or "",
    )
