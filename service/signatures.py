"""Signed messages: ours to others, and those of others to us. HMAC-SHA256 over exactly the bytes that travel.

Ours carries its time, which is part of what is signed, so that an old message cannot be sent again:
`X-Opsleuth-Signature: t=1764424800,v1=<hex of "t.body">`.
"""

import hashlib
import hmac
import re
from collections.abc import Mapping

HEADER = "X-Opsleuth-Signature"
TOLERANCE = 300
"""Seconds by which the clock of a sender may differ from ours."""

_OURS = re.compile(r"t=(\d{1,12}),v1=([0-9a-f]{64})")


def sign(secret: str, body: bytes, at: float) -> str:
    """The value of our header for a message that is sent at this moment, in seconds since the epoch."""
    moment = str(int(at))
    return f"t={moment},v1={_hmac(secret, moment.encode() + b'.' + body)}"


def is_signed(kind: str, secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Whether a message of a system of this kind carries its right signature. Header names are in lower case."""
    return _CHECKS[kind](secret, headers, body, now)


def _ours(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    found = _OURS.fullmatch(headers.get(HEADER.lower(), ""))
    if found is None or abs(now - int(found[1])) > TOLERANCE:
        return False
    return _same(found[2], _hmac(secret, found[1].encode() + b"." + body))


def _pagerduty(secret: str, headers: Mapping[str, str], body: bytes, _: float) -> bool:
    """`v1=` and the hex digits; several while a secret is changed for another."""
    given = headers.get("x-pagerduty-signature", "").split(",")
    right = "v1=" + _hmac(secret, body)
    return sum(_same(one.strip(), right) for one in given) > 0


def _grafana(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """The hex digits, over the time as well where Grafana is told to send one."""
    moment = headers.get("x-grafana-alerting-signature-timestamp")
    if moment is not None:
        if not re.fullmatch(r"\d{1,12}", moment) or abs(now - int(moment)) > TOLERANCE:
            return False
        body = moment.encode() + b":" + body
    return _same(headers.get("x-grafana-alerting-signature", ""), _hmac(secret, body))


_CHECKS = {"opsleuth": _ours, "pagerduty": _pagerduty, "grafana": _grafana}


def _hmac(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right.encode())
