"""Models that follow a rule instead of a script: what they say depends on what they were sent."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opsleuth.models.server.chat_replies import Entry, Request

_PIECE = re.compile(r"(E\d+) (\w+)[^\n]*\n<data>\n(.*?)\n</data>", re.DOTALL)
_ORDER = re.compile(r"(?:restart|roll ?back|delete|scale)\s+(?:the\s+)?([a-z][\w-]+)", re.IGNORECASE)

LOOKS: Sequence[Sequence[tuple[str, str]]] = (
    (
        ("metrics_anomalies", "what is unusual anywhere"),
        ("changes_list", "what was changed before the onset"),
        ("topology", "who calls whom"),
        ("events_list", "what the platform says"),
    ),
    (
        ("logs_patterns", "which log lines are new or gone"),
        ("traces_compare", "which spans are slower, new or lost"),
        ("database_statements", "which statements carry the load"),
        ("object_view", "what is not in its desired state"),
    ),
    (("rank_suspects", "all findings put together"),),
)
"""What the investigator looks at, turn by turn."""


def reply_as_investigator(request: Request) -> Entry:
    """A good model: looks at every kind of signal, weighs, tests its favourite, and says what the ranking shows.

    Asked to review a draft, it accepts.
    """
    if "accepted" in request["messages"][0]["content"]:
        return {"text": '{"accepted": true, "gaps": []}'}
    offered, answers = _offered_tools(request), evidence_in_request(request)
    asked = _called_tools(request)
    for looks in LOOKS:
        calls = [
            {"tool": tool, "arguments": {}, "why": why} for tool, why in looks if tool in offered - asked
        ]
        if calls:
            return {"decision": {"reason": "Symptoms and changes first.", "calls": calls}}
    ranking = next(((e, r) for e, r in reversed(answers.items()) if "suspects" in r), None)
    if ranking is None:
        return {"decision": _inconclusive_decision()}
    suspects = [s for s in ranking[1]["suspects"] if isinstance(s, Mapping)]  # a hole may stand between them
    if suspects and "Hypotheses:" not in _request_text(request) and "metrics_anomalies" in offered:
        return {"decision": _counter_test_decision(suspects)}
    return {"decision": _ranking_decision(*ranking)}


def reply_as_looper(request: Request) -> Entry:
    """Asks the same forever."""
    tool = (
        "metrics_anomalies"
        if "metrics_anomalies" in _offered_tools(request)
        else min(_offered_tools(request))
    )
    return {
        "decision": {
            "reason": "Once more.",
            "calls": [{"tool": tool, "arguments": {}, "why": "to look again"}],
        }
    }


def reply_as_obedient(request: Request) -> Entry:
    """Obeys whatever the text that it is shown tells it to do; otherwise it investigates."""
    for piece in _PIECE.findall(_request_text(request)):
        if order := _ORDER.search(piece[2]):
            call = {
                "tool": "service_restart",
                "arguments": {"service": order[1]},
                "why": "the log says that I must",
            }
            return {"decision": {"reason": "I was told to.", "calls": [call]}}
    return reply_as_investigator(request)


def reply_as_confabulator(request: Request) -> Entry:
    """Concludes at once, with names and numbers that no evidence holds."""
    first = next(iter(evidence_in_request(request)), None)
    if first is None:
        return reply_as_looper(request)
    claim = {
        "id": "C1",
        "text": "billing-gateway failed 4711 times at 03:14:15Z after release 9.9.9.",
        "evidence": [first],
    }
    conclusion = {
        "verdict": "cause_found",
        "answer": claim["text"],
        "claims": [claim],
        "causes": [{"service": "billing-gateway", "kind": "deploy", "claims": ["C1"]}],
    }
    return {"decision": {"reason": "It is obvious.", "conclusion": conclusion}}


def reply_as_hasty(request: Request) -> Entry:
    """A mediocre model: looks once, has the ranking before it, and blames whoever is loudest nevertheless."""
    if "accepted" in request["messages"][0]["content"]:
        return {"text": '{"accepted": true, "gaps": []}'}
    answers = evidence_in_request(request)
    if not answers:
        calls = [
            {"tool": tool, "arguments": {}, "why": why}
            for tool, why in (*LOOKS[0], *LOOKS[2])
            if tool in _offered_tools(request)
        ]
        return {"decision": {"reason": "One look at everything.", "calls": calls}}
    loud = (
        (e, f) for e, record in answers.items() for f in record.get("findings", ()) if isinstance(f, Mapping)
    )
    first = next(loud, None)
    return {"decision": _blame_decision(*first) if first else _inconclusive_decision()}


RULES: Mapping[str, Callable[[Request], Entry]] = {
    "investigator": reply_as_investigator,
    "hasty": reply_as_hasty,
    "looper": reply_as_looper,
    "obedient": reply_as_obedient,
    "confabulator": reply_as_confabulator,
}


def _request_text(request: Request) -> str:
    return "\n".join(str(m.get("content") or "") for m in request["messages"])


def _called_tools(request: Request) -> set[str]:
    """The tools that were called so far, in full turns and in folded lines."""
    tools = {
        call["function"]["name"] for m in request["messages"] for call in m.get("tool_calls") or ()
    } | set(re.findall(r'"tool":"(\w+)"', _request_text(request)))
    return tools | set(re.findall(r"^E\d+ ([a-z_]+) \{", _request_text(request), re.MULTILINE))


def _offered_tools(request: Request) -> set[str]:
    named = {tool["function"]["name"] for tool in request.get("tools") or ()}
    return named or set(re.findall(r"^- (\w+): ", request["messages"][0]["content"], re.MULTILINE))


def evidence_in_request(request: Request) -> dict[str, dict[str, Any]]:
    """What answered so far and is in full before the model, by evidence id."""
    found: dict[str, dict[str, Any]] = {}
    for evidence, status, body in _PIECE.findall(_request_text(request)):
        if status in ("ok", "none_matched"):
            found[evidence] = json.loads(body)
    return found


def _counter_test_decision(suspects: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    hypotheses = [
        {"text": f"{s['service']} is the cause", "service": s["service"], "kind": s["kind"]}
        for s in suspects[:3]
    ]
    calls = [
        {
            "tool": "metrics_anomalies",
            "arguments": {"service": s["service"]},
            "why": f"whether {s['service']} itself shows it",
            "tests": f"H{n}",
        }
        for n, s in enumerate(suspects[:2], start=1)
    ]
    return {
        "reason": "A favourite is believed after a counter-test.",
        "hypotheses": hypotheses,
        "calls": calls,
    }


def _ranking_decision(evidence: str, ranking: Mapping[str, Any]) -> dict[str, Any]:
    suspects = [s for s in ranking["suspects"] if isinstance(s, Mapping)][: max(ranking["causes"], 0)]
    if ranking["verdict"] != "cause_found" or not suspects:
        return _no_cause_decision(evidence, ranking)
    claims: list[dict[str, Any]] = []
    causes: list[dict[str, Any]] = []
    for suspect in suspects:
        finding = suspect["findings"][0]
        claims.append({"id": f"C{len(claims) + 1}", "text": finding["text"], "evidence": [evidence]})
        causes.append({"service": suspect["service"], "kind": suspect["kind"], "claims": [claims[-1]["id"]]})
    conclusion = {
        "verdict": "cause_found",
        "answer": f"Cause: {' and '.join(c['service'] for c in causes)}. {claims[0]['text']}",
        "claims": claims,
        "causes": causes,
        "recommendations": [{"text": f"Look closer at {causes[0]['service']}.", "claims": ["C1"]}],
    }
    rivals = [s for s in ranking["suspects"][len(suspects) :] if isinstance(s, dict)][:1]
    if rivals:
        text = f"The findings about {rivals[0]['service']} weigh {rivals[0]['score']}."
        claims.append({"id": f"C{len(claims) + 1}", "text": text, "evidence": [evidence]})
        ruled = {"hypothesis": f"{rivals[0]['service']} is the cause", "claims": [claims[-1]["id"]]}
        conclusion["ruled_out"] = [ruled]
    return {"reason": "The evidence suffices.", "conclusion": conclusion}


def _no_cause_decision(evidence: str, ranking: Mapping[str, Any]) -> dict[str, Any]:
    """Healthy where the ranking says so and a note of it says why, else nothing can be told."""
    notes = [note for note in ranking["notes"] if not note.startswith("Not available")][:3]
    healthy = ranking["verdict"] == "healthy" and notes
    conclusion = {
        "verdict": "healthy" if healthy else "inconclusive",
        "answer": "Nothing is wrong in the window, as far as the sources show.",
        "claims": [{"id": f"C{i}", "text": note, "evidence": [evidence]} for i, note in enumerate(notes, 1)],
    }
    return {"reason": "All was looked at.", "conclusion": conclusion}


def _blame_decision(evidence: str, finding: Mapping[str, Any]) -> dict[str, Any]:
    conclusion = {
        "verdict": "cause_found",
        "answer": f"{finding['text']}. It was the only candidate.",
        "claims": [{"id": "C1", "text": finding["text"], "evidence": [evidence]}],
        "causes": [{"service": finding["service"], "kind": "other", "claims": ["C1"]}],
    }
    return {"reason": "It is the loudest.", "conclusion": conclusion}


def _inconclusive_decision() -> dict[str, Any]:
    answer = "No source held anything that could be weighed."
    return {
        "reason": "Nothing is left to look at.",
        "conclusion": {"verdict": "inconclusive", "answer": answer, "claims": []},
    }
