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


def sign_message(secret: str, body: bytes, at: float) -> str:
    """The value of our header for a message that is sent at this moment, in seconds since the epoch."""
    moment = str(int(at))
    return f"t={moment},v1={_hmac_hex(secret, moment.encode() + b'.' + body)}"


def has_valid_signature(kind: str, secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """Whether a message of a system of this kind carries its right signature. Header names are in lower case."""
    return _CHECKS[kind](secret, headers, body, now)


def _check_own_signature(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    found = _OURS.fullmatch(headers.get(HEADER.lower(), ""))
    if found is None or abs(now - int(found[1])) > TOLERANCE:
        return False
    return _equal_in_constant_time(found[2], _hmac_hex(secret, found[1].encode() + b"." + body))


def _check_pagerduty_signature(secret: str, headers: Mapping[str, str], body: bytes, _: float) -> bool:
    """`v1=` and the hex digits; several while a secret is changed for another."""
    given = headers.get("x-pagerduty-signature", "").split(",")
    right = "v1=" + _hmac_hex(secret, body)
    return sum(_equal_in_constant_time(one.strip(), right) for one in given) > 0


def _check_grafana_signature(secret: str, headers: Mapping[str, str], body: bytes, now: float) -> bool:
    """The hex digits, over the time as well where Grafana is told to send one."""
    moment = headers.get("x-grafana-alerting-signature-timestamp")
    if moment is not None:
        if not re.fullmatch(r"\d{1,12}", moment) or abs(now - int(moment)) > TOLERANCE:
            return False
        body = moment.encode() + b":" + body
    return _equal_in_constant_time(headers.get("x-grafana-alerting-signature", ""), _hmac_hex(secret, body))


_CHECKS = {
    "opsleuth": _check_own_signature,
    "pagerduty": _check_pagerduty_signature,
    "grafana": _check_grafana_signature,
}


def _hmac_hex(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()


def _equal_in_constant_time(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), right.encode())
