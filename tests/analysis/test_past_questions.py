"""Questions about what is over."""

import pytest

from opsleuth.analysis.past_questions import asks_about_past
from opsleuth.analysis.records import AlertFacts


@pytest.mark.parametrize(
    "text", ["why did {} die?", "what killed {}?", "{} crashed", "why was {} down?", "{} restarted at night"]
)
@pytest.mark.parametrize("service", ["reportd", "cart-api"])
def test_past_question_about_the_service(text: str, service: str) -> None:
    assert asks_about_past(AlertFacts(text.format(service), service), service)
    assert not asks_about_past(AlertFacts(text.format(service), service), "other")


@pytest.mark.parametrize("text", ["why is {} down?", "{} is failing", "HighErrorRate of {}"])
def test_question_about_the_present(text: str) -> None:
    assert not asks_about_past(AlertFacts(text.format("reportd"), "reportd"), "reportd")
