"""Log messages: what counts, what is usual talk, and whom a message blames."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from platform_rows import END, ONSET, START, lines, recording

from opsleuth.analysis import log_messages, slow_database_calls
from opsleuth.analysis.fault_phrases import NAMES_CAUSE
from opsleuth.analysis.records import Finding, LogLine, Recording, ServiceDependency, TimeRange

REFUSED = "dial tcp: connect to http://{}:8080: connection refused"
HELLO = "handled a request"


def essence(findings: list[Finding]) -> list[tuple[str, str, str]]:
    return [(f.service, f.kind, f.direction) for f in findings]


def test_one_plain_line_is_enough() -> None:
    found = log_messages.find_fault_messages(
        recording(logs=lines("web", ["environment variable TOKEN is not set"]))
    )
    assert essence(found) == [("web", "config", "cause")]
    assert found[0].size == NAMES_CAUSE


def test_more_lines_weigh_more() -> None:
    one, ten = (
        log_messages.find_fault_messages(recording(logs=lines("web", ["no space left on device"] * n)))
        for n in (1, 10)
    )
    assert ten[0].size == 2 * one[0].size


def test_usual_talk_of_the_baseline_is_not_news() -> None:
    usual = lines("web", ["403 Forbidden", *[HELLO] * 9])
    found = recording(logs=lines("web", ["403 Forbidden", *[HELLO] * 9] * 3), logs_baseline=usual)
    assert log_messages.find_fault_messages(found) == []


def test_ten_times_the_usual_talk_is_news() -> None:
    usual = lines("web", ["403 Forbidden", *[HELLO] * 99])
    found = recording(logs=lines("web", ["403 Forbidden", *[HELLO] * 9] * 10), logs_baseline=usual)
    assert essence(log_messages.find_fault_messages(found)) == [("web", "permission", "cause")]


def test_talk_at_the_same_rate_before_the_onset_is_not_news() -> None:
    step = (END - START) / 100
    found = recording(logs=lines("web", ["deadlock detected"] * 100, START, step))
    assert log_messages.find_fault_messages(found) == []


def test_a_known_target_is_blamed_and_the_speaker_is_its_victim() -> None:
    found = recording(
        logs=lines("web", [REFUSED.format("cart.shop.svc.cluster.local")] * 3),
        topology=[ServiceDependency("web", "cart")],
    )
    assert essence(log_messages.find_fault_messages(found)) == [
        ("cart", "errors", "cause"),
        ("web", "dependency", "victim"),
    ]


def test_an_unknown_target_leaves_the_matter_with_the_speaker() -> None:
    found = log_messages.find_fault_messages(recording(logs=lines("web", [REFUSED.format("bank.example")])))
    assert essence(found) == [("web", "dependency", "cause")]


def test_a_platform_service_speaks_about_the_workload_that_it_names() -> None:
    line = LogLine(END, "kubelet", "Back-off restarting failed container", pod="web-7c9d8b6f5-x2k4p")
    assert essence(log_messages.find_fault_messages(recording(logs=[line]))) == [("web", "crash", "cause")]


def test_what_a_line_itself_calls_over_is_left_out() -> None:
    assert log_messages.find_fault_messages(recording(logs=lines("web", ["memory pressure resolved"]))) == []


def test_a_late_claim_of_the_onset_does_not_hide_what_began_before_it() -> None:
    found = recording(logs=lines("web", ["deadlock detected"] * 60, ONSET - 1200.0, 25.0))
    assert essence(log_messages.find_fault_messages(found)) == [("web", "locks", "cause")]


def test_talk_that_has_ceased_while_the_service_goes_on_is_over() -> None:
    early = lines("web", ["deadlock detected"] * 3, ONSET - 60.0)
    found = log_messages.find_fault_messages(
        recording(logs=[*early, *lines("web", [HELLO] * 30, ONSET, 30.0)])
    )
    assert [(f.kind, f.size, f.direction) for f in found] == [("locks", 0.0, "victim")]


def test_a_service_that_falls_silent_after_its_error_has_not_recovered() -> None:
    early = [
        *lines("web", [HELLO] * 30, ONSET - 900.0),
        *lines("web", ["deadlock detected"] * 3, ONSET - 60.0),
    ]
    assert essence(log_messages.find_fault_messages(recording(logs=early))) == [("web", "locks", "cause")]


def test_a_certificate_that_others_refuse_is_its_owners_matter() -> None:
    told = lines("web", ["cart: PKIX path validation failed", "call to https://cart failed: x509: expired"])
    found = log_messages.find_fault_messages(
        recording(logs=told, topology=[ServiceDependency("web", "cart")])
    )
    assert essence(found) == [("cart", "certificate", "cause"), ("web", "certificate", "victim")]


def test_lines_without_a_time_count_but_have_no_onset() -> None:
    found = log_messages.find_fault_messages(
        recording(logs=lines("web", ["no space left on device"], first=None))
    )
    assert [f.onset for f in found] == [None]


def test_nothing_recorded_finds_nothing() -> None:
    assert log_messages.find_fault_messages(recording()) == []
    assert log_messages.find_fault_messages(recording(logs=[], logs_baseline=[])) == []


def _world(web: str = "web", cart: str = "cart", mail: str = "mail") -> Recording:
    return recording(
        service=web,
        text=f"{web} is not well",
        logs=[
            *lines(web, [REFUSED.format(cart), "x509: certificate has expired"] * 4),
            *lines(cart, ["no space left on device", "Out of memory: Killed process 7"] * 2),
            *lines(mail, ["query took 2.5 s", "query took 1.5 s"]),
        ],
        topology=[ServiceDependency(web, cart)],
    )


NAMES = st.from_regex(r"[a-z]{4,12}(-[a-z]{3,8})?", fullmatch=True)


@given(st.lists(NAMES, min_size=3, max_size=3, unique=True))
def test_names_do_not_matter(names: list[str]) -> None:
    new = dict(zip(("web", "cart", "mail"), names, strict=True))
    expected = {
        (new[service], kind, direction)
        for service, kind, direction in essence(log_messages.find_fault_messages(_world()))
    }
    assert set(essence(log_messages.find_fault_messages(_world(*names)))) == expected


@given(st.data())
def test_the_order_of_lines_does_not_matter(data: st.DataObject) -> None:
    world = _world()
    mixed = data.draw(st.permutations(world.logs or ()))
    assert log_messages.find_fault_messages(replace(world, logs=mixed)) == log_messages.find_fault_messages(
        world
    )


def test_a_shift_of_all_times_shifts_the_onsets_and_nothing_else() -> None:
    world, shift = _world(), 1e6
    later = replace(
        world,
        alert=replace(world.alert, onset=ONSET + shift),
        window=TimeRange(START + shift, END + shift),
        logs=[replace(line, time=(line.time or 0.0) + shift) for line in world.logs or ()],
    )
    expected = [
        replace(f, onset=None if f.onset is None else f.onset + shift)
        for f in log_messages.find_fault_messages(world)
    ]
    assert log_messages.find_fault_messages(later) == expected


@pytest.mark.parametrize(
    ("message", "seconds"),
    [
        ("Database call completed in 10.01 seconds.", 10.01),
        ("query took 250ms", 0.25),
        ("LOG:  duration: 4500.5 ms  statement: SELECT 1", 4.5005),
        ("SQL executed after 3 s", 3.0),
        ("request took 12 s", None),
        ("database ready", None),
        ("database version 14 in use", None),
    ],
)
def test_durations_of_database_calls(message: str, seconds: float | None) -> None:
    assert slow_database_calls.parse_call_seconds(message) == seconds


def test_a_slow_median_is_found_and_told_in_seconds() -> None:
    found = slow_database_calls.find_slow_database_calls(
        lines("web", [f"db query took {n} s" for n in (2, 4, 9)])
    )
    assert [(f.service, f.kind, f.size) for f in found] == [("web", "slow_query", 4.0)]
    assert found[0].figures["slow"] == 3


def test_one_slow_call_among_quick_ones_is_not_enough() -> None:
    assert (
        slow_database_calls.find_slow_database_calls(
            lines("web", ["query took 9 s", "query took 5 ms", "query took 6 ms"])
        )
        == []
    )


def test_a_few_everyday_errors_are_no_news_where_little_was_written_before() -> None:
    everyday = 'duplicate key value violates unique constraint "uq_1"'
    quiet = lines("db", [HELLO] * 20, ONSET - 1500.0, 60.0)
    few = [*quiet, *lines("db", [everyday] * 2, ONSET, 200.0)]
    many = [*quiet, *lines("db", [everyday] * 40, ONSET, 10.0)]
    assert log_messages.find_fault_messages(recording(logs=few)) == []
    assert [f.kind for f in log_messages.find_fault_messages(recording(logs=many))] == ["errors"]
