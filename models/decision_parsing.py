"""From a reply to a decision, and back to the planner with every fault in words. Nothing is repaired or guessed."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from opsleuth.models.control_tools import (
    CONCLUDE,
    CONTROLS,
    HYPOTHESES,
    PLAN,
    PLAN_LISTS,
    control_functions,
    decision_schema,
)
from opsleuth.models.encoded_values import decode_encoded_values
from opsleuth.models.model_reply import ModelReply, ModelToolCall
from opsleuth.models.planner import MalformedReplyError
from opsleuth.state.calls import Risk
from opsleuth.state.decision import Decision
from opsleuth.state.json_types import JSON
from opsleuth.tools.spec import ToolSpec
from opsleuth.tools.tool_schema import describe_tool, parameters_schema, tool_function_schema

WHY, TESTS, AGAIN = "why", "tests", "repeat_of"
"""What a call carries besides the tool's own arguments. `tests` is only told in words: it may open the `why` too."""
_TESTS_FIRST = re.compile(r"\W{0,3}(H[1-9]\d{0,4})\b\W*")
_SAID_ONCE = frozenset({"exact service name", "from; default: window start", "before; default: window end"})
"""Descriptions of arguments that the prompt gives once for all tools."""
_BOUNDS = ("minimum", "maximum", "minItems", "maxItems")
"""What appears in the schema of an argument where its description does not say it."""

_CONTROL_SCHEMAS = {made["function"]["name"]: made["function"]["parameters"] for made in control_functions()}

_KEYS = frozenset(Decision.model_fields)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_MOST_FAULTS = 5
_MOST_OPENINGS = 1_000
"""Braces that are tried as the beginning of an object, so that hostile text costs no time."""


def planner_functions(specs: Sequence[ToolSpec], *, lean: bool = False) -> list[dict[str, Any]]:
    """All tools of a planner, the real ones first, as OpenAI-compatible tool calling takes them.

    `lean` leaves out what a tool is not for.
    """
    return [*(_function_with_purpose(spec, lean=lean) for spec in specs), *control_functions()]


def response_schema(specs: Sequence[ToolSpec]) -> dict[str, Any]:
    """The JSON schema of a decision with these tools."""
    return decision_schema([_call_schema(spec) for spec in specs])


def decision_from_calls(reply: ModelReply, specs: Sequence[ToolSpec]) -> Decision:
    """The decision that a reply's tool calls make up. Raises MalformedReplyError with every fault.

    A call whose arguments cannot be read costs itself alone where other calls can be made; `list_unreadable_calls` names it.
    """
    faults = list_unreadable_calls(reply)
    readable = [call for call in reply.calls if call.broken is None]
    names = {call.name for call in readable}
    if faults and (CONCLUDE in names or not names - set(CONTROLS)):
        raise MalformedReplyError("; ".join(faults))
    known = {spec.name: spec for spec in specs}
    document: dict[str, Any] = {"plan": [], "hypotheses": [], "calls": []}
    for call in readable:
        if call.name in CONTROLS:
            _apply_control_call(call, document)
        else:
            document["calls"].append(_call_from_tool_call(call, known.get(call.name)))
    document["reason"] = (
        _reason_from_text(reply.text) or document.pop("reason", "") or _first_purpose(document)
    )
    return validate_decision(document)


def list_unreadable_calls(reply: ModelReply) -> list[str]:
    """What is wrong with each call whose arguments are no JSON object."""
    return [
        f"the arguments of {call.name} are not a JSON object: {call.broken}"
        for call in reply.calls
        if call.broken is not None
    ]


def decision_from_text(text: str) -> Decision:
    """The decision that a text holds as its one JSON object. Raises MalformedReplyError."""
    found = [value for value in find_json_objects(text) if _KEYS & value.keys()]
    distinct = [value for i, value in enumerate(found) if value not in found[:i]]
    if not distinct:
        raise MalformedReplyError(_no_decision_text(text))
    if len(distinct) > 1:
        raise MalformedReplyError(
            f"the reply holds {len(distinct)} different decisions: send exactly one JSON object"
        )
    document = dict(distinct[0])
    if isinstance(calls := document.get("calls"), list):
        document["calls"] = [_rename_purpose(call) if isinstance(call, Mapping) else call for call in calls]
    return validate_decision(document)


