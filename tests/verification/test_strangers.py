"""Services that a question asks about and nobody knows."""

import pytest

from opsleuth.state.conclusion import Conclusion
from opsleuth.state.outcome import Verdict
from opsleuth.verification.strangers import labelled, strangers, unseen

KNOWN = ("orders-api", "orders-db", "inventory", "payments")


@pytest.mark.parametrize(
    "question",
    [
        "why is billing slow?",
        "Why does the billing service fail?",
        "billing is slow since 14:00Z",
        "The billing API returns 500",
        "what is wrong with billing",
        "investigate billing",
        "The page is slow. Why is billing down?",
        "Orders-api is slow, and why is billing failing?",
    ],
)
def test_one_that_nobody_knows(question: str) -> None:
    assert strangers(question, KNOWN) == ("billing",)


@pytest.mark.parametrize(
    "question",
    [
        "why is orders-api slow?",
        "Why are orders slow?",
        "orders API is slow since 14:00Z",
        "why is it slow? Please answer in German",
        "why is it slow?",
        "The site is down",
        "Why is the latency high?",
        "What is wrong in the shop?",
        "why are all requests failing",
        "Which service is to blame?",
        "the failing service returns 500",
        "排查订单接口最近半个小时突然变慢的原因",
        "",
    ],
)
def test_no_stranger(question: str) -> None:
    assert strangers(question, KNOWN) == ()


def test_what_the_evidence_names_is_no_stranger() -> None:
    assert unseen(("billing", "ledger"), ["pods of billing: 3"]) == ("ledger",)


def test_an_answer_about_something_else_says_so_and_decides_nothing() -> None:
    found = Conclusion(verdict=Verdict.CAUSE_FOUND, answer="Cause: orders-db.")
    said = labelled(found, ["billing"], "orders-api")
    assert said.verdict is Verdict.INCONCLUSIVE
    assert said.answer.startswith("There is no data on billing")
    assert said.answer.endswith("What follows is about orders-api. Cause: orders-db.")
    assert labelled(Conclusion(verdict=Verdict.ANSWERED, answer='{"x": 1}'), ["b"], "a").answer == '{"x": 1}'
