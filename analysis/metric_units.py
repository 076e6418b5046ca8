"""The unit of a metric: its own, else the one that its name ends in, else, for shares, the one that its values allow.

`http_server_duration_p99_ms` is in milliseconds, `requests_per_sec` a rate, `error_rate_pct` in percent. Where neither
says so the unit is not known, and nothing is computed from it that needs one.
"""

import re
from collections.abc import Sequence

# Suffixes as exporters, statsd and cloud monitors write them; the first that matches decides.
_NAMED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (unit, re.compile(pattern))
    for unit, pattern in (
        ("count/s", r"_per_?s(ec|econd)?s?(_|$)|_(rps|qps|tps|ops|iops)(_|$)|^(rps|qps|tps|iops)(_|$)"),
        ("count/min", r"_per_?min(ute)?s?(_|$)|_(rpm|cpm)(_|$)|^rpm$"),
        ("count/hour", r"_per_?hour(_|$)"),
        ("percent", r"_(pct|percent|percentage|perc)(_|$)"),
        ("ratio", r"_(ratio|fraction|share|proportion)(_|$)"),
        ("ms", r"_(ms|msec|millis|milliseconds?)(_|$)"),
        ("us", r"_(us|usec|micros|microseconds?)(_|$)"),
        ("ns", r"_(ns|nsec|nanos|nanoseconds?)(_|$)"),
        ("s", r"_(s|secs?|seconds?)(_|$)"),
        ("kib", r"_(kib|kibibytes)(_|$)"),
        ("mib", r"_(mib|mebibytes)(_|$)"),
        ("gib", r"_(gib|gibibytes)(_|$)"),
        ("kb", r"_(kb|kilobytes)(_|$)"),
        ("mb", r"_(mb|megabytes)(_|$)"),
        ("gb", r"_(gb|gigabytes)(_|$)"),
        ("bytes", r"_bytes(_|$)"),
        ("count", r"_(total|count|sum)(_|$)"),
    )
)
_LONGEST_NAME = 300
"""Characters of a metric's name that are looked at: patterns over a name may take the square of its length."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAMES_SHARE = re.compile(
    r"utili[sz]ation|saturation|(error|fail\w*|success|hit|miss|cancel\w*)_?rate$|availability"
)
_OVERSHOOTS = re.compile(r"utili[sz]ation|saturation")
_FULLY_USED = 1.1
_RATE = re.compile(r"(?:/|\bper\s*)(\d*)\s*(s|secs?|seconds?|m|mins?|minutes?|h|hours?)$", re.IGNORECASE)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def to_snake_case(name: str) -> str:
    """`CPUUtilization` and `cpu-utilization` as `cpuutilization` and `cpu_utilization`: one form for matching."""
    return re.sub(r"\W+", "_", _CAMEL.sub("_", name[:_LONGEST_NAME])).lower()


def infer_unit(metric: str, unit: str, values: Sequence[float] = ()) -> str:
    """The unit in lower case; empty where nothing says which it is. `values` tell percent from ratio in a share."""
    if word := unit.strip().lower():
        return word
    name = to_snake_case(metric)
    named = next((unit for unit, pattern in _NAMED if pattern.search(name)), "")
    if named or not _NAMES_SHARE.search(name) or not values:
        return named
    most = max(values)
    # A rate over some seconds overshoots what is fully used by a little.
    full = _FULLY_USED if _OVERSHOOTS.search(name) else 1.0
    return "ratio" if most <= full and min(values) >= 0.0 else "percent" if most <= 100.0 else ""


def seconds_of_rate(unit: str) -> float | None:
    """The seconds over which a rate counts (`req/s`: 1, `count/min`: 60); None for what is a number of events.

    A count in a period of its own (`count/5min`) has been added up already: it is a number of events.
    """
    found = _RATE.search(unit.strip())
    if found is None or found.group(1) not in ("", "1"):
        return None
    return _SECONDS[found.group(2)[0].lower()]
