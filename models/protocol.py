"""From a reply to a decision, and back to the planner with every fault in words. Nothing is repaired or guessed."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from opsleuth.models.controls import (
    CONCLUDE,
    CONTROLS,
    HYPOTHESES,
    PLAN,
    PLAN_LISTS,
    control_functions,
    decision_schema,
)
from opsleuth.models.planner import Malformed
from opsleuth.models.reply import Reply, ToolCall
from opsleuth.state.calls import Risk
from opsleuth.state.decision import Decision
from opsleuth.tools.schema import description, function, parameters
from opsleuth.tools.spec import ToolSpec

WHY, TESTS, AGAIN = "why", "tests", "repeat_of"
"""What a call carries besides the tool's own arguments. `tests` is only told in words: it may open the `why` too."""
_TESTS_FIRST = re.compile(r"\W{0,3}(H[1-9]\d{0,4})\b\W*")
_SAID_ONCE = frozenset({"exact service name", "from; default: window start", "before; default: window end"})
"""Descriptions of arguments that the prompt gives once for all tools."""
_BOUNDS = frozenset({"default", "minimum", "maximum", "minItems", "maxItems"})
"""What the check of a request explains to whoever oversteps it."""

_KEYS = frozenset(Decision.model_fields)
_THOUGHT = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_MOST_FAULTS = 5
_MOST_OPENINGS = 1_000
"""Braces that are tried as the beginning of an object, so that hostile text costs no time."""


