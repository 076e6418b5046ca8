"""A question to a person, as text: everything that the answer is about, and nothing that data could forge.

Every value goes through the screen's own cleaning, each on lines of its own behind a bar, so that no text from
a log or a model can look like part of the frame.
"""

import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from opsleuth.checkpoints.approvals import SHORTEST_DIGEST, Approval
from opsleuth.console import terminal_text as texts
from opsleuth.state.canonical_json import to_canonical_json
from opsleuth.state.json_types import JSON

_LABEL = 22
"""Cells of a field's name."""


class QuestionField(NamedTuple):
    """One thing that a person must see before the answer.

    `level` is 1 for an argument and 2 for what it was before it was edited. `untrusted` text comes from a model or from
    the outside: labelled, so that nobody takes it for ours.
    """

    name: str
    value: str
    level: int = 0
    untrusted: bool = False


def format_digest(digest: str) -> str:
    """The digest as screens show it: 16 hex digits in groups of four."""
    short = digest[:SHORTEST_DIGEST]
    return "-".join(short[i : i + 4] for i in range(0, len(short), 4))


def render_question(question: Approval, width: int = 100, encoding: str = "utf-8") -> list[str]:
    """The whole question as lines of at most `width` cells; nothing is cut, however long an argument is."""
    title, _ = _ABOUT[question.about]
    lines = [f"{title} {question.id}  run {question.run}  asked {question.requested}"]
    for field in list_question_fields(question):
        label = f"{'  ' * field.level}{field.name}{' (untrusted)' if field.untrusted else ''}"
        lines += _wrap_field(label, field.value, width, encoding)
    return lines


def list_question_fields(question: Approval) -> tuple[QuestionField, ...]:
    """All that a person is shown of a question, wherever it is asked: terminal, API, page, message. As it is stored, not cleaned."""
    return tuple(_ABOUT[question.about][1](question))


def clean_question_field(field: QuestionField) -> QuestionField:
    """For a screen that is not a terminal: nothing in it hides or turns what stands beside it."""
    return field._replace(value="\n".join(texts.clean_lines(field.value, "utf-8")))


def _wrap_field(name: str, value: str, width: int, encoding: str) -> list[str]:
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


def _fields_of_call(question: Approval) -> Iterable[QuestionField]:
    document = question.document
    yield QuestionField("tool", f"{document.get('tool')}   risk {str(document.get('risk')).upper()}")
    yield QuestionField("target", str(document.get("target") or "none"))
    if environment := document.get("environment"):
        yield QuestionField("environment", str(environment))
    yield from _fields_of_arguments(document.get("arguments") or {}, document.get("before"))
    for name, value in (document.get("binding") or {}).items():
        yield QuestionField(name.replace("_", " "), _format_argument(value))
    yield QuestionField("why", str(document.get("purpose") or "no reason given"), untrusted=True)
    yield QuestionField(
        "check now", str(document.get("precheck") or "this tool has no check beforehand"), untrusted=True
    )
    after = (
        "the target is read again, and the report says whether the change worked"
        if document.get("checked_after")
        else "NONE: nobody will see whether it worked"
    )
    yield QuestionField("check after", after)
    if not document.get("can_be_probed"):
        yield QuestionField(
            "if the reply is lost", "its target cannot be asked: a person will have to find out"
        )
    yield QuestionField("undo", str(document.get("undo") or "not known"))
    if earlier := document.get("earlier"):
        yield QuestionField(
            "done before",
            f"{earlier['status']} since {earlier['started']} as {earlier['id']}: THIS REPEATS IT",
        )
    for other in document.get("elsewhere") or ():
        yield QuestionField(
            "done elsewhere",
            f"{other['status']} since {other['started']} by run {other['run']} as {other['id']}: THIS MAKES IT AGAIN",
        )
    yield QuestionField("rule", str(document.get("gate_reason") or ""))
    yield QuestionField("digest", format_digest(question.digest))


def _fields_of_effect(question: Approval) -> Iterable[QuestionField]:
    document = question.document
    yield QuestionField("tool", f"{document.get('tool')}   started {document.get('started')}")
    yield QuestionField("target", str(document.get("target") or "none"))
    yield from _fields_of_arguments(document.get("arguments") or {})
    yield QuestionField("result", to_canonical_json(document.get("result") or {}), untrusted=True)
    yield QuestionField(
        "question",
        "it was sent and its outcome was not seen: look at the target and say whether it happened",
    )
    yield QuestionField("digest", format_digest(question.digest))


_ABOUT: Mapping[str, tuple[str, Callable[[Approval], Iterable[QuestionField]]]] = {
    "call": ("APPROVAL", _fields_of_call),
    "effect": ("UNKNOWN EFFECT", _fields_of_effect),
}


def _fields_of_arguments(
    arguments: Mapping[str, Any], before: Mapping[str, Any] | None = None
) -> Iterable[QuestionField]:
    """Each on its own; under one that was edited what it was."""
    for name, value in arguments.items():
        yield QuestionField(name, _format_argument(value), level=1)
        if before is not None and before.get(name) != value:
            yield QuestionField(
                "was", _format_argument(before[name]) if name in before else "not given", level=2
            )


def _format_argument(value: JSON) -> str:
    if value is None:
        return "not given"
    return value if isinstance(value, str) else to_canonical_json(value)


def format_question_row(question: Approval) -> Sequence[str]:
    """A row of the table of questions; what an answer needs comes first, for a narrow screen cuts at the end."""
    document = question.document
    return (
        question.run,
        question.id,
        format_digest(question.digest),
        str(document.get("tool") or ""),
        str(document.get("target") or ""),
        str(document.get("risk") or ""),
        question.status,
        question.answered_by or "",
    )
