"""The control tools of a planner: revise the plan, change hypotheses, conclude. JSON schemas, written small by hand.

A test holds them against the types that validate a decision.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.state.conclusion import KINDS
from opsleuth.state.outcome import Verdict

Schema = dict[str, Any]

PLAN, HYPOTHESES, CONCLUDE = "plan_update", "hypothesis_update", "conclude"
CONTROLS = (PLAN, HYPOTHESES, CONCLUDE)

_TEXT: Schema = {"type": "string"}


def _listing(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _ids(letter: str) -> Schema:
    return _listing({"type": "string", "pattern": f"^{letter}[1-9][0-9]{{0,4}}$"})


def _record(properties: Mapping[str, Schema], *required: str) -> Schema:
    made: Schema = {"type": "object", "properties": dict(properties)}
    return made | ({"required": list(required)} if required else {})


STEP = _record(
    {
        "id": _TEXT,
        "text": _TEXT,
        "status": {"type": "string", "enum": ["pending", "active", "done", "dropped"]},
    }
)
PLAN_LISTS = {"add": "pending", "active": "active", "done": "done", "drop": "dropped"}
"""The lists of plan_update: texts of new steps, and ids of steps that now stand so."""
CHANGE = _record(
    {
        "id": _TEXT,
        "text": _TEXT,
        "service": _TEXT,
        "kind": {"type": "string", "description": "as in conclude"},
        "status": {"type": "string", "enum": ["open", "supported", "refuted"]},
        "supporting": _ids("E"),
        "contradicting": _ids("E"),
    }
)
CLAIM = _record({"id": _TEXT, "text": _TEXT, "evidence": _ids("E")}, "id", "text", "evidence")
CAUSE = _record(
    {
        "service": _TEXT,
        "kind": {"type": "string", "enum": list(KINDS)},
        "metric": _TEXT,
        "claims": _ids("C"),
    },
    "service",
    "kind",
    "claims",
)
CONCLUSION = _record(
    {
        "verdict": {"type": "string", "enum": [v.value for v in Verdict]},
        "answer": _TEXT,
        "claims": _listing(CLAIM),
        "causes": _listing(CAUSE),
        "propagation": _listing({"type": "array", "items": _TEXT, "minItems": 2, "maxItems": 2}),
        "ruled_out": _listing(_record({"hypothesis": _TEXT, "id": _TEXT, "claims": _ids("C")}, "hypothesis")),
        "recommendations": _listing(_record({"text": _TEXT, "claims": _ids("C")}, "text")),
        "not_available": _listing(_TEXT),
        "fields": {"type": "object"},
    },
    "verdict",
    "answer",
    "claims",
)


def control_functions() -> list[Schema]:
    """The control tools in the form of OpenAI-compatible tool calling."""
    return [
        function(
            PLAN,
            "Steps to add (texts), and ids (P1) of steps that are now active, done or dropped.",
            _record({name: _listing(_TEXT) for name in PLAN_LISTS}),
        ),
        function(
            HYPOTHESES,
            "Open hypotheses (text, service, kind), or support or refute one (id) with evidence ids.",
            _record({"changes": _listing(CHANGE)}, "changes"),
        ),
        function(
            CONCLUDE,
            "End the investigation. Every claim cites the evidence its numbers, times and names stand in; "
            "causes best first; propagation: pairs [from, to].",
            CONCLUSION,
        ),
    ]


def function(name: str, description: str, parameters: Schema) -> Schema:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": _lean(parameters),
        },
    }


def decision_schema(calls: Sequence[Schema]) -> Schema:
    """The whole decision as one JSON schema, for servers that hold a reply to it; `calls` are the forms of a call."""
    about = {
        "reason": {"type": "string", "maxLength": 300},
        "plan": {"type": "array", "items": STEP, "maxItems": 8},
        "hypotheses": {"type": "array", "items": _kinds_named(CHANGE), "maxItems": 6},
    }
    looks = {"type": "array", "items": {"anyOf": list(calls)}, "minItems": 1, "maxItems": 8}
    return {
        "anyOf": [
            _closed(_record(about | {"calls": looks}, "reason", "calls")),
            _closed(_record(about | {"conclusion": CONCLUSION}, "reason", "conclusion")),
        ]
    }


def _kinds_named(change: Schema) -> Schema:
    kind = {"kind": {"type": "string", "enum": list(KINDS)}}
    return change | {"properties": change["properties"] | kind}


def _closed(schema: Schema) -> Schema:
    return schema | {"additionalProperties": False}


def _lean(schema: Any, depth: int = 0) -> Any:  # noqa: ANN401 - a JSON schema
    """As tool calling sends it with every turn: what the check explains anyway is left out."""
    if isinstance(schema, list):
        return [_lean(item, depth) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    left_out = {"pattern", "minItems", "maxItems"} | ({"required"} if depth else set())
    return {key: _lean(value, depth + 1) for key, value in schema.items() if key not in left_out}