def tool_functions(specs: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """All tools of a planner, the real ones first, as OpenAI-compatible tool calling takes them."""
    return [*(_with_purpose(spec) for spec in specs), *control_functions()]


def response_schema(specs: Sequence[ToolSpec]) -> dict[str, Any]:
    """The JSON schema of a decision with these tools."""
    return decision_schema([_call_form(spec) for spec in specs])


def decision_of_calls(reply: Reply, specs: Sequence[ToolSpec]) -> Decision:
    """The decision that a reply's tool calls make up. Raises Malformed with every fault."""
    if broken := [call for call in reply.calls if call.broken is not None]:
        raise Malformed(
            "; ".join(f"the arguments of {c.name} are no JSON object: {c.broken}" for c in broken)
        )
    known = {spec.name: spec for spec in specs}
    document: dict[str, Any] = {"plan": [], "hypotheses": [], "calls": []}
    for call in reply.calls:
        if call.name in CONTROLS:
            _control(call, document)
        else:
            document["calls"].append(_request(call, known.get(call.name)))
    document["reason"] = _sentence(reply.text) or document.pop("reason", "") or _first_purpose(document)
    return decision(document)


def decision_of_text(text: str) -> Decision:
    """The decision that a text holds as its one JSON object. Raises Malformed."""
    found = [value for value in objects(text) if _KEYS & value.keys()]
    distinct = [value for i, value in enumerate(found) if value not in found[:i]]
    if not distinct:
        raise Malformed(_no_object(text))
    if len(distinct) > 1:
        raise Malformed(f"the reply holds {len(distinct)} different decisions: send exactly one JSON object")
    document = dict(distinct[0])
    if isinstance(calls := document.get("calls"), list):
        document["calls"] = [_renamed(call) if isinstance(call, Mapping) else call for call in calls]
    return decision(document)


def decision(document: Mapping[str, Any]) -> Decision:
    """A checked decision. Raises Malformed that says for each fault where it is and what is accepted."""
    try:
        made = Decision.model_validate({key: value for key, value in document.items() if value is not None})
    except ValidationError as error:
        raise Malformed(faults_in_words(error)) from None
    for call in made.calls:
        if not call.purpose.strip():
            raise Malformed(f"{call.tool}: say in `{WHY}` what this call is to find out")
    return made


def faults_in_words(error: ValidationError) -> str:
    """Where a document is wrong and what is accepted there; no value of it."""
    faults = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" if e["loc"] else e["msg"] for e in error.errors()]
    more = f" (and {len(faults) - _MOST_FAULTS} more)" if len(faults) > _MOST_FAULTS else ""
    return "; ".join(faults[:_MOST_FAULTS]) + more


def check_whole(reply: Reply) -> None:
    """Raise Malformed for a reply that was cut, refused, filtered, or that holds nothing."""
    if reply.refusal:
        raise Malformed(f"the model refused: {reply.refusal[:300]}")
    if reply.finish == "length":
        raise Malformed("the reply was cut at its longest length: decide in fewer words and fewer calls")
    if reply.finish == "content_filter":
        raise Malformed("the endpoint's content filter took the reply away")
    if not reply.finish:
        raise Malformed("the reply ended without an end mark: it may be cut")
    if not reply.text.strip() and not reply.calls:
        raise Malformed("the reply is empty: call tools, or conclude")


def _with_purpose(spec: ToolSpec) -> dict[str, Any]:
    """A real tool, lean: it is sent with every turn. Raises ValueError for an argument that every call carries."""
    made = function(spec)
    about = made["function"]
    clash = {WHY, TESTS, AGAIN} & about["parameters"]["properties"].keys()
    if clash:
        raise ValueError(
            f"{spec.name} has an argument {', '.join(clash)}, which every call carries: rename it"
        )
    declared = (WHY,) if spec.risk is Risk.READ else (WHY, AGAIN)
    own = {name: _short(name, of) for name, of in about["parameters"]["properties"].items()}
    required = [*about["parameters"].get("required", ()), WHY]
    form = about["parameters"] | {
        "properties": own | {name: {"type": "string"} for name in declared},
        "required": required,
    }
    words = description(spec)
    if all(of.get("type") not in ("array", "object") for of in own.values()):
        words = words.partition(" Example: ")[0]  # plain arguments need none
    return made | {"function": {"name": spec.name, "description": words, "parameters": form}}


def _short(name: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """An argument's schema without what the prompt says once for all tools, and without defaults and bounds."""
    known = name == "limit" or form.get("description") in _SAID_ONCE
    left_out = _BOUNDS | ({"description"} if known else set())
    return {key: value for key, value in form.items() if key not in left_out}


def _carried(spec: ToolSpec) -> Sequence[str]:
    return (WHY, TESTS) if spec.risk is Risk.READ else (WHY, TESTS, AGAIN)


def _call_form(spec: ToolSpec) -> dict[str, Any]:
    properties = {
        "tool": {"const": spec.name},
        "arguments": parameters(spec) | {"additionalProperties": False},
        WHY: {"type": "string", "minLength": 3, "maxLength": 200},
        TESTS: {"type": "string", "pattern": "^H[1-9][0-9]{0,2}$"},
    }
    return {
        "type": "object",
        "properties": properties,
        "required": ["tool", "arguments", WHY],
        "additionalProperties": False,
    }


def _control(call: ToolCall, document: dict[str, Any]) -> None:
    arguments = dict(call.arguments)
    if call.name == CONCLUDE:
        if "conclusion" in document:
            raise Malformed("the reply concludes twice: send one conclusion")
        document["reason"] = str(arguments.pop("reason", "") or "the evidence suffices")
        document["conclusion"] = arguments
        return
    document["plan" if call.name == PLAN else "hypotheses"] += (
        _steps(arguments) if call.name == PLAN else _changes(arguments)
    )


def _steps(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The lists of plan_update as changes of single steps."""
    if unknown := arguments.keys() - PLAN_LISTS.keys():
        raise Malformed(f"{PLAN} has no {', '.join(sorted(unknown))}: its lists are {', '.join(PLAN_LISTS)}")
    steps = []
    for name, status in PLAN_LISTS.items():
        items = arguments.get(name) or []
        if not isinstance(items, list):
            raise Malformed(f"{PLAN}: {name} is a list of texts")
        steps += [{"text" if name == "add" else "id": item, "status": status} for item in items]
    return steps


def _changes(arguments: Mapping[str, Any]) -> list[Any]:
    items = arguments.get("changes")
    if not isinstance(items, list) or len(arguments) > 1:
        raise Malformed(f"{HYPOTHESES} takes exactly one argument, the list 'changes'")
    return [_plain(item) for item in items]


def _request(call: ToolCall, spec: ToolSpec | None) -> dict[str, Any]:
    """A call's own arguments apart from what every call carries; an unknown tool is told later, with the nearest name."""
    carried = _carried(spec) if spec else (WHY, TESTS)
    own = {key: value for key, value in call.arguments.items() if key not in carried}
    found = {key: call.arguments[key] for key in carried if call.arguments.get(key) not in (None, "")}
    return _renamed({"tool": call.name, "arguments": own} | found)


def _renamed(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call with its purpose under the name that the state has for it."""
    renamed = {key: value for key, value in call.items() if key != WHY and value is not None}
    why = call.get(WHY)
    if isinstance(why, str) and (named := _TESTS_FIRST.match(why)) and TESTS not in renamed:
        renamed[TESTS], why = named[1], why[named.end() :]
    return renamed | ({"purpose": why} if why is not None else {})


def _plain(item: Any) -> Any:  # noqa: ANN401 - what the model sent
    """A list item without its nulls: models send them for what they leave out."""
    return {k: v for k, v in item.items() if v is not None} if isinstance(item, Mapping) else item


def objects(text: str) -> Iterator[dict[str, Any]]:
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


def _no_object(text: str) -> str:
    try:
        json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        why = error.msg if isinstance(error, json.JSONDecodeError) else "nested too deeply"
        return (
            f"the reply is no JSON object with the fields of a decision ({why}): send one, and nothing else"
        )
    return f"the reply is JSON but no decision: it needs {', '.join(sorted(_KEYS))}"


def _sentence(text: str) -> str:
    return " ".join(_THOUGHT.sub("", text).split())[:1_000]


def _first_purpose(document: Mapping[str, Any]) -> str:
    purposes = [call["purpose"] for call in document["calls"] if isinstance(call.get("purpose"), str)]
    return purposes[0][:1_000] if purposes else ""
