"""Client spans without the server's: who does not answer, and who is only sampled away."""

import pytest

from opsleuth.analysis.records import AlertFacts, Recording, TimeRange, TraceSpan
from opsleuth.analysis.unanswered import find_unanswered_calls

ONSET = 1000.0


def call(
    number: int, start: float, *, answered: bool, peer: str = "cart", kind: str = "client"
) -> list[TraceSpan]:
    client = TraceSpan(f"t{number}", "c", None, "web", "GET /", start, 5.0, kind=kind, peer=peer)
    server = TraceSpan(f"t{number}", "s", "c", "cart", "GET /", start, 4.0, kind="server")
    return [client, server] if answered else [client]


def recording(*calls: list[TraceSpan]) -> Recording:
    spans = [span for spans in calls for span in spans]
    return Recording(AlertFacts("web fails", "web", onset=ONSET), TimeRange(0.0, 2000.0), spans=spans)


def before(peer: str = "cart", kind: str = "client") -> list[list[TraceSpan]]:
    return [call(n, 100.0 + n, answered=True, peer=peer, kind=kind) for n in range(20)]


@pytest.mark.parametrize("peer", ["cart", "cart:8080", "cart.store.svc.cluster.local:8080"])
def test_server_whose_spans_vanish_while_it_is_asked(peer: str) -> None:
    after = [call(100 + n, 1100.0 + n, answered=False, peer=peer) for n in range(20)]
    [finding] = find_unanswered_calls(recording(*before(peer), *after))
    assert (finding.service, finding.direction, finding.figures["asked"]) == ("cart", "cause", 20)


@pytest.mark.parametrize("answered", [10, 20])
def test_server_that_still_answers_a_good_part_is_not_silent(answered: int) -> None:
    after = [call(100 + n, 1100.0 + n, answered=n < answered) for n in range(20)]
    assert find_unanswered_calls(recording(*before(), *after)) == []


def test_server_that_never_wrote_spans_is_not_silent() -> None:
    unseen = [call(n, 100.0 + n, answered=False) for n in range(40)]
    assert (
        find_unanswered_calls(
            recording(*unseen, *[call(100 + n, 1100.0 + n, answered=False) for n in range(20)])
        )
        == []
    )


def test_spans_without_a_kind_say_nothing() -> None:
    after = [call(100 + n, 1100.0 + n, answered=False, kind="") for n in range(20)]
    assert find_unanswered_calls(recording(*before(kind=""), *after)) == []
