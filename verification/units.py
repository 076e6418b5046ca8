"""Units of measure as they are written in prose, in record keys and in `unit` fields, and what they measure."""

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from opsleuth.verification.lexicon import split_word_list

Dimension = Literal["count", "ratio", "share", "time", "bytes", "rate", "money"]


class MeasureUnit(NamedTuple):
    """`factors` turn a written number into the base unit (s, byte, fraction, 1/s, 1); several where usage differs."""

    dimension: Dimension
    factors: tuple[float, ...]


def _unit_table(dimension: Dimension, *rows: tuple[str, tuple[float, ...]]) -> dict[str, MeasureUnit]:
    return {
        word: MeasureUnit(dimension, factors) for spellings, factors in rows for word in spellings.split()
    }


_BYTES = tuple(
    (f"{p}B {p}b {p}byte {p}bytes" if p else "B byte bytes 字节", (1000.0**i, 1024.0**i) if i else (1.0,))
    for i, p in enumerate(("", "k", "M", "G", "T"))
)
UNITS: dict[str, MeasureUnit] = {
    **_unit_table(
        "time",
        ("ns nanosecond nanoseconds 纳秒", (1e-9,)),
        ("us µs μs microsecond microseconds 微秒", (1e-6,)),
        ("ms msec msecs millisecond milliseconds Millisekunden 毫秒", (1e-3,)),
        ("s sec secs second seconds Sekunde Sekunden 秒 秒钟", (1.0,)),
        ("min mins minute minutes Minute Minuten 分钟 分", (60.0,)),
        ("h hr hrs hour hours Stunde Stunden 小时 个小时", (3600.0,)),
        ("d day days Tag Tage Tagen 天", (86400.0,)),
        ("week weeks 周", (604800.0,)),
    ),
    **_unit_table("bytes", *_BYTES, ("KB", (1000.0, 1024.0))),
    **_unit_table(
        "bytes",
        ("KiB Ki KIB", (1024.0,)),
        ("MiB Mi MIB", (1024.0**2,)),
        ("GiB Gi GIB", (1024.0**3,)),
        ("TiB Ti TIB", (1024.0**4,)),
    ),
    **_unit_table("share", ("% percent pct percentage pp Prozent 个百分点 百分点", (0.01,)), ("‰", (0.001,))),
    **_unit_table("ratio", ("x × fold 倍", (1.0,))),
    **_unit_table("rate", ("rps qps tps /s req/s requests/s ops/s", (1.0,)), ("rpm /min req/min", (1 / 60,))),
    **_unit_table("money", ("USD EUR GBP JPY CNY dollars dollar euros euro 元 美元", (1.0,))),
    **_unit_table(
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
AMBIGUOUS: dict[str, tuple[MeasureUnit, ...]] = {
    "m": (MeasureUnit("time", (60.0,)), MeasureUnit("count", (1e-3,))),
    "times": (MeasureUnit("ratio", (1.0,)), MeasureUnit("count", (1.0,))),
    "per cent": (MeasureUnit("share", (0.01,)),),
    "percentage points": (MeasureUnit("share", (0.01,)),),
    "percentage point": (MeasureUnit("share", (0.01,)),),
}
_BY_LENGTH = sorted([*UNITS, *AMBIGUOUS], key=len, reverse=True)
# No letter may follow a unit that ends in a letter: `3 min` is no `3 m`.
UNIT = re.compile(
    r"[ \u00a0\u202f-]?(?P<unit>"
    + "|".join(re.escape(word) for word in _BY_LENGTH)
    + r")(?P<end>(?![A-Za-z0-9_]))"
)
_CODES = {"percent": "%", "count": "", "none": "", "bytes/second": "bytes", "1": ""}


def lookup_unit(word: str) -> tuple[MeasureUnit, ...]:
    """The units that `word` may stand for; empty if it is not a unit."""
    if word in AMBIGUOUS:
        return AMBIGUOUS[word]
    unit = UNITS.get(word) or UNITS.get(word.lower())
    return (unit,) if unit else ()


def unit_of_field(text: str) -> tuple[MeasureUnit, ...]:
    """The unit that a source's own `unit` field names (`s`, `%`, `Milliseconds`, `Percent`); empty if unknown."""
    return lookup_unit(_CODES.get(text.strip().lower(), text.strip()))


_KEY_UNITS = {
    "ns": "ns", "us": "us", "ms": "ms", "millis": "ms", "milliseconds": "ms", "sec": "s", "secs": "s",
    "seconds": "s", "mins": "min", "minutes": "min", "hours": "h", "days": "d", "pct": "%", "percent": "%",
    "percentage": "%", "bytes": "B", "kb": "KB", "mb": "MB", "gb": "GB", "kib": "KiB", "mib": "MiB",
    "gib": "GiB", "rps": "rps", "qps": "qps", "usd": "USD",
}  # fmt: skip
_LAST_ONLY = {"s": "s", "h": "h"}
_COUNTS = split_word_list(
    "count counts n rows scanned matched calls points samples occurrences restarts tries lines spans size"
    " requests errors restart attempts"
)
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")


@lru_cache(maxsize=4096)
def unit_of_key(key: str) -> tuple[MeasureUnit, ...] | None:
    """The unit that a record's key names (`p50_ms`, `errorPct`); a count for keys that count; None if it says nothing."""
    parts = [word.lower() for word in _WORDS.findall(key[:200])]
    if "per" in parts:
        return None  # a rate: `calls_per_sec` is not a number of seconds
    for word in parts:
        if word in _KEY_UNITS:
            return lookup_unit(_KEY_UNITS[word])
    if parts and parts[-1] in _LAST_ONLY:
        return lookup_unit(_LAST_ONLY[parts[-1]])
    if parts and parts[-1] in _COUNTS:
        return (MeasureUnit("count", (1.0,)),)
    return None


def unit_word_of_key(key: str) -> str:
    """The unit that a record's key names, as people write it (`ms`, `%`, `B`); empty if it names none."""
    parts = [word.lower() for word in _WORDS.findall(key[:200])]
    if "per" in parts:
        return ""
    for word in parts:
        if word in _KEY_UNITS:
            return _KEY_UNITS[word]
    return _LAST_ONLY.get(parts[-1], "") if parts else ""
