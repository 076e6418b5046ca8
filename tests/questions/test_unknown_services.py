"""Services that a question asks about and nobody knows."""

import pytest

from opsleuth.questions.unknown_services import (
    find_names_without_evidence,
    find_question_subjects,
    find_unknown_services,
    label_unknown_services,
)
from opsleuth.state.conclusion import Conclusion
from opsleuth.state.run_status import Verdict

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
    assert find_unknown_services(question, KNOWN) == ("billing",)


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
    assert find_unknown_services(question, KNOWN) == ()


def test_what_the_evidence_names_is_no_stranger() -> None:
    assert find_names_without_evidence(("billing", "ledger"), ["pods of billing: 3"]) == ("ledger",)


def test_an_answer_about_something_else_says_so_and_decides_nothing() -> None:
    found = Conclusion(verdict=Verdict.CAUSE_FOUND, answer="Cause: orders-db.")
    said = label_unknown_services(found, ["billing"], "orders-api")
    assert said.verdict is Verdict.INCONCLUSIVE
    assert said.answer.startswith("There is no data on billing")
    assert said.answer.endswith("What follows is about orders-api. Cause: orders-db.")
    assert (
        label_unknown_services(Conclusion(verdict=Verdict.ANSWERED, answer='{"x": 1}'), ["b"], "a").answer
        == '{"x": 1}'
    )


@pytest.mark.parametrize(
    "question",
    [
        "why do baskets fail?",
        "Why are invoices late?",
        "baskets are empty since 14:00Z",
        "why does login fail?",
        "why is search slow?",
        "Why is revenue down?",
        "What happened to yesterday?",
        "why have parcels been lost since noon?",
        "Why do vouchers get rejected?",
        "why is upload broken",
    ],
)
def test_an_ordinary_word_of_a_question_names_no_service(question: str) -> None:
    assert find_unknown_services(question, KNOWN) == ()


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("why is baskets-api slow?", "baskets-api"),
        ("Why do the baskets pods crash?", "baskets"),
        ("the vouchers service returns 500", "vouchers"),
        ("why does ledger time out?", "ledger"),
    ],
)
def test_a_word_in_the_shape_or_place_of_a_service_is_one(question: str, name: str) -> None:
    assert find_unknown_services(question, KNOWN) == (name,)


@pytest.mark.parametrize("answer", ['```json\n{"x": 1}\n```', '[{"x": 1}]', '{"x": 1}'])
def test_an_answer_in_json_keeps_its_form(answer: str) -> None:
    found = Conclusion(verdict=Verdict.ANSWERED, answer=answer)
    assert label_unknown_services(found, ["ledger"], "orders-api").answer == answer


@pytest.mark.parametrize("verb", ["does", "did", "do", "is", "was", "has", "can", "will", "would"])
@pytest.mark.parametrize("subject", ["app", "the api", "database", "our backend", "service", "pods"])
@pytest.mark.parametrize("state", ["fail", "failing", "crash since 13:40Z", "get slow"])
def test_a_verb_before_a_general_word_is_no_service(verb: str, subject: str, state: str) -> None:
    assert list(find_question_subjects(f"why {verb} {subject} {state}?")) == []
