"""Time zones as logs spell them: offsets of every spelling, and twelve abbreviations that mean one offset.

An abbreviation that is ambiguous (`IST`, `CST`, `BST`) or not listed has no offset here: a line with it has no time that
supports a claim until the settings of the source say what it means.
"""

import re
from collections.abc import Mapping

FIXED_OFFSETS: Mapping[str, int] = {
    "GMT": 0,
    "CET": 3_600,
    "CEST": 7_200,
    "EET": 7_200,
    "EEST": 10_800,
    "JST": 32_400,
    "EST": -18_000,
    "EDT": -14_400,
    "MST": -25_200,
    "MDT": -21_600,
    "PST": -28_800,
    "PDT": -25_200,
}
"""Seconds east of Greenwich. UTC and Z are not abbreviations of a place and are always understood."""
AMBIGUOUS: Mapping[str, str] = {
    "IST": "India +05:30, Israel +02:00, Ireland +01:00",
    "CST": "China +08:00, North America -06:00, Cuba -05:00",
    "BST": "Britain +01:00, Bangladesh +06:00",
}
# Names that stand for a zone where they follow a time; what they mean is left to the settings.
_OTHERS = [
    "ACDT",
    "ACST",
    "ADT",
    "AEDT",
    "AEST",
    "AKDT",
    "AKST",
    "AMT",
    "ART",
    "AST",
    "AWST",
    "BRT",
    "CAT",
    "CDT",
    "CLT",
    "CLST",
    "COT",
    "EAT",
    "HDT",
    "HKT",
    "HST",
    "ICT",
    "IDT",
    "KST",
    "MSK",
    "MYT",
    "NDT",
    "NPT",
    "NST",
    "NZDT",
    "NZST",
    "PET",
    "PHT",
    "PKT",
    "SAST",
    "SGT",
    "UYT",
    "VET",
    "WAT",
    "WEST",
    "WET",
    "WIB",
    "WIT",
    "WITA",
]
_NAMES = sorted({*FIXED_OFFSETS, *AMBIGUOUS, *_OTHERS, "UTC"}, key=lambda name: (-len(name), name))
_FULL = r"[+\-−]\d\d:?\d\d(?::?\d\d)?(?!:?\d)"
_HOURS = r"[+\-−]\d\d(?!:?\d)"
ZONE = rf"Z(?!\w)|(?:UTC|GMT)?{_FULL}|(?:(?<! )|UTC|GMT){_HOURS}|(?:{'|'.join(_NAMES)})(?![\w/])"
"""A zone after a time, as a regular expression. Hours alone count only where they adjoin the time: ` -12` may be a number."""
ANY_ZONE = rf"{ZONE}|{_HOURS}|[A-Z]{{3,5}}(?![\w/])"
"""The same where a format always writes a zone: a name that is not listed counts as one."""
_SPELLED = re.compile(r"(?:UTC|GMT)?([+\-−])(\d\d):?(\d\d)?:?(\d\d)?")


def read_offset(zone: str, meanings: Mapping[str, float] | None = None) -> float | None:
    """Seconds east of Greenwich of a zone as it is spelled; None where it is not known which is meant.

    `meanings` are those that the settings give to abbreviations; they come first.
    """
    if meanings and zone in meanings:
        return meanings[zone]
    if zone in ("Z", "z", "UTC"):
        return 0.0
    if found := _SPELLED.fullmatch(zone):
        sign = 1 if found[1] == "+" else -1
        return sign * (int(found[2]) * 3_600 + int(found[3] or 0) * 60 + int(found[4] or 0))
    return FIXED_OFFSETS.get(zone)


def explain_unknown_zone(zone: str) -> str:
    """What is wrong with an abbreviation, with the remedy."""
    why = f"it may mean {AMBIGUOUS[zone]}" if zone in AMBIGUOUS else "its offset is not known here"
    return (
        f"the time zone {zone} is not understood ({why}): give --log-zone {zone}=+hh:mm,"
        f' or set zones = {{ {zone} = "+hh:mm" }} in the source'
    )
