"""Units of measure as they are written in prose, in record keys and in `unit` fields, and what they measure."""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from opsleuth.verification.lexicon import words

Dimension = Literal["count", "ratio", "share", "time", "bytes", "rate", "money"]


class Unit(NamedTuple):
    """`factors` turn a written number into the base unit (s, byte, fraction, 1/s, 1); several where usage differs."""

    dimension: Dimension
    factors: tuple[float, ...]


def _table(dimension: Dimension, *rows: tuple[str, tuple[float, ...]]) -> dict[str, Unit]:
    return {word: Unit(dimension, factors) for spellings, factors in rows for word in spellings.split()}


_BYTES = tuple(
    (f"{p}B {p}b {p}byte {p}bytes" if p else "B byte bytes 字节", (1000.0**i, 1024.0**i) if i else (1.0,))
    for i, p in enumerate(("", "k", "M", "G", "T"))
)
UNITS: dict[str, Unit] = {
    **_table(
        "time",
        ("ns nanosecond nanoseconds 纳秒", (1e-9,)),
        ("us µs μs microsecond microseconds 微秒", (1e-6,)),
        ("ms msec msecs millisecond milliseconds 毫秒", (1e-3,)),
        ("s sec secs second seconds 秒 秒钟", (1.0,)),
        ("min mins minute minutes 分钟 分", (60.0,)),
        ("h hr hrs hour hours 小时 个小时", (3600.0,)),
        ("d day days 天", (86400.0,)),
        ("week weeks 周", (604800.0,)),
    ),
    **_table("bytes", *_BYTES, ("KB", (1000.0, 1024.0))),
    **_table(
        "bytes",
        ("KiB Ki KIB", (1024.0,)),
        ("MiB Mi MIB", (1024.0**2,)),
        ("GiB Gi GIB", (1024.0**3,)),
        ("TiB Ti TIB", (1024.0**4,)),
    ),
    **_table("share", ("% percent pct percentage pp 个百分点 百分点", (0.01,)), ("‰", (0.001,))),
    **_table("ratio", ("x × fold 倍", (1.0,))),
    **_table("rate", ("rps qps tps /s req/s requests/s ops/s", (1.0,)), ("rpm /min req/min", (1 / 60,))),
    **_table("money", ("USD EUR GBP JPY CNY dollars dollar euros euro 元 美元", (1.0,))),
    **_table(
        "count",
        ("k K thousand 千", (1e3,)),
        ("M mn million", (1e6,)),
        ("G bn billion", (1e9,)),
        ("T trillion", (1e12,)),
        ("万", (1e4,)),
        ("亿", (1e8,)),
        ("mcore mcores millicores millicore", (1e-3,)),
        ("core cores 次 个 条 台", (1.0,)),
    ),
}
# `500m` is half a core to Kubernetes and some minutes to everybody else.
AMBIGUOUS: dict[str, tuple[Unit, ...]] = {
    "m": (Unit("time", (60.0,)), Unit("count", (1e-3,))),
    "times": (Unit("ratio", (1.0,)), Unit("count", (1.0,))),
    "percentage points": (Unit("share", (0.01,)),),
    "percentage point": (Unit("share", (0.01,)),),
}
_BY_LENGTH = sorted([*UNITS, *AMBIGUOUS], key=len, reverse=True)
# No letter may follow a unit that ends in a letter: `3 min` is no `3 m`.
UNIT = re.compile(
    r"[ \u00a0\u202f-]?(?P<unit>"
    + "|".join(re.escape(word) for word in _BY_LENGTH)
    + r")(?P<end>(?![A-Za-z0-9_]))"
)
_CODES = {"percent": "%", "count": "", "none": "", "bytes/second": "bytes", "1": ""}


def lookup(word: str) -> tuple[Unit, ...]:
    """The units that `word` may stand for; empty if it is none."""
    if word in AMBIGUOUS:
        return AMBIGUOUS[word]
    unit = UNITS.get(word) or UNITS.get(word.lower())
    return (unit,) if unit else ()


def of_field(text: str) -> tuple[Unit, ...]:
    """The unit that a source's own `unit` field names (`s`, `%`, `Milliseconds`, `Percent`); empty if unknown."""
    return lookup(_CODES.get(text.strip().lower(), text.strip()))


_KEY_UNITS = {
    "ns": "ns", "us": "us", "ms": "ms", "millis": "ms", "milliseconds": "ms", "sec": "s", "secs": "s",
    "seconds": "s", "mins": "min", "minutes": "min", "hours": "h", "days": "d", "pct": "%", "percent": "%",
    "percentage": "%", "bytes": "B", "kb": "KB", "mb": "MB", "gb": "GB", "kib": "KiB", "mib": "MiB",
    "gib": "GiB", "rps": "rps", "qps": "qps", "usd": "USD",
}  # fmt: skip
_LAST_ONLY = {"s": "s", "h": "h"}
_COUNTS = words(
    "count counts n rows scanned matched calls points samples occurrences restarts tries lines spans size"
    " requests errors restart attempts"
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


@lru_cache(maxsize=4096)
def of_key(key: str) -> tuple[Unit, ...] | None:
    """The unit that a record's key names (`p50_ms`, `errorPct`); a count for keys that count; None if it says nothing."""
    parts = [word.lower() for word in _WORDS.findall(key[:200])]
    for word in parts:
        if word in _KEY_UNITS:
            return lookup(_KEY_UNITS[word])
    if parts and parts[-1] in _LAST_ONLY:
        return lookup(_LAST_ONLY[parts[-1]])
    if parts and parts[-1] in _COUNTS:
        return (Unit("count", (1.0,)),)
    return None
