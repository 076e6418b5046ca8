"""The control tools of a planner: revise the plan, change hypotheses, conclude. JSON schemas, written small by hand.

A test holds them against the types that validate a decision. Lengths of texts are said in words: servers that turn
a schema into a grammar unroll them, letter by letter.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from opsleuth.state.conclusion import KINDS, OPERATIONS
from opsleuth.state.run_status import Verdict

Schema = dict[str, Any]

PLAN, HYPOTHESES, CONCLUDE = "plan_update", "hypothesis_update", "conclude"
CONTROLS = (PLAN, HYPOTHESES, CONCLUDE)

_TEXT: Schema = {"type": "string"}


def _array_schema(items: Schema, most: int | None = None) -> Schema:
    return {"type": "array", "items": items} | ({} if most is None else {"maxItems": most})


def _id_list_schema(letter: str) -> Schema:
    return _array_schema({"type": "string", "pattern": f"^{letter}[1-9][0-9]{{0,4}}$"}, 20)


def _object_schema(properties: Mapping[str, Schema], *required: str) -> Schema:
    made: Schema = {"type": "object", "properties": dict(properties)}
    return made | ({"required": list(required)} if required else {})


STEP = _object_schema(
    {
        "id": _TEXT,
        "text": _TEXT,
        "status": {"type": "string", "enum": ["pending", "active", "done", "dropped"]},
    }
)
PLAN_LISTS = {"add": "pending", "active": "active", "done": "done", "drop": "dropped"}
"""The lists of plan_update: texts of new steps, and ids of steps that now stand so."""
CHANGE = _object_schema(
    {
        "id": _TEXT,
        "text": _TEXT,
        "service": _TEXT,
        "kind": {"type": "string", "description": "as in conclude"},
        "status": {"type": "string", "enum": ["open", "supported", "refuted"]},
        "supporting": _id_list_schema("E"),
        "contradicting": _id_list_schema("E"),
    }
)
CLAIM = _object_schema(
    {
        "id": _TEXT,
        "facts": _array_schema({"type": "string", "pattern": r"^E[1-9][0-9]{0,4}\.[1-9][0-9]{0,3}$"}, 20),
        "op": {
            "type": "string",
            "enum": list(OPERATIONS),
            "description": "absent: a complete search matched 0. all_of: these are all rows of the answer.",
        },
        "say": _TEXT,
        "text": _TEXT,
        "evidence": _id_list_schema("E"),
    },
    "id",
)
CAUSE = _object_schema(
    {
        "service": _TEXT,
        "kind": {"type": "string", "enum": list(KINDS)},
        "metric": _TEXT,
        "claims": _id_list_schema("C"),
    },
    "service",
    "kind",
    "claims",
)
CONCLUSION = _object_schema(
    {
        "verdict": {"type": "string", "enum": [v.value for v in Verdict]},
        "answer": _TEXT,
        "claims": _array_schema(CLAIM, 60),
        "causes": _array_schema(CAUSE, 20),
        "propagation": _array_schema({"type": "array", "items": _TEXT, "minItems": 2, "maxItems": 2}, 60),
        "ruled_out": _array_schema(
            _object_schema({"hypothesis": _TEXT, "id": _TEXT, "claims": _id_list_schema("C")}, "hypothesis"),
            20,
        ),
        "recommendations": _array_schema(
            _object_schema({"text": _TEXT, "claims": _id_list_schema("C")}, "text"), 20
        ),
        "not_available": _array_schema(_TEXT, 40),
        "fields": {"type": "object"},
    },
    "verdict",
    "answer",
    "claims",
)


def control_functions() -> list[Schema]:
    """The control tools in the form of OpenAI-compatible tool calling."""
    return [
        function_schema(
            PLAN,
            "Steps to add (texts), and ids (P1) of steps that are now active, done or dropped.",
            _object_schema({name: _array_schema(_TEXT, 20) for name in PLAN_LISTS}),
        ),
        function_schema(
            HYPOTHESES,
            "Open hypotheses (text, service, kind), or support or refute one (id) with evidence ids.",
            _object_schema({"changes": _array_schema(CHANGE, 20)}, "changes"),
        ),
        function_schema(
            CONCLUDE,
            "End the investigation. Causes best first; propagation: pairs [from, to]. Texts but the answer: up to 1,000 characters.",
            CONCLUSION,
        ),
    ]


def function_schema(name: str, description: str, parameters: Schema) -> Schema:
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": parameters,
        },
    }


def decision_schema(calls: Sequence[Schema]) -> Schema:
    """The whole decision as one JSON schema, for servers that hold a reply to it; `calls` are the forms of a call."""
    about = {
        "reason": {"type": "string", "maxLength": 300},
        "plan": {"type": "array", "items": STEP, "maxItems": 8},
        "hypotheses": {"type": "array", "items": _with_kind_choices(CHANGE), "maxItems": 6},
    }
    looks = {"type": "array", "items": {"anyOf": list(calls)}, "minItems": 1, "maxItems": 8}
    return {
        "anyOf": [
            _forbid_extra_keys(_object_schema(about | {"calls": looks}, "reason", "calls")),
            _forbid_extra_keys(_object_schema(about | {"conclusion": CONCLUSION}, "reason", "conclusion")),
        ]
    }


def _with_kind_choices(change: Schema) -> Schema:
    kind = {"kind": {"type": "string", "enum": list(KINDS)}}
    return change | {"properties": change["properties"] | kind}


def _forbid_extra_keys(schema: Schema) -> Schema:
    return schema | {"additionalProperties": False}
