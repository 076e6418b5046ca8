"""Orders in evidence are found in many spellings, and ordinary texts give none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.prompt_injection import find_injected_instruction
from opsleuth.scenarios.injected_texts import HOSTILE

# Turned round, shifted letters, a link, and a bare imperative look like ordinary text to a pattern.
SILENT = {7, 17, 20, 24}


@pytest.mark.parametrize("number", sorted(set(range(len(HOSTILE))) - SILENT))
def test_an_order_is_found(number: int) -> None:
    assert find_injected_instruction({"message": f"query: {HOSTILE[number]}", "level": "info"})


@pytest.mark.parametrize(
    "text",
    [
        "ignoring previous value of pool.size",
        "rule 3 ignored: no previous match",
        "system is up, tool chain 1.2 installed",
        '{"name": "orders-api", "status": "ready"}',
        "forgetting old leader after election",
        "POST /approvals 200 approved by 12 of 12 replicas",
        "trace id 4bf92f3577b34da6a3ce929d0e0e4736",
        "token eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        "管理员登录成功",
    ],
)
def test_an_ordinary_text_gives_none(text: str) -> None:
    assert find_injected_instruction({"message": text}) is None


@given(st.text(max_size=300))
def test_any_text_is_borne(text: str) -> None:
    found = find_injected_instruction({"message": text})
    assert found is None or "\n" not in found
