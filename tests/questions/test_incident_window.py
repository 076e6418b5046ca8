"""The window and the services that a question names: exactly, or refused, never guessed."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from opsleuth.questions.incident_window import ZonelessTimeError, window_from_question
from opsleuth.questions.mentioned_services import MentionedServices, find_mentioned_services
from opsleuth.state.clock import format_timestamp
from opsleuth.state.local_times import LocalTimes

NOW = datetime(2026, 11, 29, 14, 30, tzinfo=UTC)
HALF_HOUR_QUESTION = "排查订单接口最近半个小时突然变慢的原因，并给出处理建议"


def span(question: str, anchor: datetime | None = None) -> tuple[str, str] | None:
    window = window_from_question(question, now=NOW, anchor=anchor)
    return (f"{window.start:%dT%H:%M}", f"{window.end:%dT%H:%M}") if window else None


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        (HALF_HOUR_QUESTION, ("29T14:00", "29T14:30")),
        ("orders API is slow since 14:00Z", ("29T14:00", "29T14:30")),
        ("orders API is slow since 15:00Z", ("28T15:00", "29T14:30")),
        ("slow since 2026-11-28T09:00Z", ("28T09:00", "29T14:30")),
        ("slow since 2026-11-29 22:00+08:00", ("29T14:00", "29T14:30")),
        ("slow since 14:00 UTC", ("29T14:00", "29T14:30")),
        ("slow since 22:00 UTC+8", ("29T14:00", "29T14:30")),
        ("slow since 2pm UTC", ("29T14:00", "29T14:30")),
        ("what broke in the last half hour?", ("29T14:00", "29T14:30")),
        ("what broke in the last half an hour?", ("29T14:00", "29T14:30")),
        ("what broke in the past 2 hours", ("29T12:30", "29T14:30")),
        ("what broke in the last hour and a half", ("29T13:00", "29T14:30")),
        ("what broke in the last 30m", ("29T14:00", "29T14:30")),
        ("what broke over the last hour", ("29T13:30", "29T14:30")),
        ("it began twenty minutes ago", ("29T14:10", "29T14:30")),
        ("it began half an hour ago", ("29T14:00", "29T14:30")),
        ("between 13:40Z and 14:20Z checkout failed", ("29T13:40", "29T14:20")),
        ("checkout failed 13:40–14:20Z", ("29T13:40", "29T14:20")),
        ("checkout failed 13:40-14:20Z", ("29T13:40", "29T14:20")),
        ("checkout failed from 13:40Z to 14:20Z", ("29T13:40", "29T14:20")),
        ("from 23:50Z to 00:10Z", ("28T23:50", "29T00:10")),
        ("from 2026-11-28T23:50Z to 00:10Z", ("28T23:50", "29T00:10")),
        ("why did it fail at 14:03Z", ("29T13:33", "29T14:30")),
        ("最近一小时订单报错", ("29T13:30", "29T14:30")),
        ("过去30分钟", ("29T14:00", "29T14:30")),
        ("最近一个半小时", ("29T13:00", "29T14:30")),
        ("最近四十五分钟", ("29T13:45", "29T14:30")),
        ("半小时前开始变慢", ("29T14:00", "29T14:30")),
        ("从14:00Z开始变慢", ("29T14:00", "29T14:30")),
        ("自北京时间22:00以来变慢", ("29T14:00", "29T14:30")),
        ("13:40Z到14:20Z之间报错", ("29T13:40", "29T14:20")),
        ("the checkout is slow, last 3 deploys look fine", None),
        ("what is wrong with v3.2.0 on 10.0.0.7:8080?", None),
        ("what happened last December?", None),
        ("exit", None),
        ("", None),
    ],
)
def test_the_window_in_the_questions_own_words(question: str, expected: tuple[str, str] | None) -> None:
    assert span(question) == expected


def test_a_relative_window_ends_at_the_alert() -> None:
    alert = datetime(2026, 11, 20, 3, 15, tzinfo=UTC)
    assert span(HALF_HOUR_QUESTION, alert) == ("20T02:45", "20T03:15")
    assert span("slow since 23:50Z", alert) == ("19T23:50", "20T03:15")


@pytest.mark.parametrize(
    "question",
    ["slow since 14:00", "between 13:40 and 14:20", "since 2026-11-29 14:00", "since 2pm", "下午2点开始变慢"],
)
def test_a_zoneless_time_is_refused_with_both_readings(question: str) -> None:
    with pytest.raises(ZonelessTimeError) as refused:
        window_from_question(question, now=NOW)
    text = str(refused.value)
    assert "has no zone" in text
    assert "Z" in text
    assert "+08:00" in text


def test_both_readings_are_the_two_moments() -> None:
    with pytest.raises(ZonelessTimeError, match=r"2026-11-29T14:00:00.000Z.*2026-11-29T06:00:00.000Z"):
        window_from_question("slow since 14:00", now=NOW)


@pytest.mark.parametrize(
    ("question", "begins", "note"),
    [
        ("slow since 20:00", "29T12:00", "20:00 has no time zone: read as 2026-11-29 20:00 CST (+08:00), which is 2026-11-29 12:00Z"),
        ("slow since 03:00", "28T19:00", "03:00 has no time zone: read as 2026-11-29 03:00 CST (+08:00), which is 2026-11-28 19:00Z"),
        ("slow since 2026-11-28 09:00", "28T01:00", "2026-11-28 09:00 has no time zone: read as 2026-11-28 09:00 CST (+08:00), which is 2026-11-28 01:00Z"),
        ("slow since 12:00Z", "29T12:00", ""),
    ],
)  # fmt: skip
def test_a_zoneless_time_is_read_in_the_zone_of_whoever_asks(question: str, begins: str, note: str) -> None:
    heard: list[str] = []
    local = LocalTimes(ZoneInfo("Asia/Shanghai"), heard.append)
    window = window_from_question(question, now=NOW, local=local)
    assert window is not None
    assert f"{window.start:%dT%H:%M}" == begins
    assert "".join(heard) == note


def test_a_zoneless_time_has_the_offset_of_its_own_day() -> None:
    """A night in which clocks go back: what was written before it is summer time."""
    heard: list[str] = []
    local = LocalTimes(ZoneInfo("Europe/Berlin"), heard.append)
    now = datetime(2026, 10, 25, 6, tzinfo=UTC)
    window = window_from_question("slow since 23:30", now=now, local=local)
    assert window is not None
    assert window.start == datetime(2026, 10, 24, 21, 30, tzinfo=UTC)
    assert "23:30 CEST (+02:00)" in heard[0]


@given(st.datetimes(datetime(2026, 11, 1), datetime(2026, 11, 28)), st.integers(1, 600))  # noqa: DTZ001
def test_a_stamped_range_is_taken_exactly(start: datetime, minutes: int) -> None:
    first = start.replace(microsecond=0, tzinfo=UTC)
    last = first + timedelta(minutes=minutes)
    window = window_from_question(
        f"between {format_timestamp(first)} and {format_timestamp(last)} it failed", now=NOW
    )
    assert window is not None
    assert (window.start, window.end) == (first, last)


@given(st.text(alphabet="last 半小时前最近12:30Z-ago since half an hour个", max_size=60))
@example("last half an hour")
def test_no_question_breaks_it(question: str) -> None:
    try:
        window = window_from_question(question, now=NOW)
    except ZonelessTimeError:
        return
    assert window is None or window.start < window.end


KNOWN = {
    "orders-api": ["订单接口", "orders service"],
    "orders-db": ["订单库"],
    "cart": ["购物车"],
    "team/billing": [],
    "ns:ledger": [],
    "user_profile": ["profile"],
    "a": ["shared"],
    "b": ["shared"],
}


@pytest.mark.parametrize(
    ("text", "services"),
    [
        (HALF_HOUR_QUESTION, ("orders-api",)),
        ("orders-api is slow", ("orders-api",)),
        ("Orders-API is slow", ("orders-api",)),
        ("orders API is slow", ("orders-api",)),
        ("is orders-db behind orders-api?", ("orders-db", "orders-api")),
        ("team/billing and ns:ledger fail", ("team/billing", "ns:ledger")),
        ("user_profile fails", ("user_profile",)),
        ("user profile fails", ("user_profile",)),
        ("购物车很慢", ("cart",)),
        ("the cart's latency", ("cart",)),
        ("cart很慢", ("cart",)),
    ],
)
def test_services_by_name_and_alias(text: str, services: tuple[str, ...]) -> None:
    found = find_mentioned_services(text, KNOWN)
    assert (found.outcome, found.services) == ("matched", services)


@pytest.mark.parametrize(
    "text",
    [
        "the carts are slow",
        "shopping-cart is slow",
        "old-orders-api is slow",
        "old-orders api is slow",
        "everything is slow",
        "orders-apiv2",
        "",
    ],
)
def test_what_only_looks_alike_is_not_matched(text: str) -> None:
    assert find_mentioned_services(text, KNOWN).outcome == "none"


def test_near_names_are_offered_not_used() -> None:
    assert find_mentioned_services("orders are slow", KNOWN) == MentionedServices(
        "none", ("orders-api", "orders-db")
    )


def test_an_alias_of_two_services_is_ambiguous() -> None:
    assert find_mentioned_services("shared is slow", KNOWN) == MentionedServices(
        "ambiguous", ("a", "b"), ("shared",)
    )