def validate_decision(document: Mapping[str, Any]) -> Decision:
    """A checked decision. Raises MalformedReplyError that says for each fault where it is and what is accepted."""
    try:
        made = Decision.model_validate({key: value for key, value in document.items() if value is not None})
    except ValidationError as error:
        malformed = MalformedReplyError(describe_faults(error))
        concluded = document.get("conclusion")
        malformed.conclusion = concluded if isinstance(concluded, Mapping) else None
        raise malformed from None
    for call in made.calls:
        if not call.purpose.strip():
            raise MalformedReplyError(f"{call.tool}: say in `{WHY}` what this call is to find out")
    return made


def describe_faults(error: ValidationError) -> str:
    """Where a document is wrong and what is accepted there; no value of it."""
    faults = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" if e["loc"] else e["msg"] for e in error.errors()]
    more = f" (and {len(faults) - _MOST_FAULTS} more)" if len(faults) > _MOST_FAULTS else ""
    return "; ".join(faults[:_MOST_FAULTS]) + more


def check_reply_complete(reply: ModelReply) -> None:
    """Raise Malformed for a reply that was cut, refused, filtered, or that holds nothing."""
    if reply.refusal:
        raise MalformedReplyError(f"the model refused: {reply.refusal[:300]}")
    if reply.finish == "length":
        raise MalformedReplyError(
            "the reply was cut at its longest length: decide in fewer words and fewer calls"
        )
    if reply.finish == "content_filter":
        raise MalformedReplyError("the endpoint's content filter took the reply away")
    if not reply.finish:
        raise MalformedReplyError("the reply ended without an end mark: it may be cut")
    if not reply.text.strip() and not reply.calls:
        raise MalformedReplyError("the reply is empty: call tools, or conclude")


def _function_with_purpose(spec: ToolSpec, *, lean: bool) -> dict[str, Any]:
    """A real tool, lean: it is sent with every turn. Raises ValueError for an argument that every call carries."""
    made = tool_function_schema(spec)
    about = made["function"]
    clash = {WHY, TESTS, AGAIN} & about["parameters"]["properties"].keys()
    if clash:
        raise ValueError(
            f"{spec.name} has an argument {', '.join(clash)}, which every call carries: rename it"
        )
    declared = (WHY,) if spec.risk is Risk.READ else (WHY, AGAIN)
    whole = parameters_schema(spec)["properties"]
    own = {
        name: _shorten_argument_schema(name, of) | _unsaid_bounds(name, whole[name])
        for name, of in about["parameters"]["properties"].items()
    }
    required = [*about["parameters"].get("required", ()), WHY]
    form = about["parameters"] | {
        "properties": own | {name: {"type": "string"} for name in declared},
        "required": required,
    }
    words = describe_tool(spec)
    if lean:
        words = words.replace(f" Not for: {spec.not_for}", "")
    if all(of.get("type") not in ("array", "object") for of in own.values()):
        words = words.partition(" Example: ")[0]  # plain arguments need none
    return made | {"function": {"name": spec.name, "description": words, "parameters": form}}


