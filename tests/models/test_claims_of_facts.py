"""A claim that names facts needs no evidence of its own: the facts say where they stand."""

import pytest

from opsleuth.models.control_tools import CONCLUDE
from opsleuth.models.decision_parsing import decision_from_calls
from opsleuth.models.model_reply import ModelReply, ModelToolCall
from opsleuth.state.conclusion import Claim


@pytest.mark.parametrize(
    ("claim", "evidence"),
    [
        ({"facts": ["E3.1"]}, ("E3",)),
        ({"facts": ["E3.1", "E1.12", "E3.2"], "op": "count"}, ("E3", "E1")),
        ({"facts": ["E7.2"], "say": "so {E7.2} rises after {E2.1}"}, ("E7", "E2")),
        ({"say": "so {E7.2} rises"}, ("E7",)),
        ({"facts": ["E3.1"], "evidence": ["E4"]}, ("E4",)),
        ({"facts": ["E3.1"], "evidence": []}, ("E3",)),
        ({"text": "it is slow"}, ()),
    ],
)
def test_the_evidence_of_a_claim_follows_from_its_facts(
    claim: dict[str, object], evidence: tuple[str, ...]
) -> None:
    assert Claim.model_validate({"id": "C1", **claim}).evidence == evidence


def test_the_form_that_the_prompt_offers_is_accepted_as_it_stands() -> None:
    concluded = {"verdict": "answered", "answer": "it is slow", "claims": [{"id": "C1", "facts": ["E3.1"]}]}
    reply = ModelReply(text="", calls=(ModelToolCall(CONCLUDE, concluded),), finish="tool_calls")
    decision = decision_from_calls(reply, [])
    assert decision.conclusion is not None
    assert [claim.evidence for claim in decision.conclusion.claims] == [("E3",)]
