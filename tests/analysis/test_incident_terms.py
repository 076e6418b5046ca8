"""Terms of incidents: the same under other times, pod names and hashes; other causes are other incidents."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opsleuth.analysis.incident_terms import (
    ENOUGH,
    collect_incident_terms,
    compare_incidents,
    digest_words,
    strip_instance,
)

SAFE = "bcdfghjklmnpqrstvwxz2456789"
HEX = "0123456789abcdef"


def terms_of(pod: str, at: str, *, service: str = "checkout", kind: str = "out_of_memory") -> frozenset[str]:
    report: dict[str, Any] = {
        "causes": [{"service": service, "kind": kind, "entity": {"kind": "Pod", "name": pod}}],
        "alert": {"text": f"{pod} restarts since {at}", "service": "gateway", "labels": {}},
    }
    findings = [{"service": service, "signal": "metrics", "metric": "memory", "direction": "up", "onset": at}]
    return collect_incident_terms(
        report, findings, [(service, f"{at} {pod} OOMKilled after 1234 ms: request 9f86d081")]
    )


@given(st.text(HEX, min_size=8, max_size=10), st.text(SAFE, min_size=5, max_size=5), st.datetimes())
def test_terms_survive_other_times_pods_and_hashes(replica: str, tail: str, at: Any) -> None:
    again = terms_of(f"checkout-{replica}-{tail}", f"{at:%Y-%m-%dT%H:%M:%SZ}")
    assert compare_incidents(
        again, terms_of("checkout-7d9f8b6c5-x2x7k", "2026-03-03T14:00:00Z")
    ) == pytest.approx(1.0)


@pytest.mark.parametrize("other", [{"service": "payments"}, {"kind": "cpu"}])
def test_another_cause_is_another_incident(other: dict[str, str]) -> None:
    one = terms_of("checkout-7d9f8b6c5-x2x7k", "2026-03-03T14:00:00Z")
    assert (
        compare_incidents(one, terms_of("checkout-7d9f8b6c5-x2x7k", "2026-03-03T14:00:00Z", **other)) == 0.0
    )


def test_the_same_cause_with_nothing_else_in_common_is_not_enough() -> None:
    one = frozenset(
        {"cause:a|cpu", "alert:b|slow", "harmed:b", "finding:a|metrics|cpu|up", "line:a|1", "line:a|2"}
    )
    other = frozenset({"cause:a|cpu", "alert:c|down", "harmed:c", "finding:a|logs|errors|", "line:a|3"})
    assert compare_incidents(one, other) < ENOUGH


@pytest.mark.parametrize(
    ("pod", "workload"),
    [
        ("checkout-7d9f8b6c5-x2x7k", "checkout"),
        ("orders-db-0", "orders-db"),
        ("node-exporter-bcdfg", "node-exporter"),
        ("petsite", "petsite"),
        ("orders-api", "orders-api"),
    ],
)
def test_pods_are_named_by_their_workload(pod: str, workload: str) -> None:
    assert strip_instance(pod) == workload


def test_a_line_is_kept_as_a_digest() -> None:
    assert re.fullmatch(r"[0-9a-f]{12}", digest_words("cannot log in with hunter of the guild"))
    assert digest_words("took 12 ms") == digest_words("took 99 ms")
    assert digest_words("1234 5678") == ""