def _shorten_argument_schema(name: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """An argument's schema without what the prompt says once for all tools, and without defaults."""
    known = name == "limit" or form.get("description") in _SAID_ONCE
    left_out = {"default", *_BOUNDS} | ({"description"} if known else set())
    return {key: value for key, value in form.items() if key not in left_out}


def _unsaid_bounds(name: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """The bounds of an argument's number or list; a smallest of 0 or 1 goes without saying, and so does any bound in words."""
    if name != "limit" and " to " in str(form.get("description")):
        return {}
    small = ("minimum", "minItems")
    return {key: form[key] for key in _BOUNDS if key in form and not (key in small and form[key] in (0, 1))}


def _carried_fields(spec: ToolSpec) -> Sequence[str]:
    return (WHY, TESTS) if spec.risk is Risk.READ else (WHY, TESTS, AGAIN)


def _call_schema(spec: ToolSpec) -> dict[str, Any]:
    properties = {
        "tool": {"const": spec.name},
        "arguments": {"additionalProperties": False} | parameters_schema(spec),
        WHY: {"type": "string", "minLength": 3, "maxLength": 200},
        TESTS: {"type": "string", "pattern": "^H[1-9][0-9]{0,2}$"},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": ["tool", "arguments", WHY],
        "additionalProperties": False,
    }


def _apply_control_call(call: ModelToolCall, document: dict[str, Any]) -> None:
    arguments = decode_encoded_values(dict(call.arguments), _CONTROL_SCHEMAS[call.name])
    if call.name == CONCLUDE:
        if "conclusion" in document:
            raise MalformedReplyError("the reply concludes twice: send one conclusion")
        document["reason"] = str(arguments.pop("reason", "") or "the evidence suffices")
        document["conclusion"] = arguments
        return
    document["plan" if call.name == PLAN else "hypotheses"] += (
        _plan_steps(arguments) if call.name == PLAN else _hypothesis_changes(arguments)
    )


def _plan_steps(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lists of plan_update as changes of single steps."""
    if unknown := arguments.keys() - PLAN_LISTS.keys():
        raise MalformedReplyError(
            f"{PLAN} has no {', '.join(sorted(unknown))}: its lists are {', '.join(PLAN_LISTS)}"
        )
    steps = []
    for name, status in PLAN_LISTS.items():
        items = arguments.get(name) or []
        if not isinstance(items, list):
            raise MalformedReplyError(f"{PLAN}: {name} is a list of texts")
        steps += [{"text" if name == "add" else "id": item, "status": status} for item in items]
    return steps


def _hypothesis_changes(arguments: Mapping[str, Any]) -> list[Any]:
    items = arguments.get("changes")
    if not isinstance(items, list) or len(arguments) > 1:
        raise MalformedReplyError(f"{HYPOTHESES} takes exactly one argument, the list 'changes'")
    return [_drop_nulls(item) for item in items]


def _call_from_tool_call(call: ModelToolCall, spec: ToolSpec | None) -> dict[str, Any]:
    """A call's own arguments apart from what every call carries; an unknown tool is told later, with the nearest name."""
    carried = _carried_fields(spec) if spec else (WHY, TESTS)
    own = {key: value for key, value in call.arguments.items() if key not in carried}
    if spec is not None:
        own = decode_encoded_values(own, parameters_schema(spec))
    found = {key: call.arguments[key] for key in carried if call.arguments.get(key) not in (None, "")}
    return _rename_purpose({"tool": call.name, "arguments": own} | found)


def _rename_purpose(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call with its purpose under the name that the state has for it."""
    renamed = {key: value for key, value in call.items() if key != WHY and value is not None}
    if "arguments" in renamed:
        renamed["arguments"] = decode_encoded_values(renamed["arguments"], {"type": "object"})
    why = call.get(WHY)
    if isinstance(why, str) and (named := _TESTS_FIRST.match(why)) and TESTS not in renamed:
        renamed[TESTS], why = named[1], why[named.end() :]
    return renamed | ({"purpose": why} if why is not None else {})


def _drop_nulls(item: JSON) -> JSON:
    """A list item without its nulls: models send them for what they leave out."""
    return {k: v for k, v in item.items() if v is not None} if isinstance(item, Mapping) else item


def find_json_objects(text: str) -> Iterator[dict[str, Any]]:
    """Every outermost JSON object in a text, thoughts left out."""
    text = _THOUGHT.sub("", text)
    decoder, at = json.JSONDecoder(), text.find("{")
    for _ in range(_MOST_OPENINGS):
        if at < 0:
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (json.JSONDecodeError, RecursionError):
            end = at + 1
        else:
            if isinstance(value, dict):
                yield value
        at = text.find("{", end)


def _no_decision_text(text: str) -> str:
    try:
        json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        return f"the reply is not a JSON object with the fields of a decision ({why}): send one, and nothing else"
    return f"the reply is JSON but not a decision: it needs {', '.join(sorted(_KEYS))}"


def _reason_from_text(text: str) -> str:
    return " ".join(_THOUGHT.sub("", text).split())[:1_000]


def _first_purpose(document: Mapping[str, Any]) -> str:
    purposes = [call["purpose"] for call in document["calls"] if isinstance(call.get("purpose"), str)]
    return purposes[0][:1_000] if purposes else ""
